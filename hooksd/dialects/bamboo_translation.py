"""Bamboo's payloads to and from the normalised form (event-map B and E).

What another agent does not tell is filled with what claims the least: an empty message, a status of `completed`, a
context whose limit is what its size and its usage say.
"""

from __future__ import annotations

from typing import Any

from hooksd.dialects.normalised import Normalised
from hooksd.model.events import Event


__all__ = ["from_normalised", "normalised", "tool_kind"]

_KINDS = {
    "Bash": "shell",
    "BashOutput": "shell",
    "KillShell": "shell",
    "Read": "filesystem.read",
    "Write": "filesystem.write",
    "Edit": "filesystem.write",
    "MultiEdit": "filesystem.write",
    "NotebookEdit": "filesystem.write",
    "Grep": "search",
    "Glob": "search",
    "WebSearch": "web_search",
    "WebFetch": "web_fetch",
    "Task": "sub_agent",
    "TodoWrite": "todo",
}
_MCP_PREFIX = "mcp__"


def tool_kind(name: str) -> str | None:
    """The kind of a tool by its usual name; None where the name says nothing."""
    return _KINDS.get(name) or ("mcp" if name.startswith(_MCP_PREFIX) else None)


def normalised(event: Event) -> Normalised:
    """The payload of a Bamboo event."""
    payload = event.payload
    match event.native:
        case "SessionStart":
            return Normalised(text=payload["initial_message"], resumed=payload["source"] == "resume")
        case "UserPromptSubmit":
            return Normalised(text=payload["prompt"])
        case "PreToolUse":
            return Normalised(call_id=payload["tool_call_id"])
        case "PostToolUse":
            outcome = payload["outcome"]
            error, result = outcome.get("error"), outcome.get("result")
            return Normalised(
                call_id=payload["tool_call_id"],
                failed=not outcome["success"],
                raised=error is not None,
                result=error if result is None else result,
                duration_ms=outcome["duration_ms"],
            )
        case "SessionEnd":
            return Normalised(status=payload["status"], reason=payload.get("completion_reason"))
        case "PreCompact":
            return Normalised(
                tokens=payload["estimated_tokens"],
                usage=payload["usage_percent"] / 100,
                max_tokens=payload["max_context_tokens"],
                trigger_tokens=payload["trigger_context_tokens"],
                forced=payload["trigger"] != "threshold",
            )
        case _:
            return Normalised()


def from_normalised(native: str, event: Event, said: Normalised) -> dict[str, Any]:
    """The payload of a Bamboo event made of another dialect's; `native` is one that dialects share."""
    match native:
        case "SessionStart":
            source = "resume" if said.resumed else "startup"
            return {"type": "session_setup", "initial_message": said.text or "", "source": source}
        case "UserPromptSubmit":
            return {"type": "prompt", "prompt": said.text or ""}
        case "PreToolUse":
            return {
                "type": "tool_execution",
                "tool_name": event.tool_name,
                "tool_call_id": said.call_id or "",
                "parsed_args": event.tool_arguments,
            }
        case "PostToolUse":
            return {
                "type": "tool_result",
                "tool_name": event.tool_name,
                "tool_call_id": said.call_id or "",
                "outcome": _outcome(said),
            }
        case "SessionEnd":
            payload = {"type": "session_end", "status": said.status or "completed"}
            return payload if said.reason is None else {**payload, "completion_reason": said.reason}
        case "PreCompact":
            return _compaction(said)
        case _:
            raise ValueError(f"no other dialect has an event like {native}")


def _outcome(said: Normalised) -> dict[str, Any]:
    failed = bool(said.failed or said.raised)
    outcome: dict[str, Any] = {"success": not failed}
    if said.result is not None:
        outcome["error" if failed else "result"] = said.result
    return {**outcome, "needs_human": False, "duration_ms": round(said.duration_ms or 0)}


def _compaction(said: Normalised) -> dict[str, Any]:
    tokens, usage = said.tokens or 0, said.usage or 0.0
    full = round(tokens / usage) if usage else tokens
    return {
        "type": "compression",
        "estimated_tokens": tokens,
        "usage_percent": usage * 100,
        "max_context_tokens": full if said.max_tokens is None else said.max_tokens,
        "trigger_context_tokens": tokens if said.trigger_tokens is None else said.trigger_tokens,
        "trigger": "forced_overflow_recovery" if said.forced else "threshold",
        "phase": "overflow-recovery" if said.forced else "mid-turn",
    }
