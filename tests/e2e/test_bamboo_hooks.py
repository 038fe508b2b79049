"""Hooks as Bamboo's guide documents them, through the real socket; the numbers are those of Bamboo's own test cases."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "bamboo" / "hooks"
NOTIFICATION = {
    "id": "n-1",
    "category": "custom",
    "priority": "high",
    "title": "Title",
    "body": "Body",
    "dedup_key": "k",
    "created_at": "2026-11-30T12:00:00Z",
    "click_url": "https://example.org",
}
COMPACTION = {
    "estimated_tokens": 4500,
    "usage_percent": 90.0,
    "max_context_tokens": 5000,
    "trigger_context_tokens": 4000,
    "trigger": "manual",
    "phase": "mid-turn",
}


def bash(command: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_call_id": "c-1", "tool_input": {"command": command}}


def script(path: str, **more: Any) -> dict[str, Any]:
    return {"hooks": [{"type": "script", "path": path, **more}]}


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@pytest.fixture
def workspace(home: Any) -> Path:
    """A workspace that has the example hooks in it."""
    path = home.root / "project"
    shutil.copytree(EXAMPLES, path / "hooks")
    return path


@pytest.fixture
def dispatch(home: Any, workspace: Path) -> Callable[..., Any]:
    """Starts the daemon with the hooks that are given, and dispatches one event."""

    def run(event: str, payload: dict[str, Any], **hooks: Any) -> Any:
        home.write_hooks(**hooks)
        home.start()
        with home.client() as client:
            client.open(workspace_path=str(workspace))
            return client.call("hook/dispatch", execution_id="run-1", event=event, payload=payload)

    return run


@needs("node")
@pytest.mark.parametrize(("command", "decision"), [("sudo rm -rf /", "block"), ("rm -rf ./build", "none")])
def test_the_documented_node_script(dispatch: Callable[..., Any], command: str, decision: str) -> None:
    answer = dispatch("PreToolUse", bash(command), PreToolUse=[script("hooks/check-command.js")])

    assert answer["decision"] == decision
    assert [report["status"] for report in answer["handlers"]] == ["blocked" if decision == "block" else "ok"]


def test_the_documented_python_script(dispatch: Callable[..., Any]) -> None:
    payload = {"initial_message": "hello", "source": "resume"}

    answer = dispatch("SessionStart", payload, SessionStart=[script("hooks/add-context.py")])

    assert answer["contexts"] == ["resume: this workspace holds hooks"]


@needs("bash", "jq")
@pytest.mark.parametrize("runner", ["auto", "bash"])
def test_the_documented_bash_script(dispatch: Callable[..., Any], runner: str) -> None:
    """`set -euo pipefail` is an error of dash that would block every call: its first line decides."""
    hooks = [script("hooks/guard-shell.sh", runner=runner)]

    blocked = dispatch("PreToolUse", bash("git push --force"), PreToolUse=hooks)

    assert blocked["decision"] == "block"
    assert blocked["reason"].startswith("force-pushing is forbidden")
    assert blocked["handlers"][0]["exit_code"] == 2
    assert blocked["handlers"][0]["problem"] is None


@needs("bash", "jq")
def test_the_documented_bash_script_lets_the_rest_through(dispatch: Callable[..., Any]) -> None:
    answer = dispatch("PreToolUse", bash("git push"), PreToolUse=[script("hooks/guard-shell.sh")])

    assert answer["decision"] == "none"
    assert answer["handlers"][0]["status"] == "ok"


def test_03_stdin_is_delivered_with_its_fields_in_order(dispatch: Callable[..., Any]) -> None:
    check = """grep -q '"hook_event_name":"PreToolUse".*"tool_name":"Bash"' && echo '{"decision":"allow"}'"""

    assert dispatch("PreToolUse", bash("ls"), PreToolUse=[check])["decision"] == "allow"


def test_08_a_hook_that_sleeps_is_ended_at_its_time_limit(dispatch: Callable[..., Any]) -> None:
    hooks = [{"hooks": [{"type": "command", "command": "sleep 50", "timeout_ms": 25}]}]

    answer = dispatch("SessionStart", {"initial_message": "", "source": "startup"}, SessionStart=hooks)

    (report,) = answer["handlers"]
    assert (answer["decision"], report["status"]) == ("none", "timeout")
    assert report["duration_ms"] < 10_000


def test_17_64_kib_are_kept_and_the_rest_is_drained(dispatch: Callable[..., Any]) -> None:
    hooks = ["head -c 65553 /dev/zero | tr '\\0' x; echo done >&2"]

    answer = dispatch("PreToolUse", bash("ls"), PreToolUse=hooks)

    (report,) = answer["handlers"]
    assert report["stdout_bytes"] == 65_553
    assert report["stdout_truncated"] is True
    assert report["stderr_bytes"] == 5
    assert report["problem"]["kind"] == "truncated_output"


def test_49_a_blocked_prompt_and_the_raw_prompt_on_stdin(
    dispatch: Callable[..., Any], workspace: Path
) -> None:
    answer = dispatch(
        "UserPromptSubmit", {"prompt": "  raw\n"}, UserPromptSubmit=["cat > seen; echo no >&2; exit 2"]
    )

    assert (answer["decision"], answer["reason"]) == ("block", "no")
    seen = json.loads((workspace / "seen").read_text())
    assert seen["prompt"] == seen["payload"]["prompt"] == "  raw\n"


def test_64_a_notification_arrives_whole(home: Any, workspace: Path, until: Callable[..., Any]) -> None:
    home.write_hooks(Notification=["cat > seen.new; mv seen.new seen"])
    home.start()
    with home.client() as client:
        client.open(workspace_path=str(workspace))
        told = client.call("hook/notify", execution_id="run-1", event="Notification", payload=NOTIFICATION)
    assert len(told["invocation_ids"]) == 1
    until((workspace / "seen").exists)

    seen = json.loads((workspace / "seen").read_text())
    assert seen["payload"] == {"type": "notification", **NOTIFICATION}
    assert (seen["hook_event_name"], seen["session_id"], seen["model"]) == ("Notification", "s-1", "")


def test_67_a_compaction_hook_sees_trigger_phase_and_limits(
    dispatch: Callable[..., Any], workspace: Path
) -> None:
    answer = dispatch(
        "PreCompact", COMPACTION, PreCompact=["""cat > seen; echo '{"additional_context": "keep names"}'"""]
    )

    assert answer["contexts"] == ["keep names"]
    assert json.loads((workspace / "seen").read_text())["payload"] == {"type": "compression", **COMPACTION}


@pytest.mark.parametrize(
    "event", ["PreToolUse", "PostToolUse", "Stop", "SessionStart", "SessionEnd", "PreCompact"]
)
def test_60_62_the_dry_run_of_every_event_gives_its_variables(home: Any, daemon: Any, event: str) -> None:
    with home.client() as client:
        told = client.call(
            "hook/test", event=event, type="command", command="echo $BAMBOO_HOOK_EVENT; echo x >&2; exit 7"
        )

    assert (told["exit_code"], told["stdout"], told["stderr"]) == (7, f"{event}\n", "x\n")
    assert told["problem"]["kind"] == "exit_code"
    assert {"BAMBOO_HOOK_EVENT", "BAMBOO_SESSION_ID"} <= set(told["environment"])


def test_66_a_programmatic_hook_at_the_start_of_a_session(home: Any, daemon: Any) -> None:
    with home.client() as client:
        client.call("hook/register", events=["SessionStart"], name="greeter")
        client.open()
        payload = {"initial_message": "hello hooks", "source": "startup"}
        number = client.send("hook/dispatch", execution_id="run-1", event="SessionStart", payload=payload)
        invoked = client.receive()
        assert invoked["method"] == "hook/invoke"
        assert invoked["params"]["envelope"]["payload"]["initial_message"] == "hello hooks"
        client.reply(invoked["id"], {"additional_context": "welcome"})
        answer = client.receive()

    assert answer["id"] == number
    assert answer["result"]["contexts"] == ["welcome"]
    assert answer["result"]["handlers"][0]["hook"] == "programmatic:client:-:greeter"
