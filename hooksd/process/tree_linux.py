"""Trees on Linux: every descendant of a hook, wherever it went.

How they are found: what is below the hook, by walking `/proc/<pid>/task/*/children`; what became an orphan, among the
children of the daemon (`orphans.py`), by the mark that every hook has in its environment and hands on, by being in the
hook's session, or by having been seen below the hook before.

Why nobody else is ever hit: the chain of parents by which a descendant was found ends at a pid that cannot be used
again, for we are its parent and have not reaped it; and a signal goes through a pidfd, after it was looked at that the
process behind it is the one that was found.

What gets away: a descendant that left the session, *and* cleared the mark from its environment or (if the daemon is not
root) hides its environment as `ssh-agent` does, *and* became an orphan before the tree was looked at; and one that
changed its user, if the daemon is not root.

A tree changes while it is looked at: a child can become an orphan just after the orphans were listed. Whenever a look
meets a process that has ended or moved meanwhile, it is not *settled*, and "nothing there" means nothing.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import NamedTuple

from hooksd.process import exits_pidfd, orphans, proc
from hooksd.process.orphans import Orphan, Orphans
from hooksd.process.proc import Stat
from hooksd.process.reserve import NoDescriptor, Reserve
from hooksd.process.trees import OrphanCount, Tree


__all__ = ["LinuxTrees", "is_possible"]

MAX_STOP_ROUNDS = 64
"""Looks at one tree in one round of killing. What forks faster than this is met again in the next round."""


MAX_EXEC_LOOKS = 40
"""Looks at orphans, some 30 us each, that are in the middle of an `exec` when their hook exits, just to count them."""


NOT_ADOPTED = "this process could not become a subreaper: a descendant of a hook whose parent has ended survives the hook's deadline"


class Sighting(NamedTuple):
    """The living descendants of a hook, and whether these are surely all."""

    members: dict[int, Stat]
    settled: bool


def is_possible() -> bool:
    """Whether this system has what is needed here."""
    return exits_pidfd.is_possible() and orphans.is_possible()


class LinuxTrees:
    """See `trees.Trees`."""

    def __init__(self) -> None:
        self.orphans = Orphans()
        self.limitation = None if self.orphans.are_adopted else NOT_ADOPTED
        self.reserve = Reserve()

    def tree(self, pid: int, mark: str) -> Tree:
        """The hook and all its descendants."""
        return _LinuxTree(self, pid, mark)

    def survivors(self, pid: int, mark: str) -> int:
        """How many descendants of a hook that has exited are alive."""
        # Everything that a dead hook left behind has become a child of ours: in the usual case there are none at all.
        began = time.monotonic()
        try:
            living = self.reserve.lend(self.orphans.look).living
            if not living:
                return 0
            looks = MAX_EXEC_LOOKS
            while looks and not all(orphan.is_certain for orphan in living.values()):
                living = self.reserve.lend(self.orphans.look).living
                looks -= 1
            tree = _LinuxTree(self, pid, mark)
            # Not below the pid itself: its hook is reaped, and it may mean another process by now.
            members = self.reserve.lend(lambda: tree.below(living, [])).members
        except NoDescriptor:
            return 0
        # One that landed here just now and still is in its exec is rather this hook's than another's.
        return len(members) + sum(
            not orphan.is_certain and orphan.first_seen_at >= began and orphan.pid not in members
            for orphan in living.values()
        )

    def reap_orphans(self) -> OrphanCount:
        """Reap orphans that have ended."""
        try:
            living, reaped = self.reserve.lend(self.orphans.look)
        except NoDescriptor:
            return OrphanCount(1, 0)
        return OrphanCount(len(living), len(reaped))

    def close(self) -> None:
        """Reap a last time."""
        self.orphans.close()
        self.reserve.close()


class _LinuxTree:
    __slots__ = ("_dead", "_mark", "_pid", "_seen", "_trees")

    def __init__(self, trees: LinuxTrees, pid: int, mark: str) -> None:
        self._trees = trees
        self._pid = pid
        self._mark = mark.encode()
        self._seen: dict[int, int] = {}
        self._dead: set[tuple[int, int]] = set()

    def terminate(self) -> None:
        # Looked for before the first signal: what becomes an orphan by it is known then, whatever its environment.
        with suppress(NoDescriptor):
            self._trees.reserve.lend(self._terminate_escaped)
        self._to_group(signal.SIGTERM)
        self._to_group(signal.SIGCONT)

    def is_gone(self) -> bool:
        try:
            members, settled = self._trees.reserve.lend(self._look)
        except NoDescriptor:
            return False
        return settled and not members

    def kill(self) -> bool:
        try:
            return self._trees.reserve.lend(self._kill)
        except NoDescriptor:
            # What can be done without: the group.
            self._to_group(signal.SIGKILL)
            return False

    def below(self, living: dict[int, Orphan], children: list[int]) -> Sighting:
        """Walk down from the hook's children and from its orphans."""
        members: dict[int, Stat] = {}
        settled = True
        to_see = [(self._pid, child) for child in children]
        for orphan in living.values():
            if orphan.belongs_to(self._pid, self._mark) or self._was_seen(orphan.pid):
                to_see.append((self._trees.orphans.me, orphan.pid))
            elif not orphan.is_certain:
                settled = False
        while to_see:
            parent, pid = to_see.pop()
            stat = proc.stat_of(pid)
            if stat is None or stat.parent != parent:
                settled = False
            elif stat.dead:
                # A zombie that its parent does not reap stays: it is news only once.
                if (pid, stat.started) not in self._dead:
                    self._dead.add((pid, stat.started))
                    settled = False
            elif pid not in members:
                members[pid] = stat
                self._seen[pid] = stat.started
                to_see += [(pid, child) for child in proc.children_of(pid)]
        return Sighting(members, settled)

    def _look(self) -> Sighting:
        living, reaped = self._trees.orphans.look()
        members, settled = self.below(living, proc.children_of(self._pid))
        # One that was reaped may have had children until a moment ago.
        news = any(not one.is_certain or one.belongs_to(self._pid, self._mark) for one in reaped)
        return Sighting(members, settled and not news)

    def _was_seen(self, pid: int) -> bool:
        started = self._seen.get(pid)
        if started is None:
            return False
        stat = proc.stat_of(pid)
        return stat is not None and stat.started == started

    def _terminate_escaped(self) -> None:
        for pid, stat in self._look().members.items():
            if stat.group != self._pid:
                _send(pid, stat, signal.SIGTERM)
                _send(pid, stat, signal.SIGCONT)

    def _kill(self) -> bool:
        # First stop all of them: what is stopped cannot fork, so that the list becomes complete.
        stopped: dict[int, Stat] = {}
        self._to_group(signal.SIGSTOP)
        for _ in range(MAX_STOP_ROUNDS):
            members, settled = self._look()
            new = {pid: stat for pid, stat in members.items() if not stat.is_same(stopped.get(pid))}
            for pid, stat in new.items():
                _send(pid, stat, signal.SIGSTOP)
            stopped = members
            if settled and not new:
                break
        else:
            settled = False
        self._to_group(signal.SIGKILL)
        for pid, stat in stopped.items():
            _send(pid, stat, signal.SIGKILL)
        return settled and not stopped

    def _to_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)


def _send(pid: int, stat: Stat, number: signal.Signals) -> None:
    """Send a signal to a process if it still is the one that was seen."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if stat.is_same(proc.stat_of(pid)):
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)
