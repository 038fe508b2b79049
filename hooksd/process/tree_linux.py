"""Trees on Linux: every descendant of a hook, wherever it went.

How they are found: the daemon is a *subreaper*, so that a descendant whose parent ended becomes a child of the daemon
instead of the system's first process. What is below the hook is found by walking `/proc/<pid>/task/*/children`. What
became an orphan is a child of the daemon; it is known by the mark that every hook has in its environment and hands on,
or by being in the hook's session.

Why nobody else is ever hit: a signal goes through a pidfd, after it was looked at whose child the process behind that
pidfd is. The chain of parents ends at a pid that cannot be used again, since we are its parent and have not reaped it.

What gets away: a descendant that is an orphan, *and* left the session, *and* cleared the mark from its environment; and
one that changed its user, if the daemon is not root.

The kernel lists children per thread that started them, and gives orphans to the first thread of the process. Hooks are
started by threads of `spawn_pool.py`, so the first thread's list has the orphans of hooks and little else.
"""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress

from hooksd.process import exits_pidfd
from hooksd.process.environment import MARK
from hooksd.process.ownership import is_owned
from hooksd.process.reserve import NoDescriptor, Reserve
from hooksd.process.trees import Tree


__all__ = ["LinuxTrees", "is_possible"]

PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37

MAX_STOP_ROUNDS = 64
"""Looks at one tree in one round of killing. A chain that forks faster than this is met again in the next round."""

MAX_ENVIRON_BYTES = 8 * 1024 * 1024
"""More than any kernel lets a process be started with; a process can make its own look larger."""

_NOT_TO_SEE = (FileNotFoundError, ProcessLookupError, PermissionError)
"""A process that has ended, or that belongs to another user. Other errors, such as no free descriptor, are told."""

_READ_BYTES = 64 * 1024


MAX_MARK_LOOKS = 3
"""Looks for the mark of one orphan: in the middle of an `exec` a process has no environment for a moment."""


class _Orphan:
    """A child of ours that a hook left behind. Its pid stays its own until we reap it."""

    __slots__ = ("looks", "mark", "session")

    def __init__(self, session: int) -> None:
        self.session = session
        self.mark: bytes | None = None
        self.looks = 0

    def look(self, pid: int) -> None:
        if self.mark is None and self.looks < MAX_MARK_LOOKS:
            self.looks += 1
            self.mark = mark_of(pid)


def is_possible() -> bool:
    """Whether this system has what is needed here: pidfds, and the lists of children in /proc."""
    return exits_pidfd.is_possible() and os.path.exists(_children_file(os.getpid()))


class LinuxTrees:
    """See `trees.Trees`. Makes the daemon a subreaper while it stands."""

    def __init__(self) -> None:
        self._me = os.getpid()
        self._session = os.getsid(0)
        self._orphans: dict[int, _Orphan] = {}
        self._children = os.open(_children_file(self._me), os.O_RDONLY | os.O_CLOEXEC)
        self.reserve = Reserve()
        self._was_subreaper = _set_subreaper(True)

    def tree(self, pid: int, mark: str) -> Tree:
        """The hook and all its descendants."""
        return _LinuxTree(self, pid, mark)

    def survivors(self, pid: int, mark: str) -> int:
        """How many descendants of a hook that has exited are alive."""
        # Everything that a dead hook left behind has become a child of ours: in the usual case the list is empty.
        try:
            self.reserve.lend(self.look)
            roots = self._roots(pid, mark)
            return len(self.reserve.lend(lambda: self._living(list(roots)))) if roots else 0
        except NoDescriptor:
            return len(self._roots(pid, mark))

    def reap_orphans(self) -> int:
        """Reap orphans that have ended."""
        with suppress(NoDescriptor):
            self.reserve.lend(self.look)
        return len(self._orphans)

    def close(self) -> None:
        """Reap a last time; the daemon is a subreaper no longer."""
        if self._children < 0:
            return
        self.reap_orphans()
        os.close(self._children)
        self._children = -1
        self.reserve.close()
        _set_subreaper(self._was_subreaper)

    def look(self) -> bool:
        """Bring the list of orphans up to date and reap those that have ended. True if one was reaped."""
        listed = self._listed()
        reaped = False
        orphans: dict[int, _Orphan] = {}
        for pid in listed:
            if is_owned(pid):
                continue
            known = self._orphans.get(pid)
            if known is None:
                try:
                    session = os.getsid(pid)
                except ProcessLookupError:
                    # Reaped a moment ago by whoever in the daemon had started it.
                    continue
                if session == self._session:
                    continue
                known = _Orphan(session)
            try:
                ended, _ = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
            if ended:
                reaped = True
                continue
            known.look(pid)
            orphans[pid] = known
        self._orphans = orphans
        return reaped

    def below(self, pid: int, mark: str) -> dict[int, int]:
        """The living descendants of a hook, each with its parent; the hook itself is not among them."""
        return self._living([(pid, child) for child in children_of(pid)] + self._roots(pid, mark))

    def _roots(self, pid: int, mark: str) -> list[tuple[int, int]]:
        wanted = mark.encode()
        return [
            (self._me, orphan)
            for orphan, known in self._orphans.items()
            if known.mark == wanted or known.session == pid
        ]

    def _living(self, roots: list[tuple[int, int]]) -> dict[int, int]:
        found: dict[int, int] = {}
        while roots:
            parent, child = roots.pop()
            if child in found:
                continue
            if is_child(child, parent):
                found[child] = parent
                roots += [(child, grandchild) for grandchild in children_of(child)]
        return found

    def _listed(self) -> list[int]:
        data = b""
        while chunk := os.pread(self._children, _READ_BYTES, len(data)):
            data += chunk
        return [int(pid) for pid in data.split()]


class _LinuxTree:
    __slots__ = ("_mark", "_pid", "_trees")

    def __init__(self, trees: LinuxTrees, pid: int, mark: str) -> None:
        self._trees = trees
        self._pid = pid
        self._mark = mark

    def terminate(self) -> None:
        self._to_group(signal.SIGTERM)
        self._to_group(signal.SIGCONT)
        with suppress(NoDescriptor):
            self._trees.reserve.lend(self._terminate_escaped)

    def _terminate_escaped(self) -> None:
        for pid, parent in self._members().items():
            if _group_of(pid) != self._pid:
                send(pid, parent, signal.SIGTERM)
                send(pid, parent, signal.SIGCONT)

    def is_gone(self) -> bool:
        try:
            return not self._trees.reserve.lend(self._members)
        except NoDescriptor:
            return False

    def kill(self) -> bool:
        try:
            return self._trees.reserve.lend(self._kill)
        except NoDescriptor:
            # What can be done without: the group.
            self._to_group(signal.SIGKILL)
            return False

    def _kill(self) -> bool:
        # First stop all of them: what is stopped cannot fork, so that the list becomes complete.
        stopped: dict[int, int] = {}
        self._to_group(signal.SIGSTOP)
        for _ in range(MAX_STOP_ROUNDS):
            reaped = self._trees.look()
            members = self._trees.below(self._pid, self._mark)
            new = {pid: parent for pid, parent in members.items() if stopped.get(pid) != parent}
            if not new and not reaped:
                break
            for pid, parent in new.items():
                send(pid, parent, signal.SIGSTOP)
            stopped = members
        self._to_group(signal.SIGKILL)
        for pid, parent in stopped.items():
            send(pid, parent, signal.SIGKILL)
        return not stopped

    def _members(self) -> dict[int, int]:
        self._trees.look()
        return self._trees.below(self._pid, self._mark)

    def _to_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)


def send(pid: int, parent: int, number: signal.Signals) -> None:
    """Send a signal to `pid` if it still is the child of `parent`; else it is met again elsewhere in the next round."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if is_child(pid, parent):
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)


def is_child(pid: int, parent: int) -> bool:
    """Whether `pid` is alive and a child of `parent`."""
    try:
        data = _read(f"/proc/{pid}/stat", 4096)
    except _NOT_TO_SEE:
        return False
    # The name of the program, in parentheses, may hold anything.
    state, ppid = data[data.rindex(b")") + 2 :].split(b" ", 2)[:2]
    return state not in (b"Z", b"X") and int(ppid) == parent


def children_of(pid: int) -> list[int]:
    """The children of all threads of a process; empty if it has ended."""
    found: list[int] = []
    with suppress(*_NOT_TO_SEE):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(*_NOT_TO_SEE):
                found += [int(child) for child in _read(f"/proc/{pid}/task/{task}/children").split()]
    return found


def mark_of(pid: int) -> bytes | None:
    """The mark that a process was started with; None if it has none, or hides its environment."""
    prefix = MARK.encode() + b"="
    try:
        data = _read(f"/proc/{pid}/environ", MAX_ENVIRON_BYTES)
    except _NOT_TO_SEE:
        return None
    for entry in data.split(b"\0"):
        if entry.startswith(prefix):
            return entry.removeprefix(prefix)
    return None


def _children_file(pid: int) -> str:
    """The children of the first thread; orphans go there."""
    return f"/proc/self/task/{pid}/children"


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return -1


def _read(path: str, limit: int = MAX_ENVIRON_BYTES) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = b""
        while len(data) < limit and (chunk := os.read(descriptor, _READ_BYTES)):
            data += chunk
        return data
    finally:
        os.close(descriptor)


def _set_subreaper(on: bool) -> bool:
    """Become a subreaper, or stop being one; gives what it was before."""
    libc = ctypes.CDLL(None)
    before = ctypes.c_int()
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)
    return bool(before.value)
