"""What the writer makes of a disk that is full, a file that is damaged or gone, and faults of ours."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hooksd.model.records import Level
from hooksd.outbox import writer as writers
from hooksd.outbox.database import Database
from hooksd.outbox.errors import OutboxClosed, OutboxUnusable
from hooksd.outbox.jobs import Attempt, Counts, Ending, JobState, NewJob


Bench = Any
"""The class is in conftest.py, which cannot be imported."""
NewJobs = Callable[..., NewJob]

GOOD = Attempt(ending=Ending.SUCCEEDED, exit_code=0)


async def until(holds: Callable[[], object], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to be"
        await asyncio.sleep(0.01)


def failing(monkeypatch: pytest.MonkeyPatch, code: int, *, fails: Callable[[], bool]) -> None:
    """Let commits fail as on a disk that is full; the real thing is in test_disk.py, in a process of its own."""
    commit = Database.commit

    def refuse(self: Database) -> None:
        if fails():
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = code
            error.sqlite_errorname = "SQLITE_FULL"
            raise error
        commit(self)

    monkeypatch.setattr(Database, "commit", refuse)


async def test_trouble_is_told_once_and_its_end_too(
    bench: Bench, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = bench.outbox()
    await outbox.add([new_job()])
    full = True
    failing(monkeypatch, sqlite3.SQLITE_FULL, fails=lambda: full)

    for _ in range(3):
        with pytest.raises(OutboxUnusable, match="the disk is full"):
            await outbox.add([new_job()])
    assert [level for level, kind, _ in bench.records if kind == "outbox.unusable"] == [Level.ERROR]
    (problem,) = outbox.problems
    assert "cannot be kept: the disk is full" in problem.message
    assert problem.hint
    full = False
    await outbox.add([new_job()])

    assert len(bench.told("outbox.recovered")) == 1
    assert outbox.problems == ()
    assert outbox.counts == Counts(pending=2)


async def test_the_end_of_a_run_is_written_when_the_disk_takes_it_again(
    bench: Bench, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "OWED_RETRY_S", 0.05)
    outbox = bench.outbox()
    (job_id,) = await outbox.add([new_job()])
    await outbox.start(job_id)
    full = True
    failing(monkeypatch, sqlite3.SQLITE_FULL, fails=lambda: full)

    with pytest.raises(OutboxUnusable):
        await outbox.settle(job_id, GOOD)
    full = False

    await until(lambda: outbox.counts == Counts(done=1))


async def test_one_culprit_fails_alone(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    await outbox.add([new_job()])

    told = await asyncio.gather(
        outbox.add([new_job("a")]),
        outbox.add([new_job("b", payload="no bytes")]),  # a fault of ours: the table is strict
        outbox.add([new_job("c")]),
        return_exceptions=True,
    )

    assert [isinstance(one, BaseException) for one in told] == [False, True, False]
    assert outbox.counts == Counts(pending=3)


async def test_a_fault_of_ours_reaches_whoever_waits(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    await outbox.add([new_job()])
    assert outbox._writer is not None

    def broken(_: Database) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await outbox._writer.post(broken)

    assert len(await outbox.list()) == 1


@pytest.mark.parametrize("damage", ["garbage", "header", "pages"])
async def test_a_damaged_file_is_kept_aside_and_a_new_one_begun(
    bench: Bench, new_job: NewJobs, damage: str
) -> None:
    before = bench.outbox()
    await before.add([new_job(payload=bytes(50_000))] * 20)
    await before.aclose()
    path = Path(bench.path)
    content = bytearray(path.read_bytes())
    match damage:
        case "garbage":
            content = bytearray(os.urandom(100_000))
        case "header":
            content[:100] = bytes(100)
        case "pages":
            content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)

    outbox = bench.outbox()
    (job_id,) = await outbox.add([new_job()])

    (moved,) = (name for name in os.listdir(path.parent) if ".corrupt-" in name)
    # SQLite counts openings in the header, where it can still read one.
    assert (path.parent / moved).read_bytes()[100:] == content[100:]
    assert bench.told("outbox.damaged") == [{"file": bench.path, "moved_to": str(path.parent / moved)}]
    (problem,) = outbox.problems
    assert moved in problem.message
    assert [job.job_id for job in await outbox.list()] == [job_id]
    assert await outbox.start(job_id) == 1


@pytest.mark.parametrize("cut", ["truncated", "garbage"])
async def test_a_damaged_log_costs_no_commit_before_it(
    bench: Bench, new_job: NewJobs, tmp_path: Path, cut: str
) -> None:
    outbox = bench.outbox()
    names = [(await outbox.add([new_job(payload=bytes(5000))], hold=False))[0] for _ in range(10)]
    # As a crash leaves them: the files without whoever had them open.
    for end in ("", "-wal"):
        (tmp_path / f"copy{end}").write_bytes(Path(bench.path + end).read_bytes())
    wal = tmp_path / "copy-wal"
    content = wal.read_bytes()
    half = len(content) // 2
    wal.write_bytes(content[:half] if cut == "truncated" else content[:half] + os.urandom(half))
    bench.path = str(tmp_path / "copy")

    again = bench.outbox()
    found = [job.job_id for job in await again.list()]

    assert found == names[: len(found)]
    assert 0 < len(found) < 10
    await again.add([new_job()])
    assert bench.told("outbox.damaged") == []


async def test_a_file_that_was_removed_is_made_anew(bench: Bench, new_job: NewJobs) -> None:
    outbox = bench.outbox()
    await outbox.add([new_job()])
    for end in ("", "-wal", "-shm"):
        os.unlink(bench.path + end)

    (job_id,) = await outbox.add([new_job()])

    assert [job.job_id for job in await outbox.list()] == [job_id]
    assert os.path.exists(bench.path)


async def test_another_daemon_that_set_the_file_aside_is_followed(bench: Bench, new_job: NewJobs) -> None:
    one, other = bench.outbox(), bench.outbox()
    await one.add([new_job()])
    await other.list()
    for end in ("", "-wal", "-shm"):
        os.rename(bench.path + end, f"{bench.path}.corrupt-1{end}")
    await one.add([new_job("theirs")], hold=False)

    assert [job.lane for job in (await other.due(5)).jobs] == ["theirs"]


async def test_a_directory_that_cannot_be_written(bench: Bench, new_job: NewJobs, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    bench.path = str(tmp_path / "file" / "outbox.sqlite3")
    outbox = bench.outbox()

    with pytest.raises(OutboxUnusable, match="cannot be made"):
        await outbox.add([new_job()])

    assert len(bench.told("outbox.unusable")) == 1
    assert outbox.problems
    # And later it can.
    (tmp_path / "file").unlink()
    (tmp_path / "file").mkdir()
    await outbox.add([new_job()])
    assert outbox.problems == ()


async def test_a_lock_that_somebody_keeps(
    bench: Bench, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hooksd.outbox.database.BUSY_S", 0.05)
    outbox = bench.outbox()
    await outbox.add([new_job()])
    keeper = sqlite3.connect(bench.path, isolation_level=None)
    keeper.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(OutboxUnusable, match="locked it for too long"):
            await asyncio.gather(*(outbox.add([new_job()]) for _ in range(20)))
    finally:
        keeper.execute("ROLLBACK")
        keeper.close()

    await outbox.add([new_job()])
    assert outbox.problems == ()


async def test_a_checkpoint_that_fails_is_told_and_holds_nothing_up(
    bench: Bench, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = bench.outbox()
    await outbox.add([new_job()])
    broken = True
    checkpoint = Database.checkpoint

    def refuse(self: Database) -> None:
        if broken:
            raise sqlite3.OperationalError("no")
        checkpoint(self)

    monkeypatch.setattr(Database, "checkpoint", refuse)
    await outbox.add([new_job()])
    await outbox.add([new_job()])
    await until(lambda: outbox.problems)
    assert len(bench.told("outbox.unusable")) == 1
    broken = False
    await outbox.add([new_job()])

    await until(lambda: not outbox.problems)
    assert outbox.counts == Counts(pending=4)


async def test_a_thread_that_dies_leaves_nobody_waiting(
    bench: Bench, new_job: NewJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    monkeypatch.setattr(writers.Writer, "_tidy", lambda _: 1 / 0)
    outbox = bench.outbox()
    await outbox.add([new_job()])

    async def forever() -> None:
        while True:
            await outbox.list()

    with pytest.raises(OutboxClosed):
        await asyncio.wait_for(forever(), 10)
    assert [context["message"] for context in told] == ["the outbox's thread has ended"]


async def test_the_state_of_jobs_survives_a_close(bench: Bench, new_job: NewJobs) -> None:
    first = bench.outbox()
    await first.add([new_job()], hold=False)
    await first.aclose()
    second = bench.outbox()

    assert [job.state for job in await second.list()] == [JobState.PENDING]
