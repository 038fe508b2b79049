"""What must be said when the log itself cannot say it: on stderr, if somebody takes it there without a wait."""

from __future__ import annotations

import contextlib
import os
import select


__all__ = ["say"]

_STDERR = 2


def say(text: str) -> None:
    """Write one line to stderr, or nothing where that is closed, or a pipe that is full."""
    poll = select.poll()
    poll.register(_STDERR, select.POLLOUT)
    with contextlib.suppress(OSError):
        if poll.poll(0):
            os.write(_STDERR, f"hooksd: {text}\n".encode("utf-8", "backslashreplace"))
