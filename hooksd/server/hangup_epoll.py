"""Hang-ups by epoll: with an empty interest set the kernel still tells EPOLLHUP and EPOLLERR (epoll_ctl(2)).

EPOLLHUP of a Unix stream socket means that both directions are shut: the peer closed it. A peer that only shut its
sending side gives EPOLLRDHUP, which is not asked for.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable

from hooksd.server.hangup import Loop


__all__ = ["EpollHangupWatch"]


class EpollHangupWatch:
    """`HangupWatch` on Linux."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self._gone: dict[int, Callable[[], None] | None] = {}
        loop.add_reader(self._epoll.fileno(), self._ready)

    def watch(self, fd: int, gone: Callable[[], None]) -> int:
        """See `HangupWatch.watch`."""
        copy = os.dup(fd)
        try:
            self._epoll.register(copy, 0)
        except OSError:
            os.close(copy)
            raise
        self._gone[copy] = gone
        return copy

    def forget(self, handle: int) -> None:
        """See `HangupWatch.forget`."""
        if self._gone.pop(handle) is not None:
            self._epoll.unregister(handle)
        os.close(handle)

    def close(self) -> None:
        """See `HangupWatch.close`."""
        if self._epoll.closed:
            return
        self._loop.remove_reader(self._epoll.fileno())
        for handle in list(self._gone):
            self.forget(handle)
        self._epoll.close()

    def _ready(self) -> None:
        for handle, _ in self._epoll.poll(0):
            gone = self._gone.get(handle)
            if gone is not None:  # not forgotten by a callback of this very round
                self._gone[handle] = None
                self._epoll.unregister(handle)
                gone()
