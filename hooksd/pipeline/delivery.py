"""Durable hooks: kept before they run, and run again until they have exited with 0 or nobody wants them any more.

The first run of a durable hook belongs to the dispatch that it came from: `keep` puts its job on disk and the caller
runs it like any other. All further runs are started here, when they are due, few at a time and beside everything else:
each lane (one configured hook) has one such run at a time, so that none waits for another's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Set as AbstractSet
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from hooksd.config.plan import PlannedHook
from hooksd.config.snapshot import Snapshot
from hooksd.model.events import Event
from hooksd.model.fold import Fold
from hooksd.model.hooks import Hook, Mode
from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.model.records import Level, Recorder
from hooksd.outbox.errors import OutboxError
from hooksd.outbox.jobs import Attempt, Due, Ending, Job, JobState, Recovered, Settled
from hooksd.outbox.outbox import Outbox
from hooksd.pipeline.detachment import About
from hooksd.pipeline.durable import Frozen, NotOurs, Run, freeze, lane_of, not_durable, rules_of, thaw
from hooksd.pipeline.executions import SnapshotStore
from hooksd.pipeline.invocation import Call, Invocation, Invoker, new_invocation_id
from hooksd.pipeline.reports import Reporter, cancelled, report_of
from hooksd.pipeline.results import Results


__all__ = ["LOOK_S", "Delivery", "Surroundings"]

LOOK_S: Final = 60.0
"""How often it is looked whether what jobs wait for is there again, and whether another daemon has died."""
GIVE_WAY_S: Final = 1.0
"""Longest a further run waits for a moment without a gate; then it runs beside them."""
GATE_LOOK_S: Final = 0.005
"""How often it looks for one; gates take some milliseconds."""
BUSY_S: Final = 5.0
"""How long a lane waits that found no slot."""
SHARE: Final = 4
"""The part of `limits.max_running_background` that further runs take is one in so many: a backlog is in no hurry, and
must leave slots for what happens now."""

_NO_OUTBOX = HookProblem(
    kind=ProblemKind.NOT_DURABLE, message="it runs, but is not kept: this daemon has no outbox"
)


class Surroundings(Protocol):
    """What a run needs besides its job; the pipeline gives it."""

    def call_again(self, frozen: Frozen, env: Mapping[str, str] | None, snapshot: Snapshot) -> Call:
        """What the invocation is made with."""
        ...

    def reporter_of(self, call: Call, event: Event, snapshot: Snapshot) -> Reporter:
        """Who writes its records."""
        ...

    def gates_running(self) -> int:
        """How many hooks of gates run now."""
        ...

    def programmatic_hooks(self) -> tuple[Hook, ...]:
        """The hooks of connected clients now."""
        ...

    def detached_lanes(self) -> AbstractSet[str]:
        """The lanes of jobs whose hooks run detached now."""
        ...


class Delivery:
    """The durable hooks of a daemon. Belongs to the loop's thread.

    Args:
        outbox: Where jobs are kept; None for a pipeline that keeps none.
        store: The configuration, which further runs take as it is then.
        invoker: Runs hooks.
        results: Keeps what they said.
        record: Takes the records.
        surroundings: Gives what a run needs.

    Attributes:
        waiting: Why jobs of a lane are not started although they are due.
    """

    def __init__(
        self,
        *,
        outbox: Outbox | None,
        store: SnapshotStore,
        invoker: Invoker,
        results: Results,
        record: Recorder,
        surroundings: Surroundings,
    ) -> None:
        self._outbox = outbox
        self._store = store
        self._invoker = invoker
        self._results = results
        self._record = record
        self._surroundings = surroundings
        self.waiting: dict[str, str] = {}
        self._held_back: dict[str, float] = {}
        """Lanes that are left alone, until when on the clock of `time.monotonic`."""
        self._running: dict[str, asyncio.Task[None]] = {}
        """Further runs by lane."""
        self._first: set[asyncio.Task[None]] = set()
        """Those of them that are the first of their job: its daemon died before it came to that."""
        self._watching: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._looked_at: float | None = None

    # ------------------------------------------------------------------------------------------------------------------
    # First runs

    async def keep(self, planned: PlannedHook, event: Event, call: Call, place: Mapping[str, Any]) -> Run:
        """Put the job of a durable hook on disk; to be called before the hook is started and its dispatch answered.

        It never fails: a hook that cannot be kept is run all the same, and the run's `problem` says so. Cancelling it
        keeps nothing.

        Args:
            planned: The hook.
            event: What it is told.
            call: Of the dispatch.
            place: Where the records of the dispatch say that they belong.
        """
        told = {**place, "hook": planned.hook.name}
        if self._outbox is None:
            return Run(None, None, problem=_NO_OUTBOX, told=partial(self.told, told))
        rules = rules_of(call.snapshot.document_settings(planned.hook))
        try:
            (job_id,) = await self._outbox.add([freeze(planned.hook, event, call, rules)])
        except OutboxError as error:
            problem = not_durable(error)
            fields = {**told, "reason": problem.message, "hint": problem.hint}
            self._record(Level.ERROR, "outbox.refused", fields)
            return Run(None, None, problem=problem, told=partial(self.told, told))
        told["job_id"] = job_id
        self._record(Level.DEBUG, "outbox.queued", told)
        return Run(self._outbox, job_id, told=partial(self.told, told))

    def told(self, place: Mapping[str, Any], attempt: Attempt, settled: Settled) -> None:
        """What came of a run is on disk."""
        fields = {
            **place,
            "attempts": settled.starts,
            "exit_code": attempt.exit_code,
            "reason": attempt.error or None,
            "next_attempt_at": settled.due_at,
        }
        if settled.state is JobState.DONE:
            self._record(Level.INFO, "outbox.done", fields)
        elif settled.state is JobState.FAILED:
            self._record(Level.ERROR, "outbox.failed", fields)
        elif attempt.ending is not Ending.NOT_STARTED:
            self._record(Level.WARNING, "outbox.retry", fields)
        if settled.due_at is not None:
            self._wake.set()

    # ------------------------------------------------------------------------------------------------------------------
    # Further runs

    def start(self) -> None:
        """Begin to run what is due, first of all what an earlier daemon left behind. Returns at once."""
        if self._outbox is not None and self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch(self._outbox))

    def look_again(self) -> None:
        """What jobs wait for may be there now: the configuration has changed, or somebody asked for a job."""
        self._held_back.clear()
        self._wake.set()

    def lane_is_free(self) -> None:
        """A detached run has ended, and with it the wait of its lane."""
        self._wake.set()

    def stop(self) -> set[asyncio.Task[None]]:
        """Start nothing more, and cut off all runs but first ones, which are given to be waited for."""
        if self._watching is not None:
            self._watching.cancel()
        for task in self._running.values():
            if task not in self._first:
                task.cancel()
        return set(self._first)

    async def aclose(self) -> None:
        """Cut off every run, and wait until that is done."""
        self.stop()
        tasks = {*self._running.values(), *([] if self._watching is None else [self._watching])}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _watch(self, outbox: Outbox) -> None:
        while True:
            self._wake.clear()
            try:
                wait_s = await self._look(outbox)
            except OutboxError:
                # Told by the outbox itself.
                wait_s = LOOK_S
            except Exception as error:  # noqa: BLE001 - the supervisor of all deliveries must outlive one fault
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "durable jobs could not be looked at", "exception": error}
                )
                wait_s = LOOK_S
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _look(self, outbox: Outbox) -> float:
        """Start what is due and has room; how long until there may be more, in seconds."""
        now = time.monotonic()
        if self._looked_at is None or now - self._looked_at >= LOOK_S:
            self._looked_at = now
            self._tell_recovered(await outbox.recover())
        self._held_back = {lane: until for lane, until in self._held_back.items() if until > now}
        due = Due()
        while (room := self._room()) > 0:
            due = await outbox.due(
                room, skip={*self._running, *self._held_back, *self._surroundings.detached_lanes()}
            )
            for job in due.jobs:
                self._take(outbox, job)
            if not due.jobs:
                break
        next_s = [LOOK_S, *(until - now for until in self._held_back.values())]
        if due.next_at is not None:
            next_s.append(due.next_at - time.time())
        return max(min(next_s), 0.0)

    def _room(self) -> int:
        return max(self._store.settings.limits.max_running_background // SHARE, 1) - len(self._running)

    def _tell_recovered(self, recovered: Recovered) -> None:
        for job_id, hook, why in recovered.failed:
            self._record(Level.ERROR, "outbox.failed", {"job_id": job_id, "hook": hook, "reason": why})
        if recovered.freed:
            self._record(
                Level.INFO, "outbox.retry", {"jobs": recovered.freed, "reason": "their daemon ended"}
            )

    def _take(self, outbox: Outbox, job: Job) -> None:
        task = asyncio.get_running_loop().create_task(self._deliver(outbox, job))
        self._running[job.lane] = task
        if not job.starts:
            self._first.add(task)
        task.add_done_callback(partial(self._ended, job.lane))

    def _ended(self, lane: str, task: asyncio.Task[None]) -> None:
        del self._running[lane]
        self._first.discard(task)
        self._wake.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            # A fault of ours, told by the loop; the lane must not turn in circles over it.
            self._held_back[lane] = time.monotonic() + LOOK_S
            context = {"message": "a durable job could not be run", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)

    async def _deliver(self, outbox: Outbox, job: Job) -> None:
        try:
            frozen, env = thaw(job)
        except msgspec.MsgspecError:
            await self._give_up(outbox, job)
            return
        hooks = self._surroundings.programmatic_hooks()
        snapshot = self._store.try_open(frozen.workspace, hooks)
        if snapshot is None:
            snapshot = await self._store.open(frozen.workspace, hooks)
        planned = _find(job, frozen, snapshot)
        if isinstance(planned, str):
            self._wait(job, planned, LOOK_S)
            return
        self.waiting.pop(job.lane, None)
        await self._let_gates_pass()
        await self._run(
            outbox, job, planned, frozen, self._surroundings.call_again(frozen, env, snapshot), snapshot
        )

    async def _run(
        self,
        outbox: Outbox,
        job: Job,
        planned: PlannedHook,
        frozen: Frozen,
        call: Call,
        snapshot: Snapshot,
    ) -> None:
        event = msgspec.structs.replace(frozen.event, gate=False)
        reporter = self._surroundings.reporter_of(call, event, snapshot)
        place = {**reporter.place, "hook": job.hook, "job_id": job.job_id}
        run = Run(outbox, job.job_id, held=False, told=partial(self.told, place))
        invocation = Invocation(new_invocation_id(), planned, event)
        invocation.starting = run.begin
        about = None
        if planned.hook.mode is Mode.DETACHED:
            about = About.of(planned.hook, place, run)
            invocation.about = about.encoded()
        self._record(Level.DEBUG, "outbox.started", {**place, "attempts": job.starts + 1})
        reporter.started(planned.hook, invocation.id)
        try:
            reply = await self._invoker.run(call, invocation)
        except NotOurs:
            return
        except asyncio.CancelledError:
            run.cancel()
            verdict = cancelled()
            reporter.finished(report_of(invocation, verdict), verdict)
            raise
        if about is not None and invocation.worker is not None:
            await run.hand_over(invocation.worker, about.owner)
            return
        verdict = Fold(event, (planned,), accepts=frozenset()).add(planned, reply)
        report = report_of(invocation, verdict)
        reporter.finished(report, verdict)
        self._results.keep(invocation, report, verdict, None)
        if not run.started:
            # A project that changes in this very moment is one that changed before: its jobs wait.
            if reply.failure is not None and reply.failure.kind in {ProblemKind.BUSY, ProblemKind.CHANGED}:
                self._wait(job, reply.failure.message, BUSY_S)
                return
            # It got as far as it ever will: an event, say, that no envelope can hold.
            await run.begin()
        await run.end(invocation)

    async def _let_gates_pass(self) -> None:
        """Start no process while somebody waits for a decision, within reason: there is no hurry with what is late already."""
        until = time.monotonic() + GIVE_WAY_S
        while self._surroundings.gates_running() and time.monotonic() < until:  # noqa: ASYNC110 - gates pay for no event
            await asyncio.sleep(GATE_LOOK_S)

    async def _give_up(self, outbox: Outbox, job: Job) -> None:
        """Count a start of a job that cannot be read; it ends as a dead letter like any other."""
        if await outbox.start(job.job_id) is not None:
            error = "what it holds cannot be read; another version of hooksd made it"
            attempt = Attempt(ending=Ending.FAILED, error=error)
            settled = await outbox.settle(job.job_id, attempt)
            if settled is not None:
                self.told({"hook": job.hook, "job_id": job.job_id}, attempt, settled)

    def _wait(self, job: Job, why: str, seconds: float) -> None:
        self._held_back[job.lane] = time.monotonic() + seconds
        if self.waiting.get(job.lane) != why:
            self.waiting[job.lane] = why
            fields = {"hook": job.hook, "job_id": job.job_id, "hook_event": job.event, "reason": why}
            self._record(Level.WARNING, "outbox.waiting", fields)


def _find(job: Job, frozen: Frozen, snapshot: Snapshot) -> PlannedHook | str:
    """The hook of a job as it is configured now, or why there is none that may run.

    What it matches is not asked again: it matched when the event came.
    """
    if not snapshot.hooks_may_run:
        return "hooksd.toml is invalid and there is no last good version of it, so no hook runs"
    plan = snapshot.plan(frozen.event.agent, frozen.event.name)
    for planned in plan.hooks:
        hook = planned.hook
        if hook.name == job.hook and lane_of(hook) == job.lane:
            if hook.withheld is not None:
                return hook.withheld.message
            if hook.load_problem is not None:
                return f"it did not load: {hook.load_problem.message}"
            return planned
    for hook, why in plan.explain(frozen.event):
        if hook.name == job.hook and lane_of(hook) == job.lane:
            return hook.withheld.message if hook.withheld is not None else why or "it cannot run now"
    return "no hook of this name is configured for the event now"
