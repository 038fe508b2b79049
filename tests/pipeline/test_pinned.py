"""Hooks of projects in the pipeline: withheld ones, and the check right before each start."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hooksd.config import digests, pins as pins_module
from hooksd.model.decision import Decision
from hooksd.model.problems import ProblemKind
from hooksd.model.report import Status


ENABLED = "[projects]\nenabled = true\n"
GUARDED = '[[guard]]\nhooks = "bamboo:project:*"\n'
NAME = "bamboo:project:project-bamboo:PreToolUse[0].hooks[0]"


def project(bench: Any, command: str = "./guard.sh", **events: str) -> Path:
    """A project of the workspace, whose script says what it is told to."""
    events = events or {"PreToolUse": command}
    section: dict[str, Any] = {"enabled": True}
    for event, one in events.items():
        section[event] = [{"hooks": [{"type": "command", "command": one}]}]
    folder = bench.workspace / ".bamboo"
    folder.mkdir(exist_ok=True)
    bench.write(folder / "hooks.json", json.dumps({"lifecycle_hooks": section}))
    return script(bench, "echo 'not today' >&2; exit 2")


def script(bench: Any, text: str, name: str = "guard.sh") -> Path:
    path: Path = bench.write(bench.workspace / name, f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return path


async def grant(bench: Any) -> None:
    where = str(bench.workspace)
    await bench.store.trust.grant(where, (await bench.store.trust.show(where)).digest)


async def trusting(bench: Any, settings: str = ENABLED, **events: str) -> None:
    bench.settings(settings)
    project(bench, **events)
    await bench.start()
    await grant(bench)


async def test_a_trusted_hook_runs(bench: Any) -> None:
    await trusting(bench)
    outcome = await bench.dispatch("PreToolUse")

    assert (outcome.decision, outcome.reason, outcome.decided_by) == (Decision.BLOCK, "not today", NAME)


async def test_a_script_that_changed_since_the_execution_was_opened_is_not_started(bench: Any) -> None:
    await trusting(bench)
    execution = await bench.open()
    marker = bench.root / "ran"
    for _ in range(2):
        script(bench, f"touch {marker}")
        outcome = await bench.dispatch("PreToolUse", execution=execution)
        (report,) = outcome.handlers

        assert outcome.decision is Decision.BLOCK
        assert outcome.decided_by == NAME
        assert "has changed since it was trusted: guard.sh is not what was granted" in str(outcome.reason)
        assert f"hooksd trust show {bench.workspace}" in str(outcome.reason)
        assert (report.status, report.problem.kind, report.pid) == (Status.SKIPPED, ProblemKind.CHANGED, None)
        assert "trust show" in report.problem.hint
        assert not marker.exists()
    script(bench, "echo 'not today' >&2; exit 2")
    outcome = await bench.dispatch("PreToolUse", execution=execution)
    assert outcome.reason == "not today"


async def test_an_edit_of_the_hooks_file_does_not_change_what_an_open_execution_runs(bench: Any) -> None:
    await trusting(bench)
    execution = await bench.open()
    project(bench, "true")
    assert (await bench.dispatch("PreToolUse", execution=execution)).reason == "not today"
    outcome = await bench.dispatch("PreToolUse", execution=await bench.open("run-2"))
    assert outcome.decision is Decision.BLOCK
    assert "has changed since it was trusted (.bamboo/hooks.json" in str(outcome.reason)


async def test_revoked_trust_ends_with_the_execution(bench: Any) -> None:
    await trusting(bench)
    execution = await bench.open()
    await bench.store.trust.revoke(str(bench.workspace))
    assert (await bench.dispatch("PreToolUse", execution=execution)).reason == "not today"
    script(bench, "exit 0")
    assert "has changed" in str((await bench.dispatch("PreToolUse", execution=execution)).reason)
    after = await bench.dispatch("PreToolUse", execution=await bench.open("run-2"))
    assert (after.decision, after.handlers) == (Decision.NONE, ())


async def test_a_changed_project_blocks_before_anything_of_it_runs(bench: Any) -> None:
    await trusting(bench)
    script(bench, "exit 0")
    outcome = await bench.dispatch("PreToolUse")
    (report,) = outcome.handlers

    assert (outcome.decision, report.status) == (Decision.BLOCK, Status.SKIPPED)
    assert report.problem.kind is ProblemKind.CHANGED
    assert "(guard.sh)" in report.problem.message
    assert bench.told("hook.skipped")[-1]["problem"]["kind"] == "changed"
    assert bench.told("hook.started") == []


async def test_observers_of_a_changed_project_are_skipped(bench: Any) -> None:
    await trusting(bench, PreCompact="./guard.sh", SessionEnd="./guard.sh")
    execution = await bench.open()
    script(bench, f"touch {bench.root}/ran")
    for opened in (execution, await bench.open("run-2")):
        for event in ("PreCompact", "SessionEnd"):
            outcome = await bench.dispatch(event, execution=opened)
            (report,) = outcome.handlers
            assert (outcome.decision, report.status) == (Decision.NONE, Status.SKIPPED)
            assert report.problem.kind is ProblemKind.CHANGED
    assert not (bench.root / "ran").exists()


@pytest.mark.parametrize("opened_before", [False, True])
@pytest.mark.parametrize(
    ("guard", "decision"), [("", Decision.NONE), (GUARDED, Decision.BLOCK)], ids=["", "guarded"]
)
async def test_a_changed_project_can_be_skipped_unless_it_is_guarded(
    bench: Any, guard: str, decision: Decision, opened_before: bool
) -> None:
    await trusting(bench, f'{ENABLED}on_changed = "skip"\n{guard}')
    before = await bench.open()
    script(bench, "exit 0")
    outcome = await bench.dispatch("PreToolUse", execution=before if opened_before else await bench.open("b"))

    assert outcome.decision is decision
    assert [report.problem.kind for report in outcome.handlers] == [ProblemKind.CHANGED]


async def test_an_untrusted_project_runs_nothing(bench: Any) -> None:
    bench.settings(ENABLED)
    project(bench)
    await bench.start()

    assert (await bench.dispatch("PreToolUse")).handlers == ()


async def test_an_untrusted_hook_that_is_guarded_blocks(bench: Any) -> None:
    bench.settings(ENABLED + GUARDED)
    project(bench)
    await bench.start()
    outcome = await bench.dispatch("PreToolUse")

    assert outcome.decision is Decision.BLOCK
    assert [report.problem.kind for report in outcome.handlers] == [ProblemKind.UNTRUSTED]
    assert "not trusted" in str(outcome.reason)


async def test_a_background_completion_reads_the_current_trust(bench: Any) -> None:
    await trusting(bench, PostToolUse="./guard.sh")
    execution = await bench.open()
    await bench.store.trust.revoke(str(bench.workspace))

    assert (await bench.dispatch("PostToolUse", execution=execution, background=True)).handlers == ()


async def test_a_working_directory_in_the_project_is_looked_at_as_the_hook_will_see_it(bench: Any) -> None:
    await trusting(bench)
    sub = bench.workspace / "sub"
    sub.mkdir()
    script(bench, f"touch {bench.root}/ran", "sub/guard.sh")
    outcome = await bench.dispatch("PreToolUse", cwd=str(sub))

    assert outcome.decision is Decision.BLOCK
    assert "sub/guard.sh was not there" in str(outcome.reason)
    assert not (bench.root / "ran").exists()


async def test_a_dry_run_asks_too(bench: Any) -> None:
    from hooksd.protocol.methods.hooks import HookTestParams

    await trusting(bench)
    params = HookTestParams(event="PreToolUse", workspace_path=str(bench.workspace), hook=NAME)
    (run,) = (await bench.pipeline.test(params)).results
    assert (run.exit_code, run.stderr) == (2, "not today\n")
    script(bench, f"touch {bench.root}/ran")
    (run,) = (await bench.pipeline.test(params)).results
    assert (run.exit_code, run.problem.kind) == (None, ProblemKind.CHANGED)
    await bench.store.trust.revoke(str(bench.workspace))
    (run,) = (await bench.pipeline.test(params)).results
    assert (run.exit_code, run.problem.kind) == (None, ProblemKind.UNTRUSTED)
    assert not (bench.root / "ran").exists()


@pytest.mark.parametrize("settings", [ENABLED, ENABLED + GUARDED])
async def test_explain_tells_what_is_withheld(bench: Any, settings: str) -> None:
    bench.settings(settings)
    project(bench)
    await bench.start()

    async def why(execution_id: str) -> str:
        execution = await bench.open(execution_id)
        event = bench.pipeline.prepare(
            execution, "PreToolUse", {"tool_name": "Bash", "tool_call_id": "c", "parsed_args": {}}
        )
        told = bench.pipeline.explain(execution, event)
        assert told.plan == ()
        return str(told.not_matched[0].why)

    assert "this project is not trusted; `hooksd trust show" in await why("a")
    await grant(bench)
    script(bench, "exit 0")
    assert "(guard.sh), so it blocks this event; `hooksd trust show" in await why("b")


async def test_what_stands_still_is_read_once(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "STEADY_NS", -1)
    await trusting(bench)
    execution = await bench.open()
    checks = []
    fault = pins_module.PinCheck.fault
    monkeypatch.setattr(
        pins_module.PinCheck, "fault", lambda *arguments: (checks.append(1), fault(*arguments))[1]
    )
    for _ in range(3):
        assert (await bench.dispatch("PreToolUse", execution=execution)).reason == "not today"
    assert len(checks) == 1
    script(bench, "exit 0")
    assert "has changed" in str((await bench.dispatch("PreToolUse", execution=execution)).reason)


async def test_a_check_that_hangs_costs_no_more_than_the_time_of_the_hook(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await trusting(bench)
    go_on = threading.Event()
    monkeypatch.setattr(pins_module.PinCheck, "fault", lambda *_: go_on.wait(30))
    try:
        began = time.monotonic()
        outcome = await bench.dispatch("PreToolUse", timeout_s=0.2)
        took_s = time.monotonic() - began
    finally:
        go_on.set()
    (report,) = outcome.handlers

    assert (report.status, outcome.decision) == (Status.TIMEOUT, Decision.BLOCK)
    assert "budget" in report.problem.message
    assert took_s < 20


async def test_a_check_does_not_hold_up_the_loop(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    await trusting(bench)
    go_on = threading.Event()
    monkeypatch.setattr(pins_module.PinCheck, "fault", lambda *_: go_on.wait(30) and None)
    running = asyncio.ensure_future(bench.dispatch("PreToolUse"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not running.done()
    go_on.set()
    assert (await running).reason == "not today"
