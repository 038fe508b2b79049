"""Trees on systems without a subreaper and /proc (macOS): the process group is all that is known.

A descendant that left the group survives, and nothing tells that it is there.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from hooksd.process.trees import OrphanCount, Tree


__all__ = ["PosixTrees"]


class _GroupTree:
    __slots__ = ("_group",)

    def __init__(self, group: int) -> None:
        self._group = group

    def terminate(self) -> None:
        self._send(signal.SIGTERM)
        self._send(signal.SIGCONT)

    def is_gone(self) -> bool:
        # Not knowable while the hook itself, dead or alive, is in the group: give the rest of it the whole grace.
        return False

    def kill(self) -> bool:
        self._send(signal.SIGKILL)
        return True

    def _send(self, number: signal.Signals) -> None:
        # No such group: all of it has ended. Not permitted: what is left of it is dead, or changed its user.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, number)


class PosixTrees:
    """See `trees.Trees`."""

    limitation: str | None = (
        "this system tells only the process group of a hook: what leaves it survives the hook's deadline and is not counted"
    )

    def tree(self, pid: int, mark: str) -> Tree:
        """The hook's process group."""
        return _GroupTree(pid)

    def survivors(self, pid: int, mark: str) -> int:
        """Not knowable here."""
        return 0

    def reap_orphans(self) -> OrphanCount:
        """Orphans go to the system's first process, which reaps them."""
        return OrphanCount(0, 0)

    def close(self) -> None:
        """Nothing was taken."""
