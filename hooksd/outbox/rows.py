"""Rows of the table of jobs, made into what others understand."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from hooksd.outbox.jobs import JobInfo, JobState, RetryRules, job_name
from hooksd.outbox.schedule import Place, Standing


__all__ = ["INFO", "Row", "info_of", "read_row"]

INFO: Final = (
    "number, hook, lane, event, state, starts, max_starts, created_at, due_at, started_at, ended_at, error, "
    "exit_code, stderr_tail"
)
"""The columns that `info_of` wants; the payload, which may be large, comes after them and is not read."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What decides about a job, and who has it."""

    number: int
    hook: str
    owner: int | None
    rules: RetryRules
    standing: Standing


def read_row(execute: Callable[..., sqlite3.Cursor], number: int) -> Row | None:
    """The row of a job; None if it is not there."""
    found = execute(
        "SELECT hook, state, owner, starts, max_starts, retry_age_s, due_at, started_at FROM jobs WHERE number = ?",
        (number,),
    ).fetchone()
    if found is None:
        return None
    hook, state, owner, starts, max_starts, retry_age_s, due_at, started_at = found
    place = {
        "pending": Place.FREE if owner is None else Place.HELD,
        "running": Place.RUNNING,
        "done": Place.DONE,
        "failed": Place.FAILED,
    }[state]
    return Row(
        number=number,
        hook=hook,
        owner=owner,
        rules=RetryRules(max_starts=max_starts, retry_age_s=retry_age_s),
        standing=Standing(place=place, starts=starts, due_at=due_at, started_at=started_at),
    )


def info_of(row: Sequence[Any]) -> JobInfo:
    """A job as it is listed, of the columns `INFO`."""
    number, hook, lane, event, state, starts, max_starts, created, due, started, ended, error, code, tail = (
        row
    )
    return JobInfo(
        job_id=job_name(number),
        hook=hook,
        lane=lane,
        event=event,
        state=JobState(state),
        starts=starts,
        max_starts=max_starts,
        created_at=created,
        due_at=due if state == "pending" else None,
        started_at=started,
        ended_at=ended,
        error=error,
        exit_code=code,
        stderr_tail=tail,
    )
