"""When a file that somebody is changing may be taken for finished.

A prefix of a YAML file is often valid YAML without the guard in it, an editor that saves by renaming makes the file
vanish for a moment, and a truncated file is empty until it is written. So a changed file is taken only once it has
stood still (design.md, "Configuration sources"). Pure: signatures and moments are arguments.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

import msgspec

from hooksd.config.files import Signature, is_missing, signed_times


__all__ = ["BLANK_S", "MISSING_S", "OPEN_PATIENCE_S", "STILL_S", "Clock", "Pending", "is_blank", "observe"]

STILL_S: Final = 0.05
"""Size and times must have stood still for this long."""

MISSING_S: Final = 3 * STILL_S
"""A file that was there counts as deleted after this long; until then somebody may be saving it by renaming."""

BLANK_S: Final = 1.0
"""A file that became blank counts as half-written for this long."""

OPEN_PATIENCE_S: Final = 0.25
"""Longest that opening an execution waits for a file that does not stand still; then the last good one serves."""


class Clock(NamedTuple):
    """A moment, by the monotonic clock in seconds and by the wall clock in nanoseconds since the epoch."""

    now_s: float
    wall_ns: int

    @classmethod
    def now(cls) -> Clock:
        """This moment."""
        return cls(time.monotonic(), time.time_ns())


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a file that is not in force, because it may not be finished.

    Attributes:
        signature: The version.
        since_s: Since when it stands still, on the monotonic clock.
        due_s: When it is worth looking again.
    """

    signature: Signature
    since_s: float
    due_s: float

    def blank(self, now_s: float) -> Pending | None:
        """Call when the version turned out to be blank; None when it has been so for long enough to be meant."""
        due_s = self.since_s + BLANK_S
        return None if now_s >= due_s else msgspec.structs.replace(self, due_s=due_s)


def observe(
    signature: Signature,
    *,
    known: Signature | None,
    was_there: bool,
    before: Pending | None,
    clock: Clock,
) -> Pending:
    """Take in one look at a file that differs from the version in force.

    A file whose times lie far enough in the past has stood still without our watching it, so that the first read of
    an old file waits for nothing. Times in the future (another clock wrote them) prove nothing: then we watch.

    Args:
        signature: What was just seen; must differ from `known`.
        known: The version that was examined last; None at the first look.
        was_there: Whether there is something to lose: content in force, or a last good copy.
        before: What this function said last time, if the change is not dealt with yet.
        clock: Now.

    Returns:
        The version with its time; it may be taken when `due_s` is not after now.
    """
    if before is not None and before.signature == signature:
        since_s = before.since_s
    else:
        times = signed_times(signature)
        age_s = 0.0 if times is None else (clock.wall_ns - times) / 1e9
        since_s = clock.now_s - min(max(age_s, 0.0), BLANK_S)
    if signed_times(signature) is not None:
        wait_s = STILL_S
    elif not was_there and known is None:
        wait_s = 0.0
    else:
        wait_s = MISSING_S if is_missing(signature) else STILL_S
    return Pending(signature=signature, since_s=since_s, due_s=since_s + wait_s)


def is_blank(data: bytes) -> bool:
    """Whether a text says nothing at all: white space, or a byte order mark alone."""
    return not data.removeprefix(b"\xef\xbb\xbf").strip()
