"""Durable jobs by hand: the results of `outbox/*` (protocol section 2.10)."""

from __future__ import annotations

from hooksd.model.errors import ProtocolError
from hooksd.model.records import Level, Recorder
from hooksd.outbox.errors import JobBusy, NoSuchJob, OutboxError
from hooksd.outbox.jobs import JobInfo, JobState
from hooksd.outbox.outbox import Outbox
from hooksd.pipeline.delivery import Delivery
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.methods.outbox import (
    OutboxDiscardParams,
    OutboxDiscardResult,
    OutboxJob,
    OutboxListParams,
    OutboxListResult,
    OutboxRetryParams,
    OutboxRetryResult,
    OutboxState,
)


__all__ = ["Jobs"]


class Jobs:
    """What a person can do about durable jobs.

    Every coroutine raises `ProtocolError`: -32602 for a job that is not there, or where what is asked cannot be done;
    -32003 where the outbox cannot be used now.

    Args:
        outbox: Where they are; None without one.
        delivery: Runs them.
        record: Takes the records.
    """

    def __init__(self, outbox: Outbox | None, delivery: Delivery, record: Recorder) -> None:
        self._outbox = outbox
        self._delivery = delivery
        self._record = record

    async def list(self, params: OutboxListParams) -> OutboxListResult:
        """The jobs that are asked for."""
        state = None if params.state is None else JobState(params.state.value)
        try:
            found = await self._asked().list(state=state, limit=params.limit, after=params.after)
        except OutboxError as error:
            raise _refused(error) from error
        return OutboxListResult(jobs=tuple(map(self._shown, found)))

    async def retry(self, params: OutboxRetryParams) -> OutboxRetryResult:
        """Start them as soon as may be."""
        try:
            retried = await self._asked().retry(params.job_id)
        except OutboxError as error:
            raise _refused(error) from error
        self._record(
            Level.INFO, "outbox.retry", {"job_id": params.job_id, "jobs": retried, "reason": "by hand"}
        )
        self._delivery.look_again()
        return OutboxRetryResult(retried=retried)

    async def discard(self, params: OutboxDiscardParams) -> OutboxDiscardResult:
        """Give them up."""
        outbox = self._asked()
        try:
            if params.job_id is not None:
                discarded = await outbox.discard(params.job_id)
            else:
                discarded = await outbox.discard(JobState((params.state or OutboxState.FAILED).value))
        except OutboxError as error:
            raise _refused(error) from error
        fields = {"job_id": params.job_id, "state": params.state, "jobs": discarded}
        self._record(Level.WARNING, "outbox.discarded", fields)
        return OutboxDiscardResult(discarded=discarded)

    def _asked(self) -> Outbox:
        if self._outbox is None:
            raise protocol_error(ErrorCode.BUSY, "this daemon has no outbox", kind="outbox_unusable")
        return self._outbox

    def _shown(self, job: JobInfo) -> OutboxJob:
        waiting = self._delivery.waiting.get(job.lane) if job.state is JobState.PENDING else None
        return OutboxJob(
            job_id=job.job_id,
            hook=job.hook,
            event=job.event,
            state=OutboxState(job.state.value),
            attempts=job.starts,
            max_attempts=job.max_starts,
            created_at=job.created_at,
            next_attempt_at=job.due_at,
            last_attempt_at=job.started_at,
            ended_at=job.ended_at,
            waiting=waiting,
            last_error=job.error or None,
            exit_code=job.exit_code,
            stderr_tail=job.stderr_tail,
        )


def _refused(error: OutboxError) -> ProtocolError:
    match error:
        case NoSuchJob():
            return protocol_error(
                ErrorCode.INVALID_PARAMS, f"{error}; it may be done and gone", kind="unknown_job"
            )
        case JobBusy():
            return protocol_error(ErrorCode.INVALID_PARAMS, str(error), kind="job_state")
        case _:
            return protocol_error(ErrorCode.BUSY, str(error), kind="outbox_unusable")
