"""The orphans of hooks that landed on the daemon: whose they are, and reaping them (Linux).

The daemon is a *subreaper*: a descendant of a hook whose parent ended becomes a child of the daemon instead of the
system's first process. The kernel lists children per thread that started them, and gives orphans to the first thread.
Hooks are started by the threads of `spawn_pool.py`, so the first thread's list has orphans and little else.

Reaped is by pid, and only what nobody in the daemon owns: `waitid(P_ALL)` would steal the status of somebody's child. A
child in the daemon's own session is never an orphan of a hook, for hooks have sessions of their own and nothing can
come back from there.
"""

from __future__ import annotations

import ctypes
import os
import time
from typing import NamedTuple

from hooksd.process import proc
from hooksd.process.environment import MARK
from hooksd.process.ownership import is_owned


__all__ = ["Orphan", "Orphans", "is_possible"]

PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37

EXEC_S = 0.2
"""How long the environment of an orphan may be out of sight before it is taken for hidden: an `exec` has a moment in
which it cannot be seen, and one from a slow disk has a long one."""

_READ_BYTES = 64 * 1024


class Orphan:
    """A child of ours that a hook left behind. Its pid stays its own until we reap it.

    Attributes:
        pid: Its process id.
        session: The session it was in when it was first seen.
        mark: The invocation that it comes from; None if that is not known.
        is_certain: Whether `mark` counts: it will not change any more, or its environment was out of sight for too long.
        first_seen_at: When it was first seen, on the clock of `time.monotonic`.
    """

    __slots__ = ("_is_final", "first_seen_at", "is_certain", "mark", "pid", "session")

    def __init__(self, pid: int, session: int) -> None:
        self.pid = pid
        self.session = session
        self.mark: bytes | None = None
        self.is_certain = False
        self._is_final = False
        self.first_seen_at = time.monotonic()

    def belongs_to(self, pid: int, mark: bytes) -> bool:
        """Whether it comes from this invocation."""
        return self.mark == mark or self.session == pid

    def look(self) -> None:
        """Find out its mark."""
        if self._is_final:
            return
        environment = proc.environment_of(self.pid)
        if not environment and proc.has_settled_environment(self.pid):
            # The `exec` may have come to its end between the two.
            environment = proc.environment_of(self.pid)
            self._is_final = not environment
        if environment:
            self.mark = mark_in(environment)
            self._is_final = True
        # Who is late is looked at again all the same: two looks may have met two `exec`s, one after the other.
        self.is_certain = self._is_final or time.monotonic() - self.first_seen_at > EXEC_S


class Look(NamedTuple):
    """What one look at the orphans found: those that live, and those that had ended and were reaped."""

    living: dict[int, Orphan]
    reaped: list[Orphan]


class Orphans:
    """The list of orphans. Makes the daemon a subreaper while it stands; only ever used on one thread.

    Attributes:
        me: The daemon's pid.
        are_adopted: Whether it could become a subreaper.
    """

    def __init__(self) -> None:
        self.me = os.getpid()
        self._session = os.getsid(0)
        self._known: dict[int, Orphan] = {}
        self._children = os.open(proc.children_file(self.me, self.me), os.O_RDONLY | os.O_CLOEXEC)
        self._was_subreaper = _is_subreaper()
        _set_subreaper(on=True)
        self.are_adopted = _is_subreaper()

    def look(self) -> Look:
        """See which there are, and reap those that have ended."""
        living: dict[int, Orphan] = {}
        reaped: list[Orphan] = []
        for pid in self._listed():
            if is_owned(pid):
                continue
            orphan = self._known.get(pid)
            try:
                if orphan is None:
                    session = os.getsid(pid)
                    if session == self._session:
                        continue
                    orphan = Orphan(pid, session)
                # Looked at before it is asked for its status, so that one that is alive then had its environment.
                orphan.look()
                ended, _ = os.waitpid(pid, os.WNOHANG)
            except (ProcessLookupError, ChildProcessError):
                # Reaped a moment ago, by whoever in the daemon had started it.
                continue
            if ended:
                reaped.append(orphan)
            else:
                living[pid] = orphan
        self._known = living
        return Look(living, reaped)

    def close(self) -> None:
        """Reap a last time; the daemon is a subreaper no longer. May be called twice."""
        if self._children >= 0:
            self.look()
            os.close(self._children)
            self._children = -1
            _set_subreaper(on=self._was_subreaper)

    def _listed(self) -> list[int]:
        # The usual case is an empty list, in one system call of a file that is kept open.
        if not os.pread(self._children, _READ_BYTES, 0):
            return []
        # A long list comes in several pieces, which only fit together when they are read in sequence.
        os.lseek(self._children, 0, os.SEEK_SET)
        data = b""
        while chunk := os.read(self._children, _READ_BYTES):
            data += chunk
        return proc.pids_in(data)


def is_possible() -> bool:
    """Whether this kernel lists children."""
    me = os.getpid()
    return os.path.exists(proc.children_file(me, me))


def mark_in(environment: bytes) -> bytes | None:
    """The mark in the text of an `environ` file."""
    prefix = MARK.encode() + b"="
    for entry in environment.split(b"\0"):
        if entry.startswith(prefix):
            return entry.removeprefix(prefix)
    return None


def _is_subreaper() -> bool:
    value = ctypes.c_int()
    ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(value), 0, 0, 0)
    return bool(value.value)


def _set_subreaper(*, on: bool) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)
