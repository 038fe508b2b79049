"""The cases of the Bamboo dialect, section 8, that concern dispatching; each test carries its number."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hooksd.model.decision import Decision
from hooksd.model.events import EventName
from hooksd.model.outcome import Outcome
from hooksd.model.problems import ProblemKind
from hooksd.model.report import Status
from hooksd.protocol.methods.hooks import HookTestParams
from hooksd.protocol.methods.programmatic import HookRegisterParams


Bench = Any
"""The class is in conftest.py, which cannot be imported."""

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
needs_bun = pytest.mark.skipif(shutil.which("bun") is None, reason="there is no bun")
needs_pwsh = pytest.mark.skipif(shutil.which("pwsh") is None, reason="there is no PowerShell")


def say(**answer: Any) -> str:
    return f"echo '{json.dumps(answer)}'"


def script(bench: Bench, name: str, text: str, **more: Any) -> dict[str, Any]:
    path = Path(bench.root) / name
    path.write_text(text)
    return {"type": "script", "path": str(path), **more}


def bash(tool: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"tool_name": tool, "tool_call_id": "c-1", "parsed_args": arguments or {"command": "pwd"}}


def test_params(hook: dict[str, Any], event: str, **more: Any) -> HookTestParams:
    return HookTestParams(event=event, **hook, **more)


test_params.__test__ = False  # type: ignore[attr-defined]


class Client:
    """A programmatic hook that gives one answer."""

    name = "client"
    closed = False

    def __init__(self, calls: list[str], label: str, answer: dict[str, Any]) -> None:
        self.calls, self.label, self.answer = calls, label, answer

    async def invoke(self, registration_id: str, envelope: dict[str, Any], deadline_ms: int) -> object:
        self.calls.append(self.label)
        return self.answer


# ----------------------------------------------------------------------------------------------------------------------
# Executor and registry


async def test_05_allow_with_context(bench: Bench) -> None:
    bench.configure(PreToolUse=say(decision="allow", additional_context="note"))
    await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    assert (outcome.decision, outcome.contexts) == (Decision.ALLOW, ("note",))


async def test_12_one_handler_for_each_of_five_events(bench: Bench) -> None:
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    bench.configure(**dict.fromkeys(events, "true"))
    pipeline = await bench.start()
    execution = await bench.open()

    counts = {name: len(execution.snapshot.plan("bamboo", name).hooks) for name in EventName}

    assert sum(counts.values()) == 5
    for event in events:
        assert len((await bench.dispatch(event, execution=execution)).handlers) == 1
    assert pipeline.registry.hooks == ()


async def test_13_a_disabled_group_is_not_registered(bench: Bench) -> None:
    bench.configure(PreToolUse=[{"enabled": False, "hooks": [{"type": "command", "command": "exit 2"}]}])
    await bench.start()

    assert await bench.dispatch("PreToolUse") == Outcome(event="PreToolUse", revision=1)


async def test_14_the_first_of_two_blocks_decides_and_the_second_does_not_run(bench: Bench) -> None:
    bench.configure(PreToolUse=["echo first >&2; exit 2", "echo second >&2; exit 2"])
    await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    assert outcome.reason == "first"
    assert len(bench.told("hook.finished")) == 1


async def test_15_an_observer_runs_all_and_keeps_the_contexts(bench: Bench) -> None:
    bench.configure(PreCompact=["exit 2", say(additional_context="second")])
    await bench.start()

    outcome = await bench.dispatch("PreCompact")

    assert (outcome.decision, outcome.contexts) == (Decision.NONE, ("second",))
    assert len(bench.told("hook.finished")) == 2


# ----------------------------------------------------------------------------------------------------------------------
# Scripts


@needs_node
async def test_22_a_node_script_reads_its_envelope(bench: Bench) -> None:
    text = """
        let data = '';
        process.stdin.on('data', chunk => data += chunk);
        process.stdin.on('end', async () => {
          await new Promise(done => setTimeout(done, 1));
          const e = JSON.parse(data);
          const text = [e.hook_event_name, e.tool_name, e.tool_input.command, process.env.BAMBOO_HOOK_EVENT];
          console.log(JSON.stringify({decision: 'allow', additional_context: text.join(':')}));
        });
    """
    bench.configure(PreToolUse=[{"matcher": "^Bash$", "hooks": [script(bench, "hook.js", text)]}])
    await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    assert (outcome.decision, outcome.contexts) == (Decision.ALLOW, ("PreToolUse:Bash:pwd:PreToolUse",))


@needs_bun
async def test_23_explicit_bun(bench: Bench) -> None:
    bench.configure(SessionStart=script(bench, "hook.mjs", "console.log('{}')", runner="bun"))
    await bench.start()

    assert (await bench.dispatch("SessionStart")).handlers[0].status is Status.OK


async def test_24_a_python_script(bench: Bench) -> None:
    text = (
        "import json, sys\n"
        "event = json.load(sys.stdin)['hook_event_name']\n"
        "print(json.dumps({'additional_context': event + ':python'}))\n"
    )
    bench.configure(SessionStart=script(bench, "hook.py", text))
    await bench.start()

    assert (await bench.dispatch("SessionStart")).contexts == ("SessionStart:python",)


async def test_25_a_shell_script(bench: Bench) -> None:
    text = """#!/bin/sh\necho '{"additional_context":"from sh"}'\n"""
    bench.configure(SessionStart=script(bench, "hook.sh", text))
    await bench.start()

    assert (await bench.dispatch("SessionStart")).contexts == ("from sh",)


@needs_pwsh
async def test_26_a_powershell_script(bench: Bench) -> None:
    text = """Write-Output '{"additional_context":"from ps"}'\n"""
    bench.configure(SessionStart={**script(bench, "hook.ps1", text), "timeout_ms": 30_000})
    await bench.start()

    assert (await bench.dispatch("SessionStart")).contexts == ("from ps",)


@needs_node
async def test_27_a_node_script_that_throws(bench: Bench) -> None:
    hook = script(bench, "hook.js", "throw new Error('thrown on purpose')")
    bench.configure(PreToolUse=hook)
    pipeline = await bench.start()

    outcome = await bench.dispatch("PreToolUse")
    dry = await pipeline.test(test_params(hook, "PreToolUse"))

    assert outcome.decision is Decision.NONE
    assert outcome.handlers[0].status is Status.FAILED
    assert "thrown on purpose" in dry.stderr
    assert not dry.timed_out
    assert dry.problem is not None


@needs_node
async def test_28_a_node_script_that_never_ends(bench: Bench) -> None:
    bench.configure(PreToolUse={**script(bench, "hook.js", "while (true);"), "timeout_ms": 25})
    await bench.start()
    began = time.monotonic()

    outcome = await bench.dispatch("PreToolUse")

    assert time.monotonic() - began < 2
    assert outcome.handlers[0].status is Status.TIMEOUT


@needs_node
@pytest.mark.parametrize("detached", [False, True], ids=["29", "30"])
async def test_29_30_a_child_that_holds_the_pipes(bench: Bench, *, detached: bool) -> None:
    """In the reference a timeout; here the hook's own exit decides, and the pipe is told of (design.md, table)."""
    text = f"""
        const child = require('child_process').spawn('sleep', ['20'],
          {{stdio: ['ignore', 'inherit', 'inherit'], detached: {json.dumps(detached)}}});
        child.unref();
        require('fs').writeFileSync('child', String(child.pid));
        console.log(JSON.stringify({{decision: 'allow'}}));
    """
    bench.configure(PreToolUse={**script(bench, "hook.js", text), "timeout_ms": 10_000})
    await bench.start()
    began = time.monotonic()

    outcome = await bench.dispatch("PreToolUse")

    assert time.monotonic() - began < 3
    child = int((bench.workspace / "child").read_text())
    os.kill(child, signal.SIGKILL)
    await bench.until(lambda: not Path(f"/proc/{child}").exists())
    report = outcome.handlers[0]
    assert (outcome.decision, report.status) == (Decision.ALLOW, Status.OK)
    assert report.problem is not None
    assert report.problem.kind is ProblemKind.INHERITED_PIPE


@needs_node
async def test_31_too_much_output_is_cut_and_no_answer(bench: Bench) -> None:
    text = "process.stdout.write(JSON.stringify({additional_context: 'x'.repeat(131072)}))"
    hook = script(bench, "hook.js", text)
    bench.configure(PreToolUse=hook)
    pipeline = await bench.start()

    outcome = await bench.dispatch("PreToolUse")
    dry = await pipeline.test(test_params(hook, "PreToolUse"))

    assert (len(dry.stdout), dry.stdout_truncated, dry.stderr) == (65536, True, "")
    assert (outcome.decision, outcome.contexts) == (Decision.NONE, ())
    assert outcome.handlers[0].stdout_truncated
    assert outcome.handlers[0].stdout_bytes > 131072


async def test_32_a_script_that_is_not_there(bench: Bench) -> None:
    hook = {"type": "script", "path": str(bench.root / "missing.js")}
    bench.configure(PreToolUse=hook)
    pipeline = await bench.start()

    outcome = await bench.dispatch("PreToolUse")
    dry = await pipeline.test(test_params(hook, "PreToolUse"))

    assert outcome.decision is Decision.NONE
    assert outcome.handlers[0].status is Status.LAUNCH_ERROR
    assert dry.exit_code is None
    assert dry.problem is not None
    assert dry.problem.kind is ProblemKind.MISSING_SCRIPT
    assert "missing.js" in dry.problem.message


@needs_node
async def test_33_a_node_script_blocks(bench: Bench) -> None:
    text = "console.error('blocked in JS'); process.exit(2)"
    bench.configure(PreToolUse=[{"matcher": "^Bash$", "hooks": [script(bench, "hook.js", text)]}])
    await bench.start()

    assert (await bench.dispatch("PreToolUse")).reason == "blocked in JS"
    assert (await bench.dispatch("PreToolUse", bash("Write"))).decision is Decision.NONE


# ----------------------------------------------------------------------------------------------------------------------
# Dispatcher


async def test_34_nothing_configured(bench: Bench) -> None:
    await bench.start()

    assert await bench.dispatch("PreToolUse") == Outcome(event="PreToolUse", revision=1)
    assert bench.told("hook.finished") == []


@pytest.mark.parametrize("order", [(200, 50), (50, 200)])
async def test_35_priorities_order_programmatic_hooks(bench: Bench, order: tuple[int, int]) -> None:
    bench.configure(PreToolUse="true")
    pipeline = await bench.start()
    calls: list[str] = []
    for priority in order:
        client = Client(calls, str(priority), {})
        pipeline.registry.register(
            HookRegisterParams(events=("PreToolUse",), name=str(priority), priority=priority), client
        )

    outcome = await bench.dispatch("PreToolUse")

    assert calls == ["50", "200"]
    assert [report.hook for report in outcome.handlers] == [
        "programmatic:client:client:50",
        "bamboo:user:bamboo:PreToolUse[0].hooks[0]",
        "programmatic:client:client:200",
    ]


async def test_36_a_block_of_a_programmatic_hook_ends_the_plan(bench: Bench) -> None:
    bench.configure(PreToolUse="touch ran")
    pipeline = await bench.start()
    client = Client([], "", {"decision": "block", "reason": "abort"})
    pipeline.registry.register(HookRegisterParams(events=("PreToolUse",), name="p"), client)

    outcome = await bench.dispatch("PreToolUse")

    assert outcome.reason == "abort"
    assert len(bench.told("hook.finished")) == 1
    assert not (bench.workspace / "ran").exists()


async def test_37_hooks_of_another_event_do_not_run(bench: Bench) -> None:
    bench.configure(PostToolUse="exit 2", Stop="exit 2")
    await bench.start()

    assert (await bench.dispatch("PreToolUse")).handlers == ()


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
async def test_38_session_end_calls_every_hook_with_the_status(bench: Bench, status: str) -> None:
    bench.configure(SessionEnd=["cat > one; exit 2", "cat > two; exit 2"])
    await bench.start()

    outcome = await bench.dispatch("SessionEnd", {"status": status, "completion_reason": "why"})

    assert outcome.decision is Decision.NONE
    assert len(outcome.handlers) == 2
    for name in ("one", "two"):
        envelope = json.loads((bench.workspace / name).read_text())
        assert (envelope["terminal_status"], envelope["completion_reason"]) == (status, "why")


async def test_40_outcomes_survive_a_round_trip(bench: Bench) -> None:
    bench.configure(
        PreToolUse=["echo odd", say(decision="block", reason="r", additional_context="c"), "true"]
    )
    await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    assert msgspec.json.decode(msgspec.json.encode(outcome), type=Outcome) == outcome


# ----------------------------------------------------------------------------------------------------------------------
# Tools


async def test_41_a_programmatic_block(bench: Bench) -> None:
    pipeline = await bench.start()
    client = Client([], "", {"decision": "block", "reason": "denied by policy"})
    pipeline.registry.register(HookRegisterParams(events=("tool.before",), name="p"), client)

    outcome = await bench.dispatch("PreToolUse")

    assert (outcome.decision, outcome.reason) == (Decision.BLOCK, "denied by policy")
    assert outcome.decided_by == "programmatic:client:client:p"


async def test_42_a_configured_command_blocks_a_tool(bench: Bench) -> None:
    hook = {"type": "command", "command": "echo not bash >&2; exit 2"}
    bench.configure(PreToolUse=[{"matcher": "^bash$", "hooks": [hook]}])
    await bench.start()

    assert (await bench.dispatch("PreToolUse", bash("bash"))).reason == "not bash"
    assert (await bench.dispatch("PreToolUse", bash("Bash"))).decision is Decision.NONE


async def test_46_feedback_after_a_tool(bench: Bench) -> None:
    bench.configure(PostToolUse=say(decision="block", reason="do it again", additional_context="lint failed"))
    await bench.start()

    outcome = await bench.dispatch("PostToolUse")

    assert (outcome.decision, outcome.reason) == (Decision.BLOCK, "do it again")
    assert outcome.contexts == ("lint failed",)


# ----------------------------------------------------------------------------------------------------------------------
# "Not covered by any test we saw", as far as it is about dispatching


async def test_allow_then_block(bench: Bench) -> None:
    bench.configure(PreToolUse=[say(decision="allow"), "exit 2"])
    await bench.start()

    assert (await bench.dispatch("PreToolUse")).decision is Decision.BLOCK


async def test_ask_then_block_in_one_source(bench: Bench) -> None:
    bench.configure(PreToolUse=[say(decision="ask"), "touch ran; exit 2"])
    await bench.start()

    assert (await bench.dispatch("PreToolUse")).decision is Decision.ASK
    assert not (bench.workspace / "ran").exists()


async def test_ask_then_block_in_another_source(bench: Bench) -> None:
    other = bench.config / "hooks.json"
    document = {
        "lifecycle_hooks": {
            "enabled": True,
            "PreToolUse": [{"hooks": [{"type": "command", "command": "echo from the other >&2; exit 2"}]}],
        }
    }
    bench.write(other, json.dumps(document))
    bench.configure(PreToolUse=say(decision="ask"))
    await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    assert (outcome.decision, outcome.reason) == (Decision.BLOCK, "from the other")


async def test_an_unknown_decision_takes_its_context_with_it(bench: Bench) -> None:
    bench.configure(PreToolUse=say(decision="maybe", additional_context="lost"))
    await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    assert outcome.contexts == ()
    assert outcome.handlers[0].problem is not None
    assert outcome.handlers[0].problem.kind is ProblemKind.UNKNOWN_DECISION


async def test_a_large_payload_for_a_hook_that_does_not_read_it(bench: Bench) -> None:
    bench.configure(PreToolUse=["exit 2"])
    await bench.start()

    outcome = await bench.dispatch("PreToolUse", bash(command="x" * 2_000_000))

    assert outcome.decision is Decision.BLOCK
    assert outcome.handlers[0].problem is None


async def test_background_bash_exit_2_has_no_effect(bench: Bench) -> None:
    bench.configure(PostToolUse="exit 2")
    await bench.start()

    assert (await bench.dispatch("PostToolUse", background=True)).decision is Decision.NONE


async def test_a_matcher_on_an_event_without_a_tool_is_ignored(bench: Bench) -> None:
    hook = {"type": "command", "command": "exit 2"}
    bench.configure(Stop=[{"matcher": "^Bash$", "hooks": [hook]}])
    await bench.start()

    assert (await bench.dispatch("Stop")).decision is Decision.BLOCK


async def test_an_empty_matcher_matches_everything(bench: Bench) -> None:
    hook = {"type": "command", "command": "exit 2"}
    bench.configure(PreToolUse=[{"matcher": "", "hooks": [hook]}])
    await bench.start()

    assert (await bench.dispatch("PreToolUse")).decision is Decision.BLOCK
