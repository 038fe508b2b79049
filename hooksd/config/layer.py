"""Layers: sources that were read, compiled and frozen.

Compiling is the dear part (some 0.15 s for 10,000 patterns) and happens here, once per content: never on the loop.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from weakref import WeakValueDictionary

import msgspec

from hooksd.config.guards import Policy
from hooksd.config.matching import NameIndex
from hooksd.config.plan import PlannedHook, Segment
from hooksd.config.sources import Source
from hooksd.model.events import EventName
from hooksd.model.hooks import Hook
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import Document, SourceReport, SourceState


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
        content_digest: Of the text that `document` was read from, "" for `EMPTY_DOCUMENT`.
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
        answers: For each guard of the policy, the events for which a hook has a name that fits it.
        problems: Of hooks that could not be compiled.
    """

    __slots__ = ("__weakref__", "answers", "hooks", "problems", "segments", "source")

    def __init__(self, source: Source | None, hooks: Sequence[Hook], policy: Policy) -> None:
        self.source = source
        self.hooks = hooks = tuple(map(_loadable, hooks))
        self.problems = tuple(
            new.load_problem
            for new, old in zip(self.hooks, hooks, strict=True)
            if new.load_problem and new is not old
        )
        answers: list[set[EventName]] = [set() for _ in policy.guards]
        by_event: dict[EventName, list[Hook]] = {}
        gated: dict[EventName, list[PlannedHook]] = {}
        observed: dict[EventName, list[PlannedHook]] = {}
        for hook in self.hooks:
            event = hook.event
            by_event.setdefault(event, []).append(hook)
            fitting = policy.guards_of(hook.name)
            for at in fitting:
                answers[at].add(event)
            if hook.inactive is not None:
                continue
            serial = policy.is_serial(hook.name)
            for rows, gate in ((gated, True), (observed, False)):
                guard = policy.strictest(fitting, event, gate=gate)
                if hook.load_problem is None or guard is not None:
                    rows.setdefault(event, []).append(PlannedHook(hook=hook, guard=guard, serial=serial))
        self.answers = tuple(map(frozenset, answers))
        self.segments = {
            event: Segment(hooks, gated.get(event, ()), observed.get(event, ()))
            for event, hooks in by_event.items()
        }


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
        digest = _digest([*loaded, policy.rules_digest])
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
        digest = _digest([loaded.source, loaded.path, loaded.content_digest, policy.rules_digest])
        part = self._parts.get(digest)
        if part is None:
            part = Part(loaded.source, loaded.document.hooks, policy)
            self._parts[digest] = part
        return part


def _loadable(hook: Hook) -> Hook:
    """The hook, with a problem if the engine does not take its pattern although its dialect did."""
    if hook.match is None or hook.inactive or hook.load_problem:
        return hook
    refused = NameIndex([hook.match.pattern]).refused
    if not refused:
        return hook
    problem = ConfigProblem(
        severity=Severity.ERROR,
        path=hook.path,
        message=f"the pattern {hook.match.pattern!r} cannot be compiled: {refused[0]}",
        line=hook.line,
        hint="simplify the pattern; the hook does not run",
    )
    return msgspec.structs.replace(hook, load_problem=problem, match=None)


def _report(loaded: LoadedSource, part: Part) -> SourceReport:
    return SourceReport(
        name=loaded.source.name,
        dialect=loaded.source.dialect,
        scope=loaded.source.scope,
        path=loaded.path,
        state=loaded.state,
        hooks=sum(hook.inactive is None and hook.load_problem is None for hook in part.hooks),
        problems=(*loaded.problems, *part.problems),
    )


def _digest(parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
