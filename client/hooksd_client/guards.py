"""The events that are answered closed while nobody decides them (`guards.json`, design rule 2).

The daemon writes the file whenever its guards change. A client reads it only when a dispatch came to no decision.
"""

from __future__ import annotations

import json
from typing import Any, Dict, FrozenSet, Optional


__all__ = ["GuardsUnreadable", "guarded_events", "is_guarded"]

VERSION = 1


class GuardsUnreadable(ValueError):
    """A `guards.json` that is there but cannot be understood.

    Attributes:
        path: Where it lies.
        reason: What is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot read the guards in {self.path}: {self.reason}"


def guarded_events(path: str) -> Dict[str, FrozenSet[str]]:
    """The guarded events of each agent, by native and by dotted name; empty if there is no such file.

    Raises:
        GuardsUnreadable: The file is there and cannot be read or understood.
    """
    try:
        with open(path, "rb") as file:
            document = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise GuardsUnreadable(path, str(error)) from error
    return _read(path, document)


def is_guarded(path: str, agent: Optional[str], event: str) -> bool:
    """Whether an event must be answered closed.

    What cannot be told is taken as guarded: a file that cannot be understood, and an agent that the caller did not
    name where any agent has that event guarded. The other way round a gate would be open that somebody wanted shut.
    """
    try:
        agents = guarded_events(path)
    except GuardsUnreadable:
        return True
    if agent is not None:
        return event in agents.get(agent, frozenset())
    return any(event in events for events in agents.values())


def _read(path: str, document: Any) -> Dict[str, FrozenSet[str]]:
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise GuardsUnreadable(path, f"it is not of version {VERSION}")
    agents = document.get("agents")
    if not isinstance(agents, dict) or not all(isinstance(events, dict) for events in agents.values()):
        raise GuardsUnreadable(path, "`agents` must name the guarded events of each agent")
    return {agent: frozenset(events) for agent, events in agents.items()}
