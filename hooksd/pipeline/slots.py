"""Slots: how many hooks run at once, and who waits for whom.

Gates and hooks that no decision waits for have slots of their own, so that a gate never waits behind an observer
(design rule 7). Each depth of nesting has its own as well: a hook that dispatches an event holds its slot while it
waits for the hooks of that event. Waiting is first come, first served; the queue and the wait are bounded.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial

import msgspec

from hooksd.config.settings import Limits


__all__ = ["Busy", "Lane", "Permit", "Slots", "Turn"]


class Lane(StrEnum):
    """What waits for a hook."""

    GATE = "gate"
    """A decision."""
    BACKGROUND = "background"
    """No decision: observers, notifications, asynchronous hooks."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A further bound on some hooks, which comes before their slots: at most so many of them at once.

    Attributes:
        key: What the bound is for, such as the full name of a serial hook.
        most: How many; where holders differ about it, the word of the newest counts for itself.
        what: What is told of whoever waited in vain.
    """

    key: tuple[str, ...]
    most: int
    what: str

    @classmethod
    def serial(cls, hook: str) -> Turn:
        """For a hook that must not run twice at a time (`[serial]`)."""
        return cls(key=("serial", hook), most=1, what="another run of this serial hook did not end")

    @classmethod
    def shared(cls, execution_id: str, source: str, most: int) -> Turn:
        """For the background hooks of one document in one execution (Chrys `max_parallel_hooks`)."""
        what = f"no turn ({most} by max_parallel_hooks of {source})"
        return cls(key=("shared", execution_id, source), most=most, what=what)


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """A held slot; it must be given back with `Slots.release`, once."""

    lane: Lane
    depth: int
    turns: tuple[Turn, ...] = ()


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

    __slots__ = ("_limits", "_pools", "_turns", "queued")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.queued = {Lane.GATE: 0, Lane.BACKGROUND: 0}
        """Hooks that wait, by what waits for them."""
        self._pools: dict[tuple[Lane, int], _Pool] = {}
        self._turns: dict[tuple[str, ...], _Pool] = {}

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
    def gates(self) -> int:
        """Slots that hooks of gates hold."""
        return sum(pool.held for (lane, _), pool in self._pools.items() if lane is Lane.GATE)

    @property
    def running(self) -> int:
        """Slots that are held."""
        return sum(pool.held for pool in self._pools.values())

    def acquire_now(self, lane: Lane, depth: int, turns: tuple[Turn, ...] = ()) -> Permit | None:
        """A slot, if one is to be had without waiting and nobody waits already."""
        pool = self._pool(lane, depth)
        if pool.held >= self._limit(lane):
            return None
        for turn in turns:
            held = self._turns.get(turn.key)
            if held is not None and held.held >= turn.most:
                return None
        pool.held += 1
        for turn in turns:
            self._hold_turn(turn)
        return Permit(lane=lane, depth=depth, turns=turns)

    async def acquire(
        self, lane: Lane, depth: int, turns: tuple[Turn, ...] = (), *, budget_s: float | None = None
    ) -> Permit | Busy:
        """Wait for a slot.

        Args:
            lane: What waits for the hook.
            depth: How deep the dispatch is nested, 0 for an agent's own; at most `limits.max_depth`.
            turns: Further bounds, always in the same order, so that no two hooks wait for each other.
            budget_s: What is left of the dispatch's own budget.

        Cancelling it leaves nothing held.
        """
        permit = self.acquire_now(lane, depth, turns)
        if permit is not None:
            return permit
        if self.queued[lane] >= self._limits.max_queued:
            return Busy(message=f"{self._limits.max_queued} hooks wait already (limits.max_queued)")
        loop = asyncio.get_running_loop()
        wait_s = self._limits.max_queue_s if budget_s is None else min(budget_s, self._limits.max_queue_s)
        until = loop.time() + wait_s
        self.queued[lane] += 1
        taken: list[Turn] = []
        try:
            # The turns come first: who waits for one must not hold a slot that others could use.
            for turn in turns:
                if not await self._take_turn(turn, until):
                    self._end_turns(taken)
                    return Busy(message=f"{turn.what} within {wait_s:g} s")
                taken.append(turn)
            if not await self._take_slot(lane, depth, until):
                self._end_turns(taken)
                limit = "max_running_gates" if lane is Lane.GATE else "max_running_background"
                return Busy(message=f"no slot within {wait_s:g} s ({self._limit(lane)} by limits.{limit})")
            return Permit(lane=lane, depth=depth, turns=turns)
        except BaseException:
            self._end_turns(taken)
            raise
        finally:
            self.queued[lane] -= 1

    def release(self, permit: Permit) -> None:
        """Give a slot back."""
        self._pools[permit.lane, permit.depth].free()
        self._end_turns(permit.turns)

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

    def _hold_turn(self, turn: Turn) -> None:
        pool = self._turns.get(turn.key)
        if pool is None:
            pool = self._turns[turn.key] = _Pool()
        pool.held += 1

    async def _take_turn(self, turn: Turn, until: float) -> bool:
        pool = self._turns.get(turn.key)
        if pool is None or pool.held < turn.most:
            self._hold_turn(turn)
            return True
        return await _wait(pool, until, partial(self._end_turns, (turn,)))

    def _end_turns(self, turns: Iterable[Turn]) -> None:
        for turn in turns:
            pool = self._turns[turn.key]
            pool.free()
            if not pool.held:
                # Names come and go with the configuration, and executions with their agents.
                del self._turns[turn.key]


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
