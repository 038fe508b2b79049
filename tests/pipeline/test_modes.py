"""Modes of Chrys hooks: blocking ones first, what goes on in the background, what is detached; drains and bounds."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from hooksd.model.decision import Decision
from hooksd.model.errors import ProtocolError
from hooksd.model.outcome import Outcome
from hooksd.model.report import HandlerReport, Status
from hooksd.pipeline.background import DrainSpan, Kind, Work, drain
from hooksd.pipeline.execution import Execution
from hooksd.pipeline.refusals import execution_closed
from hooksd.protocol.errors import ErrorCode
from hooksd.protocol.methods.executions import DrainScope
from hooksd.protocol.methods.hooks import HookTestParams


Bench = Any
"""The class is in conftest.py, which cannot be imported."""

PAYLOADS: dict[str, dict[str, Any]] = {
    "before_tool_call": {
        "tool": {"name": "run_shell", "kind": "shell", "call_id": "c-1", "args": {"command": "one"}}
    },
    "after_turn": {"turn": 1, "status": "ok", "failed": False},
    "user_prompt_submit": {"text": "do it", "injected": False},
}

GATED = "until [ -e go ]; do sleep 0.02; done; "


class Chrys:
    """A bench whose agent is Chrys."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.workspace: Path = bench.workspace
        self.hooks_yaml: Path = bench.root / "home" / ".chrys" / "hooks" / "hooks.yaml"
        self.hooks_yaml.parent.mkdir(parents=True)
        self.started = False

    async def configure(self, *hooks: dict[str, Any], **settings: Any) -> None:
        """Write the hooks and begin."""
        text = json.dumps({"version": 1, "settings": settings, "hooks": hooks})
        self.bench.write(self.hooks_yaml, text)
        if not self.started:
            self.started = True
            await self.bench.start()

    async def open(self, execution_id: str = "run-1") -> Execution:
        return await self.bench.open(execution_id, agent="chrys")

    async def dispatch(self, event: str, payload: dict[str, Any] | None = None, **more: Any) -> Outcome:
        execution = more.pop("execution", None) or await self.open()
        given = PAYLOADS.get(event, {}) if payload is None else payload
        return await self.bench.dispatch(event, given, execution=execution, **more)

    async def drain(self, scope: DrainScope, grace_s: float | None = None) -> Any:
        return await self.bench.pipeline.executions.drain("run-1", scope, grace_s)

    def finished(self, hook: str | None = None) -> list[dict[str, Any]]:
        """The records of what has ended, of one hook or of all."""
        return [
            record
            for record in self.bench.told("hook.finished")
            if hook is None or record["hook"].endswith(f":{hook}")
        ]

    async def until(self, holds: Any) -> None:
        await self.bench.until(holds)

    def go(self) -> None:
        (self.workspace / "go").touch()


@pytest.fixture
def chrys(bench: Bench) -> Chrys:
    return Chrys(bench)


def hook(id_: str, event: str, shell: str, mode: str = "blocking", **execution: Any) -> dict[str, Any]:
    match = execution.pop("match", None)
    return {
        "id": id_,
        "event": event,
        "run": {"type": "shell", "shell": shell},
        "execution": {"mode": mode, **execution},
        **({"match": match} if match else {}),
    }


def answer(text: str) -> str:
    return f"printf '%s' '{text}' > \"$CHRYS_HOOK_RESULT\"; "


def by_id(outcome: Outcome) -> dict[str, HandlerReport]:
    return {report.hook.rpartition(":")[2]: report for report in outcome.handlers}


# ----------------------------------------------------------------------------------------------------------------------
# Order


async def test_all_blocking_hooks_run_before_any_other_wherever_they_stand(chrys: Chrys) -> None:
    await chrys.configure(
        hook("a", "before_tool_call", "echo a >> order", "async"),
        hook("b", "before_tool_call", "sleep 0.1; echo b >> order"),
        hook("c", "before_tool_call", "echo c >> order", "fire_and_forget"),
        hook("d", "before_tool_call", "echo d >> order"),
    )

    outcome = await chrys.dispatch("before_tool_call")

    assert [(one.hook[-1], one.status) for one in outcome.handlers] == [
        ("b", Status.OK),
        ("d", Status.OK),
        ("a", Status.STARTED),
        ("c", Status.STARTED),
    ]
    await chrys.until(lambda: len(chrys.finished()) == 4)
    order = (chrys.workspace / "order").read_text().split()
    assert order[:2] == ["b", "d"]
    assert sorted(order[2:]) == ["a", "c"]


@pytest.mark.parametrize("event", ["before_tool_call", "user_prompt_submit"])
async def test_a_block_keeps_every_background_hook_from_starting(chrys: Chrys, event: str) -> None:
    await chrys.configure(
        hook("stop", event, answer('{"action": "block", "reason": "no"}')),
        hook("a", event, "touch ran", "async"),
        hook("f", event, "touch ran", "fire_and_forget"),
        hook("d", event, "touch ran", "fire_and_forget", detach=True),
    )

    outcome = await chrys.dispatch(event)

    assert outcome.decision is Decision.BLOCK
    assert [one.status for one in outcome.handlers] == [Status.BLOCKED] + [Status.SKIPPED] * 3
    assert not (chrys.workspace / "ran").exists()


async def test_a_block_that_cannot_stop_anything_keeps_nothing_from_starting(chrys: Chrys) -> None:
    await chrys.configure(
        hook("stop", "after_turn", answer('{"action": "block", "reason": "no"}')),
        hook("a", "after_turn", "touch ran", "async"),
    )

    outcome = await chrys.dispatch("after_turn")

    assert outcome.decision is Decision.NONE
    await chrys.until((chrys.workspace / "ran").exists)
    await chrys.until(lambda: len(chrys.finished()) == 2)


@pytest.mark.parametrize("mode", ["async", "fire_and_forget", "detached"])
async def test_background_hooks_match_and_get_the_final_arguments(chrys: Chrys, mode: str) -> None:
    more = {"detach": True} if mode == "detached" else {}
    mode = "fire_and_forget" if more else mode
    copy = "cp $CHRYS_HOOK_PAYLOAD_FILE seen.new; mv seen.new seen"
    await chrys.configure(
        hook(
            "late",
            "before_tool_call",
            copy,
            mode,
            match={"args": {"command": {"equals": "two"}}},
            **more,
        ),
        hook(
            "never",
            "before_tool_call",
            "touch never",
            mode,
            match={"args": {"command": {"equals": "one"}}},
            **more,
        ),
        hook(
            "first", "before_tool_call", answer('{"action": "modify", "args_override": {"command": "two"}}')
        ),
    )

    outcome = await chrys.dispatch("before_tool_call")

    assert outcome.arguments == {"command": "two"}
    assert [(one.hook.rpartition(":")[2], one.status) for one in outcome.handlers] == [
        ("first", Status.OK),
        ("late", Status.STARTED),
    ]
    await chrys.until((chrys.workspace / "seen").exists)
    assert json.loads((chrys.workspace / "seen").read_text())["tool"]["args"] == {"command": "two"}
    await chrys.until(lambda: chrys.finished("late"))
    assert not (chrys.workspace / "never").exists()


async def test_what_waits_for_its_turn_sees_the_event_as_it_was(chrys: Chrys) -> None:
    await chrys.configure(
        hook("slow", "before_tool_call", GATED, "async"),
        hook("late", "before_tool_call", "cp $CHRYS_HOOK_PAYLOAD_FILE seen", "async"),
        max_parallel_hooks=1,
    )
    args = {"command": "as it was"}
    tool = {"name": "run_shell", "kind": "shell", "call_id": "c-1", "args": args}

    await chrys.dispatch("before_tool_call", {"tool": tool})
    chrys.go()

    await chrys.until(lambda: len(chrys.finished()) == 2)
    assert json.loads((chrys.workspace / "seen").read_text())["tool"]["args"] == {"command": "as it was"}


# ----------------------------------------------------------------------------------------------------------------------
# Bounds


async def test_background_hooks_of_a_document_are_bounded_per_execution(chrys: Chrys) -> None:
    count = "mkdir run.$$; ls -d run.* | wc -l >> counts; sleep 0.1; rmdir run.$$"
    await chrys.configure(
        *(hook(f"h{at}", "after_turn", count, "async") for at in range(6)), max_parallel_hooks=2
    )

    await chrys.dispatch("after_turn")
    await chrys.drain(DrainScope.TURN)

    counts = [int(line) for line in (chrys.workspace / "counts").read_text().split()]
    assert len(counts) == 6
    assert max(counts) <= 2


async def test_gates_never_wait_behind_slow_background_hooks(chrys: Chrys) -> None:
    chrys.bench.settings("[limits]\nmax_running_background = 1\n")
    await chrys.configure(
        *(hook(f"slow{at}", "after_turn", GATED, "async") for at in range(3)),
        hook("gate", "before_tool_call", answer('{"action": "block", "reason": "quick"}')),
        max_parallel_hooks=1,
    )
    await chrys.dispatch("after_turn")

    outcome = await chrys.dispatch("before_tool_call")

    assert outcome.decision is Decision.BLOCK
    assert by_id(outcome)["gate"].queued_ms == 0
    assert not chrys.finished("slow0")
    chrys.go()
    await chrys.drain(DrainScope.TURN)
    assert len(chrys.finished()) == 4


async def test_a_hook_that_waits_for_another_with_one_slot_ends_in_a_timeout(chrys: Chrys) -> None:
    await chrys.configure(
        hook("waits", "after_turn", "until [ -e made ]; do sleep 0.02; done", "async", timeout_seconds=0.3),
        hook("makes", "after_turn", "touch made", "async"),
        max_parallel_hooks=1,
    )

    await chrys.dispatch("after_turn")
    await chrys.drain(DrainScope.TURN)

    assert [record["status"] for record in chrys.finished()] == ["timeout", "ok"]


async def test_fifty_events_run_all_their_hooks(chrys: Chrys) -> None:
    await chrys.configure(hook("count", "after_turn", "echo x >> count", "async"))
    execution = await chrys.open()

    outcomes = [await chrys.dispatch("after_turn", execution=execution) for _ in range(50)]
    drained = await chrys.drain(DrainScope.TURN)

    ids = {one.invocation_id for outcome in outcomes for one in outcome.handlers}
    assert len(ids) == 50
    assert set(drained.finished) <= ids
    assert (chrys.workspace / "count").read_text() == "x\n" * 50
    assert len(chrys.finished()) == 50


async def test_detached_hooks_are_bounded_too_and_take_no_slot(chrys: Chrys) -> None:
    chrys.bench.settings("[limits]\nmax_running_background = 1\nmax_detached = 2\n")
    await chrys.configure(
        *(hook(f"d{at}", "after_turn", GATED, "fire_and_forget", detach=True) for at in range(3)),
        hook("a", "after_turn", "true", "async"),
        max_parallel_hooks=1,
    )

    outcome = await chrys.dispatch("after_turn")

    reports = by_id(outcome)
    assert [reports[name].status for name in ("d0", "d1", "d2", "a")] == [
        Status.STARTED,
        Status.STARTED,
        Status.FAILED,
        Status.STARTED,
    ]
    problem = reports["d2"].problem
    assert problem is not None
    assert problem.kind == "busy"
    assert "max_detached" in problem.message
    await chrys.until(lambda: chrys.finished("a"))
    chrys.go()
    await chrys.until(lambda: chrys.finished("d0") and chrys.finished("d1"))


# ----------------------------------------------------------------------------------------------------------------------
# Drains


async def test_a_turn_drain_waits_for_async_hooks_and_for_no_others(chrys: Chrys) -> None:
    await chrys.configure(
        hook("a", "after_turn", "sleep 0.2; touch a-done", "async"),
        hook("f", "after_turn", GATED, "fire_and_forget"),
        hook("d", "after_turn", GATED, "fire_and_forget", detach=True),
        hook("s", "session_start", GATED, "async"),
    )
    execution = await chrys.open()
    session = by_id(await chrys.dispatch("session_start", execution=execution))
    turn = by_id(await chrys.dispatch("after_turn", execution=execution))

    drained = await chrys.drain(DrainScope.TURN)

    assert (chrys.workspace / "a-done").exists()
    assert drained.finished == (turn["a"].invocation_id,)
    assert drained.still_running == (turn["f"].invocation_id,)
    chrys.go()
    drained = await chrys.drain(DrainScope.SESSION)
    assert session["s"].invocation_id in drained.finished
    await chrys.until(lambda: len(chrys.finished()) == 4)


async def test_after_a_drain_the_execution_goes_on_and_after_a_close_it_does_not(chrys: Chrys) -> None:
    await chrys.configure(hook("a", "after_turn", "echo ran >> runs", "async"))
    execution = await chrys.open()
    for turn in (1, 2):
        report = by_id(await chrys.dispatch("after_turn", execution=execution))["a"]

        drained = await chrys.drain(DrainScope.SESSION)

        # One that had ended by then was nothing to wait for.
        assert drained.finished in ((report.invocation_id,), ())
        assert (chrys.workspace / "runs").read_text().count("ran") == turn

    await chrys.bench.pipeline.executions.close("run-1")

    with pytest.raises(ProtocolError) as raised:
        chrys.bench.pipeline.executions.get("run-1")
    assert raised.value.code == ErrorCode.UNKNOWN_EXECUTION
    assert len(chrys.finished("a")) == 2


async def test_the_grace_of_a_session_drain_is_the_one_of_the_hooks_document(chrys: Chrys) -> None:
    await chrys.configure(
        hook("a", "after_turn", "echo $$ > pid; sleep 30", "async"), shutdown_grace_seconds=0.2
    )
    report = by_id(await chrys.dispatch("after_turn"))["a"]
    await chrys.until(lambda: (chrys.workspace / "pid").exists() and (chrys.workspace / "pid").read_text())
    began_at = time.monotonic()

    drained = await chrys.drain(DrainScope.SESSION)

    assert 0.15 < time.monotonic() - began_at < 4
    assert drained.cancelled == (report.invocation_id,)
    pid = int((chrys.workspace / "pid").read_text())
    await chrys.until(lambda: not os.path.exists(f"/proc/{pid}"))
    assert chrys.finished("a")[0]["status"] == "cancelled"


async def test_a_close_spares_what_nobody_drains(chrys: Chrys) -> None:
    await chrys.configure(
        hook("i", "user_interrupt", GATED, "async"),
        hook("f", "after_turn", GATED, "fire_and_forget"),
        hook("d", "after_turn", GATED, "fire_and_forget", detach=True),
        shutdown_grace_seconds=0,
    )
    execution = await chrys.open()
    interrupt = by_id(await chrys.dispatch("user_interrupt", execution=execution))
    turn = by_id(await chrys.dispatch("after_turn", execution=execution))

    closed = await chrys.bench.pipeline.executions.close("run-1")

    assert set(closed.still_running) == {interrupt["i"].invocation_id, turn["f"].invocation_id}
    assert closed.cancelled == ()
    chrys.go()
    await chrys.until(lambda: len(chrys.finished()) == 3)
    assert {record["status"] for record in chrys.finished()} == {"ok"}


async def test_the_shutdown_waits_for_background_hooks_within_its_bound(chrys: Chrys) -> None:
    await chrys.configure(
        hook("quick", "after_turn", "sleep 0.2; touch quick", "fire_and_forget"),
        hook("slow", "after_turn", "sleep 30", "fire_and_forget"),
    )
    await chrys.dispatch("after_turn")

    await chrys.bench.pipeline.drain(0.6)

    assert (chrys.workspace / "quick").exists()
    assert chrys.finished("quick")[0]["status"] == "ok"
    assert chrys.finished("slow")[0]["status"] == "cancelled"


# ----------------------------------------------------------------------------------------------------------------------
# Detached


async def test_a_detached_hook_is_started_when_the_answer_leaves(chrys: Chrys) -> None:
    await chrys.configure(
        hook(
            "d",
            "session_end",
            "echo $HOOKSD_INVOCATION_ID; env > env; exit 4",
            "fire_and_forget",
            detach=True,
        )
    )

    report = by_id(await chrys.dispatch("session_end"))["d"]

    assert (report.status, report.mode) == (Status.STARTED, "detached")
    assert report.pid is not None
    await chrys.until(lambda: chrys.finished("d"))
    (record,) = chrys.finished("d")
    assert (record["status"], record["exit_code"], record["invocation_id"]) == (
        "failed",
        4,
        report.invocation_id,
    )
    assert record["execution_id"] == "run-1"
    log = chrys.bench.root / "state" / "detached" / f"{report.invocation_id}.log"
    assert log.read_text() == f"{report.invocation_id}\n"
    assert str(log) in record["problem"]["hint"]
    environment = (chrys.workspace / "env").read_text()
    assert "CHRYS_HOOK_ID=d\n" in environment
    assert "HOOKSD_EXECUTION_ID=run-1\n" in environment


async def test_a_detached_hook_that_cannot_be_started_is_told_in_the_answer(chrys: Chrys) -> None:
    script = {"type": "script", "path": "not-there.sh"}
    broken = {**hook("d", "after_turn", "", "fire_and_forget", detach=True, on_error="block"), "run": script}
    await chrys.configure(broken)

    report = by_id(await chrys.dispatch("after_turn"))["d"]

    assert report.status is Status.LAUNCH_ERROR
    assert report.problem is not None
    assert report.problem.kind == "missing_script"
    assert not (chrys.bench.root / "state" / "detached").exists()
    assert len(chrys.finished("d")) == 1


async def test_a_detached_hook_outlives_the_pipeline(chrys: Chrys) -> None:
    await chrys.configure(hook("d", "session_end", GATED + "touch late", "fire_and_forget", detach=True))
    report = by_id(await chrys.dispatch("session_end"))["d"]
    assert report.pid is not None

    await chrys.bench.pipeline.drain(5)

    assert not chrys.finished("d")
    chrys.go()
    await chrys.until((chrys.workspace / "late").exists)
    os.waitpid(report.pid, 0)


async def test_cancelling_the_dispatch_does_not_undo_a_start(chrys: Chrys) -> None:
    await chrys.configure(hook("d", "session_end", "touch ran", "fire_and_forget", detach=True))
    dispatch = asyncio.ensure_future(chrys.dispatch("session_end", execution=await chrys.open()))
    await chrys.until(lambda: chrys.bench.told("hook.started"))

    dispatch.cancel()

    await chrys.until((chrys.workspace / "ran").exists)
    await chrys.until(lambda: chrys.finished("d"))


async def test_a_notified_detached_hook_has_the_promised_id(chrys: Chrys) -> None:
    await chrys.configure(hook("d", "session_end", "true", "fire_and_forget", detach=True))
    execution = await chrys.open()
    event = chrys.bench.pipeline.prepare(execution, "session_end", {})

    (promised,) = chrys.bench.pipeline.notify(execution, event)

    await chrys.until(lambda: chrys.finished("d"))
    assert chrys.finished("d")[0]["invocation_id"] == promised


async def test_a_dry_run_of_a_detached_hook_waits_for_it_and_not_for_ever(
    chrys: Chrys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hooksd.pipeline.dry_run.UNBOUNDED_S", 0.5)
    await chrys.configure(
        hook("quick", "session_end", "echo seen", "fire_and_forget", detach=True),
        hook("endless", "session_end", "sleep 30", "fire_and_forget", detach=True),
    )

    told = await chrys.bench.pipeline.test(HookTestParams(event="session_end", dialect="chrys"))

    assert [(run.stdout, run.timed_out) for run in told.results] == [("seen\n", False), ("", True)]
    assert not (chrys.bench.root / "state" / "detached").exists()


# ----------------------------------------------------------------------------------------------------------------------
# on_error


FAILURES = {
    "exit": ("echo why >&2; exit 3", {}, "exit_code=3: why"),
    "timeout": ("sleep 30", {"timeout_seconds": 0.1}, "timeout"),
}


@pytest.mark.parametrize("on_error", ["block", "warn", "ignore"])
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(
    "event", ["before_tool_call", "user_prompt_submit", "after_turn", "session_start", "user_interrupt"]
)
async def test_on_error_blocks_gates_only_and_is_always_told(
    chrys: Chrys, event: str, failure: str, on_error: str
) -> None:
    shell, more, label = FAILURES[failure]
    await chrys.configure(
        hook("h", event, shell, on_error=on_error, **more), hook("next", event, "touch next")
    )

    outcome = await chrys.dispatch(event)

    blocks = on_error == "block" and event in {"before_tool_call", "user_prompt_submit"}
    assert (outcome.decision is Decision.BLOCK) == blocks
    assert (chrys.workspace / "next").exists() != blocks
    report = by_id(outcome)["h"]
    assert report.status is (Status.TIMEOUT if failure == "timeout" else Status.FAILED)
    assert report.problem is not None
    if blocks:
        assert outcome.reason == f"h: {label}"
    elif on_error == "block":
        assert "ignored_decision" in (report.problem.detail or "")


@pytest.mark.parametrize("mode", ["async", "fire_and_forget", "detached"])
async def test_on_error_block_means_nothing_in_the_background(chrys: Chrys, mode: str) -> None:
    more = {"detach": True} if mode == "detached" else {}
    execution = {"mode": "fire_and_forget" if more else mode, **more}
    await chrys.configure(hook("h", "before_tool_call", "exit 3", on_error="block", **execution))

    outcome = await chrys.dispatch("before_tool_call")

    assert outcome.decision is Decision.NONE
    await chrys.until(lambda: chrys.finished("h"))
    assert chrys.finished("h")[0]["status"] == "failed"


async def test_every_start_has_exactly_one_end_when_the_daemon_ends(chrys: Chrys) -> None:
    await chrys.configure(
        hook("blocking", "before_tool_call", "sleep 30"),
        hook("async", "after_turn", "sleep 30", "async"),
        hook("queued", "after_turn", "sleep 30", "async"),
        hook("forgotten", "session_end", "sleep 30", "fire_and_forget"),
        hook("detached", "session_end", GATED, "fire_and_forget", detach=True),
        max_parallel_hooks=1,
    )
    gate = asyncio.ensure_future(chrys.dispatch("before_tool_call", execution=await chrys.open("gate")))
    await chrys.dispatch("after_turn", execution=await chrys.open("turn"))
    detached = by_id(await chrys.dispatch("session_end", execution=await chrys.open("end")))["detached"]
    await chrys.until(lambda: len(chrys.bench.told("hook.started")) == 5)

    await chrys.bench.pipeline.aclose()

    with pytest.raises(ProtocolError):
        await gate
    started = [record["invocation_id"] for record in chrys.bench.told("hook.started")]
    ended = [record["invocation_id"] for record in chrys.finished()]
    assert len(ended) == len(set(ended)) == 4
    assert set(started) - set(ended) == {detached.invocation_id}, "which the next daemon tells"
    assert {record["status"] for record in chrys.finished()} == {"cancelled"}
    chrys.go()
    assert detached.pid is not None
    os.waitpid(detached.pid, 0)


# ----------------------------------------------------------------------------------------------------------------------
# Graces


async def test_each_hook_has_the_grace_of_its_own_document(anyio_backend: object) -> None:
    loop = asyncio.get_running_loop()
    works = {grace_s: Work(Kind.ASYNC, DrainSpan.TURN, grace_s) for grace_s in (0.05, 0.3, None)}
    cut_after: dict[float | None, float] = {}
    began_at = loop.time()

    async def carry_out(grace_s: float | None) -> None:
        work = works[grace_s]
        try:
            await asyncio.sleep(0.6 if grace_s is None else 30)
        except asyncio.CancelledError:
            cut_after[grace_s] = loop.time() - began_at
            raise
        finally:
            work.finish()

    for grace_s, work in works.items():
        work.ids[str(grace_s)] = None
        work.task = loop.create_task(carry_out(grace_s))
    await asyncio.sleep(0)

    drained = await drain(works.values(), lambda work: work.grace_s, execution_closed("run-1"))

    assert (drained.finished, drained.cancelled) == (("None",), ("0.05", "0.3"))
    assert cut_after[0.05] < cut_after[0.3]
    # A loop counts in milliseconds.
    assert cut_after[0.05] > 0.049
    assert cut_after[0.3] > 0.299
    await asyncio.wait([work.task for work in works.values()])
