"""`execution/open`, `execution/close`, `execution/drain`, `execution/list` (protocol sections 2.2 and 2.5)."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from hooksd.model.decision import Capability
from hooksd.model.problems import ConfigProblem
from hooksd.model.sources import SourceReport
from hooksd.protocol.methods.base import (
    ExecutionId,
    Method,
    MethodKind,
    Milliseconds,
    NoParams,
    check_environment,
    check_identifier,
    check_path,
)


__all__ = [
    "METHODS",
    "BoundTo",
    "DrainScope",
    "ExecutionCloseParams",
    "ExecutionDrainParams",
    "ExecutionDrainResult",
    "ExecutionListResult",
    "ExecutionOpenParams",
    "ExecutionOpenResult",
    "OpenExecution",
]


class BoundTo(StrEnum):
    """How long an execution lives."""

    DAEMON = "daemon"
    """Until it is closed, or idle for `limits.execution_idle_s`."""
    CONNECTION = "connection"
    """As `daemon`, and no longer than the connection that opened it."""


class DrainScope(StrEnum):
    """Which hooks a drain waits for."""

    TURN = "turn"
    SESSION = "session"


class ExecutionOpenParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `execution/open`, also given with a dispatch to open its execution on first use.

    Attributes:
        execution_id: Chosen by the caller; the name of this run of the agent.
        agent: The dialect whose vocabulary the caller speaks.
        session_id: The agent's session.
        workspace_path: Absolute, or "" for none; it need not exist (then `problems` of the result says so).
        model: The session's model.
        profile: The agent's profile.
        env: The caller's environment for its hooks. Default: the daemon's own, cleaned (protocol section 5).
        accepts: What the caller can carry out. Default: by the dialect.
        bound_to: How long the execution lives.
    """

    execution_id: ExecutionId
    agent: str
    session_id: str
    workspace_path: str
    model: str | None = None
    profile: str | None = None
    env: dict[str, str] | None = None
    accepts: tuple[Capability, ...] | None = None
    bound_to: BoundTo = BoundTo.DAEMON

    def __post_init__(self) -> None:
        check_identifier("execution_id", self.execution_id, printable=True)
        check_identifier("session_id", self.session_id)
        if self.workspace_path:
            check_path("workspace_path", self.workspace_path)
        if self.model is not None:
            check_identifier("model", self.model)
        if self.profile is not None:
            check_identifier("profile", self.profile)
        if self.env is not None:
            check_environment("env", self.env)


class ExecutionOpenResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `execution/open`: the snapshot that the execution is bound to.

    Attributes:
        execution_id: As given.
        revision: The revision of the configuration.
        digest: Of everything that the snapshot was made of; equal digests mean equal behaviour.
        sources: Every source that applies, with its state and problems.
        problems: What belongs to no source.
    """

    execution_id: str
    revision: int
    digest: str
    sources: tuple[SourceReport, ...]
    problems: tuple[ConfigProblem, ...]


class ExecutionDrainParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `execution/drain`.

    Attributes:
        execution_id: An open execution.
        scope: Whether to wait for the asynchronous hooks of this turn, or of the whole session.
        grace_ms: How long to wait before cancelling. Default: a turn waits, a session has its dialect's grace.
    """

    execution_id: ExecutionId
    scope: DrainScope
    grace_ms: Milliseconds | None = None


class ExecutionCloseParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `execution/close`: a session drain, after which the execution is forgotten."""

    execution_id: ExecutionId
    grace_ms: Milliseconds | None = None


class ExecutionDrainResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `execution/drain` and `execution/close`: what became of each invocation, by its id."""

    finished: tuple[str, ...]
    cancelled: tuple[str, ...]
    still_running: tuple[str, ...]


class OpenExecution(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `execution/list`; times are seconds since the epoch, `running` counts hooks."""

    execution_id: str
    agent: str
    session_id: str
    workspace_path: str
    revision: int
    opened_at: float
    last_used_at: float
    running: int


class ExecutionListResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `execution/list`."""

    executions: tuple[OpenExecution, ...]


METHODS = (
    Method(
        name="execution/open",
        kind=MethodKind.REQUEST,
        params=ExecutionOpenParams,
        result=ExecutionOpenResult,
        summary="Freeze the current configuration under an execution id.",
        section="2.2",
    ),
    Method(
        name="execution/close",
        kind=MethodKind.REQUEST,
        params=ExecutionCloseParams,
        result=ExecutionDrainResult,
        summary="Drain what is still running for an execution and forget it.",
        section="2.5",
    ),
    Method(
        name="execution/drain",
        kind=MethodKind.REQUEST,
        params=ExecutionDrainParams,
        result=ExecutionDrainResult,
        summary="Wait for the asynchronous hooks of a turn or of the session.",
        section="2.5",
    ),
    Method(
        name="execution/list",
        kind=MethodKind.REQUEST,
        params=NoParams,
        result=ExecutionListResult,
        summary="List the open executions.",
        section="2",
    ),
)
