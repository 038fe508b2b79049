"""Settling a job from a process of its own, which outlives the daemon that started it."""

from __future__ import annotations

import random
import time

from hooksd.outbox.database import Database, secured
from hooksd.outbox.jobs import Attempt, Settled
from hooksd.outbox.owner import Owner


__all__ = ["settle"]


def settle(path: str, owner: Owner, job_id: str, attempt: Attempt) -> Settled | None:
    """Write down what came of a job that a daemon has handed over (`Outbox.hand_over`); it is on disk at the return.

    Args:
        path: The database.
        owner: This process, under the number that it was told.
        job_id: The job.
        attempt: How its run ended.

    Returns:
        Where the job is now; None if this process does not have it.

    Raises:
        OutboxUnusable: The database cannot be used.
        sqlite3.Error: It could not be written; the job is then started again once this process is dead.
    """
    database = Database(path, owner, secured(path))
    try:
        database.begin()
        settled = database.jobs.settle(job_id, attempt, now=time.time(), chance=random.random())  # noqa: S311 - no secret
        database.commit()
        return settled
    finally:
        database.close()
