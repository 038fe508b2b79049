"""Dry runs: one unwritten handler, one configured hook, the configured pipeline."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hooksd.config.plan import MatchResult, PlannedHook
from hooksd.dialects.bamboo import Bamboo
from hooksd.model.decision import Capability, Decision
from hooksd.model.errors import ProtocolError
from hooksd.model.problems import ProblemKind
from hooksd.protocol.errors import ErrorCode
from hooksd.protocol.methods.hooks import HookTestParams
from hooksd.protocol.methods.programmatic import HookRegisterParams


Bench = Any
"""The class is in conftest.py, which cannot be imported."""


async def tried(bench: Bench, event: str = "PreToolUse", **params: Any) -> Any:
    return await bench.pipeline.test(HookTestParams(event=event, **params))


async def test_60_an_unwritten_command_is_run_and_told_raw(bench: Bench) -> None:
    pipeline = await bench.start()

    run = await tried(
        bench, "Stop", type="command", command='echo "$BAMBOO_HOOK_EVENT"; echo to-stderr >&2; exit 7'
    )

    assert (run.exit_code, run.signal, run.stdout, run.stderr) == (7, None, "Stop\n", "to-stderr\n")
    assert (run.timed_out, run.stdout_truncated, run.stderr_truncated) == (False, False, False)
    assert (run.hook, run.interpreted, run.matched) == (None, None, True)
    assert run.problem.kind is ProblemKind.EXIT_CODE
    assert run.duration_ms > 0
    assert run.cwd == str(bench.root / "home")
    assert "BAMBOO_HOOK_EVENT" in run.environment
    assert run.command[-2] == "-c"
    assert len(pipeline.executions) == 0
    assert len(pipeline.results) == 0
    assert bench.told("hook.finished")[0]["dry_run"] is True


async def test_the_synthetic_payload_is_that_of_the_event(bench: Bench) -> None:
    await bench.start()

    run = await tried(bench, command="cat", type="command", workspace_path=str(bench.workspace))

    envelope = json.loads(run.stdout)
    assert (envelope["session_id"], envelope["model"]) == ("lifecycle-hook-test", "hook-test")
    assert envelope["tool_input"] == {"command": "echo lifecycle-hook-test"}
    assert run.cwd == envelope["workspace_path"] == str(bench.workspace)


async def test_an_answer_is_interpreted_as_a_dispatch_would(bench: Bench) -> None:
    await bench.start()
    answer = json.dumps({"decision": "block", "reason": "r", "additional_context": "c"})

    blocked = await tried(bench, type="command", command=f"echo '{answer}'")
    observed = await tried(bench, "PreCompact", type="command", command=f"echo '{answer}'")

    for run in (blocked, observed):
        assert (run.interpreted.decision, run.interpreted.reason) == (Decision.BLOCK, "r")
        assert run.interpreted.additional_context == "c"
    assert blocked.problem is None
    assert observed.problem.kind is ProblemKind.IGNORED_DECISION


async def test_an_own_payload_environment_and_directory(bench: Bench) -> None:
    await bench.start()
    payload = {"tool_name": "Write", "tool_call_id": "1", "tool_input": {"a": 1}}

    run = await tried(
        bench,
        type="command",
        command='cat; echo; echo "$OWN"; pwd',
        matcher="^Bash$",
        payload=payload,
        env={"PATH": bench.env["PATH"], "OWN": "own"},
        cwd=str(bench.root),
    )

    envelope, own, where = run.stdout.splitlines()
    assert json.loads(envelope)["tool_input"] == {"a": 1}
    assert (own, where) == ("own", str(bench.root))
    assert not run.matched


async def test_what_was_written_before_a_time_out_is_kept(bench: Bench) -> None:
    await bench.start()

    run = await tried(bench, type="command", command="echo early; sleep 30", timeout_ms=200)

    assert (run.timed_out, run.exit_code, run.stdout) == (True, None, "early\n")
    assert run.problem.kind is ProblemKind.TIMEOUT


async def test_a_handler_that_cannot_start_is_a_result(bench: Bench) -> None:
    await bench.start()

    run = await tried(bench, type="script", path="/not/there.py")

    assert (run.exit_code, run.stdout, run.command) == (None, "", ())
    assert run.problem.kind is ProblemKind.MISSING_SCRIPT


@pytest.mark.parametrize(
    ("params", "code", "told"),
    [
        ({"event": "Nope", "type": "command", "command": "touch ran"}, ErrorCode.UNKNOWN_EVENT, "Nope"),
        (
            {"event": "Stop", "dialect": "nobody", "type": "command", "command": "touch ran"},
            ErrorCode.UNKNOWN_EVENT,
            "nobody",
        ),
        ({"event": "Stop", "type": "command", "command": " "}, ErrorCode.INVALID_PARAMS, "command"),
        (
            {"event": "Stop", "type": "command", "command": "true", "payload": {"x": 1}},
            ErrorCode.INVALID_PARAMS,
            "x",
        ),
        ({"event": "Stop", "hook": "nope"}, ErrorCode.INVALID_PARAMS, "bamboo:user:bamboo:Stop"),
        ({"event": "PreToolUse", "hook": "nope"}, ErrorCode.INVALID_PARAMS, "none"),
    ],
)
async def test_what_could_never_run_is_refused(
    bench: Bench, params: dict[str, Any], code: ErrorCode, told: str
) -> None:
    bench.configure(Stop="true")
    pipeline = await bench.start()

    with pytest.raises(ProtocolError) as raised:
        await pipeline.test(HookTestParams(**params))

    assert raised.value.code == code
    assert told in raised.value.message


async def test_the_configured_pipeline_runs_as_a_dispatch_would(bench: Bench) -> None:
    bench.configure(
        PreToolUse=["""echo '{"additional_context":"one"}'""", "echo no >&2; exit 2", "touch ran"],
        Stop="exit 2",
    )
    await bench.start()

    result = await tried(bench, workspace_path=str(bench.workspace))
    none = await tried(bench, "SessionEnd")

    assert [run.hook.rpartition(":")[2] for run in result.results] == [
        "PreToolUse[0].hooks[0]",
        "PreToolUse[0].hooks[1]",
    ]
    assert result.results[0].interpreted.additional_context == "one"
    assert result.results[1].interpreted.reason == "no"
    assert none.results == ()
    assert not (bench.workspace / "ran").exists()


async def test_a_dry_run_counts_no_turn(bench: Bench) -> None:
    bench.configure(Stop="exit 2")
    await bench.start()
    execution = await bench.open()
    await tried(bench, "Stop")

    outcome = await bench.dispatch("Stop", execution=execution)

    assert outcome.continuation is not None
    assert outcome.continuation.count == 1


async def test_one_configured_hook_runs_even_where_it_does_not_match(bench: Bench) -> None:
    hook = {"type": "command", "command": "echo ran"}
    disabled = {"enabled": False, "hooks": [hook]}
    bench.configure(PreToolUse=[{"hooks": [hook]}, {"matcher": "^Write$", "hooks": [hook]}, disabled])
    await bench.start()

    first = await tried(bench, hook="bamboo:user:bamboo:PreToolUse[0].hooks[0]")
    second = await tried(bench, hook="bamboo:user:bamboo:PreToolUse[1].hooks[0]")

    third = await tried(bench, hook="bamboo:user:bamboo:PreToolUse[2].hooks[0]")

    for result, matched in ((first, True), (second, False), (third, False)):
        (run,) = result.results
        assert (run.stdout, run.matched) == ("ran\n", matched)


async def test_a_configured_hook_that_did_not_load_says_why(bench: Bench) -> None:
    broken = {"matcher": "[", "hooks": [{"type": "command", "command": "true"}]}
    bench.configure(PreToolUse=[broken])
    await bench.start()

    result = await tried(bench, hook="bamboo:user:bamboo:PreToolUse[0].hooks[0]")

    (run,) = result.results
    assert run.problem.kind is ProblemKind.NOT_LOADED
    assert run.exit_code is None


async def test_a_dry_run_sees_what_is_on_disk_now(bench: Bench) -> None:
    bench.configure(PreToolUse="echo old")
    await bench.start()
    bench.configure(PreToolUse="echo new")

    result = await tried(bench)

    assert [run.stdout for run in result.results] == ["new\n"]


async def test_while_no_hook_may_run_only_unwritten_ones_do(bench: Bench) -> None:
    bench.settings("[limits\n")
    bench.configure(PreToolUse="touch ran")
    pipeline = await bench.start()

    assert (await tried(bench, type="command", command="true")).exit_code == 0
    with pytest.raises(ProtocolError) as raised:
        await tried(bench)
    assert raised.value.code == ErrorCode.CONFIG_INVALID

    await pipeline.drain(0)
    with pytest.raises(ProtocolError) as raised:
        await tried(bench)
    assert raised.value.code == ErrorCode.DRAINING


async def test_changed_arguments_are_chained(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        name, closed = "c", False

        async def invoke(self, *_: object) -> object:
            return {"arguments": {"command": "ls"}}

    monkeypatch.setattr(Bamboo, "accepts", frozenset(Capability))
    bench.configure(PreToolUse="cat")
    pipeline = await bench.start()
    pipeline.registry.register(HookRegisterParams(events=("PreToolUse",), name="p"), Client())

    client, command = (await tried(bench)).results

    assert client.interpreted.arguments == {"command": "ls"}
    assert json.loads(command.stdout)["tool_input"] == {"command": "ls"}


async def test_a_condition_that_does_not_hold_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlannedHook, "matches", lambda *_: MatchResult(matched=False, why="not today"))
    bench.configure(PreToolUse="touch ran")
    pipeline = await bench.start()
    execution = await bench.open()

    outcome = await bench.dispatch("PreToolUse", execution=execution)
    event = pipeline.prepare(execution, "PreToolUse", {"tool_name": "B", "tool_call_id": "", "tool_input": 1})
    explained = pipeline.explain(execution, event)
    (run,) = (await tried(bench, hook="bamboo:user:bamboo:PreToolUse[0].hooks[0]")).results

    assert outcome.handlers == ()
    assert (await tried(bench)).results == ()
    assert [row.why for row in explained.not_matched] == ["not today"]
    assert not run.matched
