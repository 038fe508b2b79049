"""Chrys' payloads to and from the normalised form (event-map B and E).

What another agent does not tell is filled with what claims the least: no arguments after a call, an empty kind, a first
phase of compaction. Arguments that are no object become one with the single key `value`: Chrys has no others.
"""

from __future__ import annotations

from typing import Any

from hooksd.dialects.normalised import Normalised
from hooksd.model.events import Event


__all__ = ["from_normalised", "normalised"]

_FORCE = "force"


def normalised(event: Event) -> Normalised:
    """The payload of a Chrys event."""
    payload = event.payload
    match event.native:
        case "session_start":
            return Normalised(resumed=False)
        case "session_restored":
            return Normalised(resumed=True, restored_session=payload["restored_session_id"])
        case "user_prompt_submit":
            return Normalised(text=payload["text"], injected=payload["injected"])
        case "before_tool_call":
            return Normalised(call_id=payload["tool"]["call_id"])
        case "after_tool_call":
            result = payload["result"]
            return Normalised(
                call_id=payload["tool"]["call_id"],
                failed=result["failed"] or result["error"],
                raised=result["error"],
                result=result["text"],
                duration_ms=result["duration_ms"],
            )
        case "pre_compact":
            return Normalised(
                tokens=payload["tokens_before"],
                usage=payload["usage_pct"],
                forced=payload["trigger"] == _FORCE,
            )
        case _:
            return Normalised()


def from_normalised(native: str, event: Event, said: Normalised) -> dict[str, Any]:
    """The payload of a Chrys event made of another dialect's; `native` is one that dialects share."""
    match native:
        case "session_start" | "session_end":
            return {}
        case "session_restored":
            return {"restored_session_id": said.restored_session or event.session_id}
        case "user_prompt_submit":
            return {"text": said.text or "", "injected": bool(said.injected)}
        case "before_tool_call":
            return {"tool": _tool(event, said)}
        case "after_tool_call" | "tool_error":
            result = {
                "text": said.result or "",
                "duration_ms": said.duration_ms or 0,
                "error": bool(said.raised),
                "failed": bool(said.failed),
                "approval_rejected": False,
            }
            return {"tool": _tool(event, said), "result": result}
        case "pre_compact":
            trigger = _FORCE if said.forced else "phase1"
            return {"trigger": trigger, "usage_pct": said.usage or 0.0, "tokens_before": said.tokens or 0}
        case _:
            raise ValueError(f"no other dialect has an event like {native}")


def _tool(event: Event, said: Normalised) -> dict[str, Any]:
    arguments = event.tool_arguments
    if arguments is None:
        arguments = {}
    elif not isinstance(arguments, dict):
        arguments = {"value": arguments}
    return {
        "name": event.tool_name,
        "kind": event.tool_kind or "",
        "call_id": said.call_id or "",
        "args": arguments,
    }
