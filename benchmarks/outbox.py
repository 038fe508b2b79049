"""Durable jobs: what keeping one costs against a bare commit, many at once, and a backlog at start and in the way."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measure import Figure, NotMeasured, Rounds, interleaved, plain_environment
from hooksd.model.events import Event, EventName
from hooksd.model.records import Level
from hooksd.outbox.jobs import Attempt, Ending, NewJob, OutboxLimits
from hooksd.outbox.outbox import FILE_NAME, Outbox
from hooksd.pipeline.durable import Frozen
from hooksd_client import Client


PAIRS = 150
AT_ONCE = 50
BURSTS = 15
BACKLOG = 10_000
STARTS = 7
GATES = 150
DRAINS = 5
START_LIMIT_S = 30

PAYLOAD = bytes(1000)
HOOKS = """
version: 1
settings: {outbox_max_retries: 3}
hooks:
  - id: gate
    event: before_tool_call
    run: {type: command, argv: [/bin/true]}
    execution: {mode: blocking}
    match: {tool_name: shell}
  - id: telemetry
    event: after_turn
    run: {type: command, argv: [/bin/true]}
    execution: {mode: async, delivery: durable}
"""
HOOK = "chrys:user:chrys:telemetry"
TURN = {"turn": 1, "status": "ok", "failed": False}
CALL = {"tool": {"name": "shell", "kind": "shell", "call_id": "c1", "args": {"command": "pwd"}}}


def run() -> Iterator[Figure]:
    """Measure all."""
    with ExitStack() as stack:
        # Not in memory: the disk is what is measured.
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".bench-", dir=Path.cwd())))
        yield from _on_a_loop(partial(keeping, root))
        yield from dispatching(root)
        yield from a_backlog(root)


def _on_a_loop(measure: Callable[[], Awaitable[list[Figure]]]) -> list[Figure]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(measure())  # type: ignore[arg-type]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure())  # type: ignore[arg-type]


def _forget(level: Level, kind: str, fields: Mapping[str, Any]) -> None:
    """Take a record and do nothing with it."""


def _outbox(path: Path) -> Outbox:
    limits = OutboxLimits(max_jobs=1_000_000, max_bytes=1 << 31)
    return Outbox(str(path), record=_forget, limits=lambda: limits)


def _yardstick(path: Path) -> sqlite3.Connection:
    """A table with nothing around it, WAL and FULL, in this thread."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE jobs (number INTEGER PRIMARY KEY, hook TEXT, due_at REAL, payload BLOB)")
    return connection


def _insert(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO jobs (hook, due_at, payload) VALUES (?, ?, ?)", (HOOK, time.time(), PAYLOAD)
    )


async def keeping(root: Path) -> list[Figure]:
    """`Outbox.add` against one INSERT and its commit, one at a time and fifty at once."""
    outbox, bare = _outbox(root / "ours.sqlite3"), _yardstick(root / "bare.sqlite3")
    job = NewJob(hook=HOOK, lane=HOOK, event="after_turn", payload=PAYLOAD)
    await outbox.add([job])
    single = Rounds({"add": [], "insert": []})
    for number in range(PAIRS):
        # Side by side, turn about: a disk has moods.
        for name in ("add", "insert") if number % 2 else ("insert", "add"):
            began = time.perf_counter()
            if name == "add":
                await outbox.add([job])
            else:
                _insert(bare)
            single[name].append(time.perf_counter() - began)
    many = Rounds({"at once": [], "one by one": []})
    for _ in range(BURSTS):
        began = time.perf_counter()
        await asyncio.gather(*(outbox.add([job]) for _ in range(AT_ONCE)))
        middle = time.perf_counter()
        for _ in range(AT_ONCE):
            _insert(bare)
        many["at once"].append(middle - began)
        many["one by one"].append(time.perf_counter() - middle)
    await outbox.aclose()
    bare.close()
    return [
        Figure(
            "keeping a job / one INSERT and its commit",
            single.ratio("add", "insert"),
            "<= 1.3",
            f"{single.median('add') * 1e3:.2f} / {single.median('insert') * 1e3:.2f} ms",
        ),
        Figure(
            f"{AT_ONCE} jobs at once, per second / one commit for each",
            many.ratio("one by one", "at once"),
            ">= 10",
            f"{AT_ONCE / many.median('at once'):,.0f} / {AT_ONCE / many.median('one by one'):,.0f} per second",
        ),
    ]


# ----------------------------------------------------------------------------------------------------------------------
# Daemons


class Daemon:
    """A real daemon over a folder of its own, started with what is in it."""

    def __init__(self, root: Path, name: str) -> None:
        self.root = root / name
        self.state = self.root / "state"
        hooks = self.root / "home" / ".chrys" / "hooks"
        for folder in (self.root, self.state, self.root / "run", self.root / "home", hooks.parent, hooks):
            folder.mkdir(mode=0o700)
        (hooks / "hooks.yaml").write_text(HOOKS)
        (hooks / "hooks.yaml").chmod(0o600)
        self.socket = str(self.root / "run" / "s.sock")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Seconds until it is ready."""
        reading, writing = os.pipe()
        began = time.perf_counter()
        command = [sys.executable, "-m", "hooksd", "serve", "--socket", self.socket]
        self._process = subprocess.Popen(
            [*command, "--state-dir", self.state, "--ready-fd", str(writing)],
            env=plain_environment() | {"HOME": str(self.root / "home")},
            stdin=subprocess.DEVNULL,
            pass_fds=[writing],
        )
        os.close(writing)
        ready = os.read(reading, 1)
        took = time.perf_counter() - began
        os.close(reading)
        if not ready:
            raise NotMeasured("the daemon did not start")
        return took

    def stop(self, *, kill: bool = False) -> None:
        """End it; killed, it leaves its outbox as it is."""
        if self._process is not None:
            (self._process.kill if kill else self._process.terminate)()
            self._process.wait()
            self._process = None

    def settled(self, client: Client) -> None:
        """Wait until nothing runs and nothing is to be written."""
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            status = client.status()
            hooks, jobs = status.hooks, status.outbox
            if hooks is not None and jobs is not None and not hooks.running and not jobs.running:
                return
            if time.monotonic() > deadline:
                raise NotMeasured("the daemon does not come to rest")
            time.sleep(0.005)


def dispatching(root: Path) -> Iterator[Figure]:
    """`hook/dispatch` of an event with a durable hook, by a client, against one INSERT and its commit."""
    daemon, bare = Daemon(root, "dispatching"), _yardstick(root / "bare2.sqlite3")
    daemon.start()
    try:
        with Client(daemon.socket) as client:
            client.open_execution("run", agent="chrys", session_id="s", workspace_path=str(root))
            client.dispatch("run", "after_turn", TURN)
            rounds = Rounds({"dispatch": [], "insert": []})
            for number in range(PAIRS):
                for name in ("dispatch", "insert") if number % 2 else ("insert", "dispatch"):
                    daemon.settled(client)
                    began = time.perf_counter()
                    if name == "dispatch":
                        client.dispatch("run", "after_turn", TURN)
                    else:
                        _insert(bare)
                    rounds[name].append(time.perf_counter() - began)
    finally:
        daemon.stop()
        bare.close()
    yield Figure(
        "hook/dispatch with a durable hook / one INSERT and its commit",
        rounds.ratio("dispatch", "insert"),
        "<= 1.3",
        f"{rounds.median('dispatch') * 1e3:.2f} / {rounds.median('insert') * 1e3:.2f} ms, by a client",
    )


def a_backlog(root: Path) -> Iterator[Figure]:
    """Ten thousand jobs that are due: at the start of a daemon, and beside its gates."""
    backlog = root / "backlog.sqlite3"
    asyncio.run(_fill(backlog))
    daemon = Daemon(root, "backlog")
    file = daemon.state / FILE_NAME

    def prepared(*, full: bool) -> None:
        for end in ("", "-wal", "-shm"):
            file.with_name(FILE_NAME + end).unlink(missing_ok=True)
        shutil.copy(backlog if full else root / "empty.sqlite3", file)
        # What was just copied is written back while the daemon starts, unless it is on the disk.
        os.sync()

    def started(*, full: bool) -> float:
        prepared(full=full)
        took = daemon.start()
        daemon.stop(kill=True)
        return took

    rounds = interleaved(STARTS, {"full": partial(started, full=True), "empty": partial(started, full=False)})
    yield Figure(
        f"start to ready with {BACKLOG:,} pending jobs / with none",
        rounds.ratio("full", "empty"),
        "<= 1.5",
        f"{rounds.median('full') * 1e3:.0f} / {rounds.median('empty') * 1e3:.0f} ms",
    )
    drained: list[int] = []

    def gates(*, full: bool) -> float:
        prepared(full=full)
        daemon.start()
        try:
            with Client(daemon.socket) as client:
                client.open_execution("run", agent="chrys", session_id="s", workspace_path=str(root))
                times = []
                for _ in range(GATES):
                    began = time.perf_counter()
                    client.dispatch("run", "before_tool_call", CALL)
                    times.append(time.perf_counter() - began)
                if full:
                    drained.append(BACKLOG - (client.status().outbox or _no()).pending)
        finally:
            daemon.stop(kill=True)
        return statistics.quantiles(times, n=20)[-1]

    rounds = interleaved(DRAINS, {"draining": partial(gates, full=True), "idle": partial(gates, full=False)})
    if not min(drained):
        raise NotMeasured("the backlog was not drained beside the gates")
    yield Figure(
        "p95 of a gate while the backlog is drained / idle",
        rounds.ratio("draining", "idle"),
        "<= 1.5",
        f"{rounds.median('draining') * 1e3:.1f} / {rounds.median('idle') * 1e3:.1f} ms; "
        f"{statistics.median(drained):.0f} jobs done beside {GATES} gates",
    )


def _no() -> Any:
    raise NotMeasured("the daemon tells no counts")


async def _fill(path: Path) -> None:
    event = Event(
        name=EventName.TURN_END,
        agent="chrys",
        native="after_turn",
        gate=False,
        session_id="s",
        payload=TURN,
        timestamp=time.time(),
    )
    payload = msgspec.json.encode(Frozen(event=event, execution_id="run", workspace=""))
    job = NewJob(hook=HOOK, lane=HOOK, event="after_turn", payload=payload)
    outbox = _outbox(path)
    empty = _outbox(path.with_name("empty.sqlite3"))
    for _ in range(BACKLOG // 1000):
        await outbox.add([job] * 1000, hold=False)
    (only,) = await empty.add([job])
    await empty.start(only)
    await empty.settle(only, Attempt(ending=Ending.SUCCEEDED, exit_code=0))
    await outbox.aclose()
    await empty.aclose()
