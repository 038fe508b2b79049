"""The life of a durable job: where it may go from where, and when it is due. Pure: no clock, no chance, no disk.

    free ──start──▶ running ──succeed──▶ done
     ▲ ▲               │ fail, abandon
     │ └── starts left ┴── none left ──▶ failed
     └──────────────── retry ──────────────┘

A job that was just handed in is `held` by whoever will start it, so that nobody else does. Two different things bring a
job back: a run that *failed* waits longer each time; one that was cut off, or whose owner died, waits a fixed age, since
nothing is known against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

import msgspec

from hooksd.outbox.jobs import JobState, RetryRules


__all__ = ["MOVES", "Move", "Place", "Standing", "WrongMove", "backoff_s", "follow", "jumped"]

BACKOFF_FIRST_S: Final = 5.0
"""Wait after the first start that failed; doubled with each further one (design.md, table)."""
BACKOFF_MOST_S: Final = 3600.0
"""Longest wait after a start that failed."""
BACKOFF_SPREAD: Final = 0.25
"""How much the wait differs either way, so that what failed together does not come back together."""

_MOST_DOUBLINGS: Final = 16


class Place(Enum):
    """Where a job stands; `free` and `held` both are `pending` to the outside."""

    FREE = auto()
    HELD = auto()
    RUNNING = auto()
    DONE = auto()
    FAILED = auto()
    GONE = auto()

    @property
    def state(self) -> JobState:
        """As it is told. A job that is gone has none."""
        return _STATES[self]


_STATES: Final[Mapping[Place, JobState]] = MappingProxyType(
    {
        Place.FREE: JobState.PENDING,
        Place.HELD: JobState.PENDING,
        Place.RUNNING: JobState.RUNNING,
        Place.DONE: JobState.DONE,
        Place.FAILED: JobState.FAILED,
    }
)


class Move(Enum):
    """What can happen to a job."""

    START = auto()
    """Its hook is about to be started."""
    RELEASE = auto()
    """Whoever had it lets it go unstarted."""
    SUCCEED = auto()
    FAIL = auto()
    ABANDON = auto()
    """It was cut off, or its owner died."""
    EXHAUST = auto()
    """It is looked at after a start of the daemon, and has no start left."""
    RETRY = auto()
    """Somebody asks for it by hand."""
    DISCARD = auto()
    """Somebody gives it up by hand."""


MOVES: Final[Mapping[Place, Mapping[Move, tuple[Place, ...]]]] = MappingProxyType(
    {
        Place.FREE: {
            Move.START: (Place.RUNNING,),
            Move.EXHAUST: (Place.FREE, Place.FAILED),
            Move.RETRY: (Place.FREE,),
            Move.DISCARD: (Place.GONE,),
        },
        Place.HELD: {
            Move.START: (Place.RUNNING,),
            Move.RELEASE: (Place.FREE,),
            Move.ABANDON: (Place.FREE,),
        },
        Place.RUNNING: {
            Move.SUCCEED: (Place.DONE,),
            Move.FAIL: (Place.FREE, Place.FAILED),
            Move.ABANDON: (Place.FREE, Place.FAILED),
        },
        Place.DONE: {Move.DISCARD: (Place.GONE,)},
        Place.FAILED: {Move.RETRY: (Place.FREE,), Move.DISCARD: (Place.GONE,)},
        Place.GONE: {},
    }
)
"""Every move that is possible, and where it can lead; any other is refused."""


class WrongMove(Exception):
    """A move that is not possible where the job stands; nothing was changed."""

    def __init__(self, place: Place, move: Move) -> None:
        self.place = place
        self.move = move
        super().__init__(f"a job that is {place.name.lower()} cannot {move.name.lower()}")


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """All of a job that decides what becomes of it.

    Attributes:
        place: Where it is.
        starts: How often it was started; by hand it is given all of its starts again.
        due_at: When it may be started, in seconds since the epoch; counts only while it is free.
        started_at: When it was last started.
    """

    place: Place
    starts: int
    due_at: float
    started_at: float | None = None


def follow(standing: Standing, move: Move, rules: RetryRules, *, now: float, chance: float) -> Standing:
    """Where a move leads.

    Args:
        standing: Where the job is.
        move: What happens to it.
        rules: Its own.
        now: Seconds since the epoch.
        chance: From 0 up to but not including 1; spreads the waits.

    Raises:
        WrongMove: It is not in `MOVES`.
    """
    if move not in MOVES[standing.place]:
        raise WrongMove(standing.place, move)
    change = msgspec.structs.replace
    spent = standing.starts >= rules.max_starts
    match move:
        case Move.START:
            return change(standing, place=Place.RUNNING, starts=standing.starts + 1, started_at=now)
        case Move.SUCCEED:
            return change(standing, place=Place.DONE)
        case Move.FAIL:
            if spent:
                return change(standing, place=Place.FAILED)
            return change(standing, place=Place.FREE, due_at=now + backoff_s(standing.starts, chance))
        case Move.ABANDON if standing.place is Place.RUNNING:
            if spent:
                return change(standing, place=Place.FAILED)
            # From its start, not from now: how long its owner has been dead does not matter.
            began = now if standing.started_at is None else standing.started_at
            return change(standing, place=Place.FREE, due_at=began + rules.retry_age_s)
        case Move.ABANDON | Move.RELEASE:
            return change(standing, place=Place.FREE)
        case Move.EXHAUST:
            return change(standing, place=Place.FAILED) if spent else standing
        case Move.RETRY:
            starts = 0 if standing.place is Place.FAILED else standing.starts
            return change(standing, place=Place.FREE, starts=starts, due_at=now)
        case Move.DISCARD:
            return change(standing, place=Place.GONE)


def backoff_s(starts: int, chance: float) -> float:
    """How long to wait after the latest of so many starts has failed.

    Args:
        starts: At least 1.
        chance: From 0 up to but not including 1.
    """
    wait_s = BACKOFF_FIRST_S * 2.0 ** min(starts - 1, _MOST_DOUBLINGS)
    return min(wait_s * (1 + BACKOFF_SPREAD * (2 * chance - 1)), BACKOFF_MOST_S)


def jumped(due_at: float, rules: RetryRules, *, now: float) -> bool:
    """Whether a time lies further ahead than any wait: the clock was set back since it was written."""
    return due_at > now + max(BACKOFF_MOST_S, rules.retry_age_s)
