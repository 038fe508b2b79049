"""One execution: a run of an agent, bound to one snapshot (design.md, "Words")."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from hooksd.config.snapshot import Snapshot
from hooksd.dialects.base import Dialect
from hooksd.model.decision import Capability
from hooksd.model.events import Event
from hooksd.model.outcome import Continuation
from hooksd.pipeline.background import Work
from hooksd.pipeline.continuations import Continuations
from hooksd.protocol.methods.executions import ExecutionOpenParams


__all__ = ["Execution"]


class Execution:
    """One run of an agent. Belongs to the loop's thread.

    Attributes:
        id: Its name, chosen by the caller.
        agent: The dialect whose vocabulary the caller speaks.
        session_id: The agent's session.
        workspace_path: Absolute, or "".
        model: The session's model, "" if not told.
        profile: The agent's profile, "" if not told.
        env: The caller's environment for its hooks; None for the daemon's. Never changed in place.
        accepts: What the caller can carry out.
        owner: The connection that it must not outlive, None if it may.
        snapshot: What it runs with.
        opened_at: Seconds since the epoch.
        last_used: On the clock of `time.monotonic`: a change of the time must expire nothing.
        works: What is in progress for it.
    """

    __slots__ = (
        "_continuations",
        "accepts",
        "agent",
        "env",
        "id",
        "last_used",
        "model",
        "opened_at",
        "owner",
        "profile",
        "session_id",
        "snapshot",
        "works",
        "workspace_path",
    )

    def __init__(self, params: ExecutionOpenParams, snapshot: Snapshot, dialect: Dialect) -> None:
        self.id = params.execution_id
        self.agent = dialect.name
        self.session_id = params.session_id
        self.workspace_path = sys.intern(params.workspace_path)
        self.snapshot = snapshot
        self.owner: object | None = None
        self.opened_at = time.time()
        self.last_used = time.monotonic()
        self.works: set[Work] | None = None
        self.model = self.profile = ""
        self.env: Mapping[str, str] | None = None
        self.accepts = dialect.accepts
        self._continuations: Continuations | None = None
        self.update(params)

    # Most executions never see a forced continuation, and there may be ten thousand of them.

    def observe(self, event: Event) -> None:
        """See an event that begins a new turn. Must be called once with every dispatched event."""
        if self._continuations is not None:
            self._continuations.observe(event)

    def is_continued(self, event: Event) -> bool:
        """Whether the agent goes on because of a Stop hook, by our own count."""
        return self._continuations is not None and self._continuations.is_continued(event)

    def claim(self, event: Event, limit: int) -> Continuation:
        """Count a forced continuation; see `Continuations.claim`."""
        if self._continuations is None:
            self._continuations = Continuations()
        return self._continuations.claim(event.subagent, limit)

    def update(self, params: ExecutionOpenParams) -> None:
        """Take over what a further open of the same execution says; what it leaves out stays."""
        if params.model is not None:
            self.model = sys.intern(params.model)
        if params.profile is not None:
            self.profile = sys.intern(params.profile)
        if params.env is not None and params.env != self.env:
            # What an environment is cleaned to is remembered by its identity.
            self.env = params.env
        if params.accepts is not None:
            self.accepts = _shared(params.accepts)


_ACCEPTS: dict[frozenset[Capability], frozenset[Capability]] = {}


def _shared(accepts: tuple[Capability, ...]) -> frozenset[Capability]:
    """One object for equal sets: there are at most 64 of them, and thousands of executions."""
    given = frozenset(accepts)
    return _ACCEPTS.setdefault(given, given)
