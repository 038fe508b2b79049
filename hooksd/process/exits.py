"""How the loop learns that a child has exited: the seam, and the choice of what stands behind it.

It is told only *that* the child has exited. Nothing is reaped here: as long as nobody does, the pid, and the process
group of that number, cannot come to mean another process.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable

from hooksd.process import exits_pidfd, exits_thread


__all__ = ["WatchExit", "choose"]

WatchExit = Callable[[asyncio.AbstractEventLoop, "subprocess.Popen[bytes]", Callable[[], None]], None]
"""Call something once, on the loop, after a child has exited. Called on the loop itself."""


def choose() -> WatchExit:
    """The best that this system has. Kernels before 5.3 and some sandboxes have no pidfd."""
    return exits_pidfd.watch if exits_pidfd.is_possible() else exits_thread.watch
