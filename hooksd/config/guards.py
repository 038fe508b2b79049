"""What `[[guard]]` and `[serial]` of `hooksd.toml` mean for the hooks that there are.

A guard makes every way of not giving a valid answer a block (design rule 2). Which hooks it is about is decided here,
once per hook when its source is compiled; what it does with a failure is the pipeline's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence, Set as AbstractSet
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from hooksd.config.settings import GuardSettings, Settings
from hooksd.config.toml_lines import Path, dotted
from hooksd.dialects import DIALECTS
from hooksd.dialects.base import Dialect
from hooksd.dialects.suggestions import did_you_mean
from hooksd.model.events import EventName
from hooksd.model.hooks import Guard, GuardAction
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.star_patterns import StarPatterns


__all__ = ["MAX_SUGGESTED_FROM", "Policy", "Treatment", "event_names"]

MAX_SUGGESTED_FROM: Final = 500
"""Names that are looked through for a suggestion; each costs some 20 µs."""

_NAMES_HINT = (
    "a full name is <dialect>:<scope>:<source>:<id or path>; `hooksd explain EVENT` shows those there are"
)


def event_names(word: str, dialects: Mapping[str, Dialect] = DIALECTS) -> frozenset[EventName]:
    """The events a word of `hooksd.toml` means: a normalised name, or a native one of any dialect; empty if none.

    A native word that two dialects use for different events means both: a guard errs on the strict side.
    """
    if word in set(EventName):
        return frozenset({EventName(word)})
    return frozenset(dialect.events[word] for dialect in dialects.values() if word in dialect.events)


class Treatment(NamedTuple):
    """What the settings say about one hook."""

    gated: Guard | None
    """The strictest guard that applies when the event is a gate."""
    observed: Guard | None
    """The same when it is none."""
    serial: bool
    """It never runs twice at a time."""


class Policy:
    """One version of the settings, and what it says about hooks by their names.

    The *rules* are all name patterns together: those of the guards, then of `[serial]`, then the names in
    `[env] allow_for`; their positions are what other methods take.

    Args:
        settings: The settings in force.
        dialects: Those that are built in; they know the native names of events.
        file: Where the settings come from, "" for none.
        lines: The lines of dotted paths in that file, as far as they are known.

    Attributes:
        settings: The settings in force.
        digest: Of all of them.
        rules_digest: Of what the compiled form of a source depends on.
        guards: In file order.
        rules: One pattern each.
    """

    __slots__ = (
        "_file",
        "_gates",
        "_lines",
        "_places",
        "digest",
        "guards",
        "rules",
        "rules_digest",
        "settings",
    )

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
        self.guards = tuple(_guard(guard, dialects) for guard in settings.guard)
        self.rules_digest = _digest((self.guards, settings.serial, sorted(settings.env.allow_for)))
        self._gates = frozenset(gate for dialect in dialects.values() for gate in dialect.gates)
        self._file = file
        self._lines = lines
        self._places: tuple[tuple[Path, str], ...] = (
            *((("guard", at, "hooks"), guard.hooks) for at, guard in enumerate(self.guards)),
            *((("serial", "hooks", at), pattern) for at, pattern in enumerate(settings.serial.hooks)),
            *((("env", "allow_for", name), name) for name in settings.env.allow_for),
        )
        self.rules = tuple(StarPatterns([pattern]) for _, pattern in self._places)

    def fitting(self, name: str) -> tuple[int, ...]:
        """The positions of the rules that fit a hook's name, ascending."""
        return tuple(at for at, rule in enumerate(self.rules) if rule.fits(name))

    def guards_a_hook(self, name: str) -> bool:
        """Whether any guard fits a hook's name, for whatever event."""
        return any(at < len(self.guards) for at in self.fitting(name))

    def strictest(self, fitting: Sequence[int], event: EventName, *, gate: bool) -> Guard | None:
        """Of the guards among these rules, the strictest that applies to the event; the first of equal ones.

        Args:
            fitting: The rules that fit the hook.
            event: The event the hook reacts to.
            gate: Whether it can stop something: a guard that names no events applies to every gate and to nothing else.
        """
        applying = [
            guard
            for guard in (self.guards[at] for at in fitting if at < len(self.guards))
            if (event in guard.events if guard.events else gate)
        ]
        return min(applying, key=lambda guard: guard.on_failure is not GuardAction.BLOCK, default=None)

    def treatment(self, fitting: Sequence[int], event: EventName) -> Treatment:
        """What these rules mean for a hook that reacts to the event."""
        first = len(self.guards)
        return Treatment(
            gated=self.strictest(fitting, event, gate=True),
            observed=self.strictest(fitting, event, gate=False),
            serial=any(first <= at < first + len(self.settings.serial.hooks) for at in fitting),
        )

    def problems(
        self, answers: Sequence[AbstractSet[EventName]], names: Iterable[str]
    ) -> tuple[ConfigProblem, ...]:
        """The rules that have no effect, or that block because no hook answers to them.

        Args:
            answers: For each rule, the events that have a hook whose name fits it.
            names: Of all hooks, for suggestions; not looked at when nothing is wrong.
        """
        wrong = [(at, answered) for at, answered in enumerate(answers) if not self._has_effect(at, answered)]
        known = list(islice(names, MAX_SUGGESTED_FROM)) if wrong else []
        return tuple(self._problem(at, answered, known) for at, answered in wrong)

    def unanswered(self, rule: int, answered: Collection[EventName]) -> tuple[EventName, ...]:
        """The events that a rule blocks because no hook for them fits it; empty unless it is a guard that does so."""
        if rule >= len(self.guards) or self.guards[rule].on_missing is not GuardAction.BLOCK:
            return ()
        return tuple(event for event in self.guards[rule].events if event not in answered)

    def _has_effect(self, rule: int, answered: AbstractSet[EventName]) -> bool:
        """Whether a rule does what its author wanted, given the events that have a hook it fits."""
        if rule >= len(self.guards):
            return bool(answered)
        guarded = self.guards[rule].events or self._gates
        return not answered.isdisjoint(guarded) and not self.unanswered(rule, answered)

    def _problem(self, rule: int, answered: AbstractSet[EventName], names: Sequence[str]) -> ConfigProblem:
        place, pattern = self._places[rule]
        blocked = self.unanswered(rule, answered)
        events = self.guards[rule].events if rule < len(self.guards) else ()
        hint = did_you_mean(pattern, names) or _NAMES_HINT
        if blocked:
            message = f'no hook for {", ".join(blocked)} has a name that fits {pattern!r}: blocked (on_missing = "block")'
        elif events:
            message = f"no hook for {', '.join(events)} has a name that fits {pattern!r}"
        elif answered:
            message = (
                f"{pattern!r} fits only hooks of {', '.join(sorted(answered))}, where nothing can be stopped"
            )
            hint = "a guard without events is about gates; name the events to guard them as well"
        else:
            message = f"no hook has a name that fits {pattern!r}"
        path = dotted(place)
        return ConfigProblem(
            severity=Severity.ERROR if blocked else Severity.WARNING,
            path=path,
            message=message,
            line=self._lines.get(path),
            hint=hint,
            file=self._file or None,
        )


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


def _guard(settings: GuardSettings, dialects: Mapping[str, Dialect]) -> Guard:
    events = {name for word in settings.events for name in event_names(word, dialects)}
    return Guard(
        hooks=settings.hooks,
        events=tuple(sorted(events)),
        on_failure=settings.on_failure,
        on_missing=settings.on_missing,
    )
