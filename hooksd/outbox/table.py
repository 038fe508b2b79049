"""The jobs in the database: what can be asked of them and done to them. SQL lives here, rules in `schedule.py`.

Everything that writes must be called in a transaction, and raises before it has written anything unless the fault is the
database's own; so that many callers can share one commit.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections.abc import Iterable, Sequence, Set as AbstractSet
from typing import Final

from hooksd.outbox.errors import JobBusy, NoSuchJob, OutboxFull
from hooksd.outbox.jobs import (
    MAX_ERROR,
    MAX_STDERR_TAIL,
    Attempt,
    Counts,
    Due,
    Ending,
    Job,
    JobInfo,
    JobState,
    NewJob,
    OutboxLimits,
    Recovered,
    RetryRules,
    Settled,
    job_name,
    job_number,
)
from hooksd.outbox.owner import Owner, is_alive
from hooksd.outbox.rows import INFO, Row, info_of, read_row
from hooksd.outbox.schedule import Move, Place, Standing, WrongMove, follow, jumped
from hooksd.outbox.schema import PAGE_BYTES
from hooksd.outbox.tally import Tally


__all__ = ["JobTable"]

DONE_KEPT_S: Final = 86_400.0
"""How long a job that is done is listed."""
DONE_KEPT: Final = 1_000
"""Most jobs that are done and listed: they show that deliveries work, and no more."""
FAILED_KEPT_S: Final = 30 * 86_400.0
"""How long a dead letter waits for somebody."""
FAILED_KEPT: Final = 10_000
"""Most dead letters; the oldest go first."""
MEASURED_EVERY: Final = 100
"""Jobs after which the file is measured anew: what they take besides their payload does not matter until then."""
PRUNED_AT_ONCE: Final = 1_000
"""Most jobs removed in one transaction, since others wait for it."""

_ENDINGS: Final = {
    Ending.SUCCEEDED: Move.SUCCEED,
    Ending.FAILED: Move.FAIL,
    Ending.CANCELLED: Move.ABANDON,
}


class JobTable:
    """The jobs of one database, as one owner sees them.

    Args:
        connection: To a database that has the tables.
        owner: Who takes jobs through it.
    """

    def __init__(self, connection: sqlite3.Connection, owner: Owner) -> None:
        self.owner = owner
        self._execute = connection.execute
        self._tally = Tally(connection)
        self._last: int | None = None
        """The greatest number so far, known while nobody else can write."""
        self._announced = False
        self._measured: tuple[OutboxLimits, int, int] | None = None
        """For these limits, how many bytes and how many jobs may come until the file is measured again."""

    def committed(self) -> None:
        """The transaction has ended well."""
        self._tally.committed()
        self._last = None

    def rolled_back(self) -> None:
        """The transaction has not happened."""
        self._tally.rolled_back()
        self._last = None
        self._announced = False
        self._measured = None

    # ------------------------------------------------------------------------------------------------------------------
    # Jobs that come and go

    def add(self, jobs: Sequence[NewJob], *, now: float, hold: bool, limits: OutboxLimits) -> tuple[str, ...]:
        """Keep new jobs.

        Args:
            jobs: The jobs.
            now: Seconds since the epoch.
            hold: Nobody but this owner is to start them.
            limits: What there is room for.

        Raises:
            OutboxFull: There is no room for all of them; none was kept.
        """
        counts = self.counts()
        if counts.pending + counts.running + counts.failed + len(jobs) > limits.max_jobs:
            raise OutboxFull("limits.max_outbox_jobs", limits.max_jobs)
        self._make_sure_of_room(jobs, limits)
        if hold:
            self._announce_this()
        owner = self.owner.instance if hold else None
        last = self._last
        if last is None:
            last = int(self._execute("SELECT max(number) FROM jobs").fetchone()[0] or 0)
        # Ascending, and after a prune not those of jobs that somebody may still know.
        number = max(last, int(now * 1000) << 20)
        names = []
        for job in jobs:
            number += 1
            self._execute(
                "INSERT INTO jobs (number, hook, lane, event, state, owner, max_starts, retry_age_s, created_at, "
                "due_at, shared, payload) VALUES (?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?)",
                (
                    number,
                    job.hook,
                    job.lane,
                    job.event,
                    owner,
                    job.rules.max_starts,
                    job.rules.retry_age_s,
                    now,
                    now,
                    self._share(job.shared),
                    job.payload,
                ),
            )
            names.append(job_name(number))
        self._last = number
        self._tally.add(JobState.PENDING, len(jobs))
        return tuple(names)

    def _make_sure_of_room(self, jobs: Sequence[NewJob], limits: OutboxLimits) -> None:
        wanted = sum(len(job.payload) + len(job.shared) for job in jobs)
        known, room, uses = self._measured or (limits, 0, 0)
        if known != limits or room < wanted or uses < len(jobs):
            pages = self._execute("PRAGMA page_count").fetchone()[0]
            free = self._execute("PRAGMA freelist_count").fetchone()[0]
            room, uses = limits.max_bytes - (pages - free) * PAGE_BYTES, MEASURED_EVERY
        if room < wanted:
            raise OutboxFull("limits.max_outbox_bytes", limits.max_bytes)
        self._measured = limits, room - wanted, uses - len(jobs)

    def _share(self, content: bytes) -> int | None:
        if not content:
            return None
        digest = hashlib.sha256(content).digest()
        found = self._execute("SELECT number FROM shared WHERE digest = ?", (digest,)).fetchone()
        if found is not None:
            return int(found[0])
        return self._execute(
            "INSERT INTO shared (digest, content) VALUES (?, ?)", (digest, content)
        ).lastrowid

    def _announce_this(self) -> None:
        if not self._announced:
            self._announce(self.owner)
            self._announced = True

    def _announce(self, owner: Owner) -> None:
        self._execute(
            "INSERT OR IGNORE INTO owners (instance, pid, started) VALUES (?, ?, ?)",
            (owner.instance, owner.pid, owner.started),
        )

    def due(self, *, now: float, limit: int, skip: AbstractSet[str]) -> Due:
        """What can be started.

        A lane gives one job at a time, so that one with thousands of jobs, or one whose jobs never end well, takes no
        turn from the others.

        Args:
            now: Seconds since the epoch.
            limit: Most jobs.
            skip: Lanes that are not wanted.
        """
        found: list[tuple[float, int]] = []
        next_at: float | None = None
        lane = ""
        while True:
            row = self._execute(
                "SELECT lane, due_at, number FROM jobs WHERE state = 'pending' AND owner IS NULL AND lane > ? "
                "AND starts < max_starts ORDER BY lane, due_at LIMIT 1",
                (lane,),
            ).fetchone()
            if row is None:
                break
            lane, due_at, number = row
            if lane in skip:
                continue
            if due_at <= now:
                found.append((due_at, number))
            elif next_at is None or due_at < next_at:
                next_at = due_at
        found.sort()
        return Due(jobs=tuple(self._job(number) for _, number in found[:limit]), next_at=next_at)

    def _job(self, number: int) -> Job:
        hook, lane, event, starts, payload, shared = self._execute(
            "SELECT hook, lane, event, starts, payload, shared.content FROM jobs "
            "LEFT JOIN shared ON shared.number = jobs.shared WHERE jobs.number = ?",
            (number,),
        ).fetchone()
        return Job(
            job_id=job_name(number),
            hook=hook,
            lane=lane,
            event=event,
            payload=payload,
            shared=shared or b"",
            starts=starts,
        )

    def start(self, job_id: str, *, now: float) -> int | None:
        """Take a job, if it is free or held by this owner, and count its start.

        Returns:
            Which start it is, from 1; None if somebody else has it, or it is gone.
        """
        row = self._row(job_id)
        if row is None or row.standing.place not in {Place.FREE, Place.HELD} or not self._may_have(row):
            return None
        self._announce_this()
        standing = self._follow(row, Move.START, now=now)
        self._write(row, standing, owner=self.owner.instance)
        return standing.starts

    def settle(self, job_id: str, attempt: Attempt, *, now: float, chance: float) -> Settled | None:
        """Write down what came of a run.

        Returns:
            Where the job is now; None if this owner does not have it.
        """
        row = self._row(job_id)
        if row is None or row.owner != self.owner.instance:
            return None
        if attempt.ending is Ending.NOT_STARTED:
            if row.standing.place is not Place.HELD:
                return None
            standing = self._follow(row, Move.RELEASE, now=now)
        elif row.standing.place is not Place.RUNNING:
            return None
        else:
            standing = self._follow(row, _ENDINGS[attempt.ending], now=now, chance=chance)
        ended_at = now if standing.place in {Place.DONE, Place.FAILED} else None
        if attempt.ending is Ending.NOT_STARTED:
            self._write(row, standing, owner=None)
            return _settled(standing)
        self._changed(row, standing)
        # Of a job that is done nothing needs the payload any more, and it may hold secrets.
        forgotten = ", payload = x'', shared = NULL" if standing.place is Place.DONE else ""
        self._execute(
            "UPDATE jobs SET state = ?, owner = NULL, due_at = ?, ended_at = ?, exit_code = ?, error = ?, "  # noqa: S608 - our own words
            f"stderr_tail = ?{forgotten} WHERE number = ?",
            (
                standing.place.state.value,
                standing.due_at,
                ended_at,
                attempt.exit_code,
                attempt.error[:MAX_ERROR],
                attempt.stderr_tail[-MAX_STDERR_TAIL:],
                row.number,
            ),
        )
        return _settled(standing)

    def hand_over(self, job_id: str, owner: Owner) -> bool:
        """Give a running job to another process, which settles it; false if this owner does not have it."""
        row = self._row(job_id)
        if row is None or row.owner != self.owner.instance or row.standing.place is not Place.RUNNING:
            return False
        self._announce(owner)
        self._write(row, row.standing, owner=owner.instance)
        return True

    # ------------------------------------------------------------------------------------------------------------------
    # Jobs that nobody has any more

    def recover(self, *, now: float) -> Recovered:
        """Take their jobs from owners that are dead, and fail those that have no start left."""
        self._tally.count_again()
        dead = []
        for instance, pid, started in self._execute("SELECT instance, pid, started FROM owners").fetchall():
            owner = Owner(instance=instance, pid=pid, started=started)
            if instance != self.owner.instance and not is_alive(owner):
                dead.append(instance)
        freed, failed = self._abandon(dead, now=now, why="its daemon ended while it ran")
        for instance in dead:
            self._execute("DELETE FROM owners WHERE instance = ?", (instance,))
        spent = self._numbers(
            "SELECT number FROM jobs WHERE state = 'pending' AND owner IS NULL AND starts >= max_starts"
        )
        for row in map(self._known, spent):
            standing = self._follow(row, Move.EXHAUST, now=now)
            why = f"outbox_max_retries is {row.rules.max_starts}, and it was started {row.standing.starts} times"
            self._fail(row, standing, why, now=now)
            failed.append((job_name(row.number), row.hook, why))
        self._mend_times(now)
        return Recovered(freed=freed, failed=tuple(failed))

    def let_go(self, *, now: float) -> Recovered:
        """Give back everything that this owner has."""
        freed, failed = self._abandon([self.owner.instance], now=now, why="the daemon ended while it ran")
        self._execute("DELETE FROM owners WHERE instance = ?", (self.owner.instance,))
        return Recovered(freed=freed, failed=tuple(failed))

    def _abandon(
        self, owners: Iterable[int], *, now: float, why: str
    ) -> tuple[int, list[tuple[str, str, str]]]:
        freed = 0
        failed = []
        for owner in owners:
            for row in map(self._known, self._numbers("SELECT number FROM jobs WHERE owner = ?", owner)):
                standing = self._follow(row, Move.ABANDON, now=now)
                if standing.place is Place.FAILED:
                    told = f"{why}; start {standing.starts} of {row.rules.max_starts}"
                    self._fail(row, standing, told, now=now)
                    failed.append((job_name(row.number), row.hook, told))
                else:
                    self._write(row, standing, owner=None)
                    freed += 1
                    if row.standing.place is Place.RUNNING:
                        self._execute("UPDATE jobs SET error = ? WHERE number = ?", (why, row.number))
        return freed, failed

    def _fail(self, row: Row, standing: Standing, why: str, *, now: float) -> None:
        self._write(row, standing, owner=None, ended_at=now)
        # What the last run said stays: it may tell more.
        self._execute("UPDATE jobs SET error = ? WHERE number = ?", (why[:MAX_ERROR], row.number))

    def _mend_times(self, now: float) -> None:
        """Bring back what a clock that was set back has moved out of reach."""
        far = self._execute(
            "SELECT max(due_at) FROM jobs WHERE state = 'pending' AND owner IS NULL"
        ).fetchone()[0]
        if far is None or not jumped(far, RetryRules(retry_age_s=0.0), now=now):
            return
        rows = self._execute(
            "SELECT number, due_at, retry_age_s FROM jobs WHERE state = 'pending' AND owner IS NULL AND due_at > ?",
            (now,),
        ).fetchall()
        for number, due_at, age_s in rows:
            if jumped(due_at, RetryRules(retry_age_s=age_s), now=now):
                self._execute("UPDATE jobs SET due_at = ? WHERE number = ?", (now, number))

    # ------------------------------------------------------------------------------------------------------------------
    # By hand

    def listed(self, *, state: JobState | None, limit: int, after: str | None) -> tuple[JobInfo, ...]:
        """Jobs in the order in which they came.

        Raises:
            NoSuchJob: `after` is no name of a job; it need not be there any more.
        """
        wanted = "" if state is None else "AND state = :state"
        rows = self._execute(
            f"SELECT {INFO} FROM jobs WHERE number > :after {wanted} ORDER BY number LIMIT :limit",  # noqa: S608 - our own words
            {
                "after": -1 if after is None else _number(after),
                "state": None if state is None else state.value,
                "limit": limit,
            },
        )
        return tuple(map(info_of, rows))

    def retry(self, job_id: str, *, now: float) -> None:
        """Have a job started as soon as may be; one that had failed gets all its starts again.

        Raises:
            NoSuchJob: It is not there.
            JobBusy: It runs, or is done.
        """
        row = self._known(_number(job_id))
        standing = self._by_hand(row, Move.RETRY, now=now)
        self._write(row, standing, owner=None)
        self._grant_a_start("number = ?", row.number)

    def retry_all(self, *, now: float) -> int:
        """As `retry`, of every job that has failed; gives how many."""
        self._grant_a_start("state = 'failed'")
        retried = self._execute(
            "UPDATE jobs SET state = 'pending', starts = 0, due_at = ?, ended_at = NULL WHERE state = 'failed'",
            (now,),
        ).rowcount
        self._tally.move(JobState.FAILED, JobState.PENDING, retried)
        return retried

    def _grant_a_start(self, which: str, *values: object) -> None:
        """Where the rules allow no start at all, who asks by hand means one."""
        self._execute(f"UPDATE jobs SET max_starts = 1 WHERE max_starts < 1 AND {which}", values)  # noqa: S608 - our own words

    def discard(self, job_id: str) -> None:
        """Give a job up.

        Raises:
            NoSuchJob: It is not there.
            JobBusy: It runs.
        """
        row = self._known(_number(job_id))
        self._by_hand(row, Move.DISCARD, now=0.0)
        self._execute("DELETE FROM jobs WHERE number = ?", (row.number,))
        self._tally.add(row.standing.place.state, -1)

    def discard_all(self, state: JobState) -> int:
        """Give up every job in a state that nobody has; gives how many."""
        return self._deleted(state, "state = ? AND owner IS NULL", state.value)

    def _deleted(self, state: JobState, which: str, *values: object) -> int:
        gone = self._execute(f"DELETE FROM jobs WHERE {which}", values).rowcount  # noqa: S608 - our own words
        self._tally.add(state, -gone)
        return gone

    def withdraw(self, job_ids: Iterable[str]) -> None:
        """Take back jobs that this owner holds: whoever handed them in is gone before they were promised."""
        for job_id in job_ids:
            which = "number = ? AND owner = ? AND state = 'pending'"
            self._deleted(JobState.PENDING, which, job_number(job_id), self.owner.instance)

    def prune(self, *, now: float) -> tuple[int, int]:
        """Remove jobs that ended long ago, or are too many; gives how many that were done, and that had failed."""
        done = self._remove_ended(JobState.DONE, before=now - DONE_KEPT_S, most=DONE_KEPT)
        failed = self._remove_ended(JobState.FAILED, before=now - FAILED_KEPT_S, most=FAILED_KEPT)
        self._execute(
            "DELETE FROM shared WHERE number NOT IN (SELECT shared FROM jobs WHERE shared IS NOT NULL)"
        )
        # Each row of it is a page that goes back to the file system.
        self._execute(f"PRAGMA incremental_vacuum({PRUNED_AT_ONCE})").fetchall()
        return done, failed

    def _remove_ended(self, state: JobState, *, before: float, most: int) -> int:
        which = (
            "number IN (SELECT number FROM jobs WHERE state = ? AND ended_at < ? ORDER BY ended_at LIMIT ?)"
        )
        old = self._deleted(state, which, state.value, before, PRUNED_AT_ONCE)
        too_many = min(max(getattr(self.counts(), state.value) - most, 0), PRUNED_AT_ONCE)
        if not too_many:
            return old
        return old + self._deleted(state, which, state.value, math.inf, too_many)

    def counts(self) -> Counts:
        """How many jobs there are, by state, with what the transaction under way changes."""
        return self._tally.counts()

    # ------------------------------------------------------------------------------------------------------------------

    def _numbers(self, query: str, *values: object) -> list[int]:
        return [row[0] for row in self._execute(query, values)]

    def _row(self, job_id: str) -> Row | None:
        number = job_number(job_id)
        return None if number is None else self._find(number)

    def _known(self, number: int) -> Row:
        row = self._find(number)
        if row is None:
            raise NoSuchJob(job_name(number))
        return row

    def _find(self, number: int) -> Row | None:
        return read_row(self._execute, number)

    def _may_have(self, row: Row) -> bool:
        return row.owner is None or row.owner == self.owner.instance

    def _follow(self, row: Row, move: Move, *, now: float, chance: float = 0.5) -> Standing:
        return follow(row.standing, move, row.rules, now=now, chance=chance)

    def _by_hand(self, row: Row, move: Move, *, now: float) -> Standing:
        try:
            return self._follow(row, move, now=now)
        except WrongMove:
            raise JobBusy(job_name(row.number), _REFUSALS[row.standing.place]) from None

    def _write(
        self, row: Row, standing: Standing, *, owner: int | None, ended_at: float | None = None
    ) -> None:
        self._changed(row, standing)
        self._execute(
            "UPDATE jobs SET state = ?, owner = ?, starts = ?, due_at = ?, started_at = ?, ended_at = ? "
            "WHERE number = ?",
            (
                standing.place.state.value,
                owner,
                standing.starts,
                standing.due_at,
                standing.started_at,
                ended_at,
                row.number,
            ),
        )

    def _changed(self, row: Row, standing: Standing) -> None:
        self._tally.move(row.standing.place.state, standing.place.state)


_REFUSALS: Final = {
    Place.HELD: "it is about to be started",
    Place.RUNNING: "it is running",
    Place.DONE: "it is done",
}


def _settled(standing: Standing) -> Settled:
    return Settled(
        state=standing.place.state,
        starts=standing.starts,
        due_at=standing.due_at if standing.place is Place.FREE else None,
    )


def _number(job_id: str) -> int:
    number = job_number(job_id)
    if number is None:
        raise NoSuchJob(job_id)
    return number
