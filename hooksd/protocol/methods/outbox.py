"""`outbox/list`, `outbox/retry`, `outbox/discard` (protocol section 2.10): durable jobs, looked at and dealt with by hand."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from hooksd.protocol.methods.base import Method, MethodKind


__all__ = [
    "MAX_LISTED_JOBS",
    "METHODS",
    "OutboxDiscardParams",
    "OutboxDiscardResult",
    "OutboxJob",
    "OutboxListParams",
    "OutboxListResult",
    "OutboxRetryParams",
    "OutboxRetryResult",
    "OutboxState",
]

MAX_LISTED_JOBS = 1000
"""Most jobs of one answer; `after` leads to the next ones."""

JobId = Annotated[str, msgspec.Meta(min_length=1, max_length=64, description="As `outbox/list` tells it.")]


class OutboxState(StrEnum):
    """Where a durable job is."""

    PENDING = "pending"
    """To be started: now, at `next_attempt_at`, or when what it waits for is there again."""
    RUNNING = "running"
    DONE = "done"
    """Its hook exited with 0."""
    FAILED = "failed"
    """Given up: it is started again only by `outbox/retry`."""


class OutboxListParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `outbox/list`.

    Attributes:
        state: Only jobs in this state.
        limit: Most jobs, up to 1000.
        after: Only jobs that came after this one, which need not be there any more.
    """

    state: OutboxState | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_LISTED_JOBS)] = 100
    after: JobId | None = None


class OutboxJob(msgspec.Struct, frozen=True, kw_only=True):
    """One durable job. What its hook is told is not shown.

    Attributes:
        job_id: Its name.
        hook: The full name of its hook.
        event: The event in its agent's words.
        state: Where it is.
        attempts: How often it was started; after `outbox/retry` of a failed one, since then.
        max_attempts: How often it is started at most.
        created_at: When its event came, in seconds since the epoch, as all times here.
        next_attempt_at: When it is started next; null unless it is pending.
        last_attempt_at: When it was last started.
        ended_at: When it was done, or given up.
        waiting: Why it is not started although it could be; null where nothing is in its way.
        last_error: Why its last run did not succeed; null if none failed.
        exit_code: Of the last run.
        stderr_tail: The end of what the last run wrote to stderr, at most 1024 characters.
    """

    job_id: str
    hook: str
    event: str
    state: OutboxState
    attempts: int
    max_attempts: int
    created_at: float
    next_attempt_at: float | None
    last_attempt_at: float | None
    ended_at: float | None
    waiting: str | None
    last_error: str | None
    exit_code: int | None
    stderr_tail: str


class OutboxListResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `outbox/list`: jobs in the order in which they came."""

    jobs: tuple[OutboxJob, ...]


class OutboxRetryParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `outbox/retry`: one of both.

    Attributes:
        job_id: A job that is pending or has failed.
        all: Every job that has failed.
    """

    job_id: JobId | None = None
    all: bool = False

    def __post_init__(self) -> None:
        if (self.job_id is None) is not self.all:
            raise ValueError("`job_id` or `all: true` must be given, and not both")


class OutboxRetryResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `outbox/retry`: how many jobs are started as soon as may be, with all their attempts again."""

    retried: int


class OutboxDiscardParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `outbox/discard`: one of both.

    Attributes:
        job_id: A job that does not run.
        state: Every job in this state; not `running`.
    """

    job_id: JobId | None = None
    state: OutboxState | None = None

    def __post_init__(self) -> None:
        if (self.job_id is None) is (self.state is None):
            raise ValueError("`job_id` or `state` must be given, and not both")
        if self.state is OutboxState.RUNNING:
            raise ValueError("`state` must not be running: a job that runs cannot be discarded")


class OutboxDiscardResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `outbox/discard`: how many jobs are gone."""

    discarded: int


METHODS = (
    Method(
        name="outbox/list",
        kind=MethodKind.REQUEST,
        params=OutboxListParams,
        result=OutboxListResult,
        summary="List durable jobs.",
        section="2.10",
    ),
    Method(
        name="outbox/retry",
        kind=MethodKind.REQUEST,
        params=OutboxRetryParams,
        result=OutboxRetryResult,
        summary="Have durable jobs started as soon as may be.",
        section="2.10",
    ),
    Method(
        name="outbox/discard",
        kind=MethodKind.REQUEST,
        params=OutboxDiscardParams,
        result=OutboxDiscardResult,
        summary="Give durable jobs up.",
        section="2.10",
    ),
)
