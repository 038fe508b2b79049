"""How the loop learns that a child has exited: the seam, and the choice of what stands behind it.

A watch tells only *that* the child has exited. It does not reap: as long as nobody does, the pid, and the process group
of that number, cannot come to mean another process.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from typing import Protocol

from hooksd.process import exits_pidfd, exits_thread


__all__ = ["Exits", "Watch", "choose"]


class Watch(Protocol):
    """A watch on one child."""

    def close(self) -> None:
        """Stop watching; the callback is not called any more. May be called twice, and from the callback."""
        ...


Exits = Callable[[asyncio.AbstractEventLoop, "subprocess.Popen[bytes]", Callable[[], None]], Watch]
"""Starts a watch: the callback runs once, on the loop, after the child has exited. Called on the loop; does not raise."""


def choose() -> Exits:
    """The best that this system has. Kernels before 5.3 and some sandboxes have no pidfd."""
    return exits_pidfd.watch if exits_pidfd.is_possible() else exits_thread.watch
