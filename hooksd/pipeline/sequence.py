"""One pass over the plan of one event: hooks one after another, the fold deciding, every one told of.

The fold says what comes next and what a reply does; the pass carries it out, keeps the budget, chains changed
arguments, starts background hooks, and writes reports and records.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping

import msgspec

from hooksd.config.plan import MatchResult, PlannedHook
from hooksd.dialects.base import Dialect
from hooksd.model.decision import Capability
from hooksd.model.events import Event
from hooksd.model.fold import Fold, Verdict
from hooksd.model.hooks import Mode
from hooksd.model.outcome import Outcome
from hooksd.model.problems import HookProblem
from hooksd.model.records import Level
from hooksd.model.report import HandlerReport, Status
from hooksd.pipeline.background import Kind, Work, span_of
from hooksd.pipeline.delivery import Delivery
from hooksd.pipeline.detachment import About
from hooksd.pipeline.durable import Run
from hooksd.pipeline.execution import Execution
from hooksd.pipeline.executions import Executions
from hooksd.pipeline.invocation import Call, Invocation, Invoker, new_invocation_id
from hooksd.pipeline.pinned import withheld_reply
from hooksd.pipeline.programmatic import Registry
from hooksd.pipeline.reports import Reporter, cancelled, report_of, started, without_run
from hooksd.pipeline.results import Results
from hooksd.pipeline.slots import Lane


__all__ = ["NOBODY_WAITS", "House", "Pass"]

NOBODY_WAITS = frozenset({Capability.ARGUMENTS, Capability.CONTEXTS, Capability.REMINDERS})
"""What is lost, and said to be lost, of a hook whose answer nobody waits for."""

_TAKEN_OUT = MatchResult(matched=False, why="its client has taken it out")

_KINDS = {Mode.ASYNC: Kind.ASYNC, Mode.FIRE_AND_FORGET: Kind.FORGOTTEN, Mode.DETACHED: Kind.FORGOTTEN}


class House(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the pipeline that every pass uses."""

    dialects: Mapping[str, Dialect]
    executions: Executions
    invoker: Invoker
    registry: Registry
    results: Results
    delivery: Delivery


class Pass:
    """One pass. Belongs to the loop's thread.

    Args:
        house: The parts it uses.
        execution: Whose event it is.
        event: The event as the caller sent it.
        call: What its invocations share.
        fold: The rules, over the same event and hooks.
        reporter: Writes its records.
        ids: Invocation ids that were told already, for the hooks in order.
    """

    def __init__(
        self,
        house: House,
        execution: Execution,
        event: Event,
        call: Call,
        fold: Fold[PlannedHook],
        reporter: Reporter,
        ids: Iterable[str] = (),
    ) -> None:
        self._house = house
        self._execution = execution
        self._event = event
        self._call = call
        self._fold = fold
        self._reporter = reporter
        self._ids = iter(ids)

    async def run(self, work: Work, revision: int) -> Outcome:
        """Carry it out; the outcome when all is done.

        Cancelling it ends the hook that runs; the records then say so of it and of all that come after it.
        """
        for problem in self._fold.problems:
            self._reporter.missing(problem)
        reports: list[HandlerReport] = []
        while (planned := self._fold.coming) is not None:
            invocation_id = next(self._ids, None) or new_invocation_id()
            match = self._match(planned)
            if not match.matched:
                self._fold.leave_out()
                work.ids.pop(invocation_id, None)
                if match.problem is not None:
                    reports.append(self._without_run(planned, _undecided(match.problem)))
                continue
            verdict = self._verdict_without_run()
            if verdict is not None:
                reports.append(self._without_run(planned, verdict))
                work.ids.pop(invocation_id, None)
            elif planned.hook.withheld is not None:
                reply = withheld_reply(planned.hook, planned.hook.withheld, self._event)
                reports.append(self._without_run(planned, self._fold.add(planned, reply)))
                work.ids.pop(invocation_id, None)
            elif planned.hook.mode is not Mode.BLOCKING:
                work.ids.pop(invocation_id, None)
                durable = await self._keep(planned) if planned.hook.durable else None
                task = self._start_background(planned, invocation_id, durable, match.problem)
                if planned.hook.mode is Mode.DETACHED:
                    # A short wait, after which `started` is true whatever becomes of the daemon.
                    reports.append(await asyncio.shield(task))
                else:
                    why = None if durable is None else durable.problem
                    reports.append(started(planned, invocation_id, why))
            else:
                work.ids[invocation_id] = None
                try:
                    reports.append(await self.run_one(planned, invocation_id, note=match.problem))
                except asyncio.CancelledError:
                    self._cancel_rest()
                    raise
                del work.ids[invocation_id]
        return self._fold.outcome(reports, revision)

    def _verdict_without_run(self) -> Verdict | None:
        """Go on to the coming hook: the verdict on it when it does not run, None when it does."""
        deadline = self._call.deadline
        if deadline is not None and time.monotonic() >= deadline:
            self._fold.expire(
                f"the budget of the dispatch ({self._call.budget_s:g} s) was spent before it ran"
            )
        step = self._fold.next()
        return None if step is None else step.verdict

    def _match(self, planned: PlannedHook) -> MatchResult:
        """What can only be said now: a client may have taken its hook out, earlier hooks may have changed the arguments."""
        if not self._house.registry.stands(planned.hook):
            return _TAKEN_OUT
        return planned.matches(self._event)

    async def run_one(
        self,
        planned: PlannedHook,
        invocation_id: str,
        durable: Run | None = None,
        note: HookProblem | None = None,
    ) -> HandlerReport:
        """Run one hook, take its reply in, and tell of it; the end of a durable one is on disk when this returns.

        One that is to be detached has only been started then.

        `note` is what there is to say about its match.
        """
        invocation = Invocation(invocation_id, planned, self._event)
        if durable is not None:
            invocation.starting = durable.begin
        about = None
        if planned.hook.mode is Mode.DETACHED:
            about = About.of(planned.hook, self._reporter.place, durable)
            invocation.about = about.encoded()
        self._reporter.started(planned.hook, invocation_id)
        try:
            reply = await self._house.invoker.run(self._call, invocation)
        except asyncio.CancelledError:
            self._finished(invocation, cancelled())
            raise
        if about is not None and invocation.worker is not None:
            if durable is not None:
                await durable.hand_over(invocation.worker, about.owner)
                note = note or durable.problem
            return started(planned, invocation_id, note, pid=invocation.worker)
        if note is not None:
            reply = msgspec.structs.replace(reply, notes=(*reply.notes, note))
        before = self._fold.arguments
        verdict = self._fold.add(planned, reply)
        changed = self._fold.arguments if self._fold.arguments is not before else None
        if changed is not None:
            self._event = self._house.dialects[self._event.agent].with_arguments(self._event, changed)
        report = self._finished(invocation, verdict)
        self._house.results.keep(invocation, report, verdict, changed)
        if durable is not None:
            await durable.end(invocation)
        return report

    def _finished(self, invocation: Invocation, verdict: Verdict) -> HandlerReport:
        report = report_of(invocation, verdict)
        self._reporter.finished(report, verdict)
        return report

    def _without_run(self, planned: PlannedHook, verdict: Verdict) -> HandlerReport:
        report = without_run(planned, verdict)
        self._reporter.skipped(report, verdict)
        return report

    def _cancel_rest(self) -> None:
        for planned in self._fold.rest():
            if self._match(planned).matched:
                self._without_run(planned, cancelled(Status.SKIPPED))

    # ------------------------------------------------------------------------------------------------------------------
    # Background hooks

    async def _keep(self, planned: PlannedHook) -> Run:
        """Put a durable hook on disk, which must be done before it is started and before the dispatch is answered."""
        try:
            return await self._house.delivery.keep(planned, self._event, self._call, self._reporter.place)
        except asyncio.CancelledError:
            self._without_run(planned, cancelled(Status.SKIPPED))
            self._cancel_rest()
            raise

    def _start_background(
        self, planned: PlannedHook, invocation_id: str, durable: Run | None, note: HookProblem | None
    ) -> asyncio.Task[HandlerReport]:
        grace_s = self._call.snapshot.document_settings(planned.hook).shutdown_grace_s
        work = Work(_KINDS[planned.hook.mode], span_of(self._event), grace_s)
        work.ids[invocation_id] = None
        self._house.executions.start(
            self._execution, work, self._alone(planned).run_one(planned, invocation_id, durable, note)
        )
        if durable is not None:
            # Not in the coroutine: a task that is cancelled before its first step never gets there.
            work.task.add_done_callback(lambda _: durable.cancel())
        return work.task

    def _alone(self, planned: PlannedHook) -> Pass:
        """A pass over one hook that nobody waits for."""
        event = msgspec.structs.replace(self._event, gate=False)
        return Pass(
            self._house,
            self._execution,
            event,
            # The caller's budget is for its answer, which this hook does not hold up.
            msgspec.structs.replace(self._call, lane=Lane.BACKGROUND, deadline=None),
            Fold(event, (planned,), accepts=self._execution.accepts - NOBODY_WAITS),
            self._reporter,
        )


def _undecided(problem: HookProblem) -> Verdict:
    return Verdict(status=Status.SKIPPED, problem=problem, level=Level.WARNING)
