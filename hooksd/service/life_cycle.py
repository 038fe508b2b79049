"""The life of the daemon as a table: which state may follow which.

Pure. What is done in a state is the daemon's business; here is only that nothing is done twice or backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType


__all__ = ["TRANSITIONS", "IllegalTransition", "LifeCycle", "State"]


class State(StrEnum):
    """Where the daemon is in its life."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """Serving, while a source is invalid or a last good `hooksd.toml` serves (design rule 4)."""
    DRAINING = "draining"
    STOPPED = "stopped"


TRANSITIONS: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.STARTING: frozenset({State.READY, State.DEGRADED, State.DRAINING}),
        State.READY: frozenset({State.DEGRADED, State.DRAINING}),
        State.DEGRADED: frozenset({State.READY, State.DRAINING}),
        State.DRAINING: frozenset({State.STOPPED}),
        State.STOPPED: frozenset(),
    }
)
"""The states that may follow a state. A daemon that is told to stop while it starts drains, too."""


class IllegalTransition(Exception):
    """A fault of ours: a state that cannot follow the present one; nothing was changed."""

    def __init__(self, present: State, wanted: State) -> None:
        self.present = present
        self.wanted = wanted
        super().__init__(f"the daemon cannot become {wanted} while it is {present}")


class LifeCycle:
    """The present state.

    Args:
        entered: Called after each change with the new state.
    """

    def __init__(self, entered: Callable[[State], None]) -> None:
        self._entered = entered
        self.state = State.STARTING

    @property
    def is_serving(self) -> bool:
        """Whether new work is taken."""
        return self.state in {State.READY, State.DEGRADED}

    def go(self, wanted: State) -> None:
        """Enter a state.

        Raises:
            IllegalTransition: It cannot follow the present one.
        """
        if wanted not in TRANSITIONS[self.state]:
            raise IllegalTransition(self.state, wanted)
        self.state = wanted
        self._entered(wanted)
