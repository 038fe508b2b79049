"""The end of one caller's patience."""

from __future__ import annotations

import threading
import time
from typing import Optional

from hooksd_client.errors import RequestTimeout


__all__ = ["Deadline"]


class Deadline:
    """A point on the monotonic clock, and what to say when it has come.

    Args:
        timeout_s: Seconds from now; infinite for no limit.
        what: What is waited for, for the error.
    """

    __slots__ = ("_at", "_timeout_s", "_what")

    def __init__(self, timeout_s: float, what: str) -> None:
        # What no lock can wait for is no limit at all.
        self._at = float("inf") if timeout_s > threading.TIMEOUT_MAX else time.monotonic() + timeout_s
        self._timeout_s = timeout_s
        self._what = what

    def left(self) -> Optional[float]:
        """Seconds that are left, never negative; None for no limit."""
        if self._at == float("inf"):
            return None
        return max(0.0, self._at - time.monotonic())

    def error(self) -> RequestTimeout:
        """What to raise when nothing is left."""
        return RequestTimeout(self._what, self._timeout_s)
