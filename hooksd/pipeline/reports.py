"""What is told about the hooks of a dispatch: the report in its answer, and the same in the log and the event stream.

A record holds every field of `HandlerReport` and where it belongs; of the problem kind, message and hint, and never
`detail`, reasons (unless `[log] reasons` asks for them), contexts or arguments (design rule 8).
"""

from __future__ import annotations

from typing import Any

from hooksd.config.plan import PlannedHook
from hooksd.model.fold import Verdict
from hooksd.model.hooks import Hook
from hooksd.model.problems import DispatchProblem, HookProblem, ProblemKind
from hooksd.model.records import Level, Recorder
from hooksd.model.report import HandlerReport, Status
from hooksd.pipeline.invocation import Invocation


__all__ = ["Reporter", "cancelled", "report_of", "started", "without_run"]


def without_run(planned: PlannedHook, verdict: Verdict) -> HandlerReport:
    """The report of a hook that did not run."""
    hook = planned.hook
    return HandlerReport(
        hook=hook.name,
        source=hook.source,
        contract=hook.contract,
        mode=hook.mode,
        status=verdict.status,
        decision=verdict.decision,
        problem=verdict.problem,
    )


def cancelled(status: Status = Status.CANCELLED) -> Verdict:
    """The verdict on a hook that was cut off: while it ran, or (`skipped`) before."""
    message = (
        "cancelled before it had answered"
        if status is Status.CANCELLED
        else "the dispatch was cancelled before it ran"
    )
    return Verdict(
        status=status, problem=HookProblem(kind=ProblemKind.CANCELLED, message=message), level=Level.INFO
    )


def started(
    planned: PlannedHook, invocation_id: str, problem: HookProblem | None = None, *, pid: int | None = None
) -> HandlerReport:
    """The report of a hook that nobody waits for.

    Args:
        planned: The hook.
        invocation_id: Of its run.
        problem: What is already known to be wrong.
        pid: Of the worker of a detached one.
    """
    hook = planned.hook
    return HandlerReport(
        hook=hook.name,
        source=hook.source,
        contract=hook.contract,
        mode=hook.mode,
        status=Status.STARTED,
        problem=problem,
        pid=pid,
        invocation_id=invocation_id,
    )


def report_of(invocation: Invocation, verdict: Verdict) -> HandlerReport:
    """The report of a hook that ran, or tried to."""
    hook, result = invocation.planned.hook, invocation.result
    queued_ms = round(invocation.queued_s * 1000, 3)
    duration_ms = round(invocation.duration_s * 1000, 3)
    if result is None:
        return HandlerReport(
            hook=hook.name,
            source=hook.source,
            contract=hook.contract,
            mode=hook.mode,
            status=verdict.status,
            duration_ms=duration_ms,
            queued_ms=queued_ms,
            decision=verdict.decision,
            problem=verdict.problem,
            invocation_id=invocation.id,
        )
    return HandlerReport(
        hook=hook.name,
        source=hook.source,
        contract=hook.contract,
        mode=hook.mode,
        status=verdict.status,
        exit_code=result.exit_code,
        signal=result.signal,
        duration_ms=duration_ms,
        queued_ms=queued_ms,
        decision=verdict.decision,
        problem=verdict.problem,
        stdout_bytes=result.stdout_bytes,
        stderr_bytes=result.stderr_bytes,
        stdout_truncated=result.stdout_truncated,
        stderr_truncated=result.stderr_truncated,
        left_running=result.left_running,
        pid=result.pid,
        invocation_id=invocation.id,
    )


class Reporter:
    """Writes the records of one dispatch.

    Args:
        record: Takes them.
        place: The fields that say where they belong: execution, session, agent, event, revision, trace.
        reasons: Whether the reasons of blocks are told (`[log] reasons`).
    """

    __slots__ = ("_reasons", "_record", "place")

    def __init__(self, record: Recorder, place: dict[str, Any], *, reasons: bool) -> None:
        self._record = record
        self.place = place
        self._reasons = reasons

    def started(self, hook: Hook, invocation_id: str) -> None:
        """A hook is about to run, or to wait for its slot."""
        self._record(
            Level.DEBUG,
            "hook.started",
            {
                **self.place,
                "hook": hook.name,
                "source": hook.source,
                "contract": hook.contract,
                "mode": hook.mode,
                "invocation_id": invocation_id,
            },
        )

    def finished(self, report: HandlerReport, verdict: Verdict) -> None:
        """A hook has run, or could not."""
        self._record(verdict.level, "hook.finished", self._fields(report, verdict))

    def skipped(self, report: HandlerReport, verdict: Verdict) -> None:
        """A hook does not run."""
        self._record(verdict.level, "hook.skipped", self._fields(report, verdict))

    def missing(self, problem: DispatchProblem) -> None:
        """A hook that should be there is not."""
        told = {"kind": problem.kind, "message": problem.message, "hint": problem.hint}
        fields = {**self.place, "hook": problem.hook, "status": Status.SKIPPED, "problem": told}
        self._record(Level.WARNING, "hook.skipped", fields)

    def _fields(self, report: HandlerReport, verdict: Verdict) -> dict[str, Any]:
        fields = {
            **self.place,
            "hook": report.hook,
            "source": report.source,
            "contract": report.contract,
            "mode": report.mode,
            "status": report.status,
            "exit_code": report.exit_code,
            "signal": report.signal,
            "duration_ms": report.duration_ms,
            "queued_ms": report.queued_ms,
            "decision": report.decision,
            "problem": _told(report.problem),
            "stdout_bytes": report.stdout_bytes,
            "stderr_bytes": report.stderr_bytes,
            "stdout_truncated": report.stdout_truncated,
            "stderr_truncated": report.stderr_truncated,
            "left_running": report.left_running,
            "warm": report.warm,
            "pid": report.pid,
            "invocation_id": report.invocation_id,
        }
        if self._reasons and verdict.reason is not None:
            fields["reason"] = verdict.reason
        return fields


def _told(problem: HookProblem | None) -> dict[str, Any] | None:
    if problem is None:
        return None
    return {"kind": problem.kind, "message": problem.message, "hint": problem.hint}
