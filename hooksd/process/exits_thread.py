"""Exits by a waiting thread: for systems without pidfd, and for when there is no descriptor left."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress


__all__ = ["ThreadWatch", "watch"]


class ThreadWatch:
    """A watch whose thread ends with the child; it never keeps the interpreter alive."""

    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def close(self) -> None:
        """Stop watching."""
        self._callback = None

    def exited(self) -> None:
        """Tell it, on the loop."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


def watch(
    loop: asyncio.AbstractEventLoop, popen: subprocess.Popen[bytes], callback: Callable[[], None]
) -> ThreadWatch:
    """See `exits.Exits`."""
    result = ThreadWatch(callback)

    def wait() -> None:
        _wait(popen)
        # The loop is closed when the daemon ended without waiting for its hooks.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(result.exited)

    threading.Thread(target=wait, name=f"hooksd-wait-{popen.pid}", daemon=True).start()
    return result


def _wait(popen: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "waitid"):
        # WNOWAIT leaves the child a zombie: whoever owns it reaps it, through the Popen object.
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOWAIT)
    else:
        popen.wait()
