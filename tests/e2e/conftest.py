"""Real daemons: `python -m hooksd serve` in a home of its own, driven through its socket and signals."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest


PATIENCE_S = 20.0
"""Longest wait for anything; only a hang takes so long."""


def until(condition: Callable[[], Any], what: str = "the condition") -> Any:
    """What `condition` gives once it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (result := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not come true")
        time.sleep(0.01)
    return result


class Client:
    """A bare client of the wire protocol, independent of the client library."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(str(path))
        self._file = self._socket.makefile("rb")
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def send(self, method: str, **params: Any) -> int:
        """Send a request without waiting for its answer."""
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self.send_line(json.dumps(message).encode())
        return self._last_id

    def send_line(self, line: bytes) -> None:
        """Send anything."""
        self._socket.sendall(line + b"\n")

    def reply(self, number: int | str, result: Any) -> None:
        """Answer a request of the daemon."""
        self.send_line(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())

    def receive(self) -> dict[str, Any]:
        """The next message; an empty one at the end of the connection."""
        line = self._file.readline()
        return json.loads(line) if line else {}

    def answer(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer to a request, other messages before it left out."""
        number = self.send(method, **params)
        while True:
            message = self.receive()
            if not message or message.get("id") == number:
                return message

    def call(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        answer = self.answer(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    def open(self, execution_id: str = "run-1", **params: Any) -> Any:
        params = {"agent": "bamboo", "session_id": "s-1", "workspace_path": "/", **params}
        return self.call("execution/open", execution_id=execution_id, **params)

    def pre_tool_use(self, execution_id: str = "run-1", tool: str = "Bash", **params: Any) -> int:
        """Send a gate event without waiting for its answer."""
        payload = {"tool_call_id": "c-1", "tool_name": tool, "parsed_args": {"command": "true"}}
        return self.send(
            "hook/dispatch", execution_id=execution_id, event="PreToolUse", payload=payload, **params
        )


class Running:
    """A daemon that was started.

    Attributes:
        stderr: What it wrote to stderr, after its end.
        ready: Whether it said that it is ready.
    """

    def __init__(self, home: Home, process: subprocess.Popen[bytes], ready: int) -> None:
        self._home = home
        self._process = process
        self._stderr = home.root / f"stderr-{process.pid}"
        self.pid = process.pid
        self.ready = self._wait_for_ready(ready)

    def _wait_for_ready(self, descriptor: int) -> bool:
        try:
            readable, _, _ = select.select([descriptor], [], [], PATIENCE_S)
            assert readable, "the daemon neither became ready nor ended"
            return os.read(descriptor, 1) == b"\n"
        finally:
            os.close(descriptor)

    @property
    def stderr(self) -> str:
        return self._home.stderr_of(self.pid)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit status."""
        return self._process.wait(PATIENCE_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end; the exit status."""
        if self.is_alive:
            self.send(number)
        return self.wait()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def client(self) -> Client:
        return self._home.client()

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    @property
    def children(self) -> list[int]:
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


class Home:
    """The private surroundings of a daemon: home, XDG directories, socket, settings, one Bamboo source, log."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("home", "config", "state", "run"):
            (root / name).mkdir(mode=0o700)
        self.socket = root / "run" / "hooksd" / "hooksd.sock"
        self.lock = root / "run" / "hooksd" / "daemon.lock"
        self.settings = root / "config" / "hooksd" / "hooksd.toml"
        self.hooks = root / "home" / ".bamboo" / "hooks.json"
        self.state = root / "state" / "hooksd"
        self.log = self.state / "hooksd.log"
        self.settings.parent.mkdir()
        self.hooks.parent.mkdir()
        self.environment = {
            "HOME": str(root / "home"),
            "PATH": os.environ["PATH"],
            "XDG_CONFIG_HOME": str(root / "config"),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "PYTHONWARNINGS": "error",
            # Coverage of the daemon, where it is measured.
            **{name: value for name, value in os.environ.items() if name.startswith("COV")},
        }
        self.started: list[Running] = []

    def write_settings(self, text: str) -> None:
        self._replace(self.settings, text)

    def write_hooks(self, **events: Any) -> None:
        """Write the Bamboo source: each event with its commands, or with whole groups."""
        section: dict[str, Any] = {"enabled": True}
        for event, groups in events.items():
            section[event] = [
                {"hooks": [{"type": "command", "command": one}]} if isinstance(one, str) else one
                for one in groups
            ]
        self._replace(self.hooks, json.dumps({"lifecycle_hooks": section}))

    @staticmethod
    def _replace(path: Path, text: str) -> None:
        new = path.with_suffix(".new")
        new.write_text(text)
        new.rename(path)

    def client(self) -> Client:
        """A client of the daemon that listens at the usual place."""
        return Client(self.socket)

    def stderr_of(self, pid: int) -> str:
        return (self.root / f"stderr-{pid}").read_text()

    def start(
        self,
        *arguments: str,
        program: tuple[str, ...] = (sys.executable, "-m", "hooksd"),
        umask: int = -1,
        **environment: str,
    ) -> Running:
        """Start a daemon; returns when it is ready or has ended."""
        read_end, write_end = os.pipe()
        stderr = self.root / "stderr"
        with stderr.open("wb") as file:
            process = subprocess.Popen(
                [*program, "serve", "--ready-fd", str(write_end), *arguments],
                env={**self.environment, **environment},
                cwd=self.root / "home",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                pass_fds=[write_end],
                umask=umask,
            )
        os.close(write_end)
        stderr.rename(self.root / f"stderr-{process.pid}")
        running = Running(self, process, read_end)
        self.started.append(running)
        return running

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The records of the log, of one kind if one is given. Every line must be one."""
        lines = self.log.read_bytes().decode("utf-8").splitlines() if self.log.exists() else []
        records = [json.loads(line) for line in lines]
        return [record for record in records if kind is None or record["event"] == kind]

    def wait_for_record(self, kind: str, count: int = 1) -> dict[str, Any]:
        """The newest record of that kind, once there are so many."""
        return until(lambda: len(self.records(kind)) >= count and self.records(kind)[-1], f"a record {kind}")


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Surroundings for daemons; whatever still runs at the end is stopped, and must stop well."""
    # Not `tmp_path`, which has the name of the test in it: a socket path is short.
    home = Home(tmp_path_factory.mktemp("h"))
    yield home
    for running in home.started:
        if running.is_alive:
            assert running.stop() == 0
        assert "Traceback" not in running.stderr, running.stderr


@pytest.fixture
def daemon(home: Home) -> Running:
    """A daemon without any hook, with the default places."""
    running = home.start()
    assert running.ready, running.stderr
    return running


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., Any]:
    """Polls with a deadline."""
    return until


@pytest.fixture
def is_gone() -> Callable[[int], bool]:
    """Whether a process has ended (a zombie has)."""

    def gone(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return True

    return gone
