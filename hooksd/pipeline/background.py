"""What is in progress for an execution, and waiting for it: drains, cut-offs, tasks that nobody awaits.

A `Work` is one dispatch, one delivery of a notification, or one background hook. Its task belongs to the caller (a
foreground dispatch) or to the daemon (everything else, which therefore survives the client).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Any

import msgspec

from hooksd.model.errors import ProtocolError
from hooksd.model.events import Event, EventName


__all__ = ["DrainSpan", "Drained", "Grace", "Kind", "Work", "again", "drain", "span_of"]


class Kind(Enum):
    """Who waits for a work, and what a drain does with it."""

    GATE = auto()
    """A caller waits for its decision. No drain waits for it; a close cuts it off."""
    OBSERVER = auto()
    """A caller waits for its contexts. A close waits for it, then cuts it off."""
    DELIVERY = auto()
    """Nobody waits (`hook/notify`, notifications). A drain waits for it; it goes on afterwards."""
    ASYNC = auto()
    """Nobody waits. A drain waits for it, then cancels it."""
    FORGOTTEN = auto()
    """Nobody waits, no drain either, which leaves it running."""


class DrainSpan(Enum):
    """Which drain an event's hooks belong to."""

    TURN = auto()
    SESSION = auto()
    NONE = auto()


_SPANS = {
    EventName.SESSION_START: DrainSpan.SESSION,
    EventName.SESSION_RESTORED: DrainSpan.SESSION,
    EventName.SESSION_END: DrainSpan.SESSION,
    EventName.WORKFLOW_START: DrainSpan.SESSION,
    EventName.WORKFLOW_END: DrainSpan.SESSION,
    EventName.NOTIFICATION: DrainSpan.SESSION,
    EventName.TURN_INTERRUPT: DrainSpan.NONE,
}


def span_of(event: Event) -> DrainSpan:
    """The drain that waits for an event's hooks: of the session, of the turn (most events), or none."""
    return _SPANS.get(event.name, DrainSpan.TURN)


class Work:
    """Something in progress. Belongs to the loop's thread.

    Attributes:
        kind: What a drain does with it.
        span: Which drain it belongs to.
        task: What carries it out; set by `Executions.begin`.
        grace_s: How long a drain waits for it whose caller names no time; None for the drain's own default.
        ids: Its invocations that have not ended, in order.
        cut: Set by `cut_off`: what its caller must be told instead of an answer.
        ended: Set by `finish`.
    """

    __slots__ = ("_done", "cut", "ended", "grace_s", "ids", "kind", "span", "task")

    task: asyncio.Task[Any]

    def __init__(self, kind: Kind, span: DrainSpan, grace_s: float | None = None) -> None:
        self.kind = kind
        self.span = span
        self.grace_s = grace_s
        self.ids: dict[str, None] = {}
        self.cut: ProtocolError | None = None
        self.ended = False
        self._done: asyncio.Future[None] | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether drains wait for it. Nobody does for what was started when the user interrupted a turn."""
        if self.kind is Kind.ASYNC:
            return self.span is not DrainSpan.NONE
        return self.kind is not Kind.FORGOTTEN

    def finish(self) -> None:
        """It has ended; who waits for it goes on."""
        self.ended = True
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    def when_done(self) -> asyncio.Future[None]:
        """A future that is done when the work is."""
        if self._done is None:
            self._done = self.task.get_loop().create_future()
            if self.ended:
                self._done.set_result(None)
        return self._done

    def cut_off(self, error: ProtocolError) -> None:
        """Cancel it; a caller that waits for it gets `error`."""
        if self.cut is None:
            self.cut = error
            self.task.cancel()


def again(error: ProtocolError) -> ProtocolError:
    """The same error once more, to be raised.

    An error that was raised holds every frame that it went through, with the payload of the event. One that is kept where
    such a frame sees it would keep all of that until the next collection.
    """
    return ProtocolError(
        error.code, error.message, kind=error.kind, detail=error.detail, problems=error.problems
    )


Grace = Callable[[Work], float | None]
"""How long a drain waits for a work, in seconds; None for as long as it takes."""


class Drained(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the invocations that a drain found running."""

    finished: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    still_running: tuple[str, ...] = ()


async def drain(works: Iterable[Work], grace: Grace, error: ProtocolError) -> Drained:
    """Wait until works have ended, then see to the rest by their kind.

    Args:
        works: What to drain; later ones are not waited for.
        grace: How long to wait for each; None for as long as it takes.
        error: What the caller of an observer is told whose dispatch is cut off.
    """
    running = {work: tuple(work.ids) for work in works}
    awaited = [work for work in running if work.is_awaited]
    left: dict[Work, tuple[str, ...]] = {}
    cut: list[Work] = []
    waited_s = 0.0
    for grace_s in sorted({grace(work) for work in awaited}, key=_longest_last):
        of_this = [work for work in awaited if grace(work) == grace_s]
        began_at = time.monotonic()
        await _ended(of_this, None if grace_s is None else max(0.0, grace_s - waited_s))
        waited_s += time.monotonic() - began_at
        for work in of_this:
            if not work.ended:
                left[work] = tuple(work.ids)
                if work.kind is not Kind.DELIVERY:
                    cut.append(work)
                    work.cut_off(error)
    left.update({work: tuple(work.ids) for work in running if not work.ended and work not in left})
    await _ended(cut, None)
    return Drained(
        finished=tuple(id_ for work, ids in running.items() for id_ in ids if id_ not in left.get(work, ())),
        cancelled=tuple(id_ for work in cut for id_ in left[work]),
        still_running=tuple(id_ for work, ids in left.items() if work not in cut for id_ in ids),
    )


def _longest_last(grace_s: float | None) -> float:
    return math.inf if grace_s is None else grace_s


async def _ended(works: list[Work], timeout_s: float | None) -> None:
    if works:
        await asyncio.wait([work.when_done() for work in works], timeout=timeout_s)
