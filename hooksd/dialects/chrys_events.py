"""The events of Chrys: their payloads and how a dispatched one is checked (Chrys dialect 2).

A payload is the event's own fields. The fields of the base envelope may be left out; where they are there:

- `schema` must be 1 and `event` the dispatched event; `timestamp` is taken and replaced, as the reference does
- `session_id` must be the execution's, or null: early events of the agent have none
- `profile` counts instead of the execution's: events of a sub-agent carry the sub-agent's
- `cwd` counts instead of the execution's workspace; it must be absolute

Unknown fields are refused, as everywhere in requests.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec

from hooksd.dialects.base import Caller, PayloadRefused
from hooksd.dialects.chrys_schema import EVENTS, GATES, TOOL_EVENTS
from hooksd.dialects.payload_check import checked, refusal
from hooksd.model.events import Event, EventName
from hooksd.model.problems import ConfigProblem


__all__ = ["BASE_FIELDS", "NATIVE_NAMES", "make_event", "synthetic_payload", "utc_seconds", "with_arguments"]

NATIVE_NAMES: dict[str, str] = {
    **{name: name for name in EVENTS},
    **{normalised.value: name for name, normalised in EVENTS.items()},
}
"""Native and dotted names to native ones."""

BASE_FIELDS = ("schema", "event", "timestamp", "session_id", "profile", "cwd")
"""The fields of the base envelope, in their order."""

UNSET = msgspec.UNSET
Unset = msgspec.UnsetType
Count = Annotated[int, msgspec.Meta(ge=0)]
Number = Count | Annotated[float, msgspec.Meta(ge=0)]


class _Payload(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What every payload may have; the fields stand in the order of the envelope."""

    schema: Literal[1] | Unset = UNSET
    event: str | Unset = UNSET
    timestamp: str | Unset = UNSET
    session_id: str | Unset | None = UNSET
    profile: str | Unset = UNSET
    cwd: str | Unset = UNSET
    session_kind: str | Unset = UNSET
    workflow_id: str | Unset = UNSET


class _Tool(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    kind: str
    call_id: str = ""
    args: dict[str, Any]


class _Result(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    text: str
    duration_ms: Number
    error: bool
    failed: bool
    approval_rejected: bool = False
    rejection_source: Literal["user", "hook"] | Unset = UNSET
    hook_denied: bool | Unset = UNSET


class _SubAgent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    tool_name: str = ""
    invocation_id: str = ""
    parent_call_id: str | Unset | None = UNSET
    parent_provider_call_id: str | Unset | None = UNSET


class _Bare(_Payload, kw_only=True, forbid_unknown_fields=True):
    pass


class _SessionRestored(_Payload, kw_only=True, forbid_unknown_fields=True):
    restored_session_id: str


class _BeforeTurn(_Payload, kw_only=True, forbid_unknown_fields=True):
    turn: Count
    user_text: str
    is_retry: bool = False


class _AfterTurn(_Payload, kw_only=True, forbid_unknown_fields=True):
    turn: Count
    status: Literal["ok", "interrupted", "failed"]
    failed: bool


class _UserPromptSubmit(_Payload, kw_only=True, forbid_unknown_fields=True):
    text: str
    injected: bool = False


class _BeforeToolCall(_Payload, kw_only=True, forbid_unknown_fields=True):
    tool: _Tool


class _AfterToolCall(_Payload, kw_only=True, forbid_unknown_fields=True):
    tool: _Tool
    result: _Result


class _ApprovalRequested(_Payload, kw_only=True, forbid_unknown_fields=True):
    request_id: str
    caller_name: str = ""
    tool: _Tool


class _ApprovalResolved(_ApprovalRequested, kw_only=True, forbid_unknown_fields=True):
    approved: bool


class _SubAgentStart(_Payload, kw_only=True, forbid_unknown_fields=True):
    sub_agent: _SubAgent


class _SubAgentEnd(_SubAgentStart, kw_only=True, forbid_unknown_fields=True):
    status: Literal["ok", "failed", "cancelled"]
    result_summary: str = ""


class _PreCompact(_Payload, kw_only=True, forbid_unknown_fields=True):
    trigger: str
    usage_pct: Number
    tokens_before: Count
    sub_agent: _SubAgent | Unset = UNSET


class _WorkflowRunStart(_Payload, kw_only=True, forbid_unknown_fields=True):
    run_id: str
    input_text: str = ""


class _WorkflowRunEnd(_Payload, kw_only=True, forbid_unknown_fields=True):
    run_id: str
    outcome: str
    reason: str | Unset | None = UNSET


_SHAPES: dict[str, type[_Payload]] = {
    "session_start": _Bare,
    "session_restored": _SessionRestored,
    "session_end": _Bare,
    "before_turn": _BeforeTurn,
    "after_turn": _AfterTurn,
    "user_prompt_submit": _UserPromptSubmit,
    "before_tool_call": _BeforeToolCall,
    "after_tool_call": _AfterToolCall,
    "tool_error": _AfterToolCall,
    "approval_requested": _ApprovalRequested,
    "approval_resolved": _ApprovalResolved,
    "sub_agent_start": _SubAgentStart,
    "sub_agent_end": _SubAgentEnd,
    "pre_compact": _PreCompact,
    "user_interrupt": _Bare,
    "workflow_run_start": _WorkflowRunStart,
    "workflow_run_end": _WorkflowRunEnd,
}

_HINTS = {
    "user_prompt_submit": {"prompt": "write text"},
    "before_tool_call": {"tool_name": "write tool {name, kind, call_id, args}"},
    "after_tool_call": {"tool_name": "write tool {name, kind, call_id, args}"},
}


def make_event(native: str, payload: Mapping[str, Any], caller: Caller, *, background: bool) -> Event:
    """Check a dispatched payload and make it an event.

    Args:
        native: One of the seventeen names.
        payload: The event's own fields; those of the base envelope may be there.
        caller: Who reports it.
        background: A background tool completion; only after_tool_call has those.

    Raises:
        PayloadRefused: It does not fit; every fault is told.
    """
    if background and native != "after_tool_call":
        hint = "only after_tool_call tells of background commands"
        raise PayloadRefused([refusal("background", f"{native} cannot be a background event", hint)])
    struct = checked(payload, _SHAPES[native], "payload", _HINTS.get(native, {}))
    faults = list(_base_faults(struct, native, caller))
    if faults:
        raise PayloadRefused(faults)
    fields = _present(struct)
    tool = fields["tool"] if native in TOOL_EVENTS else None
    return Event(
        name=EVENTS[native],
        agent="chrys",
        native=native,
        gate=EVENTS[native] in GATES,
        background=background,
        session_id=caller.session_id,
        workspace_path=caller.workspace_path,
        model=caller.model,
        profile=fields.get("profile", caller.profile),
        payload=fields,
        tool_name=None if tool is None else tool["name"],
        tool_arguments=None if tool is None else tool["args"],
        tool_kind=None if tool is None else tool["kind"],
        subagent=fields["sub_agent"]["invocation_id"] if "sub_agent" in fields else "",
        also=(EventName.SESSION_START,) if native == "session_restored" else (),
        timestamp=caller.timestamp,
    )


def with_arguments(event: Event, arguments: dict[str, Any]) -> Event:
    """The event with other tool arguments."""
    tool = {**event.payload["tool"], "args": arguments}
    return msgspec.structs.replace(event, payload={**event.payload, "tool": tool}, tool_arguments=arguments)


def _base_faults(struct: _Payload, native: str, caller: Caller) -> list[ConfigProblem]:
    faults = []
    if struct.event not in (UNSET, native):
        faults.append(refusal("payload.event", "is not the dispatched event"))
    if struct.session_id not in (UNSET, None, caller.session_id):
        faults.append(refusal("payload.session_id", "is not the execution's session"))
    if isinstance(struct.cwd, str) and not os.path.isabs(struct.cwd):
        faults.append(refusal("payload.cwd", "must be an absolute path"))
    return faults


def _present(struct: msgspec.Struct) -> dict[str, Any]:
    """The fields that are there, as JSON would have them."""
    found: dict[str, Any] = {}
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if value is not UNSET:
            found[name] = _present(value) if isinstance(value, msgspec.Struct) else value
    return found


def utc_seconds(timestamp: float) -> str:
    """Seconds since the epoch as the reference writes a time: UTC, whole seconds."""
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_TOOL = {
    "name": "run_shell",
    "kind": "shell",
    "call_id": "hook-test-call",
    "args": {"command": "echo lifecycle-hook-test"},
}
_RESULT = {"text": "lifecycle-hook-test", "duration_ms": 1, "error": False, "failed": False}
_SUB_AGENT = {"name": "Explore", "tool_name": "explore", "invocation_id": "hook-test-invocation"}
_APPROVAL = {"request_id": "hook-test-request", "caller_name": "Code", "tool": _TOOL}

_SYNTHETIC: dict[str, dict[str, Any]] = {
    "session_start": {},
    "session_restored": {"restored_session_id": "hook-test-session"},
    "session_end": {},
    "before_turn": {"turn": 1, "user_text": "Lifecycle hook test", "is_retry": False},
    "after_turn": {"turn": 1, "status": "ok", "failed": False},
    "user_prompt_submit": {"text": "Lifecycle hook test", "injected": False},
    "before_tool_call": {"tool": _TOOL},
    "after_tool_call": {"tool": _TOOL, "result": {**_RESULT, "approval_rejected": False}},
    "tool_error": {
        "tool": _TOOL,
        "result": {**_RESULT, "error": True, "failed": True, "approval_rejected": False},
    },
    "approval_requested": _APPROVAL,
    "approval_resolved": {**_APPROVAL, "approved": True},
    "sub_agent_start": {"sub_agent": _SUB_AGENT},
    "sub_agent_end": {"sub_agent": _SUB_AGENT, "status": "ok", "result_summary": "lifecycle hook test"},
    "pre_compact": {"trigger": "phase1", "usage_pct": 0.5, "tokens_before": 1000},
    "user_interrupt": {},
    "workflow_run_start": {"run_id": "hook-test-run", "input_text": "Lifecycle hook test"},
    "workflow_run_end": {"run_id": "hook-test-run", "outcome": "completed", "reason": "lifecycle hook test"},
}


def synthetic_payload(native: str) -> dict[str, Any]:
    """The payload of a dry run; always the same."""
    return _SYNTHETIC[native]
