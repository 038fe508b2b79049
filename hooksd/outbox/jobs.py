"""What a durable job is, as others hand it in and get it back. Inert data; what happens to it is in `schedule.py`."""

from __future__ import annotations

from enum import StrEnum

import msgspec


__all__ = [
    "Attempt",
    "Counts",
    "Due",
    "Ending",
    "Job",
    "JobInfo",
    "JobState",
    "NewJob",
    "OutboxLimits",
    "Recovered",
    "RetryRules",
    "Settled",
    "job_name",
    "job_number",
]

MAX_STDERR_TAIL = 1024
"""Characters of stderr that a job keeps (Chrys dialect 5)."""

MAX_ERROR = 500
"""Characters of the reason that a job keeps: hooksd's own words, one sentence."""

_PREFIX = "job-"


class JobState(StrEnum):
    """Where a job is (`state` of protocol section 2.10)."""

    PENDING = "pending"
    """It is to be started: now, later, or when its hook is there again."""
    RUNNING = "running"
    """A daemon has it."""
    DONE = "done"
    """Its hook exited with 0."""
    FAILED = "failed"
    """It is not started again unless somebody asks for it: a dead letter."""


class RetryRules(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how soon a job is started again (Chrys dialect 1.3). Frozen with the job.

    Attributes:
        max_starts: Most starts, the first included (`outbox_max_retries`).
        retry_age_s: How old the last start of a job must be that nobody ended (`outbox_retry_age_seconds`).
    """

    max_starts: int = 3
    retry_age_s: float = 60.0


class OutboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What there is room for.

    Attributes:
        max_jobs: Most jobs that are not done (`limits.max_outbox_jobs`).
        max_bytes: Largest database (`limits.max_outbox_bytes`).
    """

    max_jobs: int
    max_bytes: int


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job to be kept.

    Attributes:
        hook: The full name of its hook.
        lane: Which configured hook it is for: equal for jobs of one hook, different for hooks of the same name that
            two projects bring along. Jobs of one lane are taken one after another.
        event: The event in its agent's words.
        payload: What is needed to run it again; known only to whoever made it.
        shared: What many jobs have in common (the environment); equal ones are kept once.
        rules: When it is started again.
    """

    hook: str
    lane: str
    event: str
    payload: bytes
    shared: bytes = b""
    rules: RetryRules = RetryRules()


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is due.

    Attributes:
        job_id: Its name.
        hook: As handed in.
        lane: As handed in.
        event: As handed in.
        payload: As handed in.
        shared: As handed in.
        starts: How often it was started so far.
    """

    job_id: str
    hook: str
    lane: str
    event: str
    payload: bytes
    shared: bytes
    starts: int


class Ending(StrEnum):
    """How a run of a job came to an end."""

    SUCCEEDED = "succeeded"
    """Its hook exited with 0."""
    FAILED = "failed"
    """It exited with something else, timed out, or could not be started."""
    CANCELLED = "cancelled"
    """It was cut off; that it was started counts."""
    NOT_STARTED = "not_started"
    """It never came to its start."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one run of a job.

    Attributes:
        ending: How it ended.
        error: Why it did not succeed: hooksd's own words.
        exit_code: Of the hook's process, where there was one.
        stderr_tail: The end of what the hook wrote to stderr.
    """

    ending: Ending
    error: str = ""
    exit_code: int | None = None
    stderr_tail: str = ""


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What can be started now, and when to look again.

    Attributes:
        jobs: Those that are due, the one that is so for longest first; at most one of each lane.
        next_at: When the next one is, of those that are not; None if none waits for a time.
    """

    jobs: tuple[Job, ...] = ()
    next_at: float | None = None


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job is after a run.

    Attributes:
        state: Where it is.
        starts: How often it was started.
        due_at: When it is started again; None if it is not.
    """

    state: JobState
    starts: int
    due_at: float | None = None


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs that nobody has any more.

    Attributes:
        freed: How many are to be started again.
        failed: The names of those that are not, and why.
    """

    freed: int = 0
    failed: tuple[tuple[str, str, str], ...] = ()


class JobInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is listed: all but what it carries.

    Attributes:
        job_id: Its name; later jobs have greater ones.
        hook: The full name of its hook.
        lane: As handed in.
        event: The event in its agent's words.
        state: Where it is.
        starts: How often it was started since it was made, or was last asked for by hand.
        max_starts: How often it is started at most.
        created_at: Seconds since the epoch, as all times here.
        due_at: When it is to be started next; None unless it is pending.
        started_at: When it was last started.
        ended_at: When it was done, or given up.
        error: Why the last run did not succeed.
        exit_code: Of the last run.
        stderr_tail: Of the last run; the hook's own words, which leave only in an answer.
    """

    job_id: str
    hook: str
    lane: str
    event: str
    state: JobState
    starts: int
    max_starts: int
    created_at: float
    due_at: float | None
    started_at: float | None
    ended_at: float | None
    error: str
    exit_code: int | None
    stderr_tail: str


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs there are, by state."""

    pending: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0


def job_name(number: int) -> str:
    """The name of the job with this number."""
    return f"{_PREFIX}{number:016x}"


def job_number(name: str) -> int | None:
    """The number of the job with this name; None for a text that is no name."""
    digits = name.removeprefix(_PREFIX)
    if len(digits) != 16 or digits == name or not set(digits) <= set("0123456789abcdef"):
        return None
    number = int(digits, 16)
    return number if number < 2**63 else None
