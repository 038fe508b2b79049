"""`hook/explain`: what would run for an event, in order, and why the rest would not. Starts no process.

Nothing is asked of hooks, so what an earlier one could do (block, change arguments) is not foreseen.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from hooksd.config.plan import PlannedHook
from hooksd.config.snapshot import Snapshot
from hooksd.model.decision import Decision
from hooksd.model.events import Event
from hooksd.model.hooks import Argv, Handler, Hook, Programmatic, Script, ShellCommand
from hooksd.pipeline.invocation import Call, Invocation, Invoker, new_invocation_id
from hooksd.pipeline.pinned import withheld_reply
from hooksd.process.runtimes import Resolved
from hooksd.protocol.methods.hooks import HookExplainResult, NotMatched, PlannedRun


__all__ = ["command_text", "explain"]


def explain(
    snapshot: Snapshot, event: Event, call: Call, invoker: Invoker, stands: Callable[[Hook], bool]
) -> HookExplainResult:
    """The answer of `hook/explain`.

    Args:
        snapshot: What decides.
        event: The event.
        call: As a dispatch of it would have.
        invoker: Knows what a hook would be started as.
        stands: Whether a programmatic hook is still registered.
    """
    plan = snapshot.plan(event.agent, event.name)
    runs: list[PlannedRun] = []
    others: list[NotMatched] = []
    selected = {id(planned.hook): planned for planned in plan.select(event)}
    for hook, why in plan.explain(event):
        planned = selected.get(id(hook))
        if planned is None:
            others.append(NotMatched(hook=hook.name, why=why or "it is not selected for this event"))
        elif not stands(hook):
            others.append(NotMatched(hook=hook.name, why="its client has taken it out"))
        elif not (match := planned.matches(event)).matched:
            others.append(NotMatched(hook=hook.name, why=match.why or "its own condition does not hold"))
        elif hook.withheld is not None:
            blocks = withheld_reply(hook, hook.withheld, event).decision is Decision.BLOCK
            told = f"{hook.withheld.message}{', so it blocks this event' if blocks else ''}; {hook.withheld.hint}"
            others.append(NotMatched(hook=hook.name, why=told))
        elif hook.load_problem is not None:
            told = f"it did not load and is guarded, so it fails: {hook.load_problem.describe()}"
            others.append(NotMatched(hook=hook.name, why=told))
        else:
            runs.append(_run(planned, event, call, invoker))
    return HookExplainResult(plan=tuple(runs), not_matched=tuple(others), revision=snapshot.revision)


def command_text(handler: Handler | None) -> str:
    """What a hook runs, as it is configured, in one line."""
    match handler:
        case ShellCommand():
            return handler.command
        case Argv():
            return shlex.join(handler.argv)
        case Script():
            return shlex.join((handler.path, *handler.arguments))
        case Programmatic():
            return f"client hook {handler.registration_id}"
        case None:
            return ""


def _run(planned: PlannedHook, event: Event, call: Call, invoker: Invoker) -> PlannedRun:
    hook = planned.hook
    invocation = Invocation(new_invocation_id(), planned, event)
    runs_as: tuple[tuple[str, ...], ...] = ()
    if isinstance(hook.handler, Programmatic):
        invoker.place(call, invocation)
    else:
        resolved, _, _ = invoker.prepare(call, invocation)
        if isinstance(resolved, Resolved):
            runs_as = tuple(resolved.candidates)
    return PlannedRun(
        hook=hook.name,
        contract=hook.contract,
        mode=hook.mode,
        command=command_text(hook.handler),
        cwd=invocation.cwd,
        timeout_ms=None if hook.timeout_s is None else round(hook.timeout_s * 1000),
        runs_as=runs_as,
    )
