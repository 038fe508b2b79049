"""What would run, as what, and why the rest would not."""

from __future__ import annotations

import os
from typing import Any

import pytest

from hooksd.model.hooks import Argv, Programmatic, Script, ShellCommand
from hooksd.pipeline.explain import command_text
from hooksd.protocol.methods.programmatic import HookRegisterParams


Bench = Any
"""The class is in conftest.py, which cannot be imported."""

PRE = {"tool_name": "Bash", "tool_call_id": "1", "tool_input": {}}


def group(command: str, **more: Any) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command}], **more}


class Client:
    name, closed = "c", False

    async def invoke(self, *_: object) -> object:
        raise AssertionError


async def explained(bench: Bench, **options: Any) -> Any:
    execution = await bench.open()
    return bench.pipeline.explain(execution, bench.pipeline.prepare(execution, "PreToolUse", PRE), **options)


@pytest.mark.skipif(not os.path.exists("/bin/dash"), reason="there is no dash")
async def test_the_plan_is_told_in_order_and_nothing_runs(bench: Bench) -> None:
    script = {"type": "script", "path": "hook.sh", "timeout_ms": 1234}
    bench.configure(PreToolUse=[group("touch ran"), {"matcher": "Bash", "hooks": [script]}])
    (bench.workspace / "hook.sh").write_text("#!/bin/dash\ntouch ran\n")
    pipeline = await bench.start()
    pipeline.registry.register(HookRegisterParams(events=("PreToolUse",), name="p", priority=200), Client())

    result = await explained(bench)

    assert [run.hook for run in result.plan] == [
        "bamboo:user:bamboo:PreToolUse[0].hooks[0]",
        "bamboo:user:bamboo:PreToolUse[1].hooks[0]",
        "programmatic:client:c:p",
    ]
    command, file, client = result.plan
    assert (command.command, command.cwd, command.timeout_ms) == ("touch ran", str(bench.workspace), 60_000)
    assert command.runs_as[0][-2:] == ("-c", "touch ran")
    assert (file.command, file.timeout_ms) == ("hook.sh", 1234)
    assert file.runs_as[0] == ("/bin/dash", str(bench.workspace / "hook.sh"))
    assert (client.contract, client.runs_as, client.cwd) == ("programmatic", (), str(bench.workspace))
    assert (result.not_matched, result.revision) == ((), 1)
    assert not (bench.workspace / "ran").exists()
    assert bench.told("hook.started") == []


async def test_what_would_not_run_is_told_with_the_reason(bench: Bench) -> None:
    bench.settings('[[guard]]\nhooks = "*PreToolUse[3]*"\n')
    bench.configure(
        PreToolUse=[
            group("true", matcher="^Write$"),
            group("true", enabled=False),
            group("true", matcher="["),
            group("true", matcher="["),
            {"hooks": [{"type": "script", "path": "gone.sh"}]},
        ]
    )
    pipeline = await bench.start()
    client = Client()
    registration = pipeline.registry.register(HookRegisterParams(events=("PreToolUse",), name="p"), client)
    await bench.open()
    pipeline.registry.unregister(registration, client)

    result = await explained(bench)

    why = {row.hook.rpartition(":")[2].removesuffix(".hooks[0]"): row.why for row in result.not_matched}
    assert "'^Write$'" in why["PreToolUse[0]"]
    assert "enabled" in why["PreToolUse[1]"]
    assert "did not load" in why["PreToolUse[2]"]
    assert "guarded" in why["PreToolUse[3]"]
    assert "taken it out" in why["p"]
    (gone,) = result.plan
    assert gone.runs_as == ()


def test_commands_in_one_line() -> None:
    assert command_text(ShellCommand(command="a | b", shells=("sh",))) == "a | b"
    assert command_text(Argv(argv=("a", "b c"))) == "a 'b c'"
    assert command_text(Script(path="x y.sh", runtimes=(("sh",),), arguments=("1",))) == "'x y.sh' 1"
    assert command_text(Programmatic(registration_id="r", priority=1)) == "client hook r"
    assert command_text(None) == ""
