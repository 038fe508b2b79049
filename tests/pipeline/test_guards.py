"""Guards: every way of not giving a valid answer becomes a block with a reason (design rule 2)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hooksd.model.decision import Decision
from hooksd.model.problems import ProblemKind
from hooksd.model.report import Status
from hooksd.protocol.methods.programmatic import HookRegisterParams


Bench = Any
"""The class is in conftest.py, which cannot be imported."""

GUARD = '[[guard]]\nhooks = "bamboo:*"\n'


def command(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": text, **more}


def script(path: str, **more: Any) -> dict[str, Any]:
    return {"type": "script", "path": path, **more}


FAILURES = {
    ProblemKind.EXIT_CODE: command("exit 3"),
    ProblemKind.SIGNAL: command("kill -KILL $$"),
    ProblemKind.TIMEOUT: command("sleep 30", timeout_ms=50),
    ProblemKind.MALFORMED_OUTPUT: command("echo not-json"),
    ProblemKind.TRUNCATED_OUTPUT: command("head -c 70000 /dev/zero"),
    ProblemKind.UNKNOWN_DECISION: command("""echo '{"decision":"maybe"}'"""),
    ProblemKind.MISSING_SCRIPT: script("missing.sh"),
    ProblemKind.MISSING_RUNTIME: script("there.mjs", runner="bun"),
    ProblemKind.LAUNCH: script("there.bat"),
}


@pytest.mark.parametrize("kind", list(FAILURES), ids=str)
async def test_a_guarded_hook_that_fails_blocks(bench: Bench, kind: ProblemKind) -> None:
    bench.settings(GUARD)
    bench.configure(PreToolUse=[FAILURES[kind], "touch ran"])
    for name in ("there.mjs", "there.bat"):
        (bench.workspace / name).write_text("")
    await bench.start()
    execution = await bench.open(env={"PATH": "/usr/bin:/bin", "HOME": "/"})

    outcome = await bench.dispatch("PreToolUse", execution=execution)

    hook = "bamboo:user:bamboo:PreToolUse[0].hooks[0]"
    assert (outcome.decision, outcome.decided_by) == (Decision.BLOCK, hook)
    assert outcome.reason is not None
    assert hook in outcome.reason
    assert kind in outcome.reason
    report = outcome.handlers[0]
    assert report.problem is not None
    assert (report.problem.kind, report.decision) == (kind, Decision.BLOCK)
    assert report.status not in {Status.OK, Status.BLOCKED}
    assert not (bench.workspace / "ran").exists()


async def test_without_a_guard_the_same_failures_are_open(bench: Bench) -> None:
    bench.configure(PreToolUse=list(FAILURES.values()))
    for name in ("there.mjs", "there.bat"):
        (bench.workspace / name).write_text("")
    await bench.start()
    execution = await bench.open(env={"PATH": "/usr/bin:/bin", "HOME": "/"})

    outcome = await bench.dispatch("PreToolUse", execution=execution)

    assert outcome.decision is Decision.NONE
    assert [report.problem and report.problem.kind for report in outcome.handlers] == list(FAILURES)


async def test_a_guarded_hook_in_a_workspace_that_is_gone_blocks(bench: Bench) -> None:
    bench.settings(GUARD)
    bench.configure(PreToolUse="true")
    await bench.start()
    execution = await bench.open(workspace_path=str(bench.root / "gone"))

    outcome = await bench.dispatch("PreToolUse", execution=execution)

    assert outcome.decision is Decision.BLOCK
    assert "missing_cwd" in (outcome.reason or "")


async def test_a_guarded_hook_that_finds_no_slot_blocks(bench: Bench) -> None:
    bench.settings(GUARD + "[limits]\nmax_running_gates = 1\nmax_queue_s = 0.05\n")
    bench.configure(PreToolUse="touch began; sleep 0.6")
    await bench.start()
    first = asyncio.ensure_future(bench.dispatch("PreToolUse"))
    await bench.until((bench.workspace / "began").exists)

    outcome = await bench.dispatch("PreToolUse")

    assert outcome.decision is Decision.BLOCK
    assert "busy" in (outcome.reason or "")
    assert (await first).decision is Decision.NONE


async def test_a_guarded_hook_whose_budget_was_spent_before_it_ran_blocks(bench: Bench) -> None:
    bench.settings('[[guard]]\nhooks = "*hooks[1]"\n')
    bench.configure(PreToolUse=["sleep 30", "true", "true"])
    await bench.start()

    outcome = await bench.dispatch("PreToolUse", timeout_s=0.1)

    assert (outcome.decision, outcome.decided_by) == (
        Decision.BLOCK,
        "bamboo:user:bamboo:PreToolUse[0].hooks[1]",
    )
    assert "budget" in (outcome.reason or "")
    assert [report.status for report in outcome.handlers] == [Status.TIMEOUT, Status.SKIPPED, Status.SKIPPED]


async def test_a_guarded_hook_that_did_not_load_blocks_and_an_unguarded_one_is_not_listed(
    bench: Bench,
) -> None:
    bench.settings('[[guard]]\nhooks = "*PreToolUse*"\n')
    broken = {"matcher": "[", "hooks": [command("true")]}
    bench.configure(PreToolUse=[broken], PostToolUse=[broken])
    await bench.start()

    guarded = await bench.dispatch("PreToolUse")
    unguarded = await bench.dispatch("PostToolUse")

    assert guarded.decision is Decision.BLOCK
    assert guarded.handlers[0].problem is not None
    assert guarded.handlers[0].problem.kind is ProblemKind.NOT_LOADED
    assert guarded.handlers[0].status is Status.FAILED
    assert unguarded.handlers == ()


async def test_a_guard_counts_on_gates_only_unless_it_names_the_event(bench: Bench) -> None:
    bench.settings(GUARD + '[[guard]]\nhooks = "bamboo:*PreCompact*"\nevents = ["PreCompact"]\n')
    bench.configure(SessionEnd="exit 3", PreCompact="exit 3", PostToolUse="exit 3")
    await bench.start()

    for event, background in (("SessionEnd", False), ("PreCompact", False), ("PostToolUse", True)):
        outcome = await bench.dispatch(event, background=background)
        assert outcome.decision is Decision.NONE
        problem = outcome.handlers[0].problem
        assert problem is not None
        assert problem.kind is ProblemKind.EXIT_CODE
        assert ("ignored_decision" in (problem.detail or "")) is (event == "PreCompact")
    assert (await bench.dispatch("PostToolUse")).decision is Decision.BLOCK


async def test_a_guarded_hook_runs_although_another_asked(bench: Bench) -> None:
    bench.settings('[[guard]]\nhooks = "*hooks[2]"\n')
    bench.configure(PreToolUse=["""echo '{"decision":"ask"}'""", "touch skipped", "exit 1"])
    await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    assert outcome.decision is Decision.BLOCK
    assert [report.status for report in outcome.handlers] == [Status.OK, Status.SKIPPED, Status.FAILED]
    assert not (bench.workspace / "skipped").exists()


async def test_a_guard_whose_hook_is_missing_blocks_the_events_it_names(bench: Bench) -> None:
    bench.settings('[[guard]]\nhooks = "*no-such*"\nevents = ["PreToolUse"]\non_missing = "block"\n')
    bench.configure(PreToolUse="touch ran", Stop="true")
    await bench.start()

    blocked = await bench.dispatch("PreToolUse")
    other = await bench.dispatch("Stop")
    empty = await bench.dispatch("UserPromptSubmit")

    assert (blocked.decision, blocked.decided_by) == (Decision.BLOCK, None)
    assert "*no-such*" in (blocked.reason or "")
    assert [(one.kind, one.hook) for one in blocked.problems] == [(ProblemKind.NO_SUCH_HOOK, "*no-such*")]
    assert not (bench.workspace / "ran").exists()
    assert (other.decision, empty.decision) == (Decision.NONE, Decision.NONE)
    told = [record for record in bench.told("hook.skipped") if record["hook"] == "*no-such*"]
    assert [record["problem"]["kind"] for record in told] == ["no_such_hook"]


async def test_a_guard_that_only_warns_leaves_failures_open(bench: Bench) -> None:
    bench.settings(GUARD + 'on_failure = "warn"\n')
    bench.configure(PreToolUse="exit 3")
    await bench.start()

    assert (await bench.dispatch("PreToolUse")).decision is Decision.NONE


async def test_a_guarded_client_that_is_gone_blocks(bench: Bench) -> None:
    class Gone:
        name = "gate"
        closed = True

        async def invoke(self, *_: object) -> object:
            raise AssertionError

    bench.settings('[[guard]]\nhooks = "programmatic:*"\n')
    bench.configure(PreToolUse="touch ran")
    pipeline = await bench.start()
    client = Gone()
    pipeline.registry.register(HookRegisterParams(events=("PreToolUse",), name="policy"), client)
    execution = await bench.open()
    pipeline.registry.lost(client)

    outcome = await bench.dispatch("PreToolUse", execution=execution)

    assert (outcome.decision, outcome.decided_by) == (Decision.BLOCK, "programmatic:client:gate:policy")
    assert "lost_connection" in (outcome.reason or "")
    assert json.dumps(bench.told("hook.finished")[0]["problem"]).count("lost_connection") == 1


async def test_a_client_that_takes_its_hook_out_does_not_take_the_guard_along(bench: Bench) -> None:
    """As in executions that are opened afterwards: the guard wants a hook, and there is none."""

    class Silent:
        name = "gate"
        closed = False

        async def invoke(self, *_: object) -> object:
            return {}

    bench.settings('[[guard]]\nhooks = "programmatic:*"\nevents = ["PreToolUse"]\non_missing = "block"\n')
    pipeline = await bench.start()
    ids = [
        pipeline.registry.register(
            HookRegisterParams(events=("PreToolUse",), name=name, matcher="^Write$"), Silent()
        )
        for name in ("first", "second")
    ]
    execution = await bench.open()

    pipeline.registry.unregister(ids[0])
    one_left = await bench.dispatch("PreToolUse", execution=execution)
    pipeline.registry.unregister(ids[1])
    none_left = await bench.dispatch("PreToolUse", execution=execution)
    other_event = await bench.dispatch("Stop", {"stop_hook_active": False}, execution=execution)

    assert one_left.decision is Decision.NONE
    assert (none_left.decision, none_left.decided_by) == (Decision.BLOCK, None)
    assert [problem.kind for problem in none_left.problems] == [ProblemKind.NO_SUCH_HOOK]
    assert other_event.decision is Decision.NONE
