"""Between dialects: the event of one agent for a hook of another, and that hook's reply for the agent.

An event goes through the normalised form (`normalised.py`), so no dialect knows another one. What cannot be carried
over degrades by a rule, and is told where anything is lost (design rule 10, event-map E and F):

| what | rule |
|---|---|
| an event that the hook's dialect has not | never reaches the hook: no plan has it |
| a session that was restored | to Bamboo a `SessionStart` with source `resume`, and the other way round both of Chrys' |
| a tool call that ended by an error | a Bamboo `PostToolUse`; of Bamboo's, Chrys' `tool_error` hooks hear after the others |
| text that a hook adds | goes the way that the agent takes text at this event; where there is none it is dropped, told |
| `ask` to an agent that cannot ask, changed arguments to one that cannot apply them | see `model.fold` |
| fields that the agent does not tell | see the dialects' `*_translation` modules |
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hooksd.dialects import bamboo_translation, chrys_translation
from hooksd.dialects.normalised import Normalised
from hooksd.model.decision import Capability
from hooksd.model.events import Event
from hooksd.model.hooks import Hook
from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.model.reply import Reply


__all__ = ["Translator", "translated_reply"]

_NORMALISED: Mapping[str, Callable[[Event], Normalised]] = {
    "bamboo": bamboo_translation.normalised,
    "chrys": chrys_translation.normalised,
}
"""By the agent that an event comes from."""


class Translator:
    """Translates events into one dialect. Hooks of one event get the same object, so that it is encoded once.

    Args:
        dialect: The name of the dialect.
        from_normalised: Makes its payload of a native name, the foreign event and what that says.
    """

    def __init__(
        self, dialect: str, from_normalised: Callable[[str, Event, Normalised], dict[str, Any]]
    ) -> None:
        self._dialect = dialect
        self._from_normalised = from_normalised
        self._last: tuple[weakref.ref[Event], str, Event] | None = None

    def event(self, event: Event, native: str) -> Event:
        """The event under its native name in this dialect; itself if it is this dialect's own."""
        if event.agent == self._dialect:
            return event
        last = self._last
        if last is not None and last[0]() is event and last[1] == native:
            return last[2]
        said = _NORMALISED[event.agent](event)
        translated = msgspec.structs.replace(
            event, agent=self._dialect, native=native, payload=self._from_normalised(native, event, said)
        )
        self._last = (weakref.ref(event, self._forget), native, translated)
        return translated

    def _forget(self, _dead: weakref.ref[Event]) -> None:
        self._last = None


def translated_reply(reply: Reply, event: Event, hook: Hook, channel: Capability | None) -> Reply:
    """What a hook of another dialect said, as the agent takes it.

    Args:
        reply: What the hook said.
        event: The agent's event.
        hook: The hook.
        channel: How the agent takes text at this event: as contexts, as reminders, or not at all.
    """
    texts = (*reply.contexts, *reply.reminders)
    if hook.dialect == event.agent or not texts:
        return reply
    if channel is None:
        problem = HookProblem(
            kind=ProblemKind.NOT_APPLICABLE,
            message=f"{event.agent} takes no text from hooks at {event.native}; {len(texts)} dropped",
        )
        return msgspec.structs.replace(reply, contexts=(), reminders=(), notes=(*reply.notes, problem))
    return msgspec.structs.replace(
        reply,
        contexts=texts if channel is Capability.CONTEXTS else (),
        reminders=texts if channel is Capability.REMINDERS else (),
    )
