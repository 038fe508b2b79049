"""The whole way of a hook: a request through the daemon's socket, one `cat` command hook, the answer. And the daemon at rest.

The hook is `bash -c cat`, as a Bamboo command is run; the C program at the floor starts exactly that with three pipes.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import uvloop

from benchmarks.measure import Figure, NotMeasured, compiled, interleaved, plain_environment


ROUNDS = 9
EACH = 60
AT_ONCE = 16
MANY = 320
START_LIMIT_S = 20.0
IMPORTS = "import uvloop, msgspec, structlog, watchdog"

PAYLOAD = {"tool_name": "Bash", "tool_call_id": "call-1", "tool_input": {"command": "x" * 700}}
HOOKS = {
    "lifecycle_hooks": {"enabled": True, "PreToolUse": [{"hooks": [{"type": "command", "command": "cat"}]}]}
}


class Daemon:
    """A real daemon with one hook, in a directory of its own."""

    def __init__(self, stack: ExitStack, *, bamboo: object = HOOKS, chrys: str = "") -> None:
        self.root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hooksd-bench-")))
        hooks = self.root / "bamboo" / "hooks.json"
        hooks.parent.mkdir(mode=0o700)
        hooks.write_text(json.dumps(bamboo))
        hooks.chmod(0o600)
        if chrys:
            document = self.root / ".chrys" / "hooks" / "hooks.yaml"
            document.parent.mkdir(mode=0o700, parents=True)
            document.write_text(chrys)
            document.chmod(0o600)
        self.environment = plain_environment() | {
            "HOME": str(self.root),
            "BAMBOO_DATA_DIR": str(hooks.parent),
        }
        self.path = str(self.root / "run" / "hooksd.sock")
        self.process = self.start(self.path, self.root / "state")
        stack.callback(self.process.wait)
        stack.callback(self.process.terminate)

    def start(self, path: str, state: Path) -> subprocess.Popen[bytes]:
        """Start one and wait until it says that it is ready."""
        ready, told = os.pipe()
        command = [sys.executable, "-m", "hooksd", "serve", "--socket", path, "--state-dir", str(state)]
        with open(ready, "rb") as pipe:
            process = subprocess.Popen(
                [*command, "--ready-fd", str(told)], env=self.environment, pass_fds=[told]
            )
            os.close(told)
            if not pipe.read(1):
                raise NotMeasured("the daemon did not start")
        return process

    def client(self, execution: str) -> Connection:
        """A connection with an execution of its own."""
        return Connection(self.path, execution)


class Connection:
    """A bare client, one request at a time: what is measured is the daemon, not a library."""

    agent = "bamboo"
    event = "PreToolUse"
    payload: Mapping[str, object] = PAYLOAD

    def __init__(self, path: str, execution: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(START_LIMIT_S)
        self._socket.connect(path)
        self._file = self._socket.makefile("rb")
        opening = {"execution_id": execution, "agent": self.agent, "session_id": "s", "workspace_path": ""}
        self._line(self._request("execution/open", opening | {"env": plain_environment()}), b'"revision"')
        event = {"execution_id": execution, "event": self.event, "payload": dict(self.payload)}
        self._dispatch = self._request("hook/dispatch", event)

    @staticmethod
    def _request(method: str, params: object) -> bytes:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"

    def _line(self, request: bytes, expected: bytes) -> None:
        self._socket.sendall(request)
        answer = self._file.readline()
        if expected not in answer:
            raise NotMeasured(f"the daemon answered {answer[:300]!r}")

    def dispatch(self) -> None:
        """One event through one hook."""
        self._line(self._dispatch, b'"status":"ok"')

    def close(self) -> None:
        """End the connection."""
        self._file.close()
        self._socket.close()


def run() -> Iterator[Figure]:
    """All figures of the whole way, and of the daemon at rest."""
    bash = shutil.which("bash", path=plain_environment()["PATH"])
    if bash is None:
        raise NotMeasured("there is no bash")
    with ExitStack() as stack:
        daemon = Daemon(stack)
        yield resident(daemon)
        yield from one_after_another(daemon, bash)
        yield from at_once(daemon, bash)
        yield start_to_ready(daemon)


def one_after_another(daemon: Daemon, bash: str) -> Iterator[Figure]:
    with closing(daemon.client("one")) as connection:

        def ours() -> float:
            return median_us(connection.dispatch)

        rounds = interleaved(
            ROUNDS, {"ours": ours, "C": lambda: floor(bash)[0], "uvloop": lambda: uvloop_us(bash)}
        )
    note = f"{rounds.median('ours'):.0f} us; C {rounds.median('C'):.0f}, uvloop {rounds.median('uvloop'):.0f}"
    yield Figure("dispatch of one cat hook / C posix_spawn", rounds.ratio("ours", "C"), "<= 1.4", note)
    yield Figure("dispatch of one cat hook / uvloop subprocess", rounds.ratio("ours", "uvloop"), "<= 0.5")


def at_once(daemon: Daemon, bash: str) -> Iterator[Figure]:
    def ours() -> float:
        connections = [daemon.client(f"many-{number}") for number in range(AT_ONCE)]

        def keep_busy(connection: Connection) -> None:
            for _ in range(MANY // AT_ONCE):
                connection.dispatch()

        threads = [threading.Thread(target=keep_busy, args=(one,)) for one in connections]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - began
        for connection in connections:
            connection.close()
        return MANY / took

    rounds = interleaved(ROUNDS, {"ours": ours, "C": lambda: floors_per_s(bash)})
    note = f"{rounds.median('ours'):.0f}/s; C {rounds.median('C'):.0f}"
    yield Figure(
        "hooks/s through the socket, 16 at once / four C spawners", rounds.ratio("ours", "C"), ">= 0.6", note
    )


def start_to_ready(daemon: Daemon) -> Figure:
    numbers = iter(range(1000))

    def ours() -> float:
        name = f"start-{next(numbers)}"
        began = time.perf_counter()
        process = daemon.start(str(daemon.root / name / "s"), daemon.root / f"state-{name}")
        took = time.perf_counter() - began
        process.terminate()
        process.wait()
        return took

    def imports() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", IMPORTS], env=daemon.environment, check=True)
        return time.perf_counter() - began

    rounds = interleaved(ROUNDS, {"ours": ours, "imports": imports})
    note = f"{rounds.median('ours') * 1000:.0f} ms; {rounds.median('imports') * 1000:.0f}"
    return Figure(
        f"start to ready / python -c '{IMPORTS[:20]}…'", rounds.ratio("ours", "imports"), "<= 4", note
    )


def resident(daemon: Daemon) -> Figure:
    try:
        status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    except OSError as error:
        raise NotMeasured("there is no /proc") from error
    (kib,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")]
    return Figure("idle daemon, resident MiB", kib / 1024, "<= 60")


def median_us(action: Callable[[], object]) -> float:
    times = []
    for _ in range(EACH):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


def floor(bash: str, count: int = EACH) -> tuple[float, float]:
    told = _start_floor(bash, count).communicate()[0].split()
    return float(told[0]), float(told[1])


def floors_per_s(bash: str) -> float:
    running = [_start_floor(bash, 100) for _ in range(4)]
    return sum(100 / float(one.communicate()[0].split()[1]) for one in running)


def _start_floor(bash: str, count: int) -> subprocess.Popen[str]:
    command = [compiled("spawn_floor"), str(count), "0", bash, "-c", "cat"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=plain_environment())


def uvloop_us(bash: str) -> float:
    payload = json.dumps(PAYLOAD).encode()

    async def measure() -> float:
        times = []
        for _ in range(EACH // 3):
            began = time.perf_counter()
            process = await asyncio.create_subprocess_exec(
                bash,
                "-c",
                "cat",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=plain_environment(),
            )
            await process.communicate(payload)
            times.append(time.perf_counter() - began)
        return statistics.median(times) * 1e6

    return uvloop.run(measure())
