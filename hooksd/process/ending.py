"""Ending a tree, in the background: SIGTERM, the grace, then stop and kill until nothing new turns up."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Protocol

from hooksd.process.live import LiveProcess, StatusLost


__all__ = ["Ending"]

FIRST_LOOK_S = 0.005
LONGEST_LOOK_S = 0.05
"""Pauses between looks at a tree during its grace: short at first, since most trees end at once."""

KILL_ROUND_S = 0.01
"""Pause between rounds of killing."""

KILL_LIMIT_S = 10.0
"""From the first SIGKILL to giving up: what is still there then hangs in the kernel, or belongs to another user."""


class Finished(Protocol):
    """Called once; `gone` tells whether all that was known of the tree has ended."""

    def __call__(self, ending: Ending, *, gone: bool) -> None:
        """Take it off the books."""
        ...


class Ending:
    """One tree that is being ended, from `start` to `finished`.

    The hook itself is reaped only at the end: until then its pid and its group stay its own. What it writes in the
    meantime is read and dropped, so that a handler of SIGTERM that prints something does not die of it.
    """

    __slots__ = ("_finished", "_kill_until", "_live", "_loop", "_pause_s", "_timer", "_until")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        live: LiveProcess,
        grace_s: float,
        finished: Finished,
    ) -> None:
        self._loop = loop
        self._live = live
        self._finished = finished
        self._pause_s = FIRST_LOOK_S
        self._timer: asyncio.TimerHandle | None = None
        self._kill_until: float | None = None
        self._until = time.monotonic() + grace_s

    def start(self) -> None:
        """Begin; `finished` may be called from here."""
        self._live.close_stdin()
        self._live.on_progress = self._progress
        if self._until > time.monotonic():
            self._live.tree.terminate()
            self._look()
        else:
            self._kill()

    def shorten(self, grace_s: float) -> None:
        """Let what is left of the grace be no more than this."""
        if self._kill_until is None and time.monotonic() + grace_s < self._until:
            self._until = time.monotonic() + grace_s
            self._look()

    def _progress(self) -> None:
        if self._live.exited:
            if self._kill_until is None:
                self._look()
            else:
                self._kill()

    def _look(self) -> None:
        self._stop_timer()
        if self._live.exited and self._live.tree.is_gone():
            self._finish(gone=True)
            return
        left = self._until - time.monotonic()
        if left <= 0:
            self._kill()
            return
        self._timer = self._loop.call_later(min(left, self._pause_s), self._look)
        self._pause_s = min(2 * self._pause_s, LONGEST_LOOK_S)

    def _kill(self) -> None:
        self._stop_timer()
        now = time.monotonic()
        if self._kill_until is None:
            self._kill_until = now + KILL_LIMIT_S
        if self._live.tree.kill() and self._live.exited:
            self._finish(gone=True)
        elif now >= self._kill_until:
            self._finish(gone=False)
        else:
            self._timer = self._loop.call_later(KILL_ROUND_S, self._kill)

    def _finish(self, *, gone: bool) -> None:
        live = self._live
        live.close_pipes()
        if live.exited:
            with suppress(StatusLost):
                live.reap()
            live.on_progress = _nothing
        else:
            # It hangs in the kernel: reaped when it comes out, for its SIGKILL is waiting for it.
            live.on_progress = lambda: _reap_late(live)
        self._finished(self, gone=gone)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _reap_late(live: LiveProcess) -> None:
    with suppress(StatusLost):
        live.reap()


def _nothing() -> None:
    """A stream of a finished ending was closed by us."""
