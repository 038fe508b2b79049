"""Slots: how many hooks run at once, and who waits for whom.

Gates and hooks that no decision waits for have slots of their own, so that a gate never waits behind an observer
(design rule 7). Each depth of nesting has its own as well: a hook that dispatches an event holds its slot while it
waits for the hooks of that event. Waiting is first come, first served; the queue and the wait are bounded.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from enum import StrEnum
from functools import partial

import msgspec

from hooksd.config.settings import Limits


__all__ = ["Busy", "Lane", "Permit", "Slots"]


class Lane(StrEnum):
    """What waits for a hook."""

    GATE = "gate"
    """A decision."""
    BACKGROUND = "background"
    """No decision: observers, notifications, asynchronous hooks."""


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """A held slot; it must be given back with `Slots.release`, once."""

    lane: Lane
    depth: int
    serial: str | None


class Busy(msgspec.Struct, frozen=True, kw_only=True):
    """No slot could be had. `message` names the limit and its value."""

    message: str


_Queue = OrderedDict["asyncio.Future[bool]", None]


class _Pool:
    """Some interchangeable slots and those who wait for one."""

    __slots__ = ("held", "waiting")

    def __init__(self) -> None:
        self.held = 0
        self.waiting: _Queue = OrderedDict()

    def free(self) -> None:
        """Pass one slot on to whoever waits longest."""
        while self.waiting:
            turn, _ = self.waiting.popitem(last=False)
            if not turn.done():
                turn.set_result(True)
                return
        self.held -= 1


class Slots:
    """All slots of the daemon."""

    __slots__ = ("_limits", "_pools", "_serial", "queued")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.queued = {Lane.GATE: 0, Lane.BACKGROUND: 0}
        """Hooks that wait, by what waits for them."""
        self._pools: dict[tuple[Lane, int], _Pool] = {}
        self._serial: dict[str, _Pool] = {}

    @property
    def limits(self) -> Limits:
        """The limits that count now. They may be replaced: what is held stays held, and who waits may get more."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._limits = limits
        for (lane, _), pool in self._pools.items():
            while pool.waiting and pool.held < self._limit(lane):
                pool.held += 1
                pool.free()

    @property
    def running(self) -> int:
        """Slots that are held."""
        return sum(pool.held for pool in self._pools.values())

    def acquire_now(self, lane: Lane, depth: int, serial: str | None = None) -> Permit | None:
        """A slot, if one is to be had without waiting and nobody waits already."""
        pool = self._pool(lane, depth)
        if pool.held >= self._limit(lane) or (serial is not None and serial in self._serial):
            return None
        pool.held += 1
        if serial is not None:
            self._serial[serial] = _held_pool()
        return Permit(lane=lane, depth=depth, serial=serial)

    async def acquire(
        self, lane: Lane, depth: int, serial: str | None = None, *, budget_s: float | None = None
    ) -> Permit | Busy:
        """Wait for a slot.

        Args:
            lane: What waits for the hook.
            depth: How deep the dispatch is nested, 0 for an agent's own; at most `limits.max_depth`.
            serial: The name of a hook that must not run twice at a time.
            budget_s: What is left of the dispatch's own budget.

        Cancelling it leaves nothing held.
        """
        permit = self.acquire_now(lane, depth, serial)
        if permit is not None:
            return permit
        if self.queued[lane] >= self._limits.max_queued:
            return Busy(message=f"{self._limits.max_queued} hooks wait already (limits.max_queued)")
        loop = asyncio.get_running_loop()
        wait_s = self._limits.max_queue_s if budget_s is None else min(budget_s, self._limits.max_queue_s)
        until = loop.time() + wait_s
        self.queued[lane] += 1
        try:
            # The serial turn comes first: who waits for it must not hold a slot that others could use.
            if serial is not None and not await self._take_turn(serial, until):
                return Busy(message=f"another run of this serial hook did not end within {wait_s:g} s")
            try:
                got = await self._take_slot(lane, depth, until)
            except BaseException:
                self._end_turn(serial)
                raise
            if not got:
                self._end_turn(serial)
                limit = "max_running_gates" if lane is Lane.GATE else "max_running_background"
                return Busy(message=f"no slot within {wait_s:g} s ({self._limit(lane)} by limits.{limit})")
            return Permit(lane=lane, depth=depth, serial=serial)
        finally:
            self.queued[lane] -= 1

    def release(self, permit: Permit) -> None:
        """Give a slot back."""
        self._pools[permit.lane, permit.depth].free()
        self._end_turn(permit.serial)

    def _limit(self, lane: Lane) -> int:
        return self._limits.max_running_gates if lane is Lane.GATE else self._limits.max_running_background

    def _pool(self, lane: Lane, depth: int) -> _Pool:
        pool = self._pools.get((lane, depth))
        if pool is None:
            pool = self._pools[lane, depth] = _Pool()
        return pool

    async def _take_slot(self, lane: Lane, depth: int, until: float) -> bool:
        pool = self._pool(lane, depth)
        if pool.held < self._limit(lane):
            pool.held += 1
            return True
        return await _wait(pool, until, pool.free)

    async def _take_turn(self, serial: str, until: float) -> bool:
        pool = self._serial.get(serial)
        if pool is None:
            self._serial[serial] = _held_pool()
            return True
        return await _wait(pool, until, partial(self._end_turn, serial))

    def _end_turn(self, serial: str | None) -> None:
        if serial is None:
            return
        pool = self._serial[serial]
        pool.free()
        if not pool.held:
            # Names come and go with the configuration.
            del self._serial[serial]


def _held_pool() -> _Pool:
    pool = _Pool()
    pool.held = 1
    return pool


async def _wait(pool: _Pool, until: float, give_back: Callable[[], None]) -> bool:
    """Wait in the queue of a pool; False when the time is over."""
    loop = asyncio.get_running_loop()
    turn: asyncio.Future[bool] = loop.create_future()
    pool.waiting[turn] = None
    timer = loop.call_at(until, _give_up, pool, turn)
    try:
        return await turn
    except asyncio.CancelledError:
        pool.waiting.pop(turn, None)
        if not turn.cancelled() and turn.result():
            # The slot came in the same moment.
            give_back()
        raise
    finally:
        timer.cancel()


def _give_up(pool: _Pool, turn: asyncio.Future[bool]) -> None:
    if not turn.done():
        del pool.waiting[turn]
        turn.set_result(False)
