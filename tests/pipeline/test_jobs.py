"""`outbox/*` by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hooksd.model.errors import ProtocolError
from hooksd.outbox.errors import OutboxUnusable
from hooksd.outbox.jobs import Attempt, Ending, NewJob, RetryRules
from hooksd.outbox.outbox import Outbox
from hooksd.protocol.errors import ErrorCode
from hooksd.protocol.methods.outbox import (
    OutboxDiscardParams,
    OutboxListParams,
    OutboxRetryParams,
    OutboxState,
)


Bench = Any
"""The class is in conftest.py, which cannot be imported."""

BAD = Attempt(ending=Ending.FAILED, error="exit code 3", exit_code=3, stderr_tail="no net")


def job(hook: str = "h", *, max_starts: int = 3) -> NewJob:
    return NewJob(hook=hook, lane=hook, event="e", payload=b"{}", rules=RetryRules(max_starts=max_starts))


async def ended(bench: Bench, name: str, attempt: Attempt) -> None:
    await bench.outbox.start(name)
    await bench.outbox.settle(name, attempt)


async def test_a_list_tells_everything_but_what_a_job_holds(bench: Bench) -> None:
    pipeline = await bench.start()
    dead, waiting, done = await bench.outbox.add([job("a", max_starts=1), job("b"), job("c")])
    await ended(bench, dead, BAD)
    await ended(bench, done, Attempt(ending=Ending.SUCCEEDED, exit_code=0))
    pipeline.delivery.waiting["b"] = "nobody is there"

    listed = await pipeline.jobs.list(OutboxListParams())

    first, second, third = listed.jobs
    assert (first.job_id, first.state, first.last_error, first.stderr_tail, first.exit_code) == (
        dead,
        OutboxState.FAILED,
        "exit code 3",
        "no net",
        3,
    )
    assert (first.attempts, first.max_attempts, first.next_attempt_at, first.waiting) == (1, 1, None, None)
    assert (second.job_id, second.state, second.waiting) == (waiting, OutboxState.PENDING, "nobody is there")
    assert second.last_error is None
    assert second.next_attempt_at == second.created_at
    assert third.state is OutboxState.DONE
    assert [
        one.job_id for one in (await pipeline.jobs.list(OutboxListParams(state=OutboxState.FAILED))).jobs
    ] == [dead]
    assert [
        one.job_id for one in (await pipeline.jobs.list(OutboxListParams(after=waiting, limit=1))).jobs
    ] == [done]


async def test_retry_and_discard_are_told_and_counted(bench: Bench) -> None:
    pipeline = await bench.start()
    first, second, third = await bench.outbox.add([job(max_starts=1)] * 3)
    for name in (first, second, third):
        await ended(bench, name, BAD)

    assert (await pipeline.jobs.retry(OutboxRetryParams(job_id=first))).retried == 1
    assert (await pipeline.jobs.discard(OutboxDiscardParams(job_id=second))).discarded == 1
    assert (await pipeline.jobs.retry(OutboxRetryParams(all=True))).retried == 1
    assert (await pipeline.jobs.discard(OutboxDiscardParams(state=OutboxState.PENDING))).discarded == 2

    assert [fields["jobs"] for fields in bench.told("outbox.retry")] == [1, 1]
    assert [fields["jobs"] for fields in bench.told("outbox.discarded")] == [1, 2]


async def test_what_cannot_be_done_is_an_error(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = await bench.start()
    (running,) = await bench.outbox.add([job()])
    await bench.outbox.start(running)

    for params, kind in (("job-00000000000000aa", "unknown_job"), (running, "job_state")):
        for asked in (
            pipeline.jobs.retry(OutboxRetryParams(job_id=params)),
            pipeline.jobs.discard(OutboxDiscardParams(job_id=params)),
        ):
            with pytest.raises(ProtocolError) as told:
                await asked
            assert (told.value.code, told.value.kind) == (ErrorCode.INVALID_PARAMS, kind)
    with pytest.raises(ProtocolError, match="no job"):
        await pipeline.jobs.list(OutboxListParams(after="nonsense"))

    async def refuse(*_: object, **__: object) -> None:
        raise OutboxUnusable("/state/outbox.sqlite3", "the disk is full", "make room")

    monkeypatch.setattr(Outbox, "list", refuse)
    with pytest.raises(ProtocolError, match="the disk is full") as told:
        await pipeline.jobs.list(OutboxListParams())
    assert (told.value.code, told.value.kind) == (ErrorCode.BUSY, "outbox_unusable")


async def test_a_pipeline_without_an_outbox(bench: Bench) -> None:
    pipeline = await bench.start()
    pipeline.jobs._outbox = None

    with pytest.raises(ProtocolError, match="no outbox"):
        await pipeline.jobs.list(OutboxListParams())
