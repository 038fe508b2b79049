"""One job at a time, shared by those who asked before it began."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hooksd.config.rounds import Request, Rounds
from hooksd.model.errors import HooksdError


class Job:
    """Rounds whose job waits until it is let go."""

    def __init__(self) -> None:
        self.runs: list[Request] = []
        self.errors: list[Exception] = []
        self.started = asyncio.Semaphore(0)
        self.go = asyncio.Semaphore(0)
        self.fault: Exception | None = None
        self.rounds = Rounds(asyncio.get_running_loop(), self.run, self.errors.append)

    async def run(self, request: Request) -> None:
        self.runs.append(request)
        self.started.release()
        await self.go.acquire()
        if self.fault is not None:
            raise self.fault


@pytest.fixture
async def job() -> AsyncIterator[Job]:
    job = Job()
    yield job
    await job.rounds.aclose()


async def test_who_asks_before_it_begins_shares_a_round(job: Job) -> None:
    first, second = job.rounds.ask("a"), job.rounds.ask("b", everything=True, afresh=True)
    job.go.release()
    await asyncio.wait_for(first, 5)

    assert first is second
    (request,) = job.runs
    assert request.roots == {"a", "b"}
    assert request.everything
    assert request.afresh


async def test_who_asks_during_a_round_gets_the_next(job: Job) -> None:
    first = job.rounds.ask()
    await job.started.acquire()
    second = job.rounds.ask("late")
    job.go.release()
    await asyncio.wait_for(first, 5)
    assert not second.done()
    job.go.release()
    await asyncio.wait_for(second, 5)

    assert [request.roots for request in job.runs] == [set(), {"late"}]
    assert not any(request.everything or request.afresh for request in job.runs)


async def test_a_fault_goes_to_those_who_wait_and_the_next_round_runs(job: Job) -> None:
    job.fault = ValueError("ours")
    job.go.release()
    with pytest.raises(ValueError, match="ours"):
        await asyncio.wait_for(job.rounds.ask(), 5)
    assert job.errors == [job.fault]
    job.fault = None
    job.go.release()
    await asyncio.wait_for(job.rounds.ask(), 5)


async def test_who_gives_up_takes_nobody_along(job: Job) -> None:
    impatient = asyncio.ensure_future(asyncio.shield(job.rounds.ask()))
    patient = asyncio.shield(job.rounds.ask())
    await job.started.acquire()
    impatient.cancel()
    job.go.release()
    await asyncio.wait_for(patient, 5)

    assert impatient.cancelled()


async def test_a_round_can_be_asked_for_in_advance(job: Job) -> None:
    job.rounds.ask_in(3600)
    job.rounds.ask_in(0)
    job.rounds.ask_in(3600)
    await asyncio.wait_for(job.started.acquire(), 5)
    job.go.release()

    (request,) = job.runs
    assert request.everything


async def test_closing_gives_up(job: Job) -> None:
    under_way = job.rounds.ask()
    await job.started.acquire()
    waiting = job.rounds.ask()
    job.rounds.ask_in(3600)
    await job.rounds.aclose()
    job.rounds.ask_in(0)

    assert under_way.cancelled()
    assert waiting.cancelled()
    with pytest.raises(HooksdError, match="stopping"):
        job.rounds.ask()
