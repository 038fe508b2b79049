"""What the daemon answers, as frozen dataclasses; the meaning of every field is the protocol's (section 2).

Fields that this version does not know are ignored, since results may grow. A field without which a result would make
no sense must be there, else it is a `ProtocolViolation`. Words such as `decision` and `status` stay plain strings for
the same reason.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Type, TypeVar

from hooksd_client.errors import ProtocolViolation


__all__ = [
    "Accepted",
    "ConfigDocument",
    "ConfigProblem",
    "Configuration",
    "Continuation",
    "DispatchProblem",
    "Drained",
    "DryRun",
    "DurableJob",
    "EventRecord",
    "ExecutionInfo",
    "Explanation",
    "HandlerReport",
    "HookCounts",
    "HookPlace",
    "HookProblem",
    "Interpreted",
    "InvocationResult",
    "Latency",
    "NotMatched",
    "OpenedExecution",
    "OutboxCounts",
    "Outcome",
    "PlannedRun",
    "Reloaded",
    "Result",
    "ServerInfo",
    "SourceReport",
    "Status",
    "TrustFile",
    "TrustGranted",
    "TrustReview",
    "TrustRevoked",
    "TrustedProject",
    "Validation",
    "Welcome",
    "Written",
]

_R = TypeVar("_R", bound="Result")
_Reader = Callable[[Any], Any]


class Result:
    """Base of all results: made from an answer's object by `from_answer`."""

    @classmethod
    def from_answer(cls: Type[_R], answer: Any) -> _R:
        """Make one from the object of an answer.

        Raises:
            ProtocolViolation: It is no object, a field is missing, or one has a shape that cannot be read.
        """
        if not isinstance(answer, dict):
            raise ProtocolViolation(f"{cls.__name__} must be an object, not {type(answer).__name__}")
        values: Dict[str, Any] = {}
        for name, read, required in _plan(cls):
            if name in answer:
                values[name] = answer[name] if read is None else _read(cls, name, read, answer[name])
            elif required:
                raise ProtocolViolation(f"{cls.__name__} without the field `{name}`")
        return cls(**values)


_Plan = Tuple[Tuple[str, Optional[_Reader], bool], ...]
_plans: Dict[type, _Plan] = {}


def _plan(cls: Type[Result]) -> _Plan:
    """Name, reader and whether it must be there, of every field; worked out once per class."""
    found = _plans.get(cls)
    if found is None:
        found = _plans[cls] = tuple(
            (
                item.name,
                item.metadata.get("read"),
                item.default is MISSING and item.default_factory is MISSING,
            )
            for item in fields(cls)  # type: ignore[arg-type]  # every subclass is a dataclass
        )
    return found


def _read(cls: Type[Result], name: str, read: _Reader, value: Any) -> Any:
    try:
        return read(value)
    except (TypeError, ValueError, AttributeError) as error:
        raise ProtocolViolation(f"{cls.__name__}.{name} cannot be read: {error}") from error


def _words() -> Any:
    """A list of plain values."""
    return field(default=(), metadata={"read": tuple})


def _many(cls: Type[Result]) -> Any:
    return field(
        default=(), metadata={"read": lambda values: tuple(cls.from_answer(item) for item in values)}
    )


def _one(cls: Type[Result]) -> Any:
    """An object, or null."""
    return field(
        default=None, metadata={"read": lambda value: None if value is None else cls.from_answer(value)}
    )


def _named(cls: Type[Result]) -> Any:
    """An object of objects, by name."""
    return field(
        default_factory=dict,
        metadata={"read": lambda value: {name: cls.from_answer(item) for name, item in value.items()}},
    )


@dataclass(frozen=True)
class ServerInfo(Result):
    """Who answers."""

    name: str
    version: str = ""


@dataclass(frozen=True)
class Welcome(Result):
    """Result of `initialize`."""

    protocol_version: int
    server: ServerInfo = field(metadata={"read": ServerInfo.from_answer})
    dialects: Tuple[str, ...] = _words()
    methods: Tuple[str, ...] = _words()
    limits: Dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ConfigProblem(Result):
    """One located problem of a configuration."""

    severity: str
    path: str
    message: str
    line: Optional[int] = None
    column: Optional[int] = None
    hint: Optional[str] = None
    file: Optional[str] = None


@dataclass(frozen=True)
class SourceReport(Result):
    """One configuration file; `hooks` counts those that are active."""

    name: str
    dialect: str
    scope: str
    path: str
    state: str
    hooks: int = 0
    problems: Tuple[ConfigProblem, ...] = _many(ConfigProblem)


@dataclass(frozen=True)
class OpenedExecution(Result):
    """Result of `execution/open`: the snapshot that the execution is bound to."""

    execution_id: str
    revision: int
    digest: str = ""
    sources: Tuple[SourceReport, ...] = _many(SourceReport)
    problems: Tuple[ConfigProblem, ...] = _many(ConfigProblem)


@dataclass(frozen=True)
class Drained(Result):
    """Result of `execution/drain` and `execution/close`: invocation ids by what became of them."""

    finished: Tuple[str, ...] = _words()
    cancelled: Tuple[str, ...] = _words()
    still_running: Tuple[str, ...] = _words()


@dataclass(frozen=True)
class ExecutionInfo(Result):
    """One open execution; times are seconds since the epoch, `running` counts hooks."""

    execution_id: str
    agent: str
    session_id: str = ""
    workspace_path: str = ""
    revision: int = 0
    opened_at: float = 0.0
    last_used_at: float = 0.0
    running: int = 0


@dataclass(frozen=True)
class HookProblem(Result):
    """What went wrong in one run of a hook; `detail` holds the hook's own words."""

    kind: str
    message: str
    hint: Optional[str] = None
    detail: Optional[str] = None


@dataclass(frozen=True)
class DispatchProblem(Result):
    """A problem that belongs to no hook that ran; `hook` names one that did not."""

    kind: str
    message: str
    hint: Optional[str] = None
    hook: Optional[str] = None


@dataclass(frozen=True)
class HandlerReport(Result):
    """How one hook of a dispatch went."""

    hook: str
    status: str
    source: str = ""
    contract: str = ""
    mode: str = ""
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    duration_ms: float = 0.0
    queued_ms: float = 0.0
    decision: str = "none"
    problem: Optional[HookProblem] = _one(HookProblem)
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    left_running: int = 0
    warm: bool = False
    pid: Optional[int] = None
    invocation_id: str = ""


@dataclass(frozen=True)
class Continuation(Result):
    """Forced continuations of this turn; `count` includes this one."""

    count: int
    limit: int
    exhausted: bool = False


@dataclass(frozen=True)
class Outcome(Result):
    """Result of `hook/dispatch`: what all hooks of the event come to.

    `decision` is `none`, `allow`, `ask` or `block`. `none` grants nothing: the agent's own rules go on.
    """

    event: str
    decision: str
    reason: Optional[str] = None
    decided_by: Optional[str] = None
    contexts: Tuple[str, ...] = _words()
    reminders: Tuple[str, ...] = _words()
    arguments: Optional[Dict[str, Any]] = None
    continuation: Optional[Continuation] = _one(Continuation)
    revision: int = 0
    handlers: Tuple[HandlerReport, ...] = _many(HandlerReport)
    problems: Tuple[DispatchProblem, ...] = _many(DispatchProblem)

    @property
    def blocked(self) -> bool:
        """Whether the agent must not go on with what the event announced."""
        return self.decision == "block"

    @property
    def asks(self) -> bool:
        """Whether a person is to be asked first."""
        return self.decision == "ask"


@dataclass(frozen=True)
class Accepted(Result):
    """Result of `hook/notify`: its hooks have been started."""

    accepted: bool
    invocation_ids: Tuple[str, ...] = _words()


@dataclass(frozen=True)
class PlannedRun(Result):
    """A hook that would run; `runs_as` has the command lines that would be tried."""

    hook: str
    contract: str = ""
    mode: str = ""
    command: str = ""
    cwd: str = ""
    timeout_ms: Optional[int] = None
    matched: bool = True
    runs_as: Tuple[Tuple[str, ...], ...] = field(
        default=(), metadata={"read": lambda value: tuple(tuple(argv) for argv in value)}
    )


@dataclass(frozen=True)
class NotMatched(Result):
    """A hook of the event that would not run, and why."""

    hook: str
    why: str = ""


@dataclass(frozen=True)
class Explanation(Result):
    """Result of `hook/explain`."""

    plan: Tuple[PlannedRun, ...] = _many(PlannedRun)
    not_matched: Tuple[NotMatched, ...] = _many(NotMatched)
    revision: int = 0


@dataclass(frozen=True)
class HookPlace(Result):
    """Where a hook is written."""

    path: str
    line: Optional[int] = None


@dataclass(frozen=True)
class InvocationResult(Result):
    """Result of `hook/result`: what one recent invocation said, in its own words."""

    report: HandlerReport = field(metadata={"read": HandlerReport.from_answer})
    reason: Optional[str] = None
    contexts: Tuple[str, ...] = _words()
    arguments_before: Optional[Dict[str, Any]] = None
    arguments_after: Optional[Dict[str, Any]] = None
    stdout: str = ""
    stderr: str = ""
    command: Tuple[str, ...] = _words()
    cwd: str = ""
    environment: Tuple[str, ...] = _words()
    source: Optional[HookPlace] = _one(HookPlace)


@dataclass(frozen=True)
class Interpreted(Result):
    """How hooksd reads what a hook answered."""

    decision: str
    reason: Optional[str] = None
    additional_context: Optional[str] = None
    reminders: Tuple[str, ...] = _words()
    arguments: Optional[Dict[str, Any]] = None


@dataclass(frozen=True)
class DryRun(Result):
    """Result of `hook/test` for one handler; `hook` is None for one that is written nowhere."""

    hook: Optional[str] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    duration_ms: float = 0.0
    matched: bool = True
    interpreted: Optional[Interpreted] = _one(Interpreted)
    problem: Optional[HookProblem] = _one(HookProblem)
    environment: Tuple[str, ...] = _words()
    cwd: str = ""
    command: Tuple[str, ...] = _words()


@dataclass(frozen=True)
class ConfigDocument(Result):
    """One source and the text that is in force for it; `revision` is what `write_config` wants to be told."""

    name: str
    dialect: str = ""
    scope: str = ""
    path: str = ""
    state: str = ""
    revision: int = 0
    content: Optional[str] = None
    hooks: Tuple[str, ...] = _words()


@dataclass(frozen=True)
class Configuration(Result):
    """Result of `config/show`."""

    documents: Tuple[ConfigDocument, ...] = _many(ConfigDocument)
    revision: int = 0
    digest: str = ""
    problems: Tuple[ConfigProblem, ...] = _many(ConfigProblem)


@dataclass(frozen=True)
class Validation(Result):
    """Result of `config/validate`; valid means that no problem is an error."""

    valid: bool
    problems: Tuple[ConfigProblem, ...] = _many(ConfigProblem)


@dataclass(frozen=True)
class Reloaded(Result):
    """Result of `config/reload`: the revision that is now in force, and whether it is another one."""

    revision: int
    changed: bool = False
    problems: Tuple[ConfigProblem, ...] = _many(ConfigProblem)


@dataclass(frozen=True)
class Written(Result):
    """Result of `config/write`."""

    revision: int
    problems: Tuple[ConfigProblem, ...] = _many(ConfigProblem)


@dataclass(frozen=True)
class DurableJob(Result):
    """One job of `outbox/list`; times are in seconds since the epoch."""

    job_id: str
    hook: str
    event: str
    state: str
    attempts: int = 0
    max_attempts: int = 0
    created_at: float = 0.0
    next_attempt_at: Optional[float] = None
    last_attempt_at: Optional[float] = None
    ended_at: Optional[float] = None
    waiting: Optional[str] = None
    last_error: Optional[str] = None
    exit_code: Optional[int] = None
    stderr_tail: str = ""


@dataclass(frozen=True)
class TrustedProject(Result):
    """One project of `trust/list`; `granted_at` is in seconds since the epoch, None where nothing was granted."""

    dir: str
    state: str
    digest: str = ""
    granted_at: Optional[float] = None
    problems: Tuple[ConfigProblem, ...] = _many(ConfigProblem)


@dataclass(frozen=True)
class TrustFile(Result):
    """A file that trust covers, and how it is against what was granted (`same`, `new`, `changed`, `missing`)."""

    path: str
    role: str = ""
    change: str = ""
    sha256: str = ""
    size_bytes: int = 0


@dataclass(frozen=True)
class TrustReview(Result):
    """Result of `trust/show`; `digest` is what `grant_trust` wants to be told."""

    dir: str
    state: str
    digest: str
    granted_digest: Optional[str] = None
    granted_at: Optional[float] = None
    files: Tuple[TrustFile, ...] = _many(TrustFile)
    diff: str = ""
    diff_is_whole: bool = True
    not_covered: Tuple[str, ...] = _words()
    problems: Tuple[ConfigProblem, ...] = _many(ConfigProblem)


@dataclass(frozen=True)
class TrustGranted(Result):
    """Result of `trust/grant`."""

    dir: str
    state: str
    digest: str = ""
    granted_at: float = 0.0
    revision: int = 0


@dataclass(frozen=True)
class TrustRevoked(Result):
    """Result of `trust/revoke`."""

    dir: str
    revoked: bool
    revision: int = 0


@dataclass(frozen=True)
class HookCounts(Result):
    """Invocations: running and queued now; since the start in all, failed, timed out, blocking."""

    running: int = 0
    queued: int = 0
    total: int = 0
    failed: int = 0
    timed_out: int = 0
    blocked: int = 0


@dataclass(frozen=True)
class OutboxCounts(Result):
    """Durable jobs by state."""

    pending: int = 0
    running: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Latency(Result):
    """How long recent invocations of one hook took, in milliseconds."""

    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0


@dataclass(frozen=True)
class Status(Result):
    """Result of `daemon/status`."""

    pid: int
    version: str
    state: str
    uptime_s: float = 0.0
    socket: str = ""
    revision: int = 0
    sources: Tuple[SourceReport, ...] = _many(SourceReport)
    executions: int = 0
    hooks: Optional[HookCounts] = _one(HookCounts)
    outbox: Optional[OutboxCounts] = _one(OutboxCounts)
    latency_ms: Dict[str, Latency] = _named(Latency)
    warm: Dict[str, Any] = field(default_factory=dict)
    problems: Tuple[ConfigProblem, ...] = _many(ConfigProblem)


@dataclass(frozen=True)
class EventRecord(Result):
    """One record of the event stream: the same as in the log.

    Attributes:
        seq: Ascending by one through the life of the daemon; a gap is a loss.
        ts: RFC 3339, UTC.
        level: How much it matters.
        event: Its kind, such as `hook.finished`.
        data: Everything that the record has, the four above included.
    """

    seq: int
    ts: str
    level: str
    event: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> EventRecord:
        """Make one from the params of an `events/event`."""
        return cls.from_answer({**record, "data": record})
