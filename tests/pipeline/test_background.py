"""What nobody waits for, drains, and what cuts a dispatch off."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from typing import Any

import pytest

from hooksd.model.decision import Decision
from hooksd.model.errors import ProtocolError
from hooksd.model.problems import ProblemKind
from hooksd.model.records import Level
from hooksd.model.report import Status
from hooksd.pipeline.dispatch import DispatchOptions
from hooksd.protocol.errors import ErrorCode
from hooksd.protocol.methods.executions import DrainScope
from hooksd.protocol.methods.hooks import HookTestParams
from hooksd.protocol.methods.programmatic import HookRegisterParams, RegistrationMode


Bench = Any
"""The class is in conftest.py, which cannot be imported."""

PAYLOAD = {"tool_name": "Bash", "tool_call_id": "c-1", "parsed_args": {"command": "pwd"}}

GATED = "touch began; until [ -e go ]; do sleep 0.02; done; touch done"


def finished(bench: Bench) -> list[str]:
    return [record["invocation_id"] for record in bench.told("hook.finished")]


# ----------------------------------------------------------------------------------------------------------------------
# Deliveries


async def test_a_notification_starts_its_hooks_and_answers(bench: Bench) -> None:
    bench.configure(Notification=[GATED, "echo 2 >> order; exit 2", "echo 3 >> order"])
    await bench.start()

    outcome = await bench.dispatch("Notification")

    assert outcome.decision is Decision.NONE
    assert [report.status for report in outcome.handlers] == [Status.STARTED] * 3
    assert not (bench.workspace / "done").exists()
    (bench.workspace / "go").touch()
    await bench.until(lambda: len(finished(bench)) == 3)
    assert finished(bench) == [report.invocation_id for report in outcome.handlers]
    assert (bench.workspace / "order").read_text() == "2\n3\n"
    problem = bench.told("hook.finished")[1]["problem"]
    assert problem["kind"] == "ignored_decision"


async def test_notify_gives_the_ids_of_what_it_started(bench: Bench) -> None:
    bench.configure(SessionEnd=["true", "false"])
    await bench.start()
    execution = await bench.open()

    ids = bench.notify("SessionEnd", execution=execution)

    assert len(set(ids)) == 2
    await bench.until(lambda: len(finished(bench)) == 2)
    assert finished(bench) == list(ids)
    assert [record["status"] for record in bench.told("hook.finished")] == ["ok", "failed"]


async def test_notify_without_hooks_starts_nothing(bench: Bench) -> None:
    await bench.start()

    assert bench.notify("SessionEnd", execution=await bench.open()) == ()


async def test_a_gate_cannot_be_notified_of(bench: Bench) -> None:
    bench.configure(PreToolUse="touch ran", PostToolUse="true")
    await bench.start()
    execution = await bench.open()

    with pytest.raises(ProtocolError) as raised:
        bench.notify("PreToolUse", execution=execution)

    assert raised.value.code == ErrorCode.INVALID_PARAMS
    assert len(bench.notify("PostToolUse", execution=execution, background=True)) == 1
    await bench.until(lambda: finished(bench))


async def test_deliveries_run_beside_each_other_within_the_limit_and_all_of_them(bench: Bench) -> None:
    bench.settings("[limits]\nmax_running_background = 3\n")
    bench.configure(Notification="mkdir run.$$; ls -d run.* | wc -l >> counts; sleep 0.05; rmdir run.$$")
    await bench.start()
    execution = await bench.open()

    for _ in range(10):
        bench.notify("Notification", execution=execution)
    await bench.until(lambda: len(finished(bench)) == 10)

    counts = [int(line) for line in (bench.workspace / "counts").read_text().split()]
    assert len(counts) == 10
    assert 1 < max(counts) <= 3


async def test_a_notification_uses_what_is_in_force_now_and_other_observers_the_snapshot(
    bench: Bench,
) -> None:
    bench.configure(Notification="touch old-n", SessionEnd="touch old-e")
    await bench.start()
    execution = await bench.open()
    bench.configure(Notification="touch new-n", SessionEnd="touch new-e")
    await bench.open("other")

    bench.notify("Notification", execution=execution)
    bench.notify("SessionEnd", execution=execution)
    await bench.until(lambda: len(finished(bench)) == 2)

    assert sorted(path.name for path in bench.workspace.iterdir()) == ["new-n", "old-e"]


async def test_a_delivery_survives_the_end_of_its_execution(bench: Bench) -> None:
    bench.configure(SessionEnd=GATED)
    pipeline = await bench.start()
    ids = bench.notify("SessionEnd", execution=await bench.open())
    await bench.until((bench.workspace / "began").exists)

    result = await pipeline.executions.close("run-1", 0.05)

    assert (result.finished, result.cancelled, result.still_running) == ((), (), ids)
    (bench.workspace / "go").touch()
    await bench.until((bench.workspace / "done").exists)
    await bench.until(lambda: finished(bench))


async def test_contexts_that_nobody_waits_for_are_told_to_be_lost(bench: Bench) -> None:
    bench.configure(SessionEnd="""echo '{"additional_context":"c"}'""")
    await bench.start()

    bench.notify("SessionEnd", execution=await bench.open())

    await bench.until(lambda: finished(bench))
    assert bench.told("hook.finished")[0]["problem"]["kind"] == "not_applicable"


class Client:
    name = "c"
    closed = False

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def invoke(self, registration_id: str, envelope: dict[str, Any], deadline_ms: int) -> Any:
        self.called.set()
        return await asyncio.shield(self.answer)


async def test_a_background_hook_starts_after_the_others_and_is_drained(bench: Bench) -> None:
    bench.configure(PreToolUse="touch ran")
    pipeline = await bench.start()
    client = Client()
    pipeline.registry.register(
        HookRegisterParams(events=("PreToolUse",), name="o", mode=RegistrationMode.OBSERVER), client
    )
    execution = await bench.open()

    outcome = await bench.dispatch("PreToolUse", execution=execution, timeout_s=5)

    assert [report.status for report in outcome.handlers] == [Status.OK, Status.STARTED]
    assert outcome.handlers[1].mode == "async"
    invocation_id = outcome.handlers[1].invocation_id
    await client.called.wait()
    assert pipeline.executions.list().executions[0].running == 1
    draining = asyncio.ensure_future(pipeline.executions.drain("run-1", DrainScope.TURN))
    client.answer.set_result({"decision": "block", "arguments": {"lost": 1}})
    result = await draining
    assert (result.finished, result.cancelled, result.still_running) == ((invocation_id,), (), ())
    report = pipeline.results.get(invocation_id).report
    assert (report.status, report.decision) == (Status.OK, Decision.BLOCK)
    assert report.problem is not None
    assert report.problem.kind is ProblemKind.NOT_APPLICABLE
    assert "ignored_decision" in (report.problem.detail or "")


async def test_a_background_hook_is_cancelled_when_the_grace_is_over(bench: Bench) -> None:
    pipeline = await bench.start()
    client = Client()
    pipeline.registry.register(
        HookRegisterParams(events=("PreToolUse",), name="o", mode=RegistrationMode.OBSERVER), client
    )
    execution = await bench.open()
    outcome = await bench.dispatch("PreToolUse", execution=execution)
    await client.called.wait()

    result = await pipeline.executions.drain("run-1", DrainScope.SESSION, 0.02)

    assert result.cancelled == (outcome.handlers[0].invocation_id,)
    assert bench.told("hook.finished")[0]["status"] == "cancelled"
    client.answer.cancel()


# ----------------------------------------------------------------------------------------------------------------------
# Drains


async def test_a_drain_cuts_off_no_gate(bench: Bench) -> None:
    bench.configure(PreToolUse=GATED)
    pipeline = await bench.start()
    execution = await bench.open()
    gate = asyncio.ensure_future(bench.dispatch("PreToolUse", execution=execution))
    await bench.until((bench.workspace / "began").exists)

    result = await pipeline.executions.drain("run-1", DrainScope.SESSION, 0)

    assert (result.finished, result.cancelled, result.still_running) == ((), (), ())
    (bench.workspace / "go").touch()
    assert (await gate).handlers[0].status is Status.OK


async def test_a_turn_drain_leaves_what_belongs_to_the_session(bench: Bench) -> None:
    bench.configure(SessionEnd=GATED, PreCompact="sleep 0.1")
    pipeline = await bench.start()
    execution = await bench.open()
    bench.notify("SessionEnd", execution=execution)
    turn = bench.notify("PreCompact", execution=execution)

    result = await pipeline.executions.drain("run-1", DrainScope.TURN)

    assert result.finished == turn
    session = asyncio.ensure_future(pipeline.executions.drain("run-1", DrainScope.SESSION))
    (bench.workspace / "go").touch()
    assert len((await session).finished) == 1


async def test_a_drain_tells_which_hooks_of_a_delivery_had_ended(bench: Bench) -> None:
    bench.configure(SessionEnd=["until [ -e one ]; do sleep 0.02; done", GATED])
    pipeline = await bench.start()
    execution = await bench.open()
    first, second = bench.notify("SessionEnd", execution=execution)
    draining = asyncio.ensure_future(pipeline.executions.drain("run-1", DrainScope.SESSION, 1.5))
    (bench.workspace / "one").touch()

    result = await draining

    assert (result.finished, result.still_running) == ((first,), (second,))
    (bench.workspace / "go").touch()
    await bench.until(lambda: len(finished(bench)) == 2)


# ----------------------------------------------------------------------------------------------------------------------
# Cut off: never a decision


async def test_a_close_cuts_off_a_gate(bench: Bench) -> None:
    bench.configure(PreToolUse=["""echo '{"decision":"allow"}'""", "touch began; sleep 30", "touch ran"])
    pipeline = await bench.start()
    execution = await bench.open()
    gate = asyncio.ensure_future(bench.dispatch("PreToolUse", execution=execution))
    await bench.until((bench.workspace / "began").exists)
    began = time.monotonic()

    result = await pipeline.executions.close("run-1")

    with pytest.raises(ProtocolError) as raised:
        await gate
    assert time.monotonic() - began < 3
    assert raised.value.code == ErrorCode.UNKNOWN_EXECUTION
    cancelled = bench.told("hook.finished")[1]
    assert (cancelled["status"], cancelled["problem"]["kind"]) == ("cancelled", "cancelled")
    assert result.cancelled == (cancelled["invocation_id"],)
    assert [record["problem"]["kind"] for record in bench.told("hook.skipped")] == ["cancelled"]
    await bench.until(lambda: not bench.runner.ending)
    assert not (bench.workspace / "ran").exists()


async def test_a_cut_off_stop_with_a_guarded_hook_that_did_not_load_counts_nothing(bench: Bench) -> None:
    bench.settings('[[guard]]\nhooks = "*Stop[1]*"\n')
    broken = {"type": "command", "command": " "}
    waits = {"type": "command", "command": "touch began; until [ -e go ]; do sleep 0.02; done"}
    bench.configure(Stop=[{"hooks": [waits]}, {"hooks": [broken]}])
    await bench.start()
    execution = await bench.open()
    cut = asyncio.ensure_future(bench.dispatch("Stop", execution=execution))
    await bench.until((bench.workspace / "began").exists)
    cut.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cut
    (bench.workspace / "go").touch()

    outcome = await bench.dispatch("Stop", execution=execution)

    assert outcome.decision is Decision.BLOCK
    assert outcome.continuation is not None
    assert outcome.continuation.count == 1


async def test_a_close_waits_for_an_observer_and_then_cuts_it_off(bench: Bench) -> None:
    bench.configure(SessionEnd="sleep 0.1", PreCompact="touch began; sleep 30")
    pipeline = await bench.start()
    execution = await bench.open()
    quick = asyncio.ensure_future(bench.dispatch("SessionEnd", execution=execution))
    slow = asyncio.ensure_future(bench.dispatch("PreCompact", execution=execution))
    await bench.until((bench.workspace / "began").exists)

    result = await pipeline.executions.close("run-1", 1.5)

    assert (await quick).handlers[0].status is Status.OK
    with pytest.raises(ProtocolError) as raised:
        await slow
    assert raised.value.code == ErrorCode.UNKNOWN_EXECUTION
    assert len(result.cancelled) == 1


async def test_a_cancelled_dispatch_ends_its_hooks_and_says_so(bench: Bench) -> None:
    bench.configure(PreToolUse=["touch began; sleep 30", "touch ran"])
    await bench.start()
    gate = asyncio.ensure_future(bench.dispatch("PreToolUse"))
    await bench.until((bench.workspace / "began").exists)

    gate.cancel()

    with pytest.raises(asyncio.CancelledError):
        await gate
    (level,) = [level for level, kind, _ in bench.records if kind == "hook.finished"]
    assert level is Level.INFO
    assert [record["status"] for record in bench.told("hook.finished")] == ["cancelled"]
    assert [record["status"] for record in bench.told("hook.skipped")] == ["skipped"]
    await bench.until(lambda: not bench.runner.ending)
    assert bench.pipeline.executions.list().executions[0].running == 0


async def test_a_caller_that_cancels_what_is_being_cut_off_gets_its_cancellation(bench: Bench) -> None:
    bench.configure(PreToolUse="touch began; sleep 30")
    pipeline = await bench.start()
    gate = asyncio.ensure_future(bench.dispatch("PreToolUse"))
    await bench.until((bench.workspace / "began").exists)

    closing = asyncio.ensure_future(pipeline.executions.close("run-1"))
    gate.cancel()
    await closing

    with pytest.raises(asyncio.CancelledError):
        await gate


async def test_the_shutdown_waits_then_cuts_off_and_takes_nothing_new(bench: Bench) -> None:
    bench.configure(
        PreToolUse="touch began; sleep 30", SessionEnd="sleep 0.1; touch drained", Notification="sleep 30"
    )
    pipeline = await bench.start()
    execution = await bench.open()
    gate = asyncio.ensure_future(bench.dispatch("PreToolUse", execution=execution))
    bench.notify("SessionEnd", execution=execution)
    bench.notify("Notification", execution=execution)
    await bench.until((bench.workspace / "began").exists)

    await pipeline.drain(1.0)

    with pytest.raises(ProtocolError) as raised:
        await gate
    assert raised.value.code == ErrorCode.DRAINING
    assert (bench.workspace / "drained").exists()
    assert [record["status"] for record in bench.told("hook.finished")] == ["ok", "cancelled", "cancelled"]
    for refused in (bench.dispatch("SessionEnd", execution=execution), bench.open("late")):
        with pytest.raises(ProtocolError) as raised:
            await refused
        assert raised.value.code == ErrorCode.DRAINING
    with pytest.raises(ProtocolError):
        bench.notify("SessionEnd", execution=execution)


async def test_a_shutdown_with_nothing_in_progress_is_done_at_once(bench: Bench) -> None:
    pipeline = await bench.start()

    await pipeline.drain(5)
    await pipeline.aclose()


async def test_what_is_cut_off_before_its_first_step_is_over_too(bench: Bench) -> None:
    bench.configure(SessionEnd="touch ran")
    pipeline = await bench.start()
    bench.notify("SessionEnd", execution=await bench.open())

    await pipeline.aclose()

    assert pipeline.executions.works == set()
    assert not (bench.workspace / "ran").exists()


# ----------------------------------------------------------------------------------------------------------------------
# What is left of it

ENDINGS = ["answer", "timeout", "cancel", "close", "shutdown", "no launch"]


@pytest.mark.parametrize("ending", ENDINGS)
async def test_the_payload_of_a_dispatch_is_gone_with_its_answer(bench: Bench, ending: str) -> None:
    """Not only with the next collection: 16 MiB each, and no collection looks at how large things are."""
    command = {"answer": "cat", "no launch": "cat", "timeout": "sleep 60"}.get(
        ending, "touch began; sleep 60"
    )
    group = {
        "hooks": [
            {"type": "command", "command": command, "timeout_ms": 100 if ending == "timeout" else 60_000}
        ]
    }
    bench.configure(PreToolUse=[group])
    pipeline = await bench.start()
    execution = await bench.open()
    cwd = "/nowhere" if ending == "no launch" else None

    async def dispatch() -> bool:
        event = pipeline.prepare(execution, "PreToolUse", PAYLOAD)
        kept.append(weakref.ref(event))
        try:
            await pipeline.dispatch(execution, event, DispatchOptions(cwd=cwd))
        except (ProtocolError, asyncio.CancelledError):
            return False  # as the server does: the task itself keeps no error
        return True

    kept: list[weakref.ref[object]] = []
    gc.collect()
    gc.disable()
    try:
        task = asyncio.create_task(dispatch())
        if ending in {"cancel", "close", "shutdown"}:
            await bench.until((bench.workspace / "began").exists)
        if ending == "cancel":
            task.cancel()
        elif ending == "close":
            await pipeline.executions.close("run-1")
        elif ending == "shutdown":
            await pipeline.aclose()
        answered = await task
        await bench.until(lambda: not bench.runner.ending)
        await bench.until(lambda: kept[0]() is None)
    finally:
        gc.enable()

    assert answered == (ending not in {"cancel", "close", "shutdown"})


async def test_two_gates_that_one_close_cuts_off_get_an_error_each(bench: Bench) -> None:
    bench.configure(PreToolUse="echo x >> began; sleep 60")
    pipeline = await bench.start()
    execution = await bench.open()
    tasks = [asyncio.create_task(bench.dispatch("PreToolUse", execution=execution)) for _ in range(2)]
    began = bench.workspace / "began"
    await bench.until(lambda: began.exists() and began.read_text() == "x\nx\n")

    await pipeline.executions.close("run-1")
    errors = await asyncio.gather(*tasks, return_exceptions=True)

    assert [error.code for error in errors if isinstance(error, ProtocolError)] == [
        ErrorCode.UNKNOWN_EXECUTION
    ] * 2
    assert errors[0] is not errors[1]


async def test_a_dry_run_is_cut_off_by_the_shutdown_and_says_so(bench: Bench) -> None:
    pipeline = await bench.start()
    began = bench.workspace / "began"
    params = HookTestParams(event="PreToolUse", type="command", command=f"touch {began}; sleep 60")
    task = asyncio.create_task(pipeline.test(params))
    await bench.until(began.exists)

    await pipeline.drain(0.1)

    with pytest.raises(ProtocolError) as caught:
        await task
    assert caught.value.code == ErrorCode.DRAINING
    assert not pipeline.executions.works


async def test_the_shutdown_waits_for_a_dry_run_that_ends_in_time(bench: Bench) -> None:
    pipeline = await bench.start()
    began, go = bench.workspace / "began", bench.workspace / "go"
    command = f"touch {began}; until [ -e {go} ]; do sleep 0.02; done; exit 2"
    task = asyncio.create_task(
        pipeline.test(HookTestParams(event="PreToolUse", type="command", command=command))
    )
    await bench.until(began.exists)

    draining = asyncio.create_task(pipeline.drain(30))
    await asyncio.sleep(0)
    go.touch()
    await draining

    assert (await task).interpreted.decision is Decision.BLOCK
