"""Exits by pidfd (Linux): a descriptor that becomes readable when the process has exited."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial

from hooksd.process.readiness import Readiness


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
    ready: Readiness,
    otherwise: Callable[[subprocess.Popen[bytes], Callable[[], None]], None],
    popen: subprocess.Popen[bytes],
    callback: Callable[[], None],
) -> None:
    """See `exits.WatchExit`. What to do without a free descriptor is told by `otherwise`."""
    try:
        descriptor = os.pidfd_open(popen.pid)
    except OSError:
        otherwise(popen, callback)
    else:
        ready.add_reader(descriptor, partial(_exited, ready, descriptor, callback))


def _exited(ready: Readiness, descriptor: int, callback: Callable[[], None]) -> None:
    ready.remove_reader(descriptor)
    os.close(descriptor)
    callback()
