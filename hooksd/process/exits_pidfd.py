"""Exits by pidfd (Linux): a descriptor that becomes readable when the process has exited."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable

from hooksd.process import exits_thread


__all__ = ["is_possible", "watch"]


def is_possible() -> bool:
    """Whether this system has pidfds: not before Linux 5.3, nor in every sandbox."""
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def watch(
    loop: asyncio.AbstractEventLoop, popen: subprocess.Popen[bytes], callback: Callable[[], None]
) -> None:
    """See `exits.WatchExit`. Without a free descriptor a thread waits instead."""
    try:
        descriptor = os.pidfd_open(popen.pid)
    except OSError:
        exits_thread.watch(loop, popen, callback)
    else:
        loop.add_reader(descriptor, _exited, loop, descriptor, callback)


def _exited(loop: asyncio.AbstractEventLoop, descriptor: int, callback: Callable[[], None]) -> None:
    loop.remove_reader(descriptor)
    os.close(descriptor)
    callback()
