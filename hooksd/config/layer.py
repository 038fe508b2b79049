"""Layers: sources that were read, compiled and frozen.

Compiling is the dear part (some 0.15 s for 10,000 patterns) and happens here, once per content: never on the loop.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from weakref import WeakValueDictionary

import msgspec

from hooksd.config.guards import Policy, Treatment
from hooksd.config.matching import ExactName, NameIndex
from hooksd.config.plan import PlannedHook, Segment, plan_hook
from hooksd.config.sources import Source
from hooksd.model.events import EventName
from hooksd.model.hooks import Guard, Hook, NamePattern, ToolFilter
from hooksd.model.problems import ConfigProblem, ProblemKind, Severity
from hooksd.model.sources import Document, DocumentSettings, SourceReport, SourceState


__all__ = ["EMPTY_DOCUMENT", "Layer", "LayerCompiler", "LoadedSource", "Part"]

EMPTY_DOCUMENT = Document(hooks=(), problems=())
"""What is in force of a source that is missing, disabled, or invalid without a last good version."""


class LoadedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source after its file was looked at.

    Attributes:
        source: The source.
        path: The file it was read from; the first candidate when there is none.
        state: What became of it.
        document: What is in force of it: the last good version where `state` is invalid.
        content_digest: Of the text that `document` was read from and of the trust in it, "" for `EMPTY_DOCUMENT`.
        problems: Everything that is wrong with the source and its file as they are now.
    """

    source: Source
    path: str
    state: SourceState
    document: Document = EMPTY_DOCUMENT
    content_digest: str = ""
    problems: tuple[ConfigProblem, ...] = ()


class Part:
    """The hooks of one source, compiled. Immutable, and shared by every layer that has it.

    Attributes:
        source: The source; None for the programmatic hooks.
        hooks: All of them, in file order.
        segments: What can happen at each event.
        answers: For each rule of the policy, the events for which a hook, running or not, has a name that fits it.
        ids: The hooks that can run and have a name of their own in their document, by it, in file order.
        settings: What its document says besides its hooks.
        problems: Of hooks whose pattern the engine does not take although their dialect did.
    """

    __slots__ = ("__weakref__", "answers", "hooks", "ids", "problems", "segments", "settings", "source")

    def __init__(
        self,
        source: Source | None,
        hooks: Sequence[Hook],
        policy: Policy,
        settings: DocumentSettings = EMPTY_DOCUMENT.settings,
    ) -> None:
        self.source = source
        self.settings = settings
        by_event: dict[EventName, list[int]] = {}
        for at, hook in enumerate(hooks):
            by_event.setdefault(hook.event, []).append(at)
        current = list(hooks)
        answers: list[set[EventName]] = [set() for _ in policy.rules]
        problems = []
        self.segments: dict[EventName, Segment] = {}
        for event, positions in by_event.items():
            fitting = {at: policy.fitting(hooks[at].name) for at in positions}
            # Most hooks fit the same rules, as a rule none.
            treatments = {rules: policy.treatment(rules, event) for rules in set(fitting.values())}
            active = [at for at in positions if _is_active(hooks[at], treatments[fitting[at]])]
            index = NameIndex([_name_rule(hooks[at]) for at in active])
            for row, why in sorted(index.refused.items()):
                if hooks[active[row]].load_problem is None:
                    problem = _refusal(hooks[active[row]], why)
                    problems.append(problem)
                    current[active[row]] = msgspec.structs.replace(hooks[active[row]], load_problem=problem)
            for rule in {rule for at in positions if _answers(hooks[at]) for rule in fitting[at]}:
                answers[rule].add(event)
            rows = [_planned(current[at], treatments[fitting[at]]) for at in active]
            self.segments[event] = Segment(
                [current[at] for at in positions],
                index,
                gated=[gated for gated, _ in rows],
                observed=[observed for _, observed in rows],
            )
        self.hooks = tuple(current)
        self.ids = {hook.id: hook for hook in self.hooks if hook.id and _can_run(hook)}
        self.answers = tuple(map(frozenset, answers))
        self.problems = tuple(problems)


class Layer:
    """Sources in their order, compiled. Immutable; equal ones are one object.

    Attributes:
        digest: Of everything it was made of.
        sources: What became of each source, for people and programs.
        parts: The hooks of each source.
    """

    __slots__ = ("__weakref__", "digest", "parts", "sources")

    def __init__(self, digest: str, sources: Sequence[SourceReport], parts: Sequence[Part]) -> None:
        self.digest = digest
        self.sources = tuple(sources)
        self.parts = tuple(parts)


class LayerCompiler:
    """Makes layers, and keeps those and the parts that somebody still holds. May be used in several threads."""

    __slots__ = ("_layers", "_lock", "_parts")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._layers: WeakValueDictionary[str, Layer] = WeakValueDictionary()
        self._parts: WeakValueDictionary[str, Part] = WeakValueDictionary()

    def compile(self, loaded: Sequence[LoadedSource], policy: Policy) -> Layer:
        """The layer of these sources; it may take long, so call it off the loop."""
        digest = _digest([*map(_identity, loaded), policy.rules_digest])
        with self._lock:
            layer = self._layers.get(digest)
            if layer is None:
                parts = [self._part(one, policy) for one in loaded]
                layer = Layer(
                    digest, [_report(one, part) for one, part in zip(loaded, parts, strict=True)], parts
                )
                self._layers[digest] = layer
        return layer

    def _part(self, loaded: LoadedSource, policy: Policy) -> Part:
        digest = _digest([*_identity(loaded)[:-1], policy.rules_digest])
        part = self._parts.get(digest)
        if part is None:
            part = Part(loaded.source, loaded.document.hooks, policy, loaded.document.settings)
            self._parts[digest] = part
        return part


def _identity(loaded: LoadedSource) -> tuple[object, ...]:
    """What a source's compiled form depends on, and last what is only told with it.

    The state as well: what is made of a text may hang on whether it is trusted.
    """
    return loaded.source, loaded.path, loaded.state, loaded.content_digest, loaded.problems


def _is_active(hook: Hook, treatment: Treatment) -> bool:
    """Whether it may have a place in a plan. An untrusted one has where a guard makes its absence count, and only there."""
    if hook.inactive is not None:
        return False
    untrusted = hook.withheld is not None and hook.withheld.kind is ProblemKind.UNTRUSTED
    return not untrusted or treatment.gated is not None or treatment.observed is not None


def _can_run(hook: Hook) -> bool:
    return hook.inactive is None and hook.load_problem is None and hook.withheld is None


def _answers(hook: Hook) -> bool:
    """Whether a guard's hook can be said to be there; no file that nobody trusts may say so."""
    return hook.withheld is None or hook.withheld.blocks


def _name_rule(hook: Hook) -> str | ExactName | None:
    """What the tool's name must be like; all else of a rule is for `PlannedHook.matches`."""
    match hook.match:
        case NamePattern(pattern=pattern):
            return pattern
        case ToolFilter(tool_name=str(name)):
            return ExactName(name)
        case _:
            return None


def _planned(hook: Hook, treatment: Treatment) -> tuple[PlannedHook | None, PlannedHook | None]:
    """The hook in the plan of a gate and of an observer; None if it did not load or is not trusted and no guard minds."""
    gated, observed, serial = treatment
    untrusted = hook.withheld is not None and hook.withheld.kind is ProblemKind.UNTRUSTED

    def planned(guard: Guard | None) -> PlannedHook | None:
        if guard is None and (untrusted or hook.load_problem is not None):
            return None
        return plan_hook(hook, guard=guard, serial=serial)

    first = planned(gated)
    return first, first if observed is gated else planned(observed)


def _refusal(hook: Hook, why: str) -> ConfigProblem:
    return ConfigProblem(
        severity=Severity.ERROR,
        path=hook.path,
        message=f"the pattern {_name_rule(hook)!r} cannot be compiled: {why}",
        line=hook.line,
        hint="simplify the pattern; until then the hook does not run",
    )


def _report(loaded: LoadedSource, part: Part) -> SourceReport:
    return SourceReport(
        name=loaded.source.name,
        dialect=loaded.source.dialect,
        scope=loaded.source.scope,
        path=loaded.path,
        state=loaded.state,
        hooks=sum(map(_can_run, part.hooks)),
        problems=(*loaded.problems, *part.problems),
    )


def _digest(parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
