"""Exits by pidfd (Linux): a descriptor that becomes readable when the process has exited."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable

from hooksd.process import exits_thread


__all__ = ["is_possible", "watch"]


class _Watch:
    __slots__ = ("_callback", "_descriptor", "_loop")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, descriptor: int, callback: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._callback = callback
        loop.add_reader(descriptor, self._readable)

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _readable(self) -> None:
        self.close()
        self._callback()


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
) -> _Watch | exits_thread.ThreadWatch:
    """See `exits.Exits`. Without a free descriptor a thread waits instead."""
    try:
        descriptor = os.pidfd_open(popen.pid)
    except OSError:
        return exits_thread.watch(loop, popen, callback)
    return _Watch(loop, descriptor, callback)
