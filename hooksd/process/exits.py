"""How the loop learns that a child has exited: the seam, and the choice of what stands behind it.

It is told only *that* the child has exited. Nothing is reaped here: as long as nobody does, the pid, and the process
group of that number, cannot come to mean another process.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from functools import partial

from hooksd.process import exits_pidfd, exits_thread
from hooksd.process.readiness import Readiness


__all__ = ["WatchExit", "choose"]

WatchExit = Callable[["subprocess.Popen[bytes]", Callable[[], None]], None]
"""Call something once, on the loop, after a child has exited. Called on the loop itself."""


def choose(loop: asyncio.AbstractEventLoop, ready: Readiness) -> WatchExit:
    """The best that this system has. Kernels before 5.3 and some sandboxes have no pidfd."""
    by_thread = partial(exits_thread.watch, loop)
    if not exits_pidfd.is_possible():
        return by_thread
    return partial(exits_pidfd.watch, ready, by_thread)
