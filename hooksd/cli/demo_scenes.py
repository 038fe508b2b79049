"""The story that `hooksd demo` tells: events of a day in the life of an agent, and what hooks make of them. Pure data."""

from __future__ import annotations

from typing import Any

import msgspec


__all__ = ["SCENES", "Scene"]


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the story.

    Attributes:
        title: What the agent is about to do, in a few words.
        agent: Whose vocabulary it is told in.
        event: The event, as that agent names it.
        payload: Its fields.
        decision: What the outcome must be; the demo fails otherwise.
        says: A text that must be in the reason, in a context or reminder, or in the arguments of the outcome; "" for none.
        needs: Programs without which the hook in question is left out, and the scene with it.
        writes: A file that is put into the workspace first, as (name, content).
    """

    title: str
    agent: str = "bamboo"
    event: str
    payload: dict[str, Any]
    decision: str
    says: str = ""
    needs: tuple[str, ...] = ()
    writes: tuple[str, str] | None = None


def _bash(command: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_call_id": "call-1", "tool_input": {"command": command}}


def _call(kind: str, **args: Any) -> dict[str, Any]:
    return {"name": "a_tool", "kind": kind, "call_id": "abcdef123456", "args": args}


SCENES: tuple[Scene, ...] = (
    Scene(
        title="a session starts; a Python hook tells the model about the workspace",
        event="SessionStart",
        payload={"initial_message": "fix the login", "source": "startup"},
        decision="none",
        says="this workspace holds",
        needs=("python3",),
    ),
    Scene(
        title="the user's prompt names a ticket; a shell hook adds what it is about",
        event="UserPromptSubmit",
        payload={"prompt": "please fix TICKET-42"},
        decision="none",
        says="TICKET-42 is about",
    ),
    Scene(
        title="a harmless command; every guard lets it through",
        event="PreToolUse",
        payload=_bash("ls -l"),
        decision="none",
    ),
    Scene(
        title="the agent tries to delete the root directory; a Node hook blocks it",
        event="PreToolUse",
        payload=_bash("sudo rm -rf / --no-preserve-root"),
        decision="block",
        says="root directory",
        needs=("node",),
    ),
    Scene(
        title="it tries to force-push; a bash hook with jq blocks it",
        event="PreToolUse",
        payload=_bash("git push origin main --force"),
        decision="block",
        says="force-pushing",
        needs=("bash", "jq"),
    ),
    Scene(
        title="it wants to write a file with secrets; somebody has to look",
        event="PreToolUse",
        payload={
            "tool_name": "Write",
            "tool_call_id": "call-2",
            "tool_input": {"file_path": "config/.env", "content": "TOKEN=1"},
        },
        decision="ask",
        says="may hold secrets",
        needs=("python3",),
    ),
    Scene(
        title="it has edited a file; a hook tidies up and says so",
        event="PostToolUse",
        payload={
            "tool_name": "Edit",
            "tool_call_id": "call-3",
            "outcome": {"success": True, "result": "ok", "needs_human": False, "duration_ms": 3},
        },
        decision="none",
        says="tidied 1 file",
        needs=("bash",),
        writes=("notes.txt", "a line with blanks at its end   \n"),
    ),
    Scene(
        title="the context gets long; a hook says what must not be forgotten",
        event="PreCompact",
        payload={
            "estimated_tokens": 170_000,
            "usage_percent": 85.0,
            "max_context_tokens": 200_000,
            "trigger_context_tokens": 160_000,
            "trigger": "threshold",
            "phase": "pre-turn",
        },
        decision="none",
        says="every file name",
    ),
    Scene(
        title="it wants to stop, but no tests were run; a hook sends it back to work",
        event="Stop",
        payload={"stop_hook_active": False},
        decision="block",
        says="run the tests first",
        needs=("bash",),
    ),
    Scene(
        title="the tests have passed; now it may stop",
        event="Stop",
        payload={"stop_hook_active": True},
        decision="none",
        needs=("bash",),
        writes=("tests-passed", ""),
    ),
    Scene(
        title="another agent, another dialect: Chrys wants to write below /etc; a bash hook blocks it",
        agent="chrys",
        event="before_tool_call",
        payload={"tool": _call("filesystem.write", path="/etc/hosts", content="…")},
        decision="block",
        says="system configuration",
        needs=("bash", "jq"),
    ),
    Scene(
        title="it puts an access key into a command; a Python hook takes the key out, and the command may run",
        agent="chrys",
        event="before_tool_call",
        payload={"tool": _call("shell", command="deploy --key AKIAABCDEFGHIJKLMNOP")},
        decision="none",
        says="AKIA-REDACTED",
        needs=("python3",),
    ),
    Scene(
        title="a prompt; a hook reminds the model of the project's rules",
        agent="chrys",
        event="user_prompt_submit",
        payload={"text": "go on", "injected": False},
        decision="none",
        says="tests before code",
        needs=("python3",),
        writes=("REMINDER.md", "In this project: tests before code.\n"),
    ),
    Scene(
        title="it has written a file that is no Python yet; a hook adds that to the tool's result",
        agent="chrys",
        event="after_tool_call",
        payload={
            "tool": _call("filesystem.write", path="draft.py"),
            "result": {
                "text": "written",
                "duration_ms": 3,
                "error": False,
                "failed": False,
                "approval_rejected": False,
            },
        },
        decision="none",
        says="[lint]",
        needs=("python3",),
        writes=("draft.py", "def draft(:\n"),
    ),
)
