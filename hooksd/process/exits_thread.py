"""Exits by a waiting thread: for systems without pidfd, and for when there is no descriptor left."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress


__all__ = ["watch"]


def watch(
    loop: asyncio.AbstractEventLoop, popen: subprocess.Popen[bytes], callback: Callable[[], None]
) -> None:
    """See `exits.WatchExit`. The thread ends with the child and never keeps the interpreter alive."""

    def wait() -> None:
        _wait(popen)
        # The loop is closed when the daemon ended without waiting for its hooks.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(callback)

    threading.Thread(target=wait, name=f"hooksd-wait-{popen.pid}", daemon=True).start()


def _wait(popen: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "waitid"):
        # WNOWAIT leaves the child a zombie: whoever owns it reaps it.
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOWAIT)
    else:
        popen.wait()
