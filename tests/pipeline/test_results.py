"""What is kept of recent invocations, and its bounds."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from hooksd.model.errors import ProtocolError
from hooksd.pipeline.results import MAX_RESULT_BYTES
from hooksd.protocol.errors import ErrorCode
from hooksd.protocol.methods.programmatic import HookRegisterParams


Bench = Any
"""The class is in conftest.py, which cannot be imported."""


async def test_a_result_tells_what_the_hook_said_and_how_it_ran(bench: Bench) -> None:
    answer = json.dumps({"decision": "block", "reason": "because", "additional_context": "c"})
    bench.configure(PreToolUse=f"echo to-stderr >&2; echo '{answer}'")
    pipeline = await bench.start()
    execution = await bench.open(env={"PATH": bench.env["PATH"], "SECRET": "value"})

    outcome = await bench.dispatch("PreToolUse", execution=execution)
    result = pipeline.results.get(outcome.handlers[0].invocation_id)

    assert result.report == outcome.handlers[0]
    assert (result.reason, result.contexts) == ("because", ("c",))
    assert (result.stdout, result.stderr) == (answer + "\n", "to-stderr\n")
    assert result.command[-2] == "-c"
    assert "to-stderr" in result.command[-1]
    assert result.cwd == str(bench.workspace)
    assert list(result.environment) == sorted(result.environment)
    assert {"SECRET", "BAMBOO_HOOK_EVENT", "HOOKSD_INVOCATION_ID"} <= set(result.environment)
    assert "value" not in repr(result)
    assert (result.source.path, result.source.line) == (str(bench.hooks_json), 1)
    assert (result.arguments_before, result.arguments_after) == (None, None)


async def test_a_hook_that_could_not_start_has_a_result_too(bench: Bench) -> None:
    bench.configure(PreToolUse={"type": "script", "path": "missing.sh"})
    pipeline = await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    result = pipeline.results.get(outcome.handlers[0].invocation_id)
    assert (result.stdout, result.command) == ("", ())
    assert result.report.problem is not None


async def test_results_are_bounded_in_size(bench: Bench) -> None:
    much = "head -c 60000 /dev/zero | tr '\\0' "
    bench.configure(
        PreToolUse=f"{much} x >&2; {much} y; exit 2",
        PostToolUse=f"""printf '{{"additional_context":"'; {much} c; printf '"}}'""",
        Stop=f"{much} x; echo short >&2; exit 2",
        SessionStart=f"{much} x >&2; exit 1",
    )
    pipeline = await bench.start()
    env = {"PATH": bench.env["PATH"], **{f"VARIABLE_{number:04}": "" for number in range(1000)}}
    execution = await bench.open(env=env)
    kept = {}

    for event in ("PreToolUse", "PostToolUse", "Stop", "SessionStart"):
        outcome = await bench.dispatch(event, execution=execution)
        kept[event] = pipeline.results.get(outcome.handlers[0].invocation_id)
        assert len(msgspec.json.encode(kept[event])) <= MAX_RESULT_BYTES + 2048

    assert abs(len(kept["PreToolUse"].stdout) - len(kept["PreToolUse"].stderr)) < 2
    assert len(kept["PostToolUse"].contexts[0]) == 2048
    assert kept["Stop"].stderr == "short\n"
    assert len(kept["Stop"].stdout) > 8000
    assert kept["SessionStart"].stdout == ""
    assert len(kept["SessionStart"].stderr) > 6000


async def test_arguments_are_kept_only_while_they_are_small(bench: Bench) -> None:
    class Client:
        name, closed = "c", False

        async def invoke(self, *_: object) -> object:
            return {"arguments": {"command": "x" * 5000}}

    pipeline = await bench.start()
    pipeline.registry.register(HookRegisterParams(events=("PreToolUse",), name="p"), Client())
    execution = await bench.open(accepts=("ask", "arguments"))

    outcome = await bench.dispatch("PreToolUse", execution=execution)

    assert len(outcome.arguments["command"]) == 5000
    result = pipeline.results.get(outcome.handlers[0].invocation_id)
    assert (result.arguments_before, result.arguments_after) == ({"command": "pwd"}, None)

    payload = {"tool_name": "Bash", "tool_call_id": "1", "parsed_args": "no object"}
    outcome = await bench.dispatch("PreToolUse", payload, execution=execution)
    assert pipeline.results.get(outcome.handlers[0].invocation_id).arguments_before is None


async def test_only_the_last_ones_are_kept(bench: Bench) -> None:
    bench.settings("[limits]\nkept_results = 2\n")
    bench.configure(PreToolUse="true")
    pipeline = await bench.start()
    ids = [(await bench.dispatch("PreToolUse")).handlers[0].invocation_id for _ in range(3)]

    assert len(pipeline.results) == 2
    assert pipeline.results.get(ids[2]).report.invocation_id == ids[2]
    with pytest.raises(ProtocolError, match="kept_results") as raised:
        pipeline.results.get(ids[0])
    assert raised.value.code == ErrorCode.INVALID_PARAMS


async def test_keeping_can_be_switched_off(bench: Bench) -> None:
    bench.settings("[limits]\nkept_results = 0\n")
    bench.configure(PreToolUse="true")
    pipeline = await bench.start()

    await bench.dispatch("PreToolUse")

    assert len(pipeline.results) == 0
