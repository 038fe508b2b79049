"""What a durable job holds, and one run of one: pure but for the outbox that it tells.

A job holds everything that its hook was to be told when the event came, so that it can be told the same after any
restart, and nothing of the hook itself: a run takes the hook as it is configured then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from hooksd.model.events import Event
from hooksd.model.hooks import Hook, Scope
from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.model.sources import DocumentSettings
from hooksd.outbox.errors import OutboxError, OutboxFull, OutboxUnusable
from hooksd.outbox.jobs import Attempt, Ending, Job, NewJob, RetryRules, Settled
from hooksd.outbox.outbox import Outbox
from hooksd.outbox.owner import Owner
from hooksd.pipeline.invocation import Call, Invocation


__all__ = ["Frozen", "NotOurs", "Run", "attempt_of", "freeze", "lane_of", "not_durable", "rules_of", "thaw"]

_DEFAULTS = RetryRules()

_WITHHELD = frozenset({ProblemKind.UNTRUSTED, ProblemKind.CHANGED})


class NotOurs(Exception):
    """A job that was due is no longer to be had: another daemon has it, or somebody gave it up."""


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """What a job holds. A change of a field needs a default, since jobs outlive versions.

    Attributes:
        event: The event, with the arguments as they were when the hook's turn came.
        execution_id: Whose event it was.
        workspace: Of that execution, "" for none.
        cwd: What the dispatch said.
        depth: How deep the dispatch was nested.
        traceparent: Of the dispatch.
    """

    event: Event
    execution_id: str
    workspace: str
    cwd: str | None = None
    depth: int = 0
    traceparent: str = ""


def freeze(hook: Hook, event: Event, call: Call, rules: RetryRules) -> NewJob:
    """The job of a hook.

    Args:
        hook: The hook.
        event: What it is told.
        call: Of the dispatch.
        rules: When it is started again.
    """
    frozen = Frozen(
        event=event,
        execution_id=call.execution_id,
        workspace=call.places.workspace,
        cwd=call.places.cwd,
        depth=call.depth,
        traceparent=call.trace.traceparent,
    )
    return NewJob(
        hook=hook.name,
        lane=lane_of(hook),
        event=event.native,
        payload=_encode(frozen),
        # The daemon's own may be another after a restart, and then is the right one.
        shared=b"" if call.env is None else _encode(dict(call.env)),
        rules=rules,
    )


def thaw(job: Job) -> tuple[Frozen, Mapping[str, str] | None]:
    """What a job holds, and the environment of its hook (None: the daemon's).

    Raises:
        msgspec.MsgspecError: It cannot be read.
    """
    env = msgspec.json.decode(job.shared, type=dict[str, str]) if job.shared else None
    return msgspec.json.decode(job.payload, type=Frozen), env


def lane_of(hook: Hook) -> str:
    """Which configured hook this is: two projects may bring along hooks of the same name."""
    return f"{hook.name} {hook.file}" if hook.scope is Scope.PROJECT else hook.name


def rules_of(settings: DocumentSettings) -> RetryRules:
    """The rules that documents give, and the defaults of the Chrys dialect where they are silent."""
    most, age_s = settings.outbox_max_retries, settings.outbox_retry_age_s
    return RetryRules(
        max_starts=_DEFAULTS.max_starts if most is None else most,
        retry_age_s=_DEFAULTS.retry_age_s if age_s is None else age_s,
    )


def attempt_of(invocation: Invocation) -> Attempt:
    """What an invocation means for its job: only a process that exited with 0 has done it."""
    result, failure = invocation.result, invocation.reply.failure
    if failure is not None and failure.kind in _WITHHELD:
        # Stopped after its start was counted, by the last look at its files: nothing is known against the job.
        return Attempt(ending=Ending.CANCELLED, error=failure.message)
    code = None if result is None else result.exit_code
    if code == 0:
        return Attempt(ending=Ending.SUCCEEDED, exit_code=0)
    error = f"exit code {code}" if failure is None else f"{failure.kind}: {failure.message}"
    stderr = b"" if result is None else result.stderr
    return Attempt(
        ending=Ending.FAILED, error=error, exit_code=code, stderr_tail=stderr.decode(errors="replace").strip()
    )


def not_durable(error: OutboxError) -> HookProblem:
    """What is told of a hook that runs without a job."""
    hint = error.hint if isinstance(error, OutboxUnusable | OutboxFull) else None
    return HookProblem(
        kind=ProblemKind.NOT_DURABLE,
        message=f"it runs, but is not kept: {error}; if this run fails or is cut off, there is no other",
        hint=hint,
    )


class Run:
    """One run of a durable hook, from its keeping to its end. Belongs to the loop's thread.

    Whoever has one lets `begin` be called right before the process is started, then calls `end` or `cancel`, of which
    the first counts. A run without a job does the same and keeps nothing.

    Args:
        outbox: Told how it goes; None where nothing can be kept.
        job_id: Its job; None where none could be made.
        problem: Why there is none.
        held: The job was made for this run and nobody else can have it; else it was found due.
        told: Called with how the run ended and what that means for the job, once it is on disk.

    Attributes:
        started: The start was counted, or tried to.
    """

    __slots__ = ("_held", "_outbox", "_over", "_told", "job_id", "problem", "started")

    def __init__(
        self,
        outbox: Outbox | None,
        job_id: str | None,
        *,
        problem: HookProblem | None = None,
        held: bool = True,
        told: Callable[[Attempt, Settled], None],
    ) -> None:
        self._outbox = outbox
        self.job_id = job_id
        self.problem = problem
        self._held = held
        self._told = told
        self._over = False
        self.started = False

    async def begin(self) -> None:
        """Count the start; it is on disk when this returns.

        A hook whose start cannot be counted is started all the same if this run holds its job, which then may be
        started once more than its rules say.

        Raises:
            NotOurs: The job is not to be had; nothing may be started.
        """
        if self._outbox is None or self.job_id is None:
            return
        self.started = True
        try:
            number = await self._outbox.start(self.job_id)
        except OutboxError:
            # Told by the outbox itself, once for all jobs.
            if not self._held:
                raise NotOurs from None
            return
        if number is None and not self._held:
            raise NotOurs

    async def hand_over(self, pid: int, number: int) -> None:
        """The hook runs in a process that outlives this daemon and has the job from now on.

        Args:
            pid: That process.
            number: Under which the job is settled once it has ended.
        """
        self._over = True
        if self._outbox is not None and self.job_id is not None:
            # Told by the outbox itself; the job then is this daemon's until the process has ended.
            with suppress(OutboxError):
                await self._outbox.hand_over(self.job_id, Owner.of(pid, number))

    async def end(self, invocation: Invocation) -> None:
        """Write down what came of it; it is on disk when this returns, or will be as soon as the disk takes it."""
        if self.started:
            settling = self._settle(attempt_of(invocation))
        else:
            settling = self._settle(Attempt(ending=Ending.NOT_STARTED)) if self._held else None
        if settling is not None:
            # Cancelling the wait must not keep what is told from being told.
            await asyncio.wait({settling})

    def cancel(self) -> None:
        """It was cut off, or never came to its start. Does nothing where it has ended."""
        if self.started:
            self._settle(Attempt(ending=Ending.CANCELLED, error="cut off while it ran"))
        elif self._held:
            self._settle(Attempt(ending=Ending.NOT_STARTED))

    def _settle(self, attempt: Attempt) -> asyncio.Future[Settled | None] | None:
        if self._over or self._outbox is None or self.job_id is None:
            return None
        self._over = True
        settling = self._outbox.settle(self.job_id, attempt)

        def settled(future: asyncio.Future[Settled | None]) -> None:
            if future.cancelled() or future.exception() is not None:
                return
            where = future.result()
            if where is not None:
                self._told(attempt, where)

        settling.add_done_callback(settled)
        return settling


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value)
