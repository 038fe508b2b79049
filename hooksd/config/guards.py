"""What `[[guard]]` and `[serial]` of `hooksd.toml` mean for the hooks that there are.

A guard makes every way of not giving a valid answer a block (design rule 2). Which hooks it is about is decided here,
once per hook when its source is compiled; what it does with a failure is the pipeline's.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

import msgspec

from hooksd.config.names import NamePatterns
from hooksd.config.settings import GuardSettings, Settings
from hooksd.dialects import DIALECTS
from hooksd.dialects.base import Dialect
from hooksd.model.events import EventName
from hooksd.model.hooks import Guard, GuardAction
from hooksd.model.problems import ConfigProblem, Severity


__all__ = ["MAX_SUGGESTED_FROM", "Policy", "event_names"]

MAX_SUGGESTED_FROM = 500
"""Names that are looked through for a suggestion; each costs some 20 µs."""


def event_names(word: str, dialects: Mapping[str, Dialect] = DIALECTS) -> frozenset[EventName]:
    """The events a word of `hooksd.toml` means: a normalised name, or a native one of any dialect; empty if none.

    A native word that two dialects use for different events means both: a guard errs on the strict side.
    """
    if word in set(EventName):
        return frozenset({EventName(word)})
    return frozenset(dialect.events[word] for dialect in dialects.values() if word in dialect.events)


class Policy:
    """One version of the settings, with its guards and serial hooks ready to be asked about hooks by name.

    Args:
        settings: The settings in force.
        dialects: Those that are built in; they know the native names of events.
        file: Where the settings come from, "" for none.
        lines: The lines of dotted paths in that file, as far as they are known.

    Attributes:
        settings: The settings in force.
        digest: Of all of them.
        guards: In file order.
        rules_digest: Of what the compiled form of a source depends on.
    """

    __slots__ = ("_file", "_lines", "_patterns", "_serial", "digest", "guards", "rules_digest", "settings")

    def __init__(
        self,
        settings: Settings,
        dialects: Mapping[str, Dialect] = DIALECTS,
        *,
        file: str = "",
        lines: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.settings = settings
        self.digest = _digest(settings)
        self._file = file
        self._lines = lines
        self.guards = tuple(_guard(guard, dialects) for guard in settings.guard)
        self._patterns = tuple(NamePatterns([guard.hooks]) for guard in self.guards)
        self._serial = NamePatterns(settings.serial.hooks)
        self.rules_digest = _digest((self.guards, settings.serial))

    def guards_of(self, name: str) -> tuple[int, ...]:
        """The positions of the guards whose pattern fits a hook's name."""
        return tuple(at for at, patterns in enumerate(self._patterns) if patterns.fits(name))

    def strictest(self, fitting: Sequence[int], event: EventName, *, gate: bool) -> Guard | None:
        """Of the guards at these positions, the strictest that applies to the event; the first of equal ones."""
        applying = [
            guard
            for guard in map(self.guards.__getitem__, fitting)
            if (event in guard.events if guard.events else gate)
        ]
        return min(applying, key=lambda guard: guard.on_failure is not GuardAction.BLOCK, default=None)

    def is_serial(self, name: str) -> bool:
        """Whether the hook of that name never runs twice at a time."""
        return self._serial.fits(name)

    def problems(
        self, answers: Sequence[Collection[EventName]], names: Sequence[str]
    ) -> tuple[ConfigProblem, ...]:
        """The guards that no hook answers to.

        Args:
            answers: For each guard, the events that have a hook whose name fits it.
            names: Of all hooks, for suggestions.
        """
        found = []
        for at, (guard, answered) in enumerate(zip(self.guards, answers, strict=True)):
            unanswered = [event for event in guard.events if event not in answered]
            blocks = guard.on_missing is GuardAction.BLOCK
            if answered and not (blocks and unanswered) and len(unanswered) < max(1, len(guard.events)):
                continue
            message = f"no hook has a name that fits {guard.hooks!r}"
            if unanswered:
                message += f", for {', '.join(unanswered)}"
            if blocks:
                message += '; these events are blocked (on_missing = "block")'
            path = f"guard[{at}].hooks"
            found.append(
                ConfigProblem(
                    severity=Severity.ERROR if blocks else Severity.WARNING,
                    path=path,
                    message=message,
                    line=self._lines.get(path),
                    hint=_suggestion(guard.hooks, names),
                    file=self._file or None,
                )
            )
        return tuple(found)


def _suggestion(pattern: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(pattern, islice(names, MAX_SUGGESTED_FROM), n=1)
    return (
        f"did you mean {close[0]!r}?"
        if close
        else "`hooksd explain` lists the names of all hooks of an event"
    )


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()


def _guard(settings: GuardSettings, dialects: Mapping[str, Dialect]) -> Guard:
    events = {name for word in settings.events for name in event_names(word, dialects)}
    return Guard(
        hooks=settings.hooks,
        events=tuple(sorted(events)),
        on_failure=settings.on_failure,
        on_missing=settings.on_missing,
    )
