"""The two threads that start processes, so that the loop does not wait for `vfork` and `exec`.

Two were measured to be enough: they start more hooks per second than two cores can run, and keep the loop's lag at a
tenth of a millisecond where spawning on the loop costs several.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue


__all__ = ["SpawnPool"]

THREADS = 2

JOIN_S = 1.0
"""Longest wait for a thread at the end: one may be stuck in an `exec` on a dead network disk."""


class SpawnPool:
    """Runs jobs in two threads that do not keep the interpreter alive. A job must not raise."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"hooksd-spawn-{number}", daemon=True)
            for number in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Callable[[], None]) -> None:
        """Run `job` in one of the threads, soon."""
        self._jobs.put(job)

    def close(self) -> None:
        """End the threads after the jobs that they were given; waits for a thread at most `JOIN_S`."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(JOIN_S)
        self._threads.clear()

    def _work(self) -> None:
        # A child has the mask of the thread that starts it. Signals that arrive here are handled by Python in the main
        # thread all the same.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        while (job := self._jobs.get()) is not None:
            job()
            # A thread that waits must not keep what it started last: its input may have megabytes.
            del job
