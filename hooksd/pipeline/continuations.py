"""Forced continuations: how often a Stop hook has made the agent go on in this turn. Pure."""

from __future__ import annotations

from collections import OrderedDict

from hooksd.model.events import Event, EventName
from hooksd.model.outcome import Continuation


__all__ = ["MAX_SUBAGENTS", "Continuations"]

MAX_SUBAGENTS = 256
"""Counters of one execution. An agent that makes up a new subagent for each stop loses its oldest counter."""

_RESET_BY_PROMPT = frozenset({"bamboo", "chrys"})
"""Agents that report every prompt; the turns of others begin where a stop event's own flag is false."""


class Continuations:
    """The counters of one execution, one for the main agent (`""`) and one for each subagent."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: OrderedDict[str, int] = OrderedDict()

    def count(self, subagent: str) -> int:
        """How many continuations of the present turn were carried out."""
        return self._counts.get(subagent, 0)

    def is_continued(self, event: Event) -> bool:
        """Whether a `turn.finish` comes after a continuation that was carried out in the same turn."""
        return self.count(event.subagent) > 0 and not _begins_turn(event)

    def observe(self, event: Event) -> None:
        """Begin a new turn where the event says so (design.md, table, last row). Must see every event."""
        if not _begins_turn(event):
            return
        if event.subagent or event.name is EventName.TURN_FINISH:
            self._counts.pop(event.subagent, None)
        else:
            # The subagents of the last turn are over with it.
            self._counts.clear()

    def claim(self, subagent: str, limit: int) -> Continuation:
        """Count one more continuation if the limit allows it; `exhausted` says that it must not be carried out.

        Call it only for a block that is about to be answered: cancelled dispatches do not count.
        """
        count = self.count(subagent)
        if count >= limit:
            return Continuation(count=count, limit=limit, exhausted=True)
        self._counts[subagent] = count + 1
        self._counts.move_to_end(subagent)
        if len(self._counts) > MAX_SUBAGENTS:
            self._counts.popitem(last=False)
        return Continuation(count=count + 1, limit=limit, exhausted=False)


def _begins_turn(event: Event) -> bool:
    if event.agent in _RESET_BY_PROMPT:
        return event.name is EventName.PROMPT_SUBMIT
    return event.name is EventName.TURN_FINISH and not event.continued
