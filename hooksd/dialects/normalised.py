"""What an event says in no dialect's words: the middle between any two dialects (event-map B).

Each dialect puts its payloads into this form and takes them out of it, and so knows nothing of the others. None means
that the agent did not tell; who needs a value then takes one that claims the least.
"""

from __future__ import annotations

from typing import Literal

import msgspec


__all__ = ["Normalised"]


class Normalised(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of an event that are not in `Event` itself.

    Attributes:
        text: What the user wrote, or what a run begins with.
        injected: The text came in the middle of a turn.
        resumed: The session was there before.
        restored_session: Which one that was.
        status: How something ended.
        reason: Why it ended so.
        call_id: Of a tool call.
        failed: The call did not do what it should.
        raised: It ended by an error of the tool itself.
        result: What it gave, or said when it failed.
        duration_ms: How long it took.
        tokens: Size of the context.
        usage: How full it is, from 0 to 1.
        max_tokens: How large it may be.
        trigger_tokens: From which size on it is summarised.
        forced: It is summarised for another reason than its size.
    """

    text: str | None = None
    injected: bool | None = None
    resumed: bool | None = None
    restored_session: str | None = None
    status: Literal["completed", "failed", "cancelled"] | None = None
    reason: str | None = None
    call_id: str | None = None
    failed: bool | None = None
    raised: bool | None = None
    result: str | None = None
    duration_ms: float | None = None
    tokens: int | None = None
    usage: float | None = None
    max_tokens: int | None = None
    trigger_tokens: int | None = None
    forced: bool | None = None
