"""`hook/test`: a dry run of a handler that is written nowhere, of one configured hook, or of what is configured.

Hooks really run, with a synthetic or a given payload; what they say is interpreted and told, and has no effect: no
execution is opened, no turn is counted, nothing is kept for `hook/result`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hooksd.config.matching import NameIndex
from hooksd.config.plan import PlannedHook, plan_hook
from hooksd.dialects.base import Caller, Dialect, PayloadRefused
from hooksd.model.errors import ProtocolError
from hooksd.model.events import Event
from hooksd.model.fold import Fold, Verdict
from hooksd.model.hooks import NamePattern
from hooksd.model.report import Status
from hooksd.pipeline.invocation import Call, Invocation, Invoker, new_invocation_id
from hooksd.pipeline.reports import Reporter, report_of
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.methods.hooks import HookTestParams, HookTestRun, Interpreted


__all__ = ["MODEL", "SESSION_ID", "described_hook", "dry_run", "pretended_event"]

SESSION_ID = "lifecycle-hook-test"
"""The session that a dry run pretends (Bamboo dialect 6)."""

MODEL = "hook-test"
"""The model that a dry run pretends (Bamboo dialect 6)."""

UNBOUNDED_S = 30.0
"""How long a hook without a deadline is tried out."""


def pretended_event(params: HookTestParams, dialects: Mapping[str, Dialect]) -> Event:
    """The event that a dry run is about.

    Raises:
        ProtocolError: -32015 for an unknown dialect or event, -32602 for a payload that does not fit.
    """
    dialect = _dialect(params, dialects)
    native = dialect.native_event(params.event)
    if native is None:
        raise protocol_error(
            ErrorCode.UNKNOWN_EVENT,
            f"{dialect.name} has no event {params.event[:200]!r}; it has: {', '.join(dialect.events)}",
        )
    now = time.time()
    caller = Caller(session_id=SESSION_ID, workspace_path=params.workspace_path, model=MODEL, timestamp=now)
    payload = dialect.synthetic_payload(native, now) if params.payload is None else params.payload
    try:
        return dialect.event(native, payload, caller, background=False)
    except PayloadRefused as refused:
        raise _refused(f"the payload does not fit {native}", "payload", refused) from None


def described_hook(params: HookTestParams, dialects: Mapping[str, Dialect]) -> PlannedHook:
    """The hook that the parameters describe.

    Raises:
        ProtocolError: -32602, it could never run; every fault is told.
    """
    given: dict[str, Any] = {"event": params.event, **params.handler()}
    try:
        hook = _dialect(params, dialects).dry_run(given).hook
    except PayloadRefused as refused:
        raise _refused("this handler could never run", "handler", refused) from None
    return plan_hook(hook)


def matches(planned: PlannedHook, event: Event) -> bool:
    """Whether a hook would run for an event."""
    rule = planned.hook.match
    if planned.hook.inactive is not None:
        return False
    if isinstance(rule, NamePattern) and not NameIndex([rule.pattern]).matching(event.tool_name):
        return False
    return planned.matches(event).matched


async def dry_run(
    planned: Sequence[PlannedHook],
    event: Event,
    call: Call,
    invoker: Invoker,
    reporter: Reporter,
    dialect: Dialect,
    *,
    written: bool = True,
) -> tuple[HookTestRun, ...]:
    """Run hooks one after another, as a dispatch would, and tell what each did; those that do not run are left out.

    Args:
        planned: The hooks, in run order.
        event: What they are told.
        call: As a dispatch would have.
        invoker: Runs them.
        reporter: Writes their records.
        dialect: The one that the event is in.
        written: Whether the hooks have names; the others are written nowhere.
    """
    fold = Fold(event, planned, accepts=dialect.accepts)
    runs: list[HookTestRun] = []
    while (step := fold.next()) is not None:
        matched = matches(step.planned, event)
        invocation = Invocation(new_invocation_id(), step.planned, event)
        verdict = step.verdict
        if verdict is not None and verdict.status is Status.SKIPPED:
            continue
        if verdict is None:
            reporter.started(step.planned.hook, invocation.id)
            verdict = fold.add(step.planned, await invoker.run(_bounded(call, step.planned), invocation))
            if fold.arguments is not None and fold.arguments is not event.tool_arguments:
                event = dialect.with_arguments(event, fold.arguments)
        reporter.finished(report_of(invocation, verdict), verdict)
        runs.append(
            _told(invocation, verdict, matched=matched, name=step.planned.hook.name if written else None)
        )
    return tuple(runs)


def _bounded(call: Call, planned: PlannedHook) -> Call:
    """A detached hook has no deadline of its own; here it is not detached, and somebody waits for it."""
    if planned.hook.timeout_s is not None or call.deadline is not None:
        return call
    return msgspec.structs.replace(call, deadline=time.monotonic() + UNBOUNDED_S, budget_s=UNBOUNDED_S)


def _told(invocation: Invocation, verdict: Verdict, *, matched: bool, name: str | None) -> HookTestRun:
    reply, result = invocation.reply, invocation.result
    interpreted = None
    if verdict.status in {Status.OK, Status.BLOCKED}:
        interpreted = Interpreted(
            decision=reply.decision,
            reason=reply.reason,
            additional_context="\n\n".join(reply.contexts) or None,
            reminders=reply.reminders,
            arguments=reply.arguments if reply.arguments is not None else reply.arguments_patch,
        )
    return HookTestRun(
        hook=name,
        exit_code=None if result is None else result.exit_code,
        signal=None if result is None else result.signal,
        stdout="" if result is None else result.stdout.decode(errors="replace"),
        stderr="" if result is None else result.stderr.decode(errors="replace"),
        timed_out=verdict.status is Status.TIMEOUT,
        stdout_truncated=result is not None and result.stdout_truncated,
        stderr_truncated=result is not None and result.stderr_truncated,
        duration_ms=round(invocation.duration_s * 1000, 3),
        matched=matched,
        interpreted=interpreted,
        problem=verdict.problem,
        environment=tuple(sorted(invocation.environment)),
        cwd=invocation.cwd,
        command=invocation.command,
    )


def _dialect(params: HookTestParams, dialects: Mapping[str, Dialect]) -> Dialect:
    dialect = dialects.get(params.dialect)
    if dialect is None:
        raise protocol_error(
            ErrorCode.UNKNOWN_EVENT,
            f"there is no dialect {params.dialect[:200]!r}; there are: {', '.join(sorted(dialects))}",
            kind="unknown_dialect",
        )
    return dialect


def _refused(what: str, kind: str, refused: PayloadRefused) -> ProtocolError:
    return protocol_error(
        ErrorCode.INVALID_PARAMS, f"{what}: {refused}", kind=kind, problems=refused.problems
    )
