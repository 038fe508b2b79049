"""What a hook leaves behind in processes: the seam between the runner and what an operating system can tell and do.

`tree_linux.py` sees every descendant; `tree_posix.py` only the hook's process group. All of it is called on the loop
and returns at once. A tree is valid until its hook is reaped: as long as the hook is not, its pid and the group of that
number cannot come to mean anything else.
"""

from __future__ import annotations

import sys
from typing import NamedTuple, Protocol


__all__ = ["OrphanCount", "Tree", "Trees", "choose"]


class OrphanCount(NamedTuple):
    """What one look at the orphans of all hooks came to."""

    living: int
    reaped: int


class Tree(Protocol):
    """The processes of one invocation."""

    def terminate(self) -> None:
        """Ask all that are known to end: SIGTERM, and SIGCONT for those that are stopped."""
        ...

    def is_gone(self) -> bool:
        """Whether nothing of it is known to be alive, the hook itself aside."""
        ...

    def kill(self) -> bool:
        """One round of ending all that are known for good. True when there was nothing left to kill.

        The hook itself aside: it gets its SIGKILL, but is not counted.
        """
        ...


class Trees(Protocol):
    """The trees of all invocations, and the orphans among their processes."""

    limitation: str | None
    """What cannot be done on this system, in one sentence; None if nothing is missing."""

    def tree(self, pid: int, mark: str) -> Tree:
        """The tree of a hook that runs, or has exited and is not reaped."""
        ...

    def survivors(self, pid: int, mark: str) -> int:
        """How many descendants of a hook that has exited are alive; 0 where the system cannot tell."""
        ...

    def reap_orphans(self) -> OrphanCount:
        """Reap orphans of hooks that landed here and have ended."""
        ...

    def close(self) -> None:
        """Give back what was taken."""
        ...


def choose() -> Trees:
    """What this system has."""
    # Late, because either module may fail to load on the other's system.
    if sys.platform == "linux":
        from hooksd.process import tree_linux

        if tree_linux.is_possible():
            return tree_linux.LinuxTrees()
    from hooksd.process import tree_posix

    return tree_posix.PosixTrees()
