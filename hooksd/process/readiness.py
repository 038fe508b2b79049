"""How the loop learns that a descriptor is ready: the seam, and the choice of what stands behind it.

A loop has this itself, but registering with it and taking it back costs 14 us (uvloop) to 20 us (the stock loop), and a
hook has three descriptors that live for a millisecond. `readiness_epoll.py` saves some 25 us of the 330 us of processor
time that a hook costs the daemon.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Protocol


__all__ = ["Readiness", "choose"]


class Readiness(Protocol):
    """The part of an event loop that hooks need; `asyncio.AbstractEventLoop` has this shape.

    A descriptor is registered for one direction, and must be removed before it is closed. A callback may come without
    the descriptor being ready, except for descriptors that are only ever readable once, such as a pidfd.
    """

    def add_reader(self, fd: int, callback: Callable[[], object], /) -> object:
        """Call `callback` on the loop as long as the descriptor can be read without waiting, or is at its end."""
        ...

    def remove_reader(self, fd: int, /) -> object:
        """Do not call it any more."""
        ...

    def add_writer(self, fd: int, callback: Callable[[], object], /) -> object:
        """Call `callback` on the loop as long as there is room for a write, or nobody reads any more."""
        ...

    def remove_writer(self, fd: int, /) -> object:
        """Do not call it any more."""
        ...


def choose(loop: asyncio.AbstractEventLoop) -> tuple[Readiness, Callable[[], None]]:
    """An epoll of our own where there is one, else the loop; and what to call when it is not needed any more."""
    # Late, because the module cannot be loaded elsewhere.
    if hasattr(select, "epoll"):
        from hooksd.process.readiness_epoll import EpollReadiness

        ready = EpollReadiness(loop)
        return ready, ready.close
    return loop, _nothing


def _nothing() -> None:
    """The loop is closed by its owner."""
