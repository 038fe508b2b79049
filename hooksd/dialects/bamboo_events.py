"""The events of Bamboo: their payloads, which of them are gates, and how a dispatched one is checked (Bamboo dialect 2).

A payload is the `payload` object of the Bamboo envelope, with these liberties (protocol section 3): `type` may be left
out; PreToolUse takes `tool_input` for `parsed_args`; a whole Bamboo envelope is taken too, and its outer fields are
then compared with what the execution was opened with, never believed.

Unknown fields are refused, as everywhere in requests. The reference's typed payload would drop them in silence, and a
misspelt optional field (`completion_reson`) would be lost without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec

from hooksd.dialects.bamboo_schema import EVENTS, TOOL_EVENTS
from hooksd.dialects.bamboo_translation import tool_kind
from hooksd.dialects.base import Caller, PayloadRefused
from hooksd.dialects.payload_check import checked, refusal
from hooksd.model.events import Event, EventName
from hooksd.model.problems import ConfigProblem


__all__ = [
    "NATIVE_NAMES",
    "convenience_fields",
    "make_event",
    "rfc3339",
    "synthetic_payload",
    "with_arguments",
]

NATIVE_NAMES: dict[str, str] = {
    **{name: name for name in EVENTS},
    **{normalised.value: name for name, normalised in EVENTS.items()},
    # event-map.md: in Bamboo's words a restored session is a SessionStart whose source is `resume`.
    EventName.SESSION_RESTORED.value: "SessionStart",
}
"""Native and dotted names to native ones."""

GATES = frozenset(
    EVENTS[native] for native in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
)
"""The events whose outcome can stop something; PostToolUse not if it tells of a background command (2.3)."""

UInt32 = Annotated[int, msgspec.Meta(ge=0, le=(1 << 32) - 1)]
UInt64 = Annotated[int, msgspec.Meta(ge=0)]
Text = str | None | msgspec.UnsetType
"""An optional text: null counts as left out, and what is left out is not sent to hooks."""
UNSET = msgspec.UNSET


class _Payload(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the payloads; the fields stand in the order of the envelope."""


class _SessionStart(_Payload, kw_only=True, forbid_unknown_fields=True):
    type: Literal["session_setup"] = "session_setup"
    initial_message: str
    source: Literal["startup", "resume"]


class _UserPromptSubmit(_Payload, kw_only=True, forbid_unknown_fields=True):
    type: Literal["prompt"] = "prompt"
    prompt: str


class _PreToolUse(_Payload, kw_only=True, forbid_unknown_fields=True):
    type: Literal["tool_execution"] = "tool_execution"
    tool_name: str
    tool_call_id: str
    parsed_args: Any


class _Outcome(_Payload, kw_only=True, forbid_unknown_fields=True):
    success: bool
    result: Text = UNSET
    error: Text = UNSET
    needs_human: bool
    duration_ms: UInt64


class _PostToolUse(_Payload, kw_only=True, forbid_unknown_fields=True):
    type: Literal["tool_result"] = "tool_result"
    tool_name: str
    tool_call_id: str
    outcome: _Outcome


class _Stop(_Payload, kw_only=True, forbid_unknown_fields=True):
    type: Literal["finalize"] = "finalize"
    stop_hook_active: bool


class _SessionEnd(_Payload, kw_only=True, forbid_unknown_fields=True):
    type: Literal["session_end"] = "session_end"
    status: Literal["completed", "failed", "cancelled"]
    completion_reason: Text = UNSET


class _PreCompact(_Payload, kw_only=True, forbid_unknown_fields=True):
    type: Literal["compression"] = "compression"
    estimated_tokens: UInt32
    usage_percent: float
    max_context_tokens: UInt32
    trigger_context_tokens: UInt32
    trigger: Literal["threshold", "forced_overflow_recovery", "manual"]
    phase: Literal["pre-turn", "mid-turn", "overflow-recovery", "test"]


class _Notification(_Payload, kw_only=True, forbid_unknown_fields=True):
    type: Literal["notification"] = "notification"
    id: Text = UNSET
    category: str
    priority: Literal["high", "normal", "low"]
    title: str
    body: str
    dedup_key: Text = UNSET
    created_at: Text = UNSET
    click_url: Text = UNSET


_SHAPES: dict[str, type[_Payload]] = {
    "SessionStart": _SessionStart,
    "UserPromptSubmit": _UserPromptSubmit,
    "PreToolUse": _PreToolUse,
    "PostToolUse": _PostToolUse,
    "Stop": _Stop,
    "SessionEnd": _SessionEnd,
    "PreCompact": _PreCompact,
    "Notification": _Notification,
}

_HINTS = {
    "PreToolUse": {
        "args": "write parsed_args (or tool_input)",
        "arguments": "write parsed_args (or tool_input)",
        "parsed_args": "the tool's arguments; tool_input is taken, too",
    },
    "PostToolUse": {
        "tool_input": "PostToolUse has no tool input; tool_call_id tells which call it was",
        "tool_response": "write outcome {success, result?, error?, needs_human, duration_ms}",
    },
}


class _Envelope(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The outer fields of a whole envelope, as a caller may send it."""

    schema_version: Literal[1] = 1
    hook_event_name: str
    session_id: str
    workspace_path: str = ""
    model: str = ""
    payload: dict[str, Any]
    tool_name: Any = UNSET
    tool_input: Any = UNSET
    tool_response: Any = UNSET
    prompt: Any = UNSET
    source: Any = UNSET
    stop_hook_active: Any = UNSET
    terminal_status: Any = UNSET
    completion_reason: Any = UNSET
    timestamp: str = ""


_CONVENIENCE = _Envelope.__struct_fields__[6:-1]


def make_event(native: str, payload: Mapping[str, Any], caller: Caller, *, background: bool) -> Event:
    """Check a dispatched payload and make it an event.

    Args:
        native: One of the eight names.
        payload: The event's own fields, or a whole envelope.
        caller: Who reports it.
        background: A background tool completion; only PostToolUse has those.

    Raises:
        PayloadRefused: It does not fit; every fault is told.
    """
    if "\0" in caller.session_id:
        hint = "it is handed to hooks in an environment variable, which cannot hold one"
        raise PayloadRefused([refusal("session_id", "must not contain a NUL character", hint)])
    if background and native != "PostToolUse":
        hint = "only PostToolUse tells of background commands"
        raise PayloadRefused([refusal("background", f"{native} cannot be a background event", hint)])
    if "payload" in payload or "hook_event_name" in payload:
        fields = _from_envelope(native, payload, caller)
    else:
        fields = _from_payload(native, payload, "payload")
    return Event(
        name=EVENTS[native],
        agent="bamboo",
        native=native,
        gate=not background and EVENTS[native] in GATES,
        background=background,
        session_id=caller.session_id,
        workspace_path=caller.workspace_path,
        model=caller.model,
        profile=caller.profile,
        payload=fields,
        tool_name=fields["tool_name"] if native in TOOL_EVENTS else None,
        tool_arguments=fields.get("parsed_args"),
        tool_kind=tool_kind(fields["tool_name"]) if native in TOOL_EVENTS else None,
        also=_also(native, fields),
        continued=fields.get("stop_hook_active", False),
        timestamp=caller.timestamp,
    )


def _also(native: str, fields: Mapping[str, Any]) -> tuple[EventName, ...]:
    """What else it is to hooks of dialects that have events of their own for it (event-map A and F)."""
    if native == "SessionStart" and fields["source"] == "resume":
        return (EventName.SESSION_RESTORED,)
    if native == "PostToolUse" and not fields["outcome"]["success"]:
        return (EventName.TOOL_ERROR,) if "error" in fields["outcome"] else ()
    return ()


def with_arguments(event: Event, arguments: dict[str, Any]) -> Event:
    """The event with other tool arguments; only PreToolUse has any."""
    return msgspec.structs.replace(
        event, payload={**event.payload, "parsed_args": arguments}, tool_arguments=arguments
    )


def convenience_fields(native: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The copies of payload fields that stand beside `payload` in the envelope, in its order."""
    match native:
        case "SessionStart":
            return {"prompt": payload["initial_message"], "source": payload["source"]}
        case "UserPromptSubmit":
            return {"prompt": payload["prompt"]}
        case "PreToolUse":
            return {"tool_name": payload["tool_name"], "tool_input": payload["parsed_args"]}
        case "PostToolUse":
            return {"tool_name": payload["tool_name"], "tool_response": payload["outcome"]}
        case "Stop":
            return {"stop_hook_active": payload["stop_hook_active"]}
        case "SessionEnd":
            copies = {"terminal_status": payload["status"]}
            if "completion_reason" in payload:
                copies["completion_reason"] = payload["completion_reason"]
            return copies
        case _:
            return {}


def _from_payload(native: str, payload: Mapping[str, Any], path: str) -> dict[str, Any]:
    if native == "PreToolUse" and "tool_input" in payload:
        if "parsed_args" in payload and payload["parsed_args"] != payload["tool_input"]:
            raise PayloadRefused(
                [refusal(f"{path}.tool_input", "differs from parsed_args", "send one of them")]
            )
        payload = {
            "parsed_args": payload["tool_input"],
            **{key: value for key, value in payload.items() if key != "tool_input"},
        }
    fields = msgspec.structs.asdict(checked(payload, _SHAPES[native], path, _HINTS.get(native, {})))
    if native == "PostToolUse":
        fields["outcome"] = _present(msgspec.structs.asdict(fields["outcome"]))
    elif native in ("SessionEnd", "Notification"):
        fields = _present(fields)
    return fields


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields less the optional texts that were left out."""
    return {name: value for name, value in fields.items() if value is not None and value is not UNSET}


def _from_envelope(native: str, given: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """The payload fields of a whole envelope whose outer fields agree with the caller and with the payload."""
    envelope = checked(given, _Envelope, "payload")
    faults: list[ConfigProblem] = []
    for name, here, there, what in (
        ("hook_event_name", envelope.hook_event_name, native, "the dispatched event"),
        ("session_id", envelope.session_id, caller.session_id, "the execution's session"),
        ("workspace_path", envelope.workspace_path, caller.workspace_path, "the execution's workspace"),
        ("model", envelope.model, caller.model, "the model of the execution or of this dispatch"),
    ):
        # Blank means "not told" for the last two, on either side.
        if here != there and (name in ("hook_event_name", "session_id") or (here and there)):
            hint = (
                "outer fields of an envelope are compared, not taken over; leave the field out or correct it"
            )
            faults.append(refusal(f"payload.{name}", f"is not {what}", hint))
    try:
        fields = _from_payload(native, envelope.payload, "payload.payload")
    except PayloadRefused as refused:
        raise PayloadRefused([*faults, *refused.problems]) from None
    copies = convenience_fields(native, fields)
    for name in _CONVENIENCE:
        copy = getattr(envelope, name)
        if copy is not UNSET and (name not in copies or copy != copies[name]):
            faults.append(refusal(f"payload.{name}", "does not agree with the payload object"))
    if faults:
        raise PayloadRefused(faults)
    return fields


def rfc3339(timestamp: float) -> str:
    """Seconds since the epoch as the reference writes a time: UTC as `+00:00`, with sub-second digits."""
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="microseconds")


def synthetic_payload(native: str, timestamp: float) -> dict[str, Any]:
    """The payload of a dry run (Bamboo dialect 6); only a notification's `created_at` depends on the time."""
    match native:
        case "SessionStart":
            return {"type": "session_setup", "initial_message": "Lifecycle hook test", "source": "startup"}
        case "UserPromptSubmit":
            return {"type": "prompt", "prompt": "Lifecycle hook test"}
        case "PreToolUse":
            return {
                "type": "tool_execution",
                "tool_name": "Bash",
                "tool_call_id": "hook-test-call",
                "parsed_args": {"command": "echo lifecycle-hook-test"},
            }
        case "PostToolUse":
            return {
                "type": "tool_result",
                "tool_name": "Bash",
                "tool_call_id": "hook-test-call",
                "outcome": {
                    "success": True,
                    "result": "lifecycle-hook-test",
                    "needs_human": False,
                    "duration_ms": 1,
                },
            }
        case "Stop":
            return {"type": "finalize", "stop_hook_active": False}
        case "SessionEnd":
            return {"type": "session_end", "status": "completed", "completion_reason": "lifecycle hook test"}
        case "PreCompact":
            return {
                "type": "compression",
                "estimated_tokens": 1000,
                "usage_percent": 50.0,
                "max_context_tokens": 2000,
                "trigger_context_tokens": 1600,
                "trigger": "threshold",
                "phase": "test",
            }
        case _:
            return {
                "type": "notification",
                "id": "notification-test",
                "category": "custom",
                "priority": "normal",
                "title": "Lifecycle hook test",
                "body": "Synthetic notification delivery",
                "dedup_key": "lifecycle-hook-test",
                "created_at": rfc3339(timestamp),
            }
