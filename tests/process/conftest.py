"""A runner of its own for every test, specifications of processes, and looking at processes from outside."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hooksd.model.run import Spawn
from hooksd.process.runner import Runner


PYTHON = (sys.executable, "-I", "-S")
"""An interpreter that starts quickly and reads nothing on the way."""

HOSTILE = Path(__file__).parent / "hostile"
"""Hooks that do not want to end."""

GENEROUS_S = 20.0
"""A hang is told after this; nothing here takes a tenth of it."""


class Helpers:
    """What the tests of this room share."""

    python = PYTHON
    hostile = HOSTILE

    def __init__(self) -> None:
        self._marks = 0

    def spawn(self, *argv: str, **changes: Any) -> Spawn:
        """A specification with a mark of its own, and everything else as it is for an everyday hook."""
        self._marks += 1
        mark = changes.pop("mark", f"test-{os.getpid()}-{self._marks}-{time.monotonic_ns()}")
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **changes.pop("env", {})}
        timeout_s = changes.pop("timeout_s", GENEROUS_S)
        fields: dict[str, Any] = {
            "candidates": (argv,),
            "cwd": "/",
            "env": {**env, "HOOKSD_INVOCATION_ID": mark},
            "stdin": b"",
            "stdout_limit_bytes": 65_536,
            "stderr_limit_bytes": 65_536,
            "deadline": None if timeout_s is None else time.monotonic() + timeout_s,
            "kill_grace_s": 0.2,
            "mark": mark,
        }
        return Spawn(**{**fields, **changes})

    def bash(self, script: str, **changes: Any) -> Spawn:
        """A bash command line."""
        return self.spawn("/bin/bash", "-c", script, **changes)

    @staticmethod
    def is_alive(pid: int) -> bool:
        """Whether a process runs; zombies do not."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        return stat[stat.rindex(")") + 2] not in "ZX"

    @staticmethod
    def state_of(pid: int) -> str:
        """The letter of /proc, "" if there is no such process."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return ""
        return stat[stat.rindex(")") + 2]

    @staticmethod
    def zombies() -> list[int]:
        """Children of this process that nobody reaped."""
        found = []
        for task in Path("/proc/self/task").iterdir():
            pids = (task / "children").read_text().split()
            found += [int(pid) for pid in pids if Helpers.state_of(int(pid)) == "Z"]
        return found

    @staticmethod
    def children() -> set[int]:
        """Children of this process, dead ones included."""
        found: set[int] = set()
        for task in Path("/proc/self/task").iterdir():
            found.update(int(pid) for pid in (task / "children").read_text().split())
        return found

    @staticmethod
    def descriptors() -> int:
        """How many descriptors this process has."""
        return len(os.listdir("/proc/self/fd"))

    @staticmethod
    async def kill(*pids: int) -> None:
        """Kill orphans of hooks and wait until the runner has reaped them."""
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        await Helpers.until(lambda: not any(Helpers.state_of(pid) for pid in pids), "they are reaped")

    @staticmethod
    async def ended(runner: Runner, what: str) -> None:
        """Wait until the runner has nothing in hand, so that every tree that had to be ended is.

        The number of endings alone does not tell: a hook may be up, and its run cancelled, before the loop has taken it
        over from the thread that started it, and only then its ending begins.
        """
        await Helpers.until(lambda: not runner.running and not runner.ending, what)

    @staticmethod
    async def until(condition: Callable[[], object], what: str) -> None:
        """Poll until something is true."""
        deadline = time.monotonic() + GENEROUS_S
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited in vain until {what}")
            await asyncio.sleep(0.005)


@pytest.fixture
def helpers() -> Helpers:
    return Helpers()


@pytest.fixture
def pid_log(tmp_path: Path) -> Iterator[Callable[[], dict[str, int]]]:
    """Reads the names and pids that hostile hooks noted in `tmp_path/pids`; what is alive at the end is killed."""
    log = tmp_path / "pids"

    def read() -> dict[str, int]:
        if not log.exists():
            return {}
        lines = log.read_text().splitlines()
        return {name: int(pid) for name, pid in (line.split() for line in lines if line.count(" ") == 1)}

    yield read
    for pid in read().values():
        if Helpers.is_alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
async def runner() -> AsyncIterator[Runner]:
    """A runner that is closed, with all its trees, after the test."""
    made = Runner(asyncio.get_running_loop(), max_ending=16)
    yield made
    await made.aclose(0.1)


_NOBODY = 65534


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    """A directory of a user for whom modes count; root is one of those for the time of the test."""
    if os.geteuid() != 0:
        yield tmp_path
        return
    directory = tempfile.mkdtemp()
    os.chown(directory, _NOBODY, _NOBODY)
    os.seteuid(_NOBODY)
    try:
        yield Path(directory)
    finally:
        os.seteuid(0)
        shutil.rmtree(directory)
