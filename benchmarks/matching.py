"""Ten thousand matcher rules against one, and ten thousand open executions against the first."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure, interleaved
from hooksd.config.assemble import ConfigPlaces
from hooksd.config.guards import Policy
from hooksd.config.layer import Layer, LayerCompiler, LoadedSource
from hooksd.config.plan import Plan
from hooksd.config.settings import Settings
from hooksd.config.snapshot import Snapshot, SnapshotTable
from hooksd.config.sources import Source
from hooksd.config.store import ConfigStore
from hooksd.dialects import DIALECTS
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import Contract, Hook, NamePattern, Scope, ShellCommand
from hooksd.model.records import Level
from hooksd.model.sources import Document, SourceState
from hooksd.pipeline.executions import Executions
from hooksd.protocol.methods.executions import ExecutionOpenParams


RULES = 10_000
NAMES = 400
EXECUTIONS = 10_000
BATCH = 100
ROUNDS = 15

BEFORE = EventName.TOOL_BEFORE


def patterns(count: int) -> list[str]:
    """40 % `^lit$`, 30 % `^(A|B)$`, 30 % real expressions, over as many tools as there are rules."""
    choose = random.Random(1)

    def tool() -> str:
        return f"mcp__{choose.choice(['fs', 'git', 'web', 'db'])}__{choose.randrange(RULES):05}"

    kinds = choose.choices(("name", "names", "expression"), (40, 30, 30), k=count)
    made = {
        "name": lambda: f"^{tool()}$",
        "names": lambda: f"^({tool()}|{tool()})$",
        "expression": lambda: choose.choice([f"^{tool()}.*", f"{tool()}(_x)?$", f"(?i)^{tool()[:-1]}[0-9]$"]),
    }
    return [made[kind]() for kind in kinds]


def layer_of(rules: Sequence[str], policy: Policy) -> Layer:
    """One source with a hook for each rule."""
    hooks = tuple(
        Hook(
            name=f"bamboo:user:bamboo:PreToolUse[{at}].hooks[0]",
            dialect="bamboo",
            contract=Contract.BAMBOO,
            source="bamboo",
            scope=Scope.USER,
            event=BEFORE,
            native_event="PreToolUse",
            handler=ShellCommand(command="true", shells=("sh",)),
            match=NamePattern(pattern=pattern),
            timeout_s=60.0,
        )
        for at, pattern in enumerate(rules)
    )
    source = Source(name="bamboo", dialect="bamboo", scope=Scope.USER, candidates=("/x",), agents=("bamboo",))
    loaded = LoadedSource(
        source=source,
        path="/x",
        state=SourceState.LOADED,
        document=Document(hooks=hooks, problems=()),
        content_digest=str(len(rules)),
    )
    return LayerCompiler().compile([loaded], policy)


def events() -> list[Event]:
    """One event for each of many tool names; some are named by rules, others are not."""
    choose = random.Random(2)
    return [
        Event(
            name=BEFORE,
            agent="bamboo",
            native="PreToolUse",
            gate=True,
            session_id="s",
            payload={},
            tool_name=f"mcp__{choose.choice(['fs', 'git', 'web', 'mine'])}__{choose.randrange(RULES):05}",
            timestamp=0.0,
        )
        for _ in range(NAMES)
    ]


def snapshot_of(layer: Layer, policy: Policy) -> Snapshot:
    """A snapshot of one layer whose plans know no name yet."""
    return SnapshotTable().get(revision=1, policy=policy, base=layer)


def each(plan: Plan, events: Sequence[Event]) -> float:
    """Seconds that selecting for one event takes."""
    began = time.perf_counter()
    for event in events:
        plan.select(event)
    return (time.perf_counter() - began) / len(events)


def matching() -> Iterator[Figure]:
    """The figures about rules."""
    policy = Policy(Settings())
    began = time.perf_counter()
    many = layer_of(patterns(RULES), policy)
    compiling_s = time.perf_counter() - began
    # The one rule is an expression: a plain name would make it a dictionary alone.
    one = layer_of(["^mcp__fs__0.*"], policy)
    asked = events()
    remembering = {
        name: snapshot_of(layer, policy).plan("bamboo", BEFORE)
        for name, layer in (("many", many), ("one", one))
    }
    for plan in remembering.values():
        each(plan, asked)
    rounds = interleaved(
        ROUNDS,
        {
            "many": lambda: each(snapshot_of(many, policy).plan("bamboo", BEFORE), asked),
            "one": lambda: each(snapshot_of(one, policy).plan("bamboo", BEFORE), asked),
            "many remembered": lambda: each(remembering["many"], asked),
            "one remembered": lambda: each(remembering["one"], asked),
        },
    )
    yield Figure(
        f"one event: {RULES:,} rules / 1 rule, name not seen before",
        rounds.ratio("many", "one"),
        "<= 20",
        f"{rounds.median('many') * 1e6:.1f} / {rounds.median('one') * 1e6:.1f} us",
    )
    yield Figure(
        f"one event: {RULES:,} rules / 1 rule, name seen before",
        rounds.ratio("many remembered", "one remembered"),
        "<= 2",
        f"{rounds.median('many remembered') * 1e9:.0f} / {rounds.median('one remembered') * 1e9:.0f} ns",
    )
    yield Figure(f"compiling {RULES:,} rules, ms", compiling_s * 1e3, None, "off the loop, once per content")


def opening() -> Iterator[Figure]:
    """The figures about executions: the pipeline and the configuration as the daemon has them, without a socket."""
    with tempfile.TemporaryDirectory(prefix="hooksd-bench-") as directory:
        root = Path(directory)
        (root / "config").mkdir()
        groups = [
            {"matcher": pattern, "hooks": [{"type": "command", "command": "true"}]}
            for pattern in patterns(RULES)
        ]
        document = {"lifecycle_hooks": {"enabled": True, "PreToolUse": groups}}
        (root / "config" / "hooks.json").write_text(json.dumps(document))
        (root / "config" / "hooksd.toml").write_text(f"limits.max_executions = {EXECUTIONS * 2}\n")
        for path in (root, root / "config", *(root / "config").iterdir()):
            path.chmod(0o700 if path.is_dir() else 0o600)
        yield from asyncio.run(_opened(root))


async def _opened(root: Path) -> list[Figure]:
    places = ConfigPlaces(
        settings_path=str(root / "config" / "hooksd.toml"),
        config_dir=str(root / "config"),
        state_dir=str(root / "state"),
        home=str(root),
        env={},
    )
    store = ConfigStore(places)
    store.load()
    store.start(asyncio.get_running_loop(), _forget)
    executions = Executions(store=store, dialects=DIALECTS, record=_forget, programmatic=tuple)
    await executions.open(_params("warm-up"))
    gc.collect()
    tracemalloc.start()
    for number in range(EXECUTIONS):
        _open(executions, f"held-{number}")
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    def batch(executions: Executions) -> float:
        names = [f"{len(executions)}-{number}" for number in range(BATCH)]
        return statistics.median(_open(executions, name) for name in names)

    # The ten thousand stay open; the first ones are those of a table of their own in every round.
    rounds = interleaved(
        ROUNDS,
        {
            "last": lambda: batch(executions),
            "first": lambda: batch(
                Executions(store=store, dialects=DIALECTS, record=_forget, programmatic=tuple)
            ),
        },
    )
    await store.aclose()
    return [
        Figure(
            f"opening the {EXECUTIONS:,}th execution / the first",
            rounds.ratio("last", "first"),
            "<= 1.5",
            f"{rounds.median('last') * 1e6:.1f} / {rounds.median('first') * 1e6:.1f} us, {RULES:,} rules",
        ),
        Figure(
            "bytes of an open execution", held / EXECUTIONS, "<= 4096", "without an environment of its own"
        ),
    ]


def _params(name: str) -> ExecutionOpenParams:
    return ExecutionOpenParams(
        execution_id=f"run-{name}", agent="bamboo", session_id=f"session-{name}", workspace_path=""
    )


def _open(executions: Executions, name: str) -> float:
    """Seconds of one opening that needs no reading."""
    params = _params(name)
    began = time.perf_counter()
    if executions.open_now(params) is None:
        raise AssertionError("nothing has changed, yet something is to be read")
    return time.perf_counter() - began


def _forget(level: Level, kind: str, fields: Mapping[str, Any]) -> None:
    """Take a record and do nothing with it."""


def run() -> Iterator[Figure]:
    """Measure all."""
    yield from matching()
    yield from opening()
