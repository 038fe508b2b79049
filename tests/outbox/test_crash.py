"""Processes that are killed at any instant: what was promised is there, and nothing is done that did not end well."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hooksd.outbox.database import Database, secured
from hooksd.outbox.owner import Owner


VICTIM = """
import asyncio, itertools, sys
from hooksd.outbox.jobs import Attempt, Ending, JobState, NewJob, OutboxLimits, RetryRules
from hooksd.outbox.outbox import Outbox

def say(*words):
    print(*words, flush=True)

async def worker(outbox, lane):
    for number in itertools.count():
        job = NewJob(hook=lane, lane=lane, event="e", payload=b"p" * 3000, rules=RetryRules(max_starts=100, retry_age_s=0.0))
        (job_id,) = await outbox.add([job])
        say("added", job_id)
        await outbox.start(job_id)
        say("started", job_id)
        if number % 3 == 0:
            say("failing", job_id)
            await outbox.settle(job_id, Attempt(ending=Ending.FAILED, error="x", exit_code=1))
        elif number % 3 == 1:
            say("ending", job_id)
            await outbox.settle(job_id, Attempt(ending=Ending.SUCCEEDED, exit_code=0))
            say("done", job_id)

async def main():
    outbox = Outbox(sys.argv[1], record=lambda *_: None, limits=lambda: OutboxLimits(max_jobs=10**6, max_bytes=1 << 30))
    say("recovered", (await outbox.recover()).freed)
    await asyncio.gather(*(worker(outbox, f"lane-{number}") for number in range(8)))

asyncio.run(main())
"""

ROUNDS = 12


def killed(path: str, after: int) -> list[list[str]]:
    """Run the victim, kill it after so many lines, and give what it had said."""
    with subprocess.Popen([sys.executable, "-c", VICTIM, path], stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        said = []
        for line in victim.stdout:
            said.append(line.split())
            if len(said) == after:
                victim.send_signal(signal.SIGKILL)
        assert victim.wait() == -signal.SIGKILL
    # The last line may have been cut.
    return [words for words in said if len(words) == 2]


@pytest.mark.slow
def test_no_instant_of_a_kill_loses_a_job_or_makes_one_done(tmp_path: Path) -> None:
    path = str(tmp_path / "outbox.sqlite3")
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    added, ending, done = set(), set(), set()
    for _ in range(ROUNDS):
        for word, name in killed(path, chance.randrange(1, 400)):
            {"added": added, "ending": ending, "done": done}.get(word, set()).add(name)

    database = Database(path, Owner.of(os.getpid()), secured(path))
    try:
        assert database._execute("PRAGMA integrity_check").fetchone() == ("ok",)
        database.begin()
        database.jobs.recover(now=1e12)
        database.commit()
        counts = database.jobs.counts()
        states = {job.job_id: job for job in database.jobs.listed(state=None, limit=10**6, after=None)}
    finally:
        database.close()

    assert len(added) > ROUNDS
    assert added <= set(states)
    finished = {name for name, job in states.items() if job.state == "done"}
    assert done <= finished <= ending
    assert all(states[name].exit_code == 0 for name in finished)
    # Nobody lives who could have one.
    assert counts.running == 0
    assert sum((counts.pending, counts.done, counts.failed)) == len(states)
    assert all(job.starts > 0 or job.state == "pending" for job in states.values())


FULL = """
import asyncio, resource, sys
from hooksd.outbox.errors import OutboxUnusable
from hooksd.outbox.jobs import Attempt, Ending, NewJob, OutboxLimits
from hooksd.outbox.outbox import Outbox

async def main():
    told = []
    outbox = Outbox(
        sys.argv[1],
        record=lambda level, kind, fields: told.append((kind, fields.get("reason"))),
        limits=lambda: OutboxLimits(max_jobs=10**6, max_bytes=1 << 30),
    )
    job = NewJob(hook="h", lane="h", event="e", payload=bytes(20_000))
    kept = [(await outbox.add([job]))[0] for _ in range(3)]
    await outbox.start(kept[0])
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    refused = 0
    for _ in range(30):
        try:
            kept += await outbox.add([job])
        except OutboxUnusable as error:
            refused += 1
    assert refused, "the disk was never full"
    assert outbox.problems, "nobody was told"
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    kept += await outbox.add([job])
    assert not outbox.problems
    assert [job.job_id for job in await outbox.list(limit=1000)] == kept
    await outbox.settle(kept[0], Attempt(ending=Ending.SUCCEEDED, exit_code=0))
    assert outbox.counts.done == 1
    await outbox.aclose()
    print([kind for kind, _ in told])

asyncio.run(main())
"""


def test_a_file_that_cannot_grow(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "outbox.sqlite3")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "['outbox.unusable', 'outbox.recovered']"


READ_ONLY = """
import asyncio, os, sys
import hooksd.outbox.writer
from hooksd.outbox.errors import OutboxUnusable
from hooksd.outbox.jobs import NewJob, OutboxLimits
from hooksd.outbox.outbox import Outbox

async def main():
    outbox = Outbox(sys.argv[1], record=lambda *_: None, limits=lambda: OutboxLimits(max_jobs=9, max_bytes=1 << 30))
    # What is imported only now could not be read afterwards.
    await asyncio.to_thread(int)
    os.setuid(65534)
    try:
        await outbox.add([NewJob(hook="h", lane="h", event="e", payload=b"")])
    except OutboxUnusable as error:
        print(error.reason, outbox.problems[0].message)
    await outbox.aclose()

asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not write")
def test_a_directory_of_somebody_else() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", READ_ONLY, "/outbox-of-nobody.sqlite3"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.stdout.startswith("it cannot be made (Permission denied)"), ran.stderr


def test_a_lost_companion_is_no_damage(tmp_path: Path) -> None:
    path = str(tmp_path / "outbox.sqlite3")
    killed(path, 60)
    os.unlink(f"{path}-shm")

    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT count(*) FROM jobs").fetchone()[0] > 0
    connection.close()
