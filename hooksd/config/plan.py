"""Plans: the hooks of one event for one agent in one snapshot, in the order in which they run.

A plan is put together from segments, one per source. Segments are compiled with their source, off the loop, and shared
by every snapshot that has the source; a plan only strings them together and remembers what it found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

import msgspec

from hooksd.config.matching import NameIndex
from hooksd.config.tool_filters import MATCHED, CompiledFilter, MatchResult
from hooksd.model.events import Event
from hooksd.model.hooks import Guard, Hook, Mode, NamePattern, ToolFilter


__all__ = [
    "MATCHED",
    "MAX_REMEMBERED_NAME",
    "MAX_REMEMBERED_NAMES",
    "MatchResult",
    "Plan",
    "PlannedHook",
    "Segment",
    "plan_hook",
]

MAX_REMEMBERED_NAMES: Final = 1024
"""Tool names whose hooks a plan remembers. Names come from outside; an agent has some dozens of tools."""
MAX_REMEMBERED_NAME: Final = 256
"""Longest one; providers allow 64 to 128 characters."""


class PlannedHook(msgspec.Struct, frozen=True, kw_only=True):
    """A hook in its place in a plan.

    Attributes:
        hook: The hook itself. With a `load_problem` it is here because it is guarded, and fails without being run.
        guard: The strictest guard that applies to it for this event, None if none does.
        serial: It never runs twice at a time.
        filter: Its match rule, compiled, where that is more than a pattern over the tool's name; see `plan_hook`.
    """

    hook: Hook
    guard: Guard | None = None
    serial: bool = False
    filter: CompiledFilter | None = None

    def matches(self, event: Event) -> MatchResult:
        """What of the hook's match rule must be looked at just before it runs, because earlier hooks may change it.

        Of a pattern over the tool's name nothing is left: the name is never changed, and `Plan.select` has looked at it.
        """
        hook = self.hook
        if hook.event is not event.name and (hook.dialect == event.agent or hook.event not in event.also):
            return MatchResult(matched=False, why=f"{event.native} is no {hook.native_event} this time")
        return MATCHED if self.filter is None else self.filter.check(event)


def plan_hook(hook: Hook, *, guard: Guard | None = None, serial: bool = False) -> PlannedHook:
    """The hook in its place; its match rule is compiled, which is dear."""
    rule = hook.match
    compiled: CompiledFilter | None
    match rule:
        case None | NamePattern():
            compiled = None
        case ToolFilter():
            compiled = CompiledFilter(rule)
        case _ as never:
            assert_never(never)
    return PlannedHook(hook=hook, guard=guard, serial=serial, filter=compiled)


class Segment:
    """The hooks that one source has for one event, compiled. Immutable.

    Args:
        hooks: All of them, in file order.
        index: Over `gated` and `observed`.
        gated: The hooks that can run when the event is a gate, in file order; None in the place of one that cannot.
        observed: The same when it is none: then guards of all gates do not count.
    """

    __slots__ = ("_index", "gated", "has_background", "hooks", "observed")

    def __init__(
        self,
        hooks: Sequence[Hook],
        index: NameIndex,
        *,
        gated: Sequence[PlannedHook | None],
        observed: Sequence[PlannedHook | None],
    ) -> None:
        self.hooks = tuple(hooks)
        self.gated = tuple(gated)
        self.observed = tuple(observed)
        self.has_background = any(hook.mode is not Mode.BLOCKING for hook in self.hooks)
        self._index = index

    def select(self, name: str | None, *, gate: bool) -> list[PlannedHook]:
        """The hooks that match a tool name, in file order; with None all that can run."""
        rows = self.gated if gate else self.observed
        return [row for at in self._index.matching(name) if (row := rows[at]) is not None]


class Plan:
    """The hooks of one event for one agent. Belongs to the loop's thread.

    Args:
        segments: Those that apply to the agent, in the order of a plan (design.md, "Order of a plan").
        others: Hooks for the event that do not apply to the agent, and why; `explain` tells them.
        missing: Guards with `on_missing = "block"` that no hook answers to, for this event.
    """

    __slots__ = ("_gated", "_has_background", "_hooks", "_observed", "_others", "_segments", "missing")

    def __init__(
        self,
        segments: Sequence[Segment],
        *,
        others: Sequence[tuple[Hook, str]] = (),
        missing: Sequence[Guard] = (),
    ) -> None:
        self._segments = tuple(segments)
        self._has_background = any(segment.has_background for segment in self._segments)
        self._others = tuple(others)
        self.missing = tuple(missing)
        self._hooks: tuple[PlannedHook, ...] | None = None
        self._gated: dict[str | None, tuple[PlannedHook, ...]] = {}
        self._observed: dict[str | None, tuple[PlannedHook, ...]] = {}

    @property
    def hooks(self) -> tuple[PlannedHook, ...]:
        """Every hook that an event can select, in run order: those that block, then those in the background."""
        if self._hooks is None:
            self._hooks = self._found(None, gate=True)
        return self._hooks

    def select(self, event: Event) -> tuple[PlannedHook, ...]:
        """The hooks to run for an event, in run order; what else must hold is said by `PlannedHook.matches`."""
        name = event.tool_name
        remembered = self._gated if event.gate else self._observed
        try:
            return remembered[name]
        except KeyError:
            found = self._found(name, gate=event.gate)
        if name is None or len(name) <= MAX_REMEMBERED_NAME:
            if len(remembered) >= MAX_REMEMBERED_NAMES:
                remembered.clear()
            remembered[name] = found
        return found

    def _found(self, name: str | None, *, gate: bool) -> tuple[PlannedHook, ...]:
        hooks = [hook for segment in self._segments for hook in segment.select(name, gate=gate)]
        if self._has_background:
            hooks.sort(key=_is_background)
        return tuple(hooks)

    def known(self) -> Iterator[Hook]:
        """Every hook that is configured for the event, whether it can run or not, and for whichever agent."""
        for segment in self._segments:
            yield from segment.hooks
        for hook, _ in self._others:
            yield hook

    def guards(self, *, gate: bool) -> tuple[Guard, ...]:
        """The guards that apply to its hooks when the event is a gate, or when it is none."""
        rows = self._found(None, gate=gate)
        return tuple(dict.fromkeys(row.guard for row in rows if row.guard is not None))

    def explain(self, event: Event) -> tuple[tuple[Hook, str | None], ...]:
        """Every hook that is configured for the event, with why it does not run; None for one that does.

        Hooks that run come first, in run order; then the others, in file order.
        """
        selected = self.select(event)
        rows: list[tuple[Hook, str | None]] = [(planned.hook, None) for planned in selected]
        running = {id(planned.hook) for planned in selected}
        rows += [
            (hook, _why_not(hook, event))
            for segment in self._segments
            for hook in segment.hooks
            if id(hook) not in running
        ]
        return (*rows, *self._others)


def _is_background(planned: PlannedHook) -> bool:
    return planned.hook.mode is not Mode.BLOCKING


def _why_not(hook: Hook, event: Event) -> str:
    if hook.inactive is not None:
        return hook.inactive
    if hook.withheld is not None:
        return f"{hook.withheld.message}; {hook.withheld.hint}"
    if hook.load_problem is not None:
        return f"it did not load: {hook.load_problem.describe()}"
    match hook.match:
        case NamePattern(pattern=pattern):
            return f"its matcher {pattern!r} does not match the tool name {event.tool_name!r}"
        case ToolFilter() as rule:
            return CompiledFilter(rule).check(event).why or "it is not selected for this event"
        case None:
            return "it is not selected for this event"
