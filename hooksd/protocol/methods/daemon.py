"""`initialize`, `daemon/*` and `$/cancel` (protocol sections 2.1, 2.10 and 2.12)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from hooksd.model.problems import ConfigProblem
from hooksd.model.sources import SourceReport
from hooksd.protocol.methods.base import Empty, Method, MethodKind, Milliseconds, NoParams, check_identifier


__all__ = [
    "METHODS",
    "PROTOCOL_VERSION",
    "CancelParams",
    "ClientInfo",
    "DaemonPingResult",
    "DaemonShutdownParams",
    "DaemonState",
    "DaemonStatusResult",
    "HookCounts",
    "InitializeParams",
    "InitializeResult",
    "Latency",
    "OutboxCounts",
    "ServerInfo",
]

PROTOCOL_VERSION = 1


class ClientInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who the client is; the name becomes part of the names of its programmatic hooks."""

    name: Annotated[str, msgspec.Meta(max_length=128)]
    version: Annotated[str, msgspec.Meta(max_length=128)]

    def __post_init__(self) -> None:
        check_identifier("name", self.name, printable=True)


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers."""

    name: str
    version: str


class InitializeParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `initialize`, which is never required."""

    protocol_version: Literal[1] = 1
    client: ClientInfo | None = None


class InitializeResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `initialize`.

    Attributes:
        protocol_version: The version spoken here.
        server: Name and version of the daemon.
        dialects: The agents whose vocabulary is known.
        methods: Everything that can be called.
        limits: Every limit in force, by its name in `[limits]`.
    """

    protocol_version: int
    server: ServerInfo
    dialects: tuple[str, ...]
    methods: tuple[str, ...]
    limits: dict[str, int | float]


class DaemonPingResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `daemon/ping`."""

    pong: bool = True


class DaemonShutdownParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `daemon/shutdown`, which answers and then drains.

    Attributes:
        grace_ms: Longest drain. Default: `limits.drain_s`.
    """

    grace_ms: Milliseconds | None = None


class DaemonState(StrEnum):
    """Where the daemon is in its life."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """Ready, but a source is invalid or a last good `hooksd.toml` serves."""
    DRAINING = "draining"


class HookCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Invocations: now running and queued; since the start of the daemon in all, failed, timed out, blocking."""

    running: int
    queued: int
    total: int
    failed: int
    timed_out: int
    blocked: int


class OutboxCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Durable jobs by state."""

    pending: int = 0
    running: int = 0
    failed: int = 0


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long recent invocations of one hook took."""

    p50: float
    p95: float
    p99: float


class DaemonStatusResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `daemon/status`.

    Attributes:
        pid: Of the daemon.
        version: Of the daemon.
        uptime_s: Since its start.
        socket: Where it listens.
        state: Where it is in its life.
        revision: Of the configuration in force.
        sources: Every source, with its state and problems.
        executions: How many are open.
        hooks: Counts of invocations.
        outbox: Counts of durable jobs.
        latency_ms: By hook name.
        warm: Warm interpreters by runtime.
        problems: Of the configuration as a whole.
    """

    pid: int
    version: str
    uptime_s: float
    socket: str
    state: DaemonState
    revision: int
    sources: tuple[SourceReport, ...]
    executions: int
    hooks: HookCounts
    outbox: OutboxCounts
    latency_ms: dict[str, Latency]
    warm: dict[str, int]
    problems: tuple[ConfigProblem, ...]


class CancelParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `$/cancel`: the id of a request of the same connection; one that is not under way is no error."""

    id: str | int


METHODS = (
    Method(
        name="initialize",
        kind=MethodKind.REQUEST,
        params=InitializeParams,
        result=InitializeResult,
        summary="Exchange versions, capabilities and limits; optional.",
        section="2.1",
    ),
    Method(
        name="daemon/status",
        kind=MethodKind.REQUEST,
        params=NoParams,
        result=DaemonStatusResult,
        summary="Tell how the daemon is.",
        section="2.12",
    ),
    Method(
        name="daemon/ping",
        kind=MethodKind.REQUEST,
        params=NoParams,
        result=DaemonPingResult,
        summary="Answer at once.",
        section="2",
    ),
    Method(
        name="daemon/shutdown",
        kind=MethodKind.REQUEST,
        params=DaemonShutdownParams,
        result=Empty,
        summary="Answer, then drain and stop.",
        section="2.10",
    ),
    Method(
        name="$/cancel",
        kind=MethodKind.NOTIFICATION,
        params=CancelParams,
        result=None,
        summary="Cancel a request of this connection; it answers -32800.",
        section="2",
    ),
)
