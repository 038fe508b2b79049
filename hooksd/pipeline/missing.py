"""Guards that block an event because no hook answers to them (design rule 2, `on_missing = "block"`).

A snapshot knows those that nothing answered to when it was made. What it cannot know is that a client has taken its hook
out since: that takes the hook out of every plan, and must not take the guard along.
"""

from __future__ import annotations

from hooksd.config.snapshot import Snapshot
from hooksd.model.events import Event
from hooksd.model.hooks import Guard, GuardAction
from hooksd.model.star_patterns import StarPatterns
from hooksd.pipeline.programmatic import Registry


__all__ = ["missing_guards"]


def missing_guards(snapshot: Snapshot, event: Event, registry: Registry) -> tuple[Guard, ...]:
    """The guards that block this event.

    Args:
        snapshot: What decides.
        event: The event.
        registry: Knows which hooks of clients still stand.
    """
    plan = snapshot.plan(event.agent, event.name)
    if not snapshot.guards or registry.all_stand:
        return plan.missing
    bereft = (
        guard
        for guard in snapshot.guards
        if guard.on_missing is GuardAction.BLOCK
        and event.name in guard.events
        and guard not in plan.missing
        and not _is_answered(guard, snapshot, event, registry)
    )
    return (*plan.missing, *bereft)


def _is_answered(guard: Guard, snapshot: Snapshot, event: Event, registry: Registry) -> bool:
    pattern = StarPatterns([guard.hooks])
    return any(
        hook.event is event.name and pattern.fits(hook.name) and registry.stands(hook)
        for hook in snapshot.plan(event.agent, event.name).known()
    )
