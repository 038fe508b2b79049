"""Detached hooks as a pipeline sees them: what is kept with a run, and what is told once it has ended.

The runs are the process room's. What is kept with one lets any later daemon tell of its end; it holds no secrets: names,
ids, and which job a durable hook has.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hooksd.dialects.process_faults import exit_code_fault, process_fault
from hooksd.model.fold import Verdict
from hooksd.model.hooks import Contract, Hook, Mode, OnError
from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.model.records import Level, Recorder
from hooksd.model.report import HandlerReport, Status
from hooksd.outbox import worker
from hooksd.outbox.errors import OutboxError
from hooksd.outbox.jobs import Attempt, Ending, Settled
from hooksd.outbox.outbox import Outbox
from hooksd.outbox.owner import Owner, new_instance
from hooksd.pipeline.durable import Run, lane_of
from hooksd.pipeline.reports import Reporter
from hooksd.process.detached import DetachedEnd, DetachedHooks


__all__ = ["About", "Detachment", "fault_of"]


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept with a run. A change of a field needs a default, since runs outlive versions.

    Attributes:
        place: The fields of its records that say where they belong.
        hook: The full name of the hook.
        source: The name of its source.
        contract: Its contract.
        on_error: What its failure means by its own configuration.
        job_id: The job of a durable hook.
        lane: Of that job.
        owner: Who has that job: the number under which it is settled.
    """

    place: dict[str, Any]
    hook: str
    source: str
    contract: Contract
    on_error: OnError = OnError.WARN
    job_id: str | None = None
    lane: str = ""
    owner: int = 0

    @classmethod
    def of(cls, hook: Hook, place: Mapping[str, Any], run: Run | None) -> About:
        """What to keep with a run of a hook."""
        return cls(
            place=dict(place),
            hook=hook.name,
            source=hook.source,
            contract=hook.contract,
            on_error=hook.on_error,
            job_id=None if run is None else run.job_id,
            lane="" if run is None else lane_of(hook),
            owner=0 if run is None else new_instance(),
        )

    def encoded(self) -> bytes:
        """As it is kept."""
        return msgspec.json.encode(self)

    @classmethod
    def decoded(cls, data: bytes) -> About:
        """As it was kept.

        Raises:
            msgspec.MsgspecError: It cannot be read.
        """
        return msgspec.json.decode(data, type=cls)


class Detachment:
    """The detached hooks of a pipeline. Belongs to the loop's thread.

    Args:
        hooks: Starts them and tells of their ends.
        outbox: Where jobs of durable ones are settled; None where there are none.
        record: Takes the records.
        told: Called with the fields, attempt and state of each job that was settled.
        lane_is_free: Called when the run of a job has ended, and what came of it is on disk if it can be.
    """

    def __init__(
        self,
        hooks: DetachedHooks,
        outbox: Outbox | None,
        record: Recorder,
        told: Callable[[Mapping[str, Any], Attempt, Settled], None],
        lane_is_free: Callable[[], None],
    ) -> None:
        self.hooks = hooks
        self._outbox = outbox
        self._record = record
        self._told = told
        self._lane_is_free = lane_is_free
        self._settling: set[asyncio.Task[None]] = set()
        hooks.ended = self._ended

    def lanes(self) -> set[str]:
        """The lanes of the jobs whose hooks run, in this daemon's eyes."""
        return {about.lane for data in self.hooks.abouts().values() if (about := _read(data)) and about.lane}

    async def recover(self) -> None:
        """See to what earlier daemons started; to be called before any job is looked at."""
        try:
            ended, running = await self.hooks.recover()
        except OSError as error:
            message = f"the runs of detached hooks in {error.filename} cannot be looked at: {error.strerror}"
            self._record(Level.WARNING, "daemon.limited", {"message": message})
            return
        if ended or running:
            self._record(Level.INFO, "daemon.detached", {"ended": ended, "running": running})
        await self._settled()

    async def aclose(self) -> None:
        """Stop watching; what has ended is settled."""
        await self.hooks.aclose()
        await self._settled()

    async def _settled(self) -> None:
        while self._settling:
            await asyncio.wait(self._settling)

    def _ended(self, end: DetachedEnd) -> None:
        about = _read(end.about)
        if about is None:
            fields = {
                "invocation_id": end.run_id,
                "message": "what was kept with this detached run is unreadable",
            }
            self._record(Level.WARNING, "hook.finished", fields)
            return
        fault = fault_of(end, self.hooks.files.log_path(end.run_id))
        _tell(self._record, about, end, fault)
        if about.job_id is not None and self._outbox is not None:
            task = asyncio.get_running_loop().create_task(
                self._settle(self._outbox, about, about.job_id, _attempt(end, fault))
            )
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    async def _settle(self, outbox: Outbox, about: About, job_id: str, attempt: Attempt) -> None:
        """Write down what came of a job whose worker had it, or (should that have gone wrong) we ourselves."""
        owner = Owner(instance=about.owner, pid=os.getpid(), started="")
        loop = asyncio.get_running_loop()
        try:
            settled = await loop.run_in_executor(None, worker.settle, outbox.path, owner, job_id, attempt)
            settled = settled or await outbox.settle(job_id, attempt)
        except (OutboxError, sqlite3.Error) as error:
            fields = {**about.place, "hook": about.hook, "job_id": job_id, "reason": str(error)}
            self._record(Level.ERROR, "outbox.refused", fields)
            return
        finally:
            self._lane_is_free()
        if settled is not None:
            self._told({**about.place, "hook": about.hook, "job_id": job_id}, attempt, settled)


def _read(data: bytes) -> About | None:
    try:
        return About.decoded(data)
    except msgspec.MsgspecError:
        return None


def _attempt(end: DetachedEnd, fault: HookProblem | None) -> Attempt:
    if end.result is None:
        # Nothing is known against the job.
        return Attempt(ending=Ending.CANCELLED, error="its worker was killed")
    if fault is None:
        return Attempt(ending=Ending.SUCCEEDED, exit_code=0)
    return Attempt(
        ending=Ending.FAILED, error=f"{fault.kind}: {fault.message}", exit_code=end.result.exit_code
    )


def fault_of(end: DetachedEnd, log_path: str) -> HookProblem | None:
    """What went wrong with a run; None if its hook exited with 0."""
    if end.result is None:
        message = "its worker was killed, so nobody knows how the hook ended"
        fault = HookProblem(kind=ProblemKind.SIGNAL, message=message)
    elif end.result.exit_code == 0:
        return None
    else:
        fault = process_fault(end.result, None) or exit_code_fault(end.result)
    return msgspec.structs.replace(fault, hint=fault.hint or f"what it wrote is in {log_path}", detail=None)


def _tell(record: Recorder, about: About, end: DetachedEnd, fault: HookProblem | None) -> None:
    """Write the record of a run that has ended."""
    result = end.result
    launch_failed = result is not None and result.launch_failure is not None
    failed = Status.LAUNCH_ERROR if launch_failed else Status.FAILED
    status = Status.OK if fault is None else failed
    report = HandlerReport(
        hook=about.hook,
        source=about.source,
        contract=about.contract,
        mode=Mode.DETACHED,
        status=status,
        exit_code=None if result is None else result.exit_code,
        signal=None if result is None else result.signal,
        duration_ms=0.0 if result is None else round(result.duration_s * 1000, 3),
        problem=fault,
        pid=None if result is None else result.pid,
        invocation_id=end.run_id,
    )
    quiet = fault is None or about.on_error is OnError.IGNORE
    verdict = Verdict(status=status, problem=fault, level=Level.INFO if quiet else Level.WARNING)
    Reporter(record, about.place, reasons=False).finished(report, verdict)
