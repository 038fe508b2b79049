"""The way of one event through the pipeline, with real hooks files and real processes."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from hooksd.model.decision import Decision
from hooksd.model.errors import ProtocolError
from hooksd.model.outcome import Outcome
from hooksd.model.problems import ProblemKind
from hooksd.model.records import Level
from hooksd.model.report import Status
from hooksd.protocol.errors import ErrorCode


Bench = Any
"""The class is in conftest.py, which cannot be imported."""


def kinds(outcome: Outcome) -> list[ProblemKind | None]:
    return [handler.problem and handler.problem.kind for handler in outcome.handlers]


def statuses(outcome: Outcome) -> list[Status]:
    return [handler.status for handler in outcome.handlers]


# ----------------------------------------------------------------------------------------------------------------------
# Nothing to run


async def test_an_event_without_hooks_is_answered_at_once(bench: Bench) -> None:
    bench.configure(Stop="exit 2")
    pipeline = await bench.start()
    execution = await bench.open()
    event = pipeline.prepare(execution, "PreToolUse", {**PRE})

    assert pipeline.dispatch_now(execution, event) == Outcome(event="PreToolUse", revision=1)
    assert await pipeline.dispatch(execution, event) == Outcome(event="PreToolUse", revision=1)
    assert bench.told("hook.started") == []


async def test_an_event_with_a_hook_is_not_answered_at_once(bench: Bench) -> None:
    bench.configure(PreToolUse="true")
    pipeline = await bench.start()
    execution = await bench.open()

    assert pipeline.dispatch_now(execution, pipeline.prepare(execution, "PreToolUse", PRE)) is None


PRE = {"tool_name": "Bash", "tool_call_id": "1", "tool_input": {"command": "pwd"}}


# ----------------------------------------------------------------------------------------------------------------------
# What is refused


@pytest.mark.parametrize(
    ("event", "payload", "code", "told"),
    [
        ("pre_tool_use", PRE, ErrorCode.UNKNOWN_EVENT, "PreToolUse"),
        ("subagent.start", {}, ErrorCode.UNKNOWN_EVENT, "PreToolUse"),
        ("PreToolUse", {}, ErrorCode.INVALID_PARAMS, "tool_name"),
        ("PreToolUse", {**PRE, "more": 1}, ErrorCode.INVALID_PARAMS, "more"),
    ],
)
async def test_events_and_payloads_are_checked(
    bench: Bench, event: str, payload: dict[str, Any], code: ErrorCode, told: str
) -> None:
    pipeline = await bench.start()
    execution = await bench.open()

    with pytest.raises(ProtocolError) as raised:
        pipeline.prepare(execution, event, payload)

    assert raised.value.code == code
    assert told in raised.value.message


async def test_a_dotted_name_is_answered_with_the_agents_own(bench: Bench) -> None:
    bench.configure(PreToolUse="echo no >&2; exit 2")
    await bench.start()

    outcome = await bench.dispatch("tool.before", PRE)

    assert (outcome.event, outcome.decision) == ("PreToolUse", Decision.BLOCK)
    assert bench.told("hook.finished")[0]["hook_event"] == "PreToolUse"


async def test_a_bad_traceparent_is_refused(bench: Bench) -> None:
    bench.configure(PreToolUse="true")
    await bench.start()

    with pytest.raises(ProtocolError, match="traceparent") as raised:
        await bench.dispatch("PreToolUse", traceparent="00-zz")

    assert raised.value.code == ErrorCode.INVALID_PARAMS


# ----------------------------------------------------------------------------------------------------------------------
# What hooks get


async def test_a_hook_gets_its_envelope_environment_and_directory(bench: Bench) -> None:
    bench.configure(PreToolUse="cat > stdin; env > env; pwd > pwd")
    await bench.start()
    execution = await bench.open(
        env={"PATH": bench.env["PATH"], "OWN": "1", "HOOKSD_DEPTH": "2"}, model="m-1"
    )
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    outcome = await bench.dispatch("PreToolUse", execution=execution, traceparent=trace, depth=2)

    envelope = json.loads((bench.workspace / "stdin").read_text())
    assert (envelope["session_id"], envelope["model"]) == ("session-1", "m-1")
    assert envelope["workspace_path"] == str(bench.workspace)
    env = dict(line.split("=", 1) for line in (bench.workspace / "env").read_text().splitlines())
    assert env["OWN"] == "1"
    assert env["BAMBOO_HOOK_EVENT"] == "PreToolUse"
    assert env["HOOKSD_EXECUTION_ID"] == "run-1"
    assert env["HOOKSD_INVOCATION_ID"] == outcome.handlers[0].invocation_id
    assert env["HOOKSD_SOCKET"] == "/run/hooksd.sock"
    assert env["HOOKSD_DEPTH"] == "3"
    assert env["TRACEPARENT"] == trace
    assert (bench.workspace / "pwd").read_text().strip() == str(bench.workspace)
    assert bench.told("hook.finished")[0]["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"


async def test_without_an_env_of_its_own_a_hook_gets_the_daemons_and_a_new_trace(bench: Bench) -> None:
    bench.configure(PreToolUse="env > env")
    bench.env["FROM_DAEMON"] = "yes"
    bench.env["TRACEPARENT"] = "of whatever started the daemon"
    await bench.start()

    await bench.dispatch("PreToolUse")

    env = dict(line.split("=", 1) for line in (bench.workspace / "env").read_text().splitlines())
    assert env["FROM_DAEMON"] == "yes"
    assert env["TRACEPARENT"].split("-")[1] == bench.told("hook.finished")[0]["trace_id"]


async def test_what_a_dispatch_says_of_itself_holds_for_it_only(bench: Bench) -> None:
    bench.configure(PreToolUse="env > env; cat > stdin; pwd > pwd")
    pipeline = await bench.start()
    execution = await bench.open(env={"PATH": bench.env["PATH"], "WHOSE": "execution"}, model="m-1")
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    event = pipeline.prepare(execution, "PreToolUse", PRE, model="m-2")

    await bench.dispatch(
        "PreToolUse",
        execution=execution,
        cwd=str(elsewhere),
        env={"PATH": bench.env["PATH"], "WHOSE": "event"},
    )
    await bench.dispatch("PreToolUse", execution=execution)

    assert event.model == "m-2"
    assert "WHOSE=event" in (elsewhere / "env").read_text()
    assert "WHOSE=execution" in (bench.workspace / "env").read_text()
    assert execution.model == "m-1"


async def test_settings_of_the_environment_and_the_shell_apply(bench: Bench) -> None:
    bench.settings('[env]\ndeny = ["SECRET*"]\n[shell]\ncommand = "/bin/sh"\n')
    bench.configure(PreToolUse='echo "$0 ${SECRET_TOKEN-none}" > out')
    bench.env["SECRET_TOKEN"] = "s3cret"
    await bench.start()

    await bench.dispatch("PreToolUse")

    assert (bench.workspace / "out").read_text() == "/bin/sh none\n"


async def test_a_workspace_that_is_not_there_is_named(bench: Bench) -> None:
    bench.configure(PreToolUse="true")
    await bench.start()
    execution = await bench.open(workspace_path=str(bench.root / "gone"))

    outcome = await bench.dispatch("PreToolUse", execution=execution)

    assert statuses(outcome) == [Status.LAUNCH_ERROR]
    problem = outcome.handlers[0].problem
    assert problem is not None
    assert problem.kind is ProblemKind.MISSING_CWD
    assert "gone" in problem.message
    assert bench.pipeline.executions.opened(execution).problems[-1].path == "workspace_path"


async def test_without_a_workspace_the_work_area_serves(bench: Bench) -> None:
    bench.configure(PreToolUse="pwd > pwd")
    await bench.start()
    execution = await bench.open()
    execution.workspace_path = ""

    await bench.dispatch("PreToolUse", execution=execution)

    assert (bench.root / "home" / "pwd").read_text().strip() == str(bench.root / "home")


async def test_an_event_that_no_envelope_can_hold_is_a_failure_of_the_hook(bench: Bench) -> None:
    bench.configure(PreToolUse="true")
    pipeline = await bench.start()
    deep: Any = {}
    for _ in range(5000):
        deep = {"d": deep}
    execution = await bench.open()
    event = pipeline.prepare(execution, "PreToolUse", {**PRE, "tool_input": deep})

    outcome = await pipeline.dispatch(execution, event)
    with pytest.raises(ProtocolError) as raised:
        pipeline.explain(execution, event)

    assert (statuses(outcome), kinds(outcome)) == ([Status.LAUNCH_ERROR], [ProblemKind.LAUNCH])
    assert raised.value.code == ErrorCode.INVALID_PARAMS


async def test_a_dispatch_must_run_in_a_task(bench: Bench) -> None:
    bench.configure(PreToolUse="touch ran")
    pipeline = await bench.start()
    execution = await bench.open()
    dispatch = pipeline.dispatch(execution, pipeline.prepare(execution, "PreToolUse", PRE))
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def outside() -> None:
        try:
            dispatch.send(None)
        except RuntimeError as error:
            told.set_result(str(error))

    asyncio.get_running_loop().call_soon(outside)

    assert "task" in await told


async def test_versions_of_the_settings_come_and_go(bench: Bench) -> None:
    bench.configure(PreToolUse='echo "${SECRET-none}" >> out')
    bench.env["SECRET"] = "shown"
    await bench.start()
    executions = []
    for number in range(10):
        bench.settings(
            f'[env]\ndeny = ["{"SECRET" if number % 2 else "OTHER"}{number and ""}"]\n# {number}\n'
        )
        await bench.store.reload()
        executions.append(await bench.open(f"run-{number}"))

    for execution in (*executions, executions[0]):
        await bench.dispatch("PreToolUse", execution=execution)

    assert (bench.workspace / "out").read_text().split() == ["shown", "none"] * 5 + ["shown"]


# ----------------------------------------------------------------------------------------------------------------------
# Reports and records


async def test_the_report_tells_what_the_process_did(bench: Bench) -> None:
    bench.configure(PreToolUse="printf 12345 >&2; kill -TERM $$")
    await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    report = outcome.handlers[0]
    assert report.hook == "bamboo:user:bamboo:PreToolUse[0].hooks[0]"
    assert (report.source, report.contract, report.mode) == ("bamboo", "bamboo", "blocking")
    assert (report.status, report.exit_code, report.signal) == (Status.FAILED, None, 15)
    assert (report.stdout_bytes, report.stderr_bytes) == (0, 5)
    assert report.duration_ms > 0
    assert report.pid is not None
    assert report.invocation_id.startswith("inv-")


async def test_records_hold_the_report_and_none_of_the_hooks_words(bench: Bench) -> None:
    bench.configure(
        PreToolUse=[
            "echo secret-detail >&2; exit 1",
            """echo '{"decision":"block","reason":"secret-reason"}'""",
        ]
    )
    await bench.start()

    outcome = await bench.dispatch("PreToolUse", {**PRE, "tool_input": {"command": "secret-argument"}})

    assert (outcome.decision, outcome.reason) == (Decision.BLOCK, "secret-reason")
    problem = outcome.handlers[0].problem
    assert problem is not None
    assert problem.detail == "secret-detail"
    assert "secret" not in repr(bench.records)
    failed, blocked = bench.told("hook.finished")
    assert failed["problem"] == {"kind": "exit_code", "message": problem.message, "hint": problem.hint}
    for record, report in zip((failed, blocked), outcome.handlers, strict=True):
        for field in report.__struct_fields__:
            if field != "problem":
                assert record[field] == getattr(report, field)
        assert record["execution_id"] == "run-1"
        assert record["session_id"] == "session-1"
        assert record["agent"] == "bamboo"
        assert record["hook_event"] == "PreToolUse"
        assert record["revision"] == 1
    levels = [level for level, kind, _ in bench.records if kind.startswith("hook.")]
    assert levels == [Level.DEBUG, Level.WARNING, Level.DEBUG, Level.INFO]


async def test_reasons_are_recorded_only_where_that_is_asked_for(bench: Bench) -> None:
    bench.settings("[log]\nreasons = true\n")
    bench.configure(PreToolUse="echo because >&2; exit 2")
    await bench.start()

    await bench.dispatch("PreToolUse")

    assert bench.told("hook.finished")[0]["reason"] == "because"


async def test_hooks_that_do_not_run_are_told_of(bench: Bench) -> None:
    bench.configure(PreToolUse=["exit 2", "true", "true"])
    await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    assert statuses(outcome) == [Status.BLOCKED, Status.SKIPPED, Status.SKIPPED]
    assert kinds(outcome) == [None, ProblemKind.NOT_RUN, ProblemKind.NOT_RUN]
    skipped = bench.told("hook.skipped")
    assert [record["hook"] for record in skipped] == [report.hook for report in outcome.handlers[1:]]
    assert all(report.invocation_id == "" for report in outcome.handlers[1:])


# ----------------------------------------------------------------------------------------------------------------------
# Budget, deadline, slots


async def test_the_budget_ends_the_hook_that_runs_and_keeps_the_rest_from_running(bench: Bench) -> None:
    bench.configure(PreToolUse=["true", "echo before >&2; sleep 30", "touch ran"])
    await bench.start()

    outcome = await bench.dispatch("PreToolUse", timeout_s=0.3)

    assert outcome.decision is Decision.NONE
    assert statuses(outcome) == [Status.OK, Status.TIMEOUT, Status.SKIPPED]
    problem = outcome.handlers[1].problem
    assert problem is not None
    assert "budget of the dispatch (0.3 s)" in problem.message
    assert problem.detail == "before"
    assert kinds(outcome)[2] is ProblemKind.NOT_RUN
    assert not (bench.workspace / "ran").exists()
    assert bench.records[-1][0] is Level.WARNING


async def test_the_hooks_own_deadline_comes_first_where_it_is_shorter(bench: Bench) -> None:
    bench.configure(PreToolUse=[{"type": "command", "command": "sleep 30", "timeout_ms": 50}, "true"])
    await bench.start()
    began = time.monotonic()

    outcome = await bench.dispatch("PreToolUse", timeout_s=20)

    assert time.monotonic() - began < 10
    assert statuses(outcome) == [Status.TIMEOUT, Status.OK]
    assert outcome.handlers[0].problem is not None
    assert "0.05 s" in outcome.handlers[0].problem.message


async def test_hooks_wait_for_a_slot_and_their_deadline_starts_with_it(bench: Bench) -> None:
    bench.settings("[limits]\nmax_running_gates = 1\n")
    bench.configure(PreToolUse=[{"type": "command", "command": "sleep 0.3", "timeout_ms": 5000}])
    await bench.start()
    executions = [await bench.open(f"run-{number}") for number in range(3)]

    outcomes = await asyncio.gather(*(bench.dispatch("PreToolUse", execution=one) for one in executions))

    assert [statuses(outcome) for outcome in outcomes] == [[Status.OK]] * 3
    queued = [outcome.handlers[0].queued_ms for outcome in outcomes]
    assert queued == sorted(queued)
    assert queued[0] == 0
    assert queued[2] > 500


async def test_a_slot_that_does_not_come_is_busy(bench: Bench) -> None:
    bench.settings("[limits]\nmax_running_gates = 1\nmax_queue_s = 0.05\n")
    bench.configure(PreToolUse="touch began; sleep 1")
    await bench.start()
    first = asyncio.ensure_future(bench.dispatch("PreToolUse"))
    await bench.until((bench.workspace / "began").exists)

    outcome = await bench.dispatch("PreToolUse")

    assert (statuses(outcome), kinds(outcome)) == ([Status.FAILED], [ProblemKind.BUSY])
    assert outcome.handlers[0].queued_ms > 0
    assert statuses(await first) == [Status.OK]


async def test_serial_hooks_run_one_at_a_time(bench: Bench) -> None:
    bench.settings('[serial]\nhooks = ["bamboo:*"]\n')
    bench.configure(PreToolUse="mkdir lock || echo overlap >> overlaps; sleep 0.05; rmdir lock")
    await bench.start()
    execution = await bench.open()

    await asyncio.gather(*(bench.dispatch("PreToolUse", execution=execution) for _ in range(4)))

    assert not (bench.workspace / "overlaps").exists()


async def test_a_nested_dispatch_has_slots_of_its_own(bench: Bench) -> None:
    bench.settings("[limits]\nmax_running_gates = 1\n")
    bench.configure(PreToolUse="touch began; until [ -e go ]; do sleep 0.02; done", Stop="touch go")
    await bench.start()
    execution = await bench.open()
    outer = asyncio.ensure_future(bench.dispatch("PreToolUse", execution=execution))
    await bench.until((bench.workspace / "began").exists)

    inner = await bench.dispatch("Stop", execution=execution, depth=1)

    assert statuses(inner) == [Status.OK]
    assert statuses(await outer) == [Status.OK]


async def test_beyond_the_depth_a_gate_blocks_and_an_observer_is_skipped(bench: Bench) -> None:
    bench.settings("[limits]\nmax_depth = 2\n")
    bench.configure(PreToolUse="touch ran", SessionEnd="touch ran")
    await bench.start()

    assert statuses(await bench.dispatch("PreToolUse", depth=2)) == [Status.OK]
    (bench.workspace / "ran").unlink()
    gate = await bench.dispatch("PreToolUse", depth=3)
    observer = await bench.dispatch("SessionEnd", depth=3)

    assert (gate.decision, kinds(gate)) == (Decision.BLOCK, [ProblemKind.TOO_DEEP])
    assert "max_depth" in (gate.reason or "")
    assert (observer.decision, statuses(observer)) == (Decision.NONE, [Status.SKIPPED])
    assert kinds(observer) == [ProblemKind.TOO_DEEP]
    assert not (bench.workspace / "ran").exists()


# ----------------------------------------------------------------------------------------------------------------------
# Snapshots


async def test_an_execution_runs_what_it_was_opened_with(bench: Bench) -> None:
    bench.configure(PreToolUse="echo old >&2; exit 2", PostToolUse="touch old")
    await bench.start()
    old = await bench.open("old")
    bench.configure(PreToolUse="echo new >&2; exit 2", PostToolUse="touch new")
    new = await bench.open("new")

    from_old = await bench.dispatch("PreToolUse", execution=old)
    from_new = await bench.dispatch("PreToolUse", execution=new)
    background = await bench.dispatch("PostToolUse", execution=old, background=True)

    assert (from_old.reason, from_old.revision) == ("old", old.snapshot.revision)
    assert (from_new.reason, from_new.revision) == ("new", new.snapshot.revision)
    assert from_new.revision > from_old.revision
    assert background.revision == from_new.revision
    assert (bench.workspace / "new").exists()
    assert not (bench.workspace / "old").exists()


async def test_a_background_completion_is_an_observer(bench: Bench) -> None:
    bench.configure(PostToolUse=["exit 2", """echo '{"additional_context":"later"}'"""])
    await bench.start()

    background = await bench.dispatch("PostToolUse", background=True)
    foreground = await bench.dispatch("PostToolUse")

    assert (background.decision, background.contexts) == (Decision.NONE, ("later",))
    assert statuses(background) == [Status.OK, Status.OK]
    assert background.handlers[0].decision is Decision.BLOCK
    assert kinds(background) == [ProblemKind.IGNORED_DECISION, None]
    assert (foreground.decision, foreground.contexts) == (Decision.BLOCK, ())


async def test_while_no_hook_may_run_gates_are_refused_and_observers_say_so(bench: Bench) -> None:
    bench.settings("[limits\n")
    bench.configure(PreToolUse="exit 2", SessionEnd="touch ran")
    pipeline = await bench.start()
    execution = await bench.open()

    with pytest.raises(ProtocolError) as raised:
        await bench.dispatch("PreToolUse", execution=execution)
    observer = await bench.dispatch("SessionEnd", execution=execution)
    ids = bench.notify("Notification", execution=execution)

    assert raised.value.code == ErrorCode.CONFIG_INVALID
    assert raised.value.problems
    assert pipeline.executions.opened(execution).problems
    assert [problem.kind for problem in observer.problems] == [ProblemKind.NOT_LOADED]
    assert ids == ()
    await bench.until(lambda: len(bench.told("hook.skipped")) == 2)
    assert not (bench.workspace / "ran").exists()


# ----------------------------------------------------------------------------------------------------------------------
# Continuations


async def test_a_stop_is_continued_as_often_as_the_limit_says(bench: Bench) -> None:
    bench.settings("[limits]\nstop_continuations = 2\n")
    bench.configure(
        Stop="cat >> stdin; echo >> stdin; echo go on >&2; exit 2", UserPromptSubmit="true", PreToolUse="true"
    )
    await bench.start()
    execution = await bench.open()

    outcomes = [await bench.dispatch("Stop", execution=execution) for _ in range(4)]

    told = [
        (one.decision, one.reason, one.continuation and (one.continuation.count, one.continuation.exhausted))
        for one in outcomes
    ]
    assert told == [
        (Decision.BLOCK, "go on", (1, False)),
        (Decision.BLOCK, "go on", (2, False)),
        (Decision.NONE, None, (2, True)),
        (Decision.NONE, None, (2, True)),
    ]
    assert [one.handlers[0].status for one in outcomes] == [Status.BLOCKED] * 4
    flags = [
        json.loads(line)["stop_hook_active"] for line in (bench.workspace / "stdin").read_text().splitlines()
    ]
    assert flags == [False, True, True, True]

    await bench.dispatch("PreToolUse", execution=execution)
    await bench.dispatch("UserPromptSubmit", execution=execution)
    again = await bench.dispatch("Stop", execution=execution)
    assert again.continuation is not None
    assert (again.continuation.count, again.decision) == (1, Decision.BLOCK)


async def test_a_prompt_without_hooks_begins_a_turn_too(bench: Bench) -> None:
    bench.configure(Stop="exit 2")
    await bench.start()
    execution = await bench.open()
    await bench.dispatch("Stop", execution=execution)
    await bench.dispatch("UserPromptSubmit", execution=execution)

    outcome = await bench.dispatch("Stop", execution=execution)

    assert outcome.continuation is not None
    assert outcome.continuation.count == 1


async def test_executions_count_for_themselves_and_cancelled_dispatches_do_not_count(bench: Bench) -> None:
    bench.configure(Stop="touch began; until [ -e go ]; do sleep 0.02; done; exit 2")
    await bench.start()
    one, other = await bench.open("one"), await bench.open("other")
    cut = asyncio.ensure_future(bench.dispatch("Stop", execution=one))
    await bench.until((bench.workspace / "began").exists)
    cut.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cut
    (bench.workspace / "go").touch()

    counts = [(await bench.dispatch("Stop", execution=each)).continuation for each in (one, one, other)]

    assert [state and state.count for state in counts] == [1, 2, 1]


async def test_a_caller_that_cannot_go_on_is_not_held(bench: Bench) -> None:
    bench.configure(Stop=["exit 2", "true"])
    await bench.start()
    execution = await bench.open(accepts=("ask", "contexts"))

    outcome = await bench.dispatch("Stop", execution=execution)

    assert (outcome.decision, outcome.continuation) == (Decision.NONE, None)
    assert kinds(outcome) == [ProblemKind.NOT_APPLICABLE, None]
