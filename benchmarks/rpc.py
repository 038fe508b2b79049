"""Round trips and throughput of the daemon's socket, on one core, against a C echo server and asyncio streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure, NotMeasured, compiled, interleaved, plain_environment


ROUNDS = 9
ROUND_TRIPS = 3_000
PIPELINED = 20_000
DEPTH = 32
START_LIMIT_S = 20.0
CHECKOUT = Path(__file__).parents[1]

EXECUTION = {"execution_id": "bench", "agent": "bamboo", "session_id": "bench", "workspace_path": ""}
EVENT = {"tool_name": "Read", "tool_call_id": "call-1", "parsed_args": {"path": "/tmp/file", "limit": 100}}

REQUESTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "ping": ("daemon/ping", {}, '"pong":'),
    "dispatch": (
        "hook/dispatch",
        {"execution_id": "bench", "event": "PreToolUse", "payload": EVENT},
        '"decision":"none"',
    ),
    "task": ("execution/drain", {"execution_id": "bench", "scope": "turn"}, '"finished":'),
}
"""By name: method, params, and what the answer must contain."""

HOOKS = {
    "lifecycle_hooks": {
        "enabled": True,
        "PreToolUse": [{"matcher": "^Bash$", "hooks": [{"type": "command", "command": "exit 2"}]}],
    }
}


class Bench:
    """The servers, all pinned to one core, and the load."""

    def __init__(self, stack: ExitStack) -> None:
        self.root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hooksd-bench-")))
        self.core = max(os.sched_getaffinity(0))
        self._stack = stack
        self._load = compiled("rpc_load")
        for name, (method, params, _) in REQUESTS.items():
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            (self.root / name).write_text(json.dumps(message, separators=(",", ":")) + "\n")

    def start(self, name: str, *command: str | Path, **variables: str) -> str:
        """Start a server; gives the path of its socket once it listens."""
        path = str(self.root / f"{name}.sock")
        process = subprocess.Popen(
            [part if part != "@" else path for part in command],
            env=plain_environment() | variables,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        os.sched_setaffinity(process.pid, {self.core})
        deadline = time.monotonic() + START_LIMIT_S
        while not os.path.exists(path):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotMeasured(f"the server {name} did not start")
            time.sleep(0.01)
        return path

    def load(
        self, path: str, request: str, depth: int, count: int, *, echo: bool = False
    ) -> dict[str, float]:
        """Send requests and measure, on the same core as the servers."""
        expected = [] if echo else [REQUESTS[request][2]]
        done = subprocess.run(
            [self._load, path, str(depth), str(count), self.root / request, *expected],
            stdout=subprocess.PIPE,
            check=True,
            text=True,
            preexec_fn=partial(os.sched_setaffinity, 0, {self.core}),
        )
        figures: dict[str, float] = json.loads(done.stdout)
        return figures


def start_daemon(bench: Bench) -> str:
    """A real daemon with one hook that no event of ours matches, and an open execution."""
    hooks = bench.root / "bamboo" / "hooks.json"
    hooks.parent.mkdir(mode=0o700)
    hooks.write_text(json.dumps(HOOKS))
    hooks.chmod(0o600)
    command = [sys.executable, "-m", "hooksd", "serve", "--socket", "@", "--state-dir", bench.root / "state"]
    path = bench.start("daemon", *command, BAMBOO_DATA_DIR=str(hooks.parent), HOME=str(bench.root))
    opening = {"jsonrpc": "2.0", "id": 1, "method": "execution/open", "params": EXECUTION}
    (bench.root / "open").write_text(json.dumps(opening) + "\n")
    REQUESTS["open"] = ("execution/open", EXECUTION, '"revision":')
    bench.load(path, "open", 1, 1)
    return path


def run() -> Iterator[Figure]:
    """Measure all."""
    if not hasattr(os, "sched_setaffinity"):
        raise NotMeasured("processes cannot be pinned to a core here")
    with ExitStack() as stack:
        bench = Bench(stack)
        daemon = start_daemon(bench)
        echo = bench.start("echo", compiled("echo_server"), "@")
        streams = str(Path(__file__).with_name("rpc_streams.py"))
        plain = bench.start("streams", sys.executable, streams, "@", "0")
        tasks = bench.start("tasks", sys.executable, streams, "@", "1")
        ours = bench.start(
            "our_tasks", sys.executable, "-m", "benchmarks.rpc_tasks", "@", PYTHONPATH=str(CHECKOUT)
        )
        yield from round_trips(bench, {"ping": daemon, "dispatch": daemon, "task": ours}, echo)
        yield from throughput(bench, {"ping": daemon, "dispatch": daemon, "task": ours}, plain, tasks)


def round_trips(bench: Bench, servers: Mapping[str, str], echo: str) -> Iterator[Figure]:
    """Latencies, one request at a time."""

    def p50(path: str, request: str, *, is_echo: bool = False) -> float:
        return bench.load(path, request, 1, ROUND_TRIPS, echo=is_echo)["p50_us"]

    contestants: dict[str, Callable[[], float]] = {}
    for request, server in servers.items():
        contestants[request] = partial(p50, server, request)
        contestants[f"echo of {request}"] = partial(p50, echo, request, is_echo=True)
    rounds = interleaved(ROUNDS, contestants)
    for request, name, goal in (
        ("ping", "daemon/ping / C echo, p50", "<= 2.5"),
        ("dispatch", "hook/dispatch without a matching hook / C echo, p50", "<= 3"),
        ("task", "a method with a task / C echo, p50", "<= 3.5"),
    ):
        ours, theirs = rounds.median(request), rounds.median(f"echo of {request}")
        yield Figure(name, rounds.ratio(request, f"echo of {request}"), goal, f"{ours:.1f} / {theirs:.1f} us")


def throughput(bench: Bench, servers: Mapping[str, str], plain: str, tasks: str) -> Iterator[Figure]:
    """Requests per second, many on their way."""

    def cost(path: str, request: str) -> float:
        return 1 / bench.load(path, request, DEPTH, PIPELINED)["per_s"]

    rounds = interleaved(
        ROUNDS,
        {
            **{request: partial(cost, server, request) for request, server in servers.items()},
            "ping of streams": partial(cost, plain, "ping"),
            "task of streams": partial(cost, tasks, "task"),
        },
    )
    for request, name, goal in (
        ("ping", "pipelined daemon/ping, per second / asyncio streams + json", ">= 5"),
        ("task", "pipelined method with a task, per second / asyncio streams + json", ">= 1.4"),
    ):
        theirs = f"{request} of streams"
        yield Figure(
            name,
            rounds.ratio(theirs, request),
            goal,
            f"{1 / rounds.median(request):,.0f} / {1 / rounds.median(theirs):,.0f} per second",
        )
    yield Figure("pipelined hook/dispatch without a matching hook, per second", 1 / rounds.median("dispatch"))
