"""A job's life through the whole outbox, on a real file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from hooksd.outbox.errors import JobBusy, NoSuchJob, OutboxClosed, OutboxFull
from hooksd.outbox.jobs import Attempt, Counts, Due, Ending, JobState, NewJob, OutboxLimits, Recovered
from hooksd.outbox.owner import Owner, new_instance
from hooksd.outbox.table import DONE_KEPT, DONE_KEPT_S, FAILED_KEPT_S
from hooksd.outbox.worker import settle


Bench = Any
"""The class is in conftest.py, which cannot be imported."""
NewJobs = Callable[..., NewJob]

GOOD = Attempt(ending=Ending.SUCCEEDED, exit_code=0)
BAD = Attempt(ending=Ending.FAILED, error="exit code 3", exit_code=3, stderr_tail="no net")
CUT = Attempt(ending=Ending.CANCELLED, error="cut off")


def rows(bench: Bench, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(bench.path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


async def test_without_a_job_there_is_no_file(bench: Bench) -> None:
    outbox = bench.outbox()

    assert await outbox.due(5) == Due()
    assert await outbox.list() == ()
    assert await outbox.recover() == Recovered()
    assert await outbox.retry(None) == await outbox.discard(JobState.FAILED) == 0
    assert not outbox.exists
    assert not os.path.exists(bench.path)


async def test_a_job_is_kept_started_and_done(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()

    (job_id,) = await outbox.add([new_job("h", event="after_turn", payload=b"secret", shared=b"env")])
    assert rows(bench, "SELECT state, starts, payload FROM jobs") == [("pending", 0, b"secret")]
    assert await outbox.due(5) == Due()  # it is held
    bench.now += 1
    assert await outbox.start(job_id) == 1
    assert rows(bench, "SELECT state, starts, started_at FROM jobs") == [("running", 1, 1_000_001.0)]
    assert outbox.counts == Counts(running=1)
    settled = await outbox.settle(job_id, GOOD)

    assert settled is not None
    assert (settled.state, settled.starts, settled.due_at) == (JobState.DONE, 1, None)
    assert rows(bench, "SELECT state, exit_code, payload, shared FROM jobs") == [("done", 0, b"", None)]
    (told,) = await outbox.list()
    assert (told.job_id, told.hook, told.event, told.state) == (job_id, "h", "after_turn", JobState.DONE)
    assert (told.created_at, told.started_at, told.ended_at) == (1_000_000.0, 1_000_001.0, 1_000_001.0)
    assert outbox.counts == Counts(done=1)
    assert outbox.problems == ()


async def test_a_run_that_failed_comes_back_later_and_later_and_then_no_more(
    bench: Bench, new_job: NewJobs
) -> None:
    outbox = bench.outbox()
    (job_id,) = await outbox.add([new_job(payload=b"p", shared=b"e")])
    waits = []
    for number in (1, 2):
        assert await outbox.start(job_id) == number
        settled = await outbox.settle(job_id, BAD)
        assert settled is not None
        assert settled.due_at is not None
        waits.append(settled.due_at - bench.now)
        due = await outbox.due(5)
        assert (due.jobs, due.next_at) == ((), settled.due_at)
        bench.now = settled.due_at
        (job,) = (await outbox.due(5)).jobs
        assert (job.job_id, job.payload, job.shared, job.starts) == (job_id, b"p", b"e", number)
    assert waits == [5.0, 10.0]

    assert await outbox.start(job_id) == 3
    settled = await outbox.settle(job_id, BAD)

    assert settled is not None
    assert settled.state is JobState.FAILED
    (dead,) = await outbox.list(state=JobState.FAILED)
    assert (dead.error, dead.exit_code, dead.stderr_tail) == ("exit code 3", 3, "no net")
    assert (dead.starts, dead.max_starts, dead.due_at) == (3, 3, None)
    assert (await outbox.due(5)) == Due()


async def test_words_that_are_kept_are_bounded(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    (job_id,) = await outbox.add([new_job(max_starts=1)])
    await outbox.start(job_id)

    await outbox.settle(job_id, Attempt(ending=Ending.FAILED, error="e" * 9000, stderr_tail="a" * 9000 + "z"))

    (dead,) = await outbox.list()
    assert len(dead.error) == 500
    assert dead.stderr_tail == "a" * 1023 + "z"


async def test_a_run_that_was_cut_off_comes_back_after_its_age(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    (job_id,) = await outbox.add([new_job(age_s=60.0)])
    await outbox.start(job_id)
    bench.now += 25

    settled = await outbox.settle(job_id, CUT)

    assert settled is not None
    assert (settled.due_at, settled.starts) == (1_000_060.0, 1)


async def test_a_run_that_never_started_costs_nothing(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    (job_id,) = await outbox.add([new_job()])

    await outbox.settle(job_id, Attempt(ending=Ending.NOT_STARTED))

    (job,) = (await outbox.due(5)).jobs
    assert (job.job_id, job.starts) == (job_id, 0)
    assert await outbox.settle(job_id, Attempt(ending=Ending.NOT_STARTED)) is None


async def test_nobody_settles_what_he_does_not_have(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    (job_id,) = await outbox.add([new_job()], hold=False)

    assert await outbox.settle(job_id, GOOD) is None
    (held,) = await outbox.add([new_job()])
    assert await outbox.settle(held, GOOD) is None
    assert await outbox.settle("job-0000000000000001", GOOD) is None
    assert await outbox.settle("nonsense", GOOD) is None
    assert outbox.counts.pending == 2


# ----------------------------------------------------------------------------------------------------------------------
# Several at once


async def test_many_at_once_share_commits_and_every_one_is_there(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()

    names = await asyncio.gather(*(outbox.add([new_job(f"h{number}")]) for number in range(200)))

    assert len({name for (name,) in names}) == 200
    assert rows(bench, "SELECT count(*) FROM jobs") == [(200,)]


async def test_one_that_cannot_be_taken_in_spoils_nothing_for_the_others(
    bench: Bench, new_job: NewJobs
) -> None:
    bench.limits = OutboxLimits(max_jobs=5, max_bytes=1 << 30)
    outbox = bench.outbox()

    told = await asyncio.gather(
        *(outbox.add([new_job(f"h{number}")] * 2) for number in range(4)), return_exceptions=True
    )

    refused = [one for one in told if isinstance(one, BaseException)]
    assert len(refused) == 2
    assert all(isinstance(one, OutboxFull) for one in refused)
    assert str(refused[0]) == "the outbox is full: limits.max_outbox_jobs is 5"
    assert outbox.counts.pending == 4


async def test_jobs_that_are_done_take_no_room(bench: Bench, new_job: NewJobs) -> None:
    bench.limits = OutboxLimits(max_jobs=1, max_bytes=1 << 30)
    outbox = bench.outbox()
    for _ in range(3):
        (job_id,) = await outbox.add([new_job()])
        await outbox.start(job_id)
        await outbox.settle(job_id, GOOD)

    assert outbox.counts == Counts(done=3)


async def test_the_size_is_bounded(bench: Bench, new_job: NewJobs) -> None:
    bench.limits = OutboxLimits(max_jobs=1000, max_bytes=1 << 20)
    outbox = bench.outbox()
    await outbox.add([new_job(payload=bytes(600_000))])

    with pytest.raises(OutboxFull, match=r"limits\.max_outbox_bytes is 1048576"):
        await outbox.add([new_job(payload=bytes(600_000))])

    await outbox.add([new_job(payload=bytes(1000))])


async def test_environments_are_kept_once_and_go_with_the_last_job(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    names = await outbox.add(
        [new_job(shared=b"one"), new_job(shared=b"one"), new_job(shared=b"two"), new_job()]
    )
    assert rows(bench, "SELECT count(*) FROM shared") == [(2,)]
    assert [job.shared for job in (await bench.outbox().due(1)).jobs] == []

    for job_id in names[:2]:
        await outbox.start(job_id)
        await outbox.settle(job_id, GOOD)
    await outbox.recover()

    assert rows(bench, "SELECT content FROM shared") == [(b"two",)]


async def test_a_lane_gives_one_job_at_a_time_and_the_longest_due_comes_first(
    bench: Bench, new_job: NewJobs
) -> None:
    outbox = bench.outbox()
    for lane in ("poisoned", "poisoned", "poisoned", "b", "a"):
        bench.now += 1
        await outbox.add([new_job(lane)], hold=False)

    due = await outbox.due(10)

    assert [job.lane for job in due.jobs] == ["poisoned", "b", "a"]
    assert [job.lane for job in (await outbox.due(2)).jobs] == ["poisoned", "b"]
    assert [job.lane for job in (await outbox.due(10, skip={"poisoned", "a"})).jobs] == ["b"]
    # Behind one that fails come the others of its lane, not itself again.
    first = due.jobs[0].job_id
    await outbox.start(first)
    await outbox.settle(first, BAD)
    assert (await outbox.due(1, skip={"a", "b"})).jobs[0].job_id > first


async def test_whoever_hands_a_job_in_and_goes_away_has_handed_nothing_in(
    bench: Bench, new_job: NewJobs
) -> None:
    outbox = bench.outbox()
    await outbox.add([new_job()])
    for _ in range(5):
        adding = asyncio.ensure_future(outbox.add([new_job()]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        adding.cancel()
        with suppress(asyncio.CancelledError):
            await adding
    await outbox.list()
    await outbox.list()

    assert outbox.counts == Counts(pending=1)


# ----------------------------------------------------------------------------------------------------------------------
# Several daemons, and dead ones


async def test_two_daemons_never_have_one_job(bench: Bench, new_job: NewJobs) -> None:
    one, other = bench.outbox(), bench.outbox()
    names = await one.add([new_job(f"h{number}") for number in range(40)], hold=False)

    started = await asyncio.gather(
        *(daemon.start(job_id) for job_id in names for daemon in (one, other)), return_exceptions=True
    )

    assert sorted(map(str, started)) == ["1"] * 40 + ["None"] * 40
    assert rows(bench, "SELECT DISTINCT starts FROM jobs") == [(1,)]


async def test_what_one_daemon_holds_no_other_takes(bench: Bench, new_job: NewJobs) -> None:
    one, other = bench.outbox(), bench.outbox()
    (job_id,) = await one.add([new_job()])

    assert await other.due(5) == Due()
    assert await other.start(job_id) is None
    bench.now += 10_000
    # However long it takes: its owner lives.
    assert await other.recover() == Recovered()
    assert await one.start(job_id) == 1
    bench.now += 10_000
    assert await other.recover() == Recovered()
    assert await other.start(job_id) is None


async def test_the_end_of_a_daemon_gives_back_what_it_had(bench: Bench, new_job: NewJobs) -> None:
    one, other = bench.outbox(), bench.outbox()
    held, running, last = await one.add([new_job("a"), new_job("b", age_s=30.0), new_job("c", max_starts=1)])
    await one.start(running)
    await one.start(last)
    bench.now += 5

    await one.aclose()

    due = await other.due(5)
    assert [job.job_id for job in due.jobs] == [held]
    assert due.next_at == 1_000_030.0
    (dead,) = await other.list(state=JobState.FAILED)
    assert (dead.job_id, dead.error) == (last, "the daemon ended while it ran; start 1 of 1")
    with pytest.raises(OutboxClosed):
        await one.add([new_job()])
    with pytest.raises(OutboxClosed):
        await one.settle(held, GOOD)
    await one.aclose()


async def test_the_jobs_of_a_dead_daemon_come_back(bench: Bench, new_job: NewJobs) -> None:
    one, other = bench.outbox(), bench.outbox()
    held, running, last = await one.add([new_job("a"), new_job("b"), new_job("c", max_starts=1)])
    await one.start(running)
    await one.start(last)
    connection = sqlite3.connect(bench.path)
    connection.execute(
        "UPDATE owners SET started = 'another boot:1' WHERE instance = ?", (one.owner.instance,)
    )
    connection.commit()
    connection.close()

    recovered = await other.recover()

    assert recovered.freed == 2
    ((job_id, hook, why),) = recovered.failed
    assert (job_id, hook, why) == (last, "c", "its daemon ended while it ran; start 1 of 1")
    assert [job.job_id for job in (await other.due(5)).jobs] == [held]
    # Late, the one that was thought dead cannot spoil it.
    assert await other.start(held) == 1
    assert await one.settle(held, GOOD) is None
    assert await one.settle(running, GOOD) is None


async def test_no_start_left_is_found_at_the_next_look(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    await outbox.add([new_job(max_starts=0)], hold=False)
    assert await outbox.due(5) == Due()

    recovered = await outbox.recover()

    assert [why for _, _, why in recovered.failed] == ["outbox_max_retries is 0, and it was started 0 times"]
    assert outbox.counts == Counts(failed=1)
    # Who asks by hand means one start.
    await outbox.retry(recovered.failed[0][0])
    assert len((await outbox.due(5)).jobs) == 1


async def test_a_clock_that_was_set_back_buries_nothing(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    await outbox.add([new_job("a"), new_job("b", age_s=90_000.0)], hold=False)
    bench.now -= 80_000

    assert (await outbox.due(5)).jobs == ()
    await outbox.recover()

    assert [job.lane for job in (await outbox.due(5)).jobs] == ["a"]
    bench.now -= 80_000
    await outbox.recover()
    assert [job.lane for job in (await outbox.due(5)).jobs] == ["a", "b"]


async def test_a_process_that_a_job_was_given_to_settles_it(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    given, kept = await outbox.add([new_job("a"), new_job("b")])
    await outbox.start(given)
    worker = Owner.of(os.getpid(), new_instance())

    assert await outbox.hand_over(given, worker)
    assert not await outbox.hand_over(given, worker)
    assert not await outbox.hand_over(kept, worker)
    assert await outbox.settle(given, GOOD) is None
    await outbox.aclose()
    assert rows(bench, "SELECT state FROM jobs ORDER BY number") == [("running",), ("pending",)]
    settled = settle(bench.path, worker, given, GOOD)

    assert settled is not None
    assert settled.state is JobState.DONE
    assert settle(bench.path, worker, kept, GOOD) is None


# ----------------------------------------------------------------------------------------------------------------------
# By hand, and by time


async def test_jobs_are_listed_in_order_and_in_parts(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    names = [*await outbox.add([new_job()] * 3), *await outbox.add([new_job()] * 2, hold=False)]

    first = await outbox.list(limit=2)
    rest = await outbox.list(after=first[-1].job_id, limit=10)

    assert [job.job_id for job in (*first, *rest)] == names == sorted(names)
    assert [job.job_id for job in await outbox.list(state=JobState.DONE)] == []
    with pytest.raises(NoSuchJob):
        await outbox.list(after="nonsense")


async def test_retry_by_hand(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    late, dead, done, held = await outbox.add(
        [new_job("a"), new_job("b", max_starts=1), new_job("c"), new_job("d")]
    )
    for job_id, attempt in ((late, BAD), (dead, BAD), (done, GOOD)):
        await outbox.start(job_id)
        await outbox.settle(job_id, attempt)
    assert (await outbox.due(5)).jobs == ()

    assert await outbox.retry(late) == 1
    assert await outbox.retry(dead) == 1

    assert {job.job_id: job.starts for job in (await outbox.due(5)).jobs} == {late: 1, dead: 0}
    for job_id, why in ((done, "it is done"), (held, "about to be started")):
        with pytest.raises(JobBusy, match=why):
            await outbox.retry(job_id)
    await outbox.start(held)
    with pytest.raises(JobBusy, match="it is running"):
        await outbox.retry(held)
    with pytest.raises(NoSuchJob, match="there is no job"):
        await outbox.retry("job-00000000000000aa")


async def test_retry_of_all_that_failed(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    names = await outbox.add([new_job(f"h{number}", max_starts=1) for number in range(3)])
    for job_id in names[:2]:
        await outbox.start(job_id)
        await outbox.settle(job_id, BAD)

    assert await outbox.retry(None) == 2
    assert await outbox.retry(None) == 0

    assert [(job.job_id, job.starts) for job in (await outbox.due(5)).jobs] == [
        (name, 0) for name in names[:2]
    ]
    assert outbox.counts == Counts(pending=3)


async def test_discard(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    held, running, dead = await outbox.add([new_job("a"), new_job("b"), new_job("c", max_starts=1)])
    await outbox.add([new_job("d"), new_job("e")], hold=False)
    await outbox.start(running)
    await outbox.start(dead)
    await outbox.settle(dead, BAD)

    for job_id in (held, running):
        with pytest.raises(JobBusy):
            await outbox.discard(job_id)
    assert await outbox.discard(dead) == 1
    with pytest.raises(NoSuchJob):
        await outbox.discard(dead)
    assert await outbox.discard(JobState.PENDING) == 2
    assert outbox.counts == Counts(pending=1, running=1)


async def test_what_ended_long_ago_is_removed(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    names = await outbox.add([new_job("a"), new_job("b", max_starts=1), new_job("c")])
    for job_id, attempt in zip(names[:2], (GOOD, BAD), strict=True):
        await outbox.start(job_id)
        await outbox.settle(job_id, attempt)

    bench.now += DONE_KEPT_S + 1
    await outbox.recover()
    assert outbox.counts == Counts(pending=1, failed=1)
    assert bench.told("outbox.pruned") == [{"done": 1, "failed": 0}]
    bench.now += FAILED_KEPT_S
    await outbox.recover()

    assert outbox.counts == Counts(pending=1)
    assert bench.told("outbox.pruned")[1:] == [{"done": 0, "failed": 1}]


async def test_jobs_that_are_done_are_kept_in_bounded_number(bench: Bench, new_job: NewJobs) -> None:
    bench.limits = OutboxLimits(max_jobs=5000, max_bytes=1 << 30)
    outbox = bench.outbox()
    names = await outbox.add([new_job()] * (DONE_KEPT + 20))
    connection = sqlite3.connect(bench.path)
    connection.execute(
        "UPDATE jobs SET state = 'done', owner = NULL, ended_at = created_at + number % 100000"
    )
    connection.commit()
    connection.close()

    await outbox.recover()

    assert outbox.counts == Counts(done=DONE_KEPT)
    assert (await outbox.list(limit=1))[0].job_id == names[20]
