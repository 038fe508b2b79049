"""The content of `guards.json`: what clients answer closed while no daemon can be reached (design rule 2)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hooksd.config.snapshot import Snapshot
from hooksd.dialects.base import Dialect
from hooksd.model.hooks import GuardAction


__all__ = ["VERSION", "guards_json"]

VERSION = 1
"""Of the format."""


def guards_json(snapshot: Snapshot, dialects: Mapping[str, Dialect]) -> bytes:
    """Which events of which agents are guarded.

    For every agent, by the native and by the normalised names of its events, the guards that block: those with
    `on_failure = "block"` that apply to one of its hooks, and those with `on_missing = "block"`. An agent or event that
    is not listed is not guarded. The same snapshot always gives the same bytes.

    Args:
        snapshot: Of the managed and user sources; what a project guards is not known to a client in need.
        dialects: Those that are built in.
    """
    agents: dict[str, dict[str, list[dict[str, str]]]] = {}
    for agent, dialect in sorted(dialects.items()):
        events: dict[str, list[dict[str, str]]] = {}
        for native, name in sorted(dialect.events.items()):
            gate = name in dialect.gates
            blocking = [
                guard.hooks
                for guard in snapshot.plan(agent, name).guards(gate=gate)
                if guard.on_failure is GuardAction.BLOCK
            ]
            blocking += [
                guard.hooks
                for guard in snapshot.guards
                if guard.on_missing is GuardAction.BLOCK and name in guard.events
            ]
            if blocking:
                entries = [{"hooks": pattern} for pattern in dict.fromkeys(blocking)]
                events[native] = events[name] = entries
        if events:
            agents[agent] = events
    return msgspec.json.encode({"version": VERSION, "agents": agents})
