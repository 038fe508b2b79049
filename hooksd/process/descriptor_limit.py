"""The soft limit of open files: the daemon needs a high one, hooks must not see it.

Programs that use `select` break with descriptors above 1023, and some close every possible descriptor at their start;
so a hook gets the soft limit that the daemon was started with. It is set in the daemon around `fork` and `exec`,
because a child cannot be told it in time: the limit then holds for the whole process, which is why it is only done
while the daemon has so few files open that no other thread can run into it. Beyond that the child is told right after
its `exec`.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


__all__ = ["HookLimit", "raise_soft_limit"]

WANTED = 65_536
"""Enough for `limits.max_executions` and every hook that may run; the hard limit of a service is often far higher, and
then costs memory in tables that grow with it."""

MARGIN = 256
"""Descriptors that the daemon may open while a process is being started."""


def raise_soft_limit() -> int | None:
    """Raise the daemon's own soft limit as far as it may and needs; gives what it was, None if nothing was changed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return None
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft


class HookLimit:
    """Gives children another soft limit than the daemon's; None gives them the daemon's."""

    def __init__(self, soft: int | None) -> None:
        self._soft = soft
        self._lock = threading.Lock()
        self._users = 0
        self._own = (0, 0)

    @contextmanager
    def around_spawn(self, newest_descriptor: int) -> Iterator[None]:
        """While a child is started.

        Args:
            newest_descriptor: One that was just opened: about as many are in use, since the lowest is always taken.
        """
        if self._soft is None or newest_descriptor + MARGIN >= self._soft:
            yield
            return
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._own = resource.getrlimit(resource.RLIMIT_NOFILE)
                resource.setrlimit(resource.RLIMIT_NOFILE, (self._soft, self._own[1]))
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    resource.setrlimit(resource.RLIMIT_NOFILE, self._own)

    def after_spawn(self, pid: int, newest_descriptor: int) -> None:
        """Tell a child that could not be started with its limit."""
        if self._soft is None or newest_descriptor + MARGIN < self._soft:
            return
        prlimit = getattr(resource, "prlimit", None)
        if prlimit is not None:
            with suppress(ProcessLookupError, PermissionError):
                _, hard = prlimit(pid, resource.RLIMIT_NOFILE)
                prlimit(pid, resource.RLIMIT_NOFILE, (self._soft, hard))
