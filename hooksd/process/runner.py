"""The process runner (protocol section 5): starts hooks, gives their results, ends trees, reaps orphans."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from functools import partial

from hooksd.model.problems import ProblemKind
from hooksd.model.records import Level, Recorder
from hooksd.model.run import LaunchFailure, ProcessResult, Spawn
from hooksd.process import exits, readiness, trees
from hooksd.process.descriptor_limit import HookLimit
from hooksd.process.dispositions import hand_on_no_ignored_signals
from hooksd.process.ending import KILL_LIMIT_S, Ending
from hooksd.process.invocation import Invocation
from hooksd.process.launch import Launched, launch
from hooksd.process.live import LiveProcess
from hooksd.process.spawn_pool import SpawnPool


__all__ = ["Runner"]

FIRST_REAP_S = 1.0
"""Pause between looks for orphans while hooks run; a zombie lives no longer than this. Hooks that are shorter, and leave
nothing behind, are never looked at by it."""

LONGEST_REAP_S = 30.0
"""The pause it grows to while nothing runs and what hooks left running stays as it is."""


CLOSE_MARGIN_S = 1.0
"""How much longer than the longest ending may take is waited for at the end."""


class Runner:
    """Runs processes on one loop. Make it in the main thread, on the loop's thread; one per process as a rule.

    While it stands, the process is a subreaper (Linux), and signals that it was started with as ignored have a handler
    that does nothing, so that hooks get the default. Whoever else in the daemon starts processes in sessions of their
    own must announce them (`ownership.own`).

    Attributes:
        max_ending: Trees that may use their grace at once. Beyond it a tree is killed without one, and a record says so.
        others: Gives how many hooks run that are not this runner's (detached ones): their orphans land here as well.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        max_ending: int,
        hook_descriptors: int | None = None,
        record: Recorder | None = None,
    ) -> None:
        self._loop = loop
        self._record = record
        self._pool = SpawnPool()
        self._limit = HookLimit(hook_descriptors)
        self._trees = trees.choose()
        self._ready, self._close_ready = readiness.choose(loop)
        self._watch_exit = exits.choose(loop, self._ready)
        self._invocations: set[Invocation] = set()
        self._endings: set[Ending] = set()
        self._idle = asyncio.Event()
        self._closed = False
        self._longest_grace_s = math.inf
        self._reap_timer: asyncio.TimerHandle | None = None
        self._reap_pause_s = FIRST_REAP_S
        self._orphans = 0
        self.max_ending = max_ending
        self.others: Callable[[], int] = _none
        hand_on_no_ignored_signals()
        if record is not None and (limitation := self._trees.limitation):
            record(Level.WARNING, "daemon.limited", {"message": limitation})

    @property
    def running(self) -> int:
        """Invocations without a decision."""
        return len(self._invocations)

    @property
    def ending(self) -> int:
        """Trees that are being ended."""
        return len(self._endings)

    async def run(self, spawn: Spawn) -> ProcessResult:
        """Run one process to its decision (protocol section 5). What goes wrong with it is a result, never an exception.

        Cancelling raises at once; the tree is ended in the background, as it is after the deadline.
        """
        if self._closed:
            return ProcessResult(launch_failure=_shutting_down())
        if spawn.deadline is not None and spawn.deadline <= time.monotonic():
            # The threads could start it before the loop comes to the timer of the deadline.
            return ProcessResult(timed_out=True)
        invocation = Invocation(self._loop, spawn, self._ready, self._watch_exit, self._trees, self._end)
        self._invocations.add(invocation)
        self.keep_reaping()
        self._pool.submit(partial(self._launch, invocation))
        try:
            return await invocation.result
        except asyncio.CancelledError:
            invocation.cancel()
            raise
        finally:
            if not invocation.launching:
                self._forget(invocation)

    async def aclose(self, grace_s: float) -> None:
        """End everything and wait for it; afterwards `run` only gives launch failures.

        A `run` that waits for its result is cancelled. Trees that are being ended have at most `grace_s` left before
        they are killed. What hooks left running after a normal exit lives on. Returns when nothing is left, at the
        latest some seconds after the grace, when something hangs in the kernel.
        """
        self._closed = True
        self._longest_grace_s = grace_s
        for invocation in tuple(self._invocations):
            invocation.cancel()
        for ending in tuple(self._endings):
            ending.shorten(grace_s)
        until = time.monotonic() + grace_s + KILL_LIMIT_S + CLOSE_MARGIN_S
        while self._invocations or self._endings:
            self._idle.clear()
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    await self._idle.wait()
            except TimeoutError:
                break
        if self._reap_timer is not None:
            self._reap_timer.cancel()
            self._reap_timer = None
        self._pool.close()
        self._trees.close()
        self._close_ready()

    def _launch(self, invocation: Invocation) -> None:
        """In a thread of the pool."""
        outcome: Launched | LaunchFailure | BaseException
        if invocation.result.done():
            outcome = _shutting_down()
        else:
            try:
                outcome = launch(invocation.spawn, self._limit)
            except BaseException as error:  # noqa: BLE001 - raised again by `run`
                outcome = error
        try:
            self._loop.call_soon_threadsafe(self._launched, invocation, outcome)
        except RuntimeError:
            # The loop was closed under us: nobody takes the process any more.
            if isinstance(outcome, Launched):
                outcome.abort()

    def _launched(self, invocation: Invocation, outcome: Launched | LaunchFailure | BaseException) -> None:
        over = invocation.result.done()
        if isinstance(outcome, BaseException):
            invocation.failed(outcome)
        else:
            try:
                invocation.launched(outcome)
            except Exception as error:  # noqa: BLE001 - raised again by `run`
                # There is neither a descriptor nor a thread to watch it with.
                if isinstance(outcome, Launched):
                    outcome.abort()
                invocation.failed(error)
        if over:
            self._forget(invocation)

    def _forget(self, invocation: Invocation) -> None:
        self._invocations.discard(invocation)
        self._idle.set()

    def _end(self, live: LiveProcess, spawn: Spawn) -> None:
        """Take over a process whose invocation is over, and end its tree."""
        grace_s = min(spawn.kill_grace_s, self._longest_grace_s)
        if len(self._endings) >= self.max_ending:
            grace_s = 0.0
            self._tell(
                "hook.killed_without_grace", live, spawn, ending=len(self._endings), limit=self.max_ending
            )

        def finished(ending: Ending, *, gone: bool) -> None:
            self._endings.discard(ending)
            self._idle.set()
            if not gone:
                self._tell("hook.not_killed", live, spawn, after_s=KILL_LIMIT_S)

        ending = Ending(self._loop, live, grace_s, finished)
        self._endings.add(ending)
        ending.start()

    def _tell(self, kind: str, live: LiveProcess, spawn: Spawn, **fields: float) -> None:
        if self._record is not None:
            self._record(Level.WARNING, kind, {"pid": live.pid, "invocation_id": spawn.mark, **fields})

    def keep_reaping(self) -> None:
        """Look for orphans from now on, soon. Costs one timer per second at most, however many hooks run."""
        if self._closed:
            return
        if self._reap_timer is not None:
            if self._reap_pause_s == FIRST_REAP_S:
                return
            self._reap_timer.cancel()
        self._reap_pause_s = FIRST_REAP_S
        self._reap_timer = self._loop.call_later(FIRST_REAP_S, self._reap)

    def _reap(self) -> None:
        before = self._orphans
        self._orphans, reaped = self._trees.reap_orphans()
        self._reap_timer = None
        # Something that forks and ends all the time leaves as many alive as before, and ever more zombies.
        if self._invocations or self._endings or reaped or before != self._orphans:
            self._reap_pause_s = FIRST_REAP_S
        elif self._orphans or self.others():
            self._reap_pause_s = min(2 * self._reap_pause_s, LONGEST_REAP_S)
        else:
            return
        self._reap_timer = self._loop.call_later(self._reap_pause_s, self._reap)


def _none() -> int:
    return 0


def _shutting_down() -> LaunchFailure:
    return LaunchFailure(
        kind=ProblemKind.LAUNCH,
        message="the daemon is shutting down and starts no hook any more",
        hint="dispatch the event again when it is back",
    )
