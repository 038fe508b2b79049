"""Hooks, events, sources and snapshots to try the configuration with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hooksd.config.guards import Policy
from hooksd.config.layer import Layer, LayerCompiler, LoadedSource
from hooksd.config.settings import Settings
from hooksd.config.snapshot import Snapshot, SnapshotTable
from hooksd.config.sources import Source
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import Contract, Hook, Mode, NamePattern, Programmatic, Scope
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import Document, SourceState


@pytest.fixture(scope="session")
def make_hook() -> Callable[..., Hook]:
    """A hook by its last name and what matters about it."""

    def make(
        name: str,
        pattern: str | None = None,
        *,
        scope: Scope = Scope.USER,
        source: str = "bamboo",
        event: EventName = EventName.TOOL_BEFORE,
        mode: Mode = Mode.BLOCKING,
        fault: str | None = None,
        inactive: str | None = None,
        priority: int | None = None,
    ) -> Hook:
        programmatic = priority is not None
        problem = ConfigProblem(severity=Severity.ERROR, path="x", message=fault) if fault else None
        return Hook(
            name=f"{'programmatic' if programmatic else 'bamboo'}:{scope}:{source}:{name}",
            dialect="bamboo",
            contract=Contract.PROGRAMMATIC if programmatic else Contract.BAMBOO,
            source=source,
            scope=scope,
            event=event,
            native_event="PreToolUse",
            handler=Programmatic(registration_id=name, priority=priority) if priority is not None else None,
            match=None if pattern is None else NamePattern(pattern=pattern),
            mode=mode,
            timeout_s=60,
            path=name,
            line=7,
            inactive=inactive,
            load_problem=problem,
        )

    return make


@pytest.fixture(scope="session")
def make_event() -> Callable[..., Event]:
    """A tool event, a gate unless it is said not to be."""

    def make(
        tool: str | None = "Bash", *, gate: bool = True, name: EventName = EventName.TOOL_BEFORE
    ) -> Event:
        return Event(
            name=name,
            agent="bamboo",
            native="PreToolUse",
            gate=gate,
            session_id="s",
            payload={},
            tool_name=tool,
            timestamp=0.0,
        )

    return make


@pytest.fixture(scope="session")
def load() -> Callable[..., LoadedSource]:
    """A source that was read and has these hooks."""

    def make(*hooks: Hook, name: str = "bamboo", scope: Scope = Scope.USER, **more: Any) -> LoadedSource:
        source = Source(
            name=name,
            dialect="bamboo",
            scope=scope,
            candidates=(f"/{name}",),
            agents=more.pop("agents", ("bamboo",)),
        )
        defaults: dict[str, Any] = {
            "path": f"/{name}",
            "state": SourceState.LOADED,
            "document": Document(hooks=hooks, problems=()),
            "content_digest": repr(hooks),
        }
        return LoadedSource(source=source, **{**defaults, **more})

    return make


@pytest.fixture(scope="session")
def snapshot_of() -> Callable[..., Snapshot]:
    """A snapshot of sources that were read."""

    def make(
        base: Sequence[LoadedSource] = (),
        project: Sequence[LoadedSource] | None = None,
        *,
        settings: Settings | None = None,
        programmatic: tuple[Hook, ...] = (),
    ) -> Snapshot:
        policy = Policy(settings or Settings())
        compiler = LayerCompiler()

        def layer(loaded: Sequence[LoadedSource]) -> Layer:
            return compiler.compile(loaded, policy)

        return SnapshotTable().get(
            revision=1,
            policy=policy,
            base=layer(base),
            project=None if project is None else layer(project),
            programmatic=programmatic,
        )

    return make
