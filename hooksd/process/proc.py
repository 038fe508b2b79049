"""Reading /proc of Linux: one process at a time, never all of them.

A process that has ended, or that may not be looked at, is told as not there. What goes wrong on our own side, such as
having no free descriptor, is raised.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple


__all__ = [
    "Stat",
    "children_file",
    "children_of",
    "environment_of",
    "has_settled_environment",
    "pids_in",
    "stat_of",
]

MAX_ENVIRONMENT_BYTES = 8 * 1024 * 1024
"""More than any kernel lets a process be started with; a process can make its own look larger."""

_NOT_TO_SEE = (FileNotFoundError, ProcessLookupError, PermissionError)

_READ_BYTES = 64 * 1024


class Stat(NamedTuple):
    """A process. `started`, in clock ticks since boot, tells it from others of the same pid; `dead` is not yet reaped."""

    parent: int
    group: int
    started: int
    dead: bool

    def is_same(self, other: Stat | None) -> bool:
        """Whether the other, of the same pid, is the same process and alive. Its parent may be another by now."""
        return other is not None and not other.dead and self.started == other.started


def stat_of(pid: int) -> Stat | None:
    """What /proc tells about a process."""
    try:
        data = _read(f"/proc/{pid}/stat", 4096)
    except _NOT_TO_SEE:
        return None
    # The name of the program, in parentheses, may hold anything.
    fields = data[data.rindex(b")") + 2 :].split(b" ", 20)
    return Stat(int(fields[1]), int(fields[2]), int(fields[19]), fields[0] in (b"Z", b"X"))


def children_file(pid: int, thread: int) -> str:
    """The file with the children that one thread has started, or was given as orphans."""
    return f"/proc/{pid}/task/{thread}/children"


def children_of(pid: int) -> list[int]:
    """The children of all threads of a process, dead ones included; empty if it has ended."""
    found: list[int] = []
    with suppress(*_NOT_TO_SEE):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(*_NOT_TO_SEE):
                found += pids_in(_read(children_file(pid, int(thread)), MAX_ENVIRONMENT_BYTES))
    return found


def pids_in(children: bytes) -> list[int]:
    """The pids in the text of a `children` file."""
    return [int(pid) for pid in children.split()]


def environment_of(pid: int) -> bytes:
    """What a process was started with, as entries that end with NUL.

    Empty if it has ended, hides it, has none, or is in the middle of an `exec`.
    """
    try:
        return _read(f"/proc/{pid}/environ", MAX_ENVIRONMENT_BYTES)
    except _NOT_TO_SEE:
        return b""


def has_settled_environment(pid: int) -> bool:
    """Whether what `environment_of` gives, be it nothing, is surely all: not so in the middle of an `exec`."""
    try:
        data = _read(f"/proc/{pid}/stat", 4096)
    except _NOT_TO_SEE:
        return False
    # The end of the environment in memory, field 51: 0 while the new program is set up, and where it is hidden.
    return data[data.rindex(b")") + 2 :].split(b" ")[48] != b"0"


def _read(path: str, limit: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = b""
        while len(data) < limit and (chunk := os.read(descriptor, _READ_BYTES)):
            data += chunk
        return data
    finally:
        os.close(descriptor)
