"""The outbox as the loop sees it: jobs go in, become due, are started and settled; each answer means "on disk".

Nothing here runs a hook. Whoever does asks what is `due`, calls `start` when everything else is ready and runs the hook
only then, and tells `settle` how it ended. The file is made with the first job; without one the outbox costs nothing.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Sequence, Set as AbstractSet
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.records import Level, Recorder
from hooksd.outbox.errors import OutboxClosed, OutboxUnusable
from hooksd.outbox.jobs import (
    Attempt,
    Counts,
    Due,
    JobInfo,
    JobState,
    NewJob,
    OutboxLimits,
    Recovered,
    Settled,
)
from hooksd.outbox.owner import Owner


if TYPE_CHECKING:
    from hooksd.outbox.database import Database
    from hooksd.outbox.writer import Writer

__all__ = ["FILE_NAME", "Outbox"]

FILE_NAME = "outbox.sqlite3"
"""In the state directory."""

T = TypeVar("T")


class Outbox:
    """The durable jobs of one state directory, for one daemon. Belongs to the loop's thread.

    Every coroutine here may raise an `OutboxError`. Several daemons may use one file: a job is had by one of them.

    Args:
        path: The database file.
        record: Takes the records about the file itself.
        limits: What there is room for, asked anew for each job.
        clock: Seconds since the epoch: the times must outlive the machine's next start.
        chance: Spreads the waits; from 0 up to but not including 1.

    Attributes:
        counts: How many jobs there are, as of the last commit of this daemon.
        owner: Who has the jobs that this daemon has.
    """

    def __init__(
        self,
        path: str,
        *,
        record: Recorder,
        limits: Callable[[], OutboxLimits],
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._path = path
        self._record = record
        self._limits = limits
        self._clock = clock
        self._chance = chance
        self.counts = Counts()
        self.owner = Owner.of(os.getpid())
        self._writer: Writer | None = None
        self._trouble: OutboxUnusable | None = None
        self._set_aside: list[str] = []
        self._closed = False

    @property
    def path(self) -> str:
        """The database file."""
        return self._path

    @property
    def exists(self) -> bool:
        """Whether there is anything to ask: nobody needs an empty file."""
        return self._writer is not None or os.path.lexists(self._path)

    @property
    def problems(self) -> tuple[ConfigProblem, ...]:
        """What is wrong with the file now, and what was wrong with it in this daemon's life."""
        told = []
        if self._trouble is not None:
            told.append(
                ConfigProblem(
                    severity=Severity.ERROR,
                    path="",
                    message=f"durable hooks run, but cannot be kept: {self._trouble.reason}",
                    hint=self._trouble.hint,
                    file=self._path,
                )
            )
        told += [
            ConfigProblem(
                severity=Severity.WARNING,
                path="",
                message=f"the outbox was damaged and began anew; its jobs are in {moved_to}",
                hint=f"`sqlite3 {moved_to} .recover` may bring them back; remove the file when it is not needed",
                file=self._path,
            )
            for moved_to in self._set_aside
        ]
        return tuple(told)

    # ------------------------------------------------------------------------------------------------------------------
    # A job's life

    async def add(self, jobs: Sequence[NewJob], *, hold: bool = True) -> tuple[str, ...]:
        """Keep jobs; they are on disk when this returns.

        Cancelling it takes them back.

        Args:
            jobs: The jobs.
            hold: The caller is about to start them, and `settle`s each in any case. Else they are due at once.

        Returns:
            Their names, in order.

        Raises:
            OutboxFull: There is no room for all of them; none is kept.
            OutboxUnusable: They cannot be kept.
        """
        now, limits, wanted = self._clock(), self._limits(), tuple(jobs)
        writer = await self._at_work()
        return await writer.post(
            lambda database: database.jobs.add(wanted, now=now, hold=hold, limits=limits),
            undo=lambda database, names: database.jobs.withdraw(names),
        )

    async def due(self, limit: int, *, skip: AbstractSet[str] = frozenset()) -> Due:
        """What can be started now: at most one job of each lane, the one due longest first.

        It is not taken by this: `start` does that.

        Args:
            limit: Most jobs.
            skip: Lanes that are not wanted.
        """
        if not self.exists:
            return Due()
        now, unwanted = self._clock(), frozenset(skip)
        writer = await self._at_work()
        return await writer.post(lambda database: database.jobs.due(now=now, limit=limit, skip=unwanted))

    async def start(self, job_id: str) -> int | None:
        """Take a job and count its start, on disk; the hook may be run once this has returned.

        Cancelling it leaves open whether it was started: `settle` it as cancelled.

        Returns:
            Which start it is, from 1; None if somebody else has the job, or it is gone.
        """
        now = self._clock()
        writer = await self._at_work()
        return await writer.post(lambda database: database.jobs.start(job_id, now=now))

    def settle(self, job_id: str, attempt: Attempt) -> asyncio.Future[Settled | None]:
        """Write down what came of a job that was held or started.

        It need not be awaited: what cannot be written now is written as soon as it can be, as long as this daemon lives.
        A job that runs when the process dies is started again, which no writing can prevent.

        Returns:
            Where the job is now; None if this daemon does not have it.
        """
        now, chance = self._clock(), self._chance()
        return self._post(
            lambda database: database.jobs.settle(job_id, attempt, now=now, chance=chance), owed=True
        )

    async def hand_over(self, job_id: str, owner: Owner) -> bool:
        """Give a job that was started to another process, which has it as long as it lives.

        That process settles it by `hooksd.outbox.worker.settle`.

        Args:
            job_id: The job.
            owner: That process, under the number that it was told.

        Returns:
            Whether this daemon had it.
        """
        writer = await self._at_work()
        return await writer.post(lambda database: database.jobs.hand_over(job_id, owner))

    # ------------------------------------------------------------------------------------------------------------------
    # Upkeep

    async def recover(self) -> Recovered:
        """Free the jobs of owners that are dead, fail those without a start left, and remove what ended long ago."""
        if not self.exists:
            return Recovered()
        now = self._clock()
        writer = await self._at_work()
        recovered = await writer.post(lambda database: database.jobs.recover(now=now))
        done, failed = await writer.post(lambda database: database.jobs.prune(now=now))
        if failed:
            self._record(Level.WARNING, "outbox.pruned", {"done": done, "failed": failed})
        elif done:
            self._record(Level.DEBUG, "outbox.pruned", {"done": done, "failed": failed})
        return recovered

    async def aclose(self) -> None:
        """Give back what this daemon has, and close the file. Nothing can be asked afterwards."""
        self._closed = True
        if self._writer is not None:
            now = self._clock()
            letting_go = self._writer.post(lambda database: database.jobs.let_go(now=now))
            await self._writer.aclose()
            # What could not be written is found by the next daemon, which sees that this one is dead.
            letting_go.exception()

    # ------------------------------------------------------------------------------------------------------------------
    # By hand

    async def list(
        self, *, state: JobState | None = None, limit: int = 100, after: str | None = None
    ) -> tuple[JobInfo, ...]:
        """Jobs in the order in which they came.

        Args:
            state: Only those.
            limit: Most jobs.
            after: Only those after this one.

        Raises:
            NoSuchJob: `after` is no name of a job.
        """
        if not self.exists:
            return ()
        writer = await self._at_work()
        return await writer.post(lambda database: database.jobs.listed(state=state, limit=limit, after=after))

    async def retry(self, job_id: str | None) -> int:
        """Have a job, or (None) every one that has failed, started as soon as may be.

        Returns:
            How many.

        Raises:
            NoSuchJob: It is not there.
            JobBusy: It runs, or is done.
        """
        if job_id is None and not self.exists:
            return 0
        now = self._clock()
        writer = await self._at_work()

        def retrying(database: Database) -> int:
            if job_id is None:
                return database.jobs.retry_all(now=now)
            database.jobs.retry(job_id, now=now)
            return 1

        return await writer.post(retrying)

    async def discard(self, which: str | JobState) -> int:
        """Give up a job, or every one in a state that nobody has.

        Returns:
            How many.

        Raises:
            NoSuchJob: It is not there.
            JobBusy: It runs.
        """
        if isinstance(which, JobState) and not self.exists:
            return 0
        writer = await self._at_work()

        def discarding(database: Database) -> int:
            if isinstance(which, JobState):
                return database.jobs.discard_all(which)
            database.jobs.discard(which)
            return 1

        return await writer.post(discarding)

    # ------------------------------------------------------------------------------------------------------------------
    # What the writer tells (`hooksd.outbox.writer.Listener`)

    def committed(self, counts: Counts) -> None:
        """There was a commit."""
        self.counts = counts

    def troubled(self, trouble: OutboxUnusable | None) -> None:
        """The file cannot be used, or can be used again."""
        self._trouble = trouble
        if trouble is None:
            self._record(Level.INFO, "outbox.recovered", {"file": self._path})
        else:
            fields = {"file": self._path, "reason": trouble.reason, "hint": trouble.hint}
            self._record(Level.ERROR, "outbox.unusable", fields)

    def damaged(self, moved_to: str) -> None:
        """The file was damaged; a new one takes its place."""
        self._set_aside.append(moved_to)
        self._record(Level.ERROR, "outbox.damaged", {"file": self._path, "moved_to": moved_to})

    # ------------------------------------------------------------------------------------------------------------------

    async def _at_work(self) -> Writer:
        if self._closed:
            raise OutboxClosed
        if self._writer is None:
            loop = asyncio.get_running_loop()
            module = await loop.run_in_executor(None, import_module, "hooksd.outbox.writer")
            self._begin(module.Writer, loop)
        writer: Writer | None = self._writer
        if writer is None:
            raise OutboxClosed
        return writer

    def _begin(self, make: type[Writer], loop: asyncio.AbstractEventLoop) -> None:
        # Somebody else may have been faster, or it was closed meanwhile.
        if self._writer is None and not self._closed:
            self._writer = make(self._path, self.owner, self, loop)

    def _post(self, work: Callable[[Database], T], *, owed: bool = False) -> asyncio.Future[T]:
        if self._writer is None or self._closed:
            failed: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            failed.set_exception(OutboxClosed())
            failed.exception()
            return failed
        posted = self._writer.post(work, owed=owed)
        # Whoever does not wait for it is told by the record of the trouble.
        posted.add_done_callback(_seen)
        return posted


def _seen(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()
