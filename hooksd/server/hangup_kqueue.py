"""Hang-ups by kqueue: a write filter has EV_EOF set once the peer takes nothing any more (kqueue(2)).

With EV_CLEAR it is told when that changes, not all the time while there is room to write.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable

from hooksd.server.hangup import Loop


if sys.platform != "linux" and sys.platform != "win32":
    __all__ = ["KqueueHangupWatch"]

    class KqueueHangupWatch:
        """`HangupWatch` on macOS and the BSDs."""

        def __init__(self, loop: Loop) -> None:
            self._loop = loop
            self._kqueue = select.kqueue()
            self._gone: dict[int, Callable[[], None] | None] = {}
            loop.add_reader(self._kqueue.fileno(), self._ready)

        def watch(self, fd: int, gone: Callable[[], None]) -> int:
            """See `HangupWatch.watch`."""
            copy = os.dup(fd)
            flags = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            try:
                self._kqueue.control([select.kevent(copy, select.KQ_FILTER_WRITE, flags)], 0)
            except OSError:
                os.close(copy)
                raise
            self._gone[copy] = gone
            return copy

        def forget(self, handle: int) -> None:
            """See `HangupWatch.forget`."""
            del self._gone[handle]
            os.close(handle)  # which takes its filter out of the queue

        def close(self) -> None:
            """See `HangupWatch.close`."""
            if self._kqueue.closed:
                return
            self._loop.remove_reader(self._kqueue.fileno())
            for handle in list(self._gone):
                self.forget(handle)
            self._kqueue.close()

        def _ready(self) -> None:
            for event in self._kqueue.control(None, max(1, len(self._gone)), 0):
                gone = self._gone.get(event.ident)
                if gone is not None and event.flags & select.KQ_EV_EOF:
                    self._gone[event.ident] = None
                    gone()
