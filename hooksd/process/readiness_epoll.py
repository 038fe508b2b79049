"""Readiness by an epoll of our own (Linux), of which the loop only watches the one descriptor."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable


__all__ = ["EpollReadiness"]

MAX_EVENTS = 64
"""Events taken at once. What is left is still ready at the loop's next turn, after others had theirs."""


class EpollReadiness:
    """See `readiness.Readiness`. Close it before the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._removed: set[int] = set()
        loop.add_reader(self._epoll.fileno(), self._ready)

    def add_reader(self, fd: int, callback: Callable[[], object], /) -> None:
        """See `Readiness`."""
        self._epoll.register(fd, select.EPOLLIN)
        self._callbacks[fd] = callback

    def add_writer(self, fd: int, callback: Callable[[], object], /) -> None:
        """See `Readiness`."""
        self._epoll.register(fd, select.EPOLLOUT)
        self._callbacks[fd] = callback

    def remove_reader(self, fd: int, /) -> None:
        """See `Readiness`. Nothing is registered any more once it is closed."""
        if not self._epoll.closed:
            self._epoll.unregister(fd)
            del self._callbacks[fd]
            self._removed.add(fd)

    remove_writer = remove_reader

    def close(self) -> None:
        """Give up the descriptor. May be called twice."""
        if not self._epoll.closed:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()

    def _ready(self) -> None:
        events = self._epoll.poll(0, MAX_EVENTS)
        # A callback may close a descriptor, and another may open one of the same number: the event of the old one must
        # not be taken for the new one's. If that is ready, too, it is told at the next turn.
        self._removed.clear()
        for fd, _ in events:
            if fd not in self._removed:
                self._callbacks[fd]()
