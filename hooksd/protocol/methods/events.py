"""`events/subscribe`, `events/unsubscribe` and the notification `events/event` (protocol section 2.11)."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from hooksd.model.records import Level
from hooksd.protocol.methods.base import Empty, Method, MethodKind


__all__ = [
    "METHODS",
    "EventsEventParams",
    "EventsSubscribeParams",
    "EventsSubscribeResult",
    "EventsUnsubscribeParams",
]


MAX_KINDS: Final = 64
"""Patterns of one subscription."""
MAX_KIND_CHARACTERS: Final = 256
"""Longest of them; kinds of records have some thirty characters."""

_Kind = Annotated[str, msgspec.Meta(max_length=MAX_KIND_CHARACTERS)]


class EventsSubscribeParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `events/subscribe`.

    Attributes:
        kinds: Name patterns of record kinds; only `*` is special. Default: all.
        execution_id: Only records of this execution.
        since_seq: Also the records after this number that are still kept.
    """

    kinds: Annotated[tuple[_Kind, ...], msgspec.Meta(max_length=MAX_KINDS)] | None = None
    execution_id: str | None = None
    since_seq: Annotated[int, msgspec.Meta(ge=0)] | None = None


class EventsSubscribeResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `events/subscribe`; `seq` is the number of the newest record so far."""

    subscription_id: str
    seq: int


class EventsUnsubscribeParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `events/unsubscribe`."""

    subscription_id: str


class EventsEventParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `events/event`: one record, besides whose fields here every record has those of its kind.

    Attributes:
        subscription_id: Which subscription it comes from.
        seq: Ascending by one through the life of the daemon; a gap is a loss.
        ts: RFC 3339, UTC.
        level: How much it matters.
        event: Its kind, such as `hook.finished`.
    """

    subscription_id: str
    seq: int
    ts: str
    level: Level
    event: str


METHODS = (
    Method(
        name="events/subscribe",
        kind=MethodKind.REQUEST,
        params=EventsSubscribeParams,
        result=EventsSubscribeResult,
        summary="Get the records of the log as notifications.",
        section="2.11",
    ),
    Method(
        name="events/unsubscribe",
        kind=MethodKind.REQUEST,
        params=EventsUnsubscribeParams,
        result=Empty,
        summary="End a subscription of this connection.",
        section="2.10",
    ),
    Method(
        name="events/event",
        kind=MethodKind.EVENT,
        params=EventsEventParams,
        result=None,
        summary="One record.",
        section="2.11",
    ),
)
