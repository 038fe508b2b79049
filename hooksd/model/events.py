"""Events: what an agent reports, in its own words and in the normalised ones."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec


__all__ = ["ALSO", "Event", "EventName"]


class EventName(StrEnum):
    """The normalised event names (design.md, "Words"); `event-map.md` maps every dialect's names to them."""

    SESSION_START = "session.start"
    SESSION_RESTORED = "session.restored"
    SESSION_END = "session.end"
    PROMPT_SUBMIT = "prompt.submit"
    TURN_START = "turn.start"
    TURN_FINISH = "turn.finish"
    TURN_END = "turn.end"
    TURN_INTERRUPT = "turn.interrupt"
    TOOL_BEFORE = "tool.before"
    TOOL_AFTER = "tool.after"
    TOOL_ERROR = "tool.error"
    PERMISSION_REQUEST = "permission.request"
    PERMISSION_RESOLVED = "permission.resolved"
    SUBAGENT_START = "subagent.start"
    SUBAGENT_STOP = "subagent.stop"
    COMPACT_BEFORE = "compact.before"
    NOTIFICATION = "notification"
    WORKFLOW_START = "workflow.start"
    WORKFLOW_END = "workflow.end"


ALSO: Mapping[EventName, tuple[EventName, ...]] = {
    EventName.SESSION_START: (EventName.SESSION_RESTORED,),
    EventName.SESSION_RESTORED: (EventName.SESSION_START,),
    EventName.TOOL_AFTER: (EventName.TOOL_ERROR,),
}
"""What else an event may be to hooks of dialects that divide events otherwise (event-map A and F)."""


class Event(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """One event of one execution, checked by the caller's dialect.

    Attributes:
        name: The normalised name.
        agent: The dialect whose vocabulary the caller speaks.
        native: The agent's own name of the event, even when the caller used the dotted one.
        gate: Whether the outcome can stop something; decided by the caller's dialect, never by a hook's mode.
        background: A background tool completion: current configuration, observer rules.
        session_id: The owning session.
        workspace_path: The workspace that the caller named, "" if none.
        model: The session's model, "" if not told.
        profile: The agent's profile, "" if not told.
        payload: The event's own fields in the agent's vocabulary, complete and checked. Never changed in place.
        tool_name: For tool events the name as the model called it, else None.
        tool_arguments: For tool events the arguments of the call as they are now, where the agent tells them; else None.
        tool_kind: For tool events the kind of the tool where the agent tells one, else None.
        subagent: The id of the subagent the event is about or comes from, "" for the main agent.
        continued: The caller's own word that the agent goes on because of a Stop hook.
        also: What else it is to hooks of other dialects, of `ALSO` of its name.
        timestamp: Seconds since the epoch at which hooksd got the event.
    """

    name: EventName
    agent: str
    native: str
    gate: bool
    background: bool = False
    session_id: str
    workspace_path: str = ""
    model: str = ""
    profile: str = ""
    payload: dict[str, Any]
    tool_name: str | None = None
    tool_arguments: Any = None
    tool_kind: str | None = None
    subagent: str = ""
    continued: bool = False
    also: tuple[EventName, ...] = ()
    timestamp: float
