"""Snapshots: the configuration that an execution runs with from its opening to its close (design rule 3).

A snapshot holds two layers, which it shares with others, and the programmatic hooks of the moment. Making one costs
little, holding one a reference.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from weakref import WeakValueDictionary

import msgspec

from hooksd.config.guards import Policy
from hooksd.config.layer import Layer, Part
from hooksd.config.plan import Plan
from hooksd.config.settings import Settings
from hooksd.config.shared_ids import shared_ids
from hooksd.model.events import ALSO, EventName
from hooksd.model.hooks import Guard, Hook, Programmatic, Scope
from hooksd.model.problems import ConfigProblem
from hooksd.model.sources import DocumentSettings, SourceReport


__all__ = ["CONFIGURED_PRIORITY", "Snapshot", "SnapshotTable"]

CONFIGURED_PRIORITY = 100
"""Where configured hooks stand among programmatic ones, which come first when equal (protocol section 2.8)."""


class Snapshot:
    """The immutable compiled form of all sources at one revision. Its plans belong to the loop's thread.

    Attributes:
        revision: The revision of the configuration it was made at.
        digest: Of everything in it; equal digests mean equal behaviour.
        settings: The settings that are in force in it.
        sources: What became of each source, in order: managed and user ones, then those of the project.
        problems: What is wrong beyond single sources: the settings file, guards that fit no hook, ids in both layers.
        guards: All guards, in file order.
        hooks_may_run: False where `hooksd.toml` is invalid and there is no last good version of it: what its guards
            would demand is not known, so a gate answers -32013, with `problems` (design rule 4).
    """

    __slots__ = (
        "__weakref__",
        "_parts",
        "_plans",
        "_unanswered",
        "digest",
        "guards",
        "hooks_may_run",
        "problems",
        "revision",
        "settings",
        "sources",
    )

    def __init__(
        self,
        *,
        revision: int,
        digest: str,
        policy: Policy,
        sources: Sequence[SourceReport],
        parts: Sequence[Part],
        problems: Sequence[ConfigProblem],
        hooks_may_run: bool = True,
    ) -> None:
        self.revision = revision
        self.hooks_may_run = hooks_may_run
        self.digest = digest
        self.settings: Settings = policy.settings
        self.guards: tuple[Guard, ...] = policy.guards
        self.sources = tuple(sources)
        self._parts = tuple(parts)
        self._plans: dict[tuple[str, EventName], Plan] = {}
        answers = [
            frozenset[EventName]().union(*(part.answers[at] for part in parts))
            for at in range(len(policy.rules))
        ]
        self._unanswered = tuple(
            (guard, policy.unanswered(at, answers[at])) for at, guard in enumerate(policy.guards)
        )
        names = (hook.name for part in parts for hook in part.hooks)
        self.problems = (*problems, *policy.problems(answers, names), *shared_ids(parts))

    def plan(self, agent: str, event: EventName) -> Plan:
        """The hooks of an event of an agent's execution; put together once and kept.

        Args:
            agent: The name of a dialect that is built in.
            event: The event.
        """
        key = (agent, event)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._compose(agent, event)
        return plan

    def document_settings(self, hook: Hook) -> DocumentSettings:
        """What documents say about a hook: its own, and where that is silent those of the user in the same dialect.

        What a project says holds for its own hooks only (Chrys dialect 1.8, as design.md narrows it).
        """
        own = [part for part in self._parts if part.source is not None and part.source.name == hook.source]
        users = [
            part
            for part in self._parts
            if part.source is not None
            and part.source.scope is Scope.USER
            and part.source.dialect == hook.dialect
            and hook.scope is Scope.PROJECT
        ]
        said: dict[str, float | int] = {}
        for part in (*own, *users):
            for name, value in msgspec.structs.asdict(part.settings).items():
                if value is not None:
                    said.setdefault(name, value)
        return msgspec.structs.replace(DocumentSettings(), **said)

    def _compose(self, agent: str, event: EventName) -> Plan:
        segments = []
        others: list[tuple[Hook, str]] = []
        for part in self._parts:
            segment = part.segments.get(event)
            if segment is None:
                continue
            if part.source is None or part.source.applies_to(agent):
                segments.append(segment)
            else:
                why = f"its source {part.source.name} applies to {', '.join(part.source.agents)}, not to {agent}"
                others += [(hook, why) for hook in segment.hooks]
        # Events of the hook's own dialect that this one may be too; whether it is, `PlannedHook.matches` says.
        segments += [
            segment
            for other in ALSO.get(event, ())
            for part in self._parts
            if part.source is not None and part.source.dialect != agent and part.source.applies_to(agent)
            if (segment := part.segments.get(other)) is not None
        ]
        missing = [guard for guard, events in self._unanswered if event in events]
        return Plan(segments, others=others, missing=missing)


class _ProgrammaticParts:
    """The programmatic hooks of a moment, compiled: those before and those after the configured ones."""

    __slots__ = ("after", "before", "digest", "hooks", "policy")

    def __init__(self, hooks: tuple[Hook, ...], policy: Policy) -> None:
        self.hooks = hooks
        self.policy = policy
        self.digest = hashlib.sha256(msgspec.json.encode(hooks)).hexdigest()
        ordered = sorted(hooks, key=_priority)
        self.before = Part(None, [hook for hook in ordered if _priority(hook) <= CONFIGURED_PRIORITY], policy)
        self.after = Part(None, [hook for hook in ordered if _priority(hook) > CONFIGURED_PRIORITY], policy)


class SnapshotTable:
    """Makes snapshots, and gives the same one again while somebody holds it. May be used in several threads."""

    __slots__ = ("_lock", "_programmatic", "_snapshots")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshots: WeakValueDictionary[tuple[object, ...], Snapshot] = WeakValueDictionary()
        self._programmatic: _ProgrammaticParts | None = None

    def get(
        self,
        *,
        revision: int,
        policy: Policy,
        base: Layer,
        project: Layer | None = None,
        programmatic: tuple[Hook, ...] = (),
        problems: tuple[ConfigProblem, ...] = (),
        hooks_may_run: bool = True,
    ) -> Snapshot:
        """The snapshot of these layers, compiled with the same `policy`, and of the programmatic hooks.

        Args:
            revision: Of the configuration.
            policy: The settings in force.
            base: Managed and user sources.
            project: The sources of the workspace; None without one.
            programmatic: The hooks of connected clients, in the order of their registration.
            problems: Of the settings file as it is now.
            hooks_may_run: See `Snapshot`.
        """
        with self._lock:
            clients = self._programmatic
            if clients is None or clients.hooks is not programmatic or clients.policy is not policy:
                clients = self._programmatic = _ProgrammaticParts(programmatic, policy)
            digests = (policy.digest, base.digest, project.digest if project else "", clients.digest)
            key = (revision, *digests, problems, hooks_may_run)
            snapshot = self._snapshots.get(key)
            if snapshot is None:
                snapshot = Snapshot(
                    revision=revision,
                    digest=hashlib.sha256(" ".join(digests).encode()).hexdigest(),
                    policy=policy,
                    sources=(*base.sources, *(project.sources if project else ())),
                    parts=(
                        clients.before,
                        *_of_scope(base, Scope.MANAGED),
                        *(project.parts if project else ()),
                        *_of_scope(base, Scope.USER),
                        clients.after,
                    ),
                    problems=problems,
                    hooks_may_run=hooks_may_run,
                )
                self._snapshots[key] = snapshot
        return snapshot


def _of_scope(layer: Layer, scope: Scope) -> list[Part]:
    return [part for part in layer.parts if part.source is not None and part.source.scope is scope]


def _priority(hook: Hook) -> int:
    if not isinstance(hook.handler, Programmatic):
        raise TypeError(f"{hook.name} is no programmatic hook")
    return hook.handler.priority
