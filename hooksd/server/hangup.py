"""Seeing that a client is gone although nobody reads from it.

A connection that is read notices its end by reading. One that is not (the client closed its sending side and waits for
answers, or reading is paused) does not: neither asyncio nor uvloop looks at such a descriptor. All of these are watched
by one kernel queue, which is one more descriptor in the loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol


__all__ = ["HangupWatch", "Loop", "hangup_watch"]


class Loop(Protocol):
    """What is needed of an event loop."""

    def add_reader(self, fd: int, callback: Callable[[], object], /) -> object:
        """Call back while a descriptor can be read."""
        ...

    def remove_reader(self, fd: int, /) -> object:
        """Undo `add_reader`."""
        ...


class HangupWatch(Protocol):
    """Watches descriptors for one event loop. Belongs to its thread."""

    def watch(self, fd: int, gone: Callable[[], None]) -> int:
        """Call `gone` once, from the loop, when the peer of a socket is completely gone; at once if it already is.

        The descriptor is copied: its owner may close it at any time, but the connection ends only after `forget`.

        Returns:
            What `forget` takes.

        Raises:
            OSError: There are no descriptors left.
        """
        ...

    def forget(self, handle: int) -> None:
        """Stop watching. Must be called once for every handle, also after `gone` was called."""
        ...

    def close(self) -> None:
        """Give everything back; a second time changes nothing."""
        ...


def hangup_watch(loop: Loop) -> HangupWatch:
    """The way of this operating system."""
    if sys.platform == "linux":
        from hooksd.server.hangup_epoll import EpollHangupWatch

        return EpollHangupWatch(loop)
    else:  # noqa: RET505 - a type checker takes it as the other platform's
        from hooksd.server.hangup_kqueue import KqueueHangupWatch

        return KqueueHangupWatch(loop)
