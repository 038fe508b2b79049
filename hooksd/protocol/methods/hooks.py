"""`hook/dispatch`, `hook/notify`, `hook/explain`, `hook/result`, `hook/test` (protocol sections 2.3, 2.4, 2.6, 2.7)."""

from __future__ import annotations

from typing import Any

import msgspec

from hooksd.model.decision import Decision
from hooksd.model.hooks import Contract, Mode
from hooksd.model.outcome import Outcome
from hooksd.model.problems import HookProblem
from hooksd.model.report import HandlerReport
from hooksd.protocol.methods.base import (
    ExecutionId,
    Method,
    MethodKind,
    Milliseconds,
    check_environment,
    check_identifier,
    check_path,
)
from hooksd.protocol.methods.executions import ExecutionOpenParams


__all__ = [
    "METHODS",
    "HookDispatchParams",
    "HookExplainResult",
    "HookNotifyResult",
    "HookPlace",
    "HookResultParams",
    "HookResultResult",
    "HookTestParams",
    "HookTestResult",
    "HookTestRun",
    "Interpreted",
    "NotMatched",
    "PlannedRun",
]


class HookDispatchParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `hook/dispatch`, `hook/notify` and `hook/explain`: one event of one execution.

    Attributes:
        execution_id: The execution that the event belongs to.
        execution: Opens the execution on first use; its `execution_id` must be the same.
        event: The agent's own name of the event, or the dotted one.
        payload: The event's own fields (protocol section 3).
        background: A tool completion in the background: current configuration, observer rules.
        timeout_ms: Budget of the whole pipeline; when it is spent the rest does not run.
        env: The caller's environment, for this event only.
        cwd: Working directory of the hooks, for this event only; absolute.
        model: The session's model, for this event only.
        profile: The agent's profile, for this event only.
        traceparent: W3C trace context, handed to hooks as `TRACEPARENT`.
    """

    execution_id: ExecutionId
    execution: ExecutionOpenParams | None = None
    event: str
    payload: dict[str, Any] = {}
    background: bool = False
    timeout_ms: Milliseconds | None = None
    env: dict[str, str] | None = None
    cwd: str | None = None
    model: str | None = None
    profile: str | None = None
    traceparent: str | None = None

    def __post_init__(self) -> None:
        # Tests for None first: this runs for every dispatch.
        if self.execution is not None and self.execution.execution_id != self.execution_id:
            raise ValueError("`execution.execution_id` must be the same as `execution_id`")
        if self.env is not None:
            check_environment("env", self.env)
        if self.cwd is not None:
            check_path("cwd", self.cwd)
        if self.model is not None:
            check_identifier("model", self.model)
        if self.profile is not None:
            check_identifier("profile", self.profile)
        if self.traceparent is not None:
            check_identifier("traceparent", self.traceparent, printable=True)


class HookNotifyResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `hook/notify` sent as a request; its hooks have only been started."""

    accepted: bool
    invocation_ids: tuple[str, ...]


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A hook that would run.

    Attributes:
        hook: Its name.
        contract: How its process is spoken to.
        mode: Whether a dispatch waits for it.
        command: What it runs, as configured, in one line.
        cwd: Its working directory.
        timeout_ms: Its own deadline; None for none.
        matched: Always true.
        runs_as: The command lines that would be tried, in order; empty when it cannot be started.
    """

    hook: str
    contract: Contract
    mode: Mode
    command: str
    cwd: str
    timeout_ms: int | None
    matched: bool = True
    runs_as: tuple[tuple[str, ...], ...]


class NotMatched(msgspec.Struct, frozen=True, kw_only=True):
    """A hook of the event that would not run, and why."""

    hook: str
    why: str


class HookExplainResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `hook/explain`: what would run, in order, and why the rest would not."""

    plan: tuple[PlannedRun, ...]
    not_matched: tuple[NotMatched, ...]
    revision: int


class HookResultParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `hook/result`; the id is the one of a `HandlerReport`."""

    invocation_id: str


class HookPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a hook is written: file and 1-based line; "" for a programmatic hook."""

    path: str
    line: int | None


class HookResultResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `hook/result`: what one recent invocation said, in its own words.

    Attributes:
        report: As in the answer of its dispatch.
        reason: Of its block.
        contexts: What it added.
        arguments_before: The tool's arguments as it got them, if it changed them.
        arguments_after: And as it left them.
        stdout: What is kept of it, as text.
        stderr: What is kept of it, as text.
        command: The command line that ran.
        cwd: Where it ran.
        environment: The names of its variables, sorted; never their values.
        source: Where it is written.
    """

    report: HandlerReport
    reason: str | None
    contexts: tuple[str, ...]
    arguments_before: dict[str, Any] | None
    arguments_after: dict[str, Any] | None
    stdout: str
    stderr: str
    command: tuple[str, ...]
    cwd: str
    environment: tuple[str, ...]
    source: HookPlace


_NOT_GIVEN = msgspec.UNSET
_Optional = msgspec.UnsetType

_HANDLER_KEYS = (
    "type",
    "command",
    "path",
    "runner",
    "matcher",
    "timeout_ms",
    "run",
    "execution",
    "match",
)


class HookTestParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `hook/test`, a dry run.

    With the keys of a handler (`type` and its companions in Bamboo's terms, `run`, `execution`, `match` in Chrys's) it
    runs that handler, which is written nowhere; the dialect says what is wrong with them. Without, it runs the
    configured pipeline, or the one configured hook named by `hook`, with no effect on executions.

    Attributes:
        event: The event to pretend, in the dialect's own words or dotted.
        dialect: Whose terms the handler is written in, and whose vocabulary the event and the payload are.
        payload: The event's own fields. Default: the deterministic synthetic ones.
        hook: Name of one configured hook.
        workspace_path: Workspace to pretend; absolute. Default: none.
        env: The caller's environment. Default: the daemon's own, cleaned.
        cwd: Working directory; absolute. Default: the dialect's own chain.
        type: Bamboo: `command` or `script`.
        command: Bamboo: the command line.
        path: Bamboo: the script.
        runner: Bamboo: the script's runner.
        matcher: Bamboo: pattern over the tool name.
        timeout_ms: Bamboo: the handler's deadline.
        run: Chrys: what to run.
        execution: Chrys: how to run it.
        match: Chrys: conditions on the event.
    """

    event: str
    dialect: str = "bamboo"
    payload: dict[str, Any] | None = None
    hook: str | None = None
    workspace_path: str = ""
    env: dict[str, str] | None = None
    cwd: str | None = None
    type: str | _Optional = _NOT_GIVEN
    command: str | _Optional = _NOT_GIVEN
    path: str | _Optional = _NOT_GIVEN
    runner: str | _Optional = _NOT_GIVEN
    matcher: str | _Optional | None = _NOT_GIVEN
    timeout_ms: int | _Optional = _NOT_GIVEN
    run: Any = _NOT_GIVEN
    execution: Any = _NOT_GIVEN
    match: Any = _NOT_GIVEN

    def __post_init__(self) -> None:
        if self.workspace_path:
            check_path("workspace_path", self.workspace_path)
        if self.env is not None:
            check_environment("env", self.env)
        if self.cwd is not None:
            check_path("cwd", self.cwd)
        given = self.handler()
        if given and self.hook is not None:
            raise ValueError(f"`hook` names a configured hook; `{next(iter(given))}` describes another one")

    def handler(self) -> dict[str, Any]:
        """The keys that describe a handler, as they were given; empty to run what is configured."""
        return {key: value for key in _HANDLER_KEYS if (value := getattr(self, key)) is not _NOT_GIVEN}


class Interpreted(msgspec.Struct, frozen=True, kw_only=True):
    """How hooksd reads what a hook answered; `additional_context` is one text, as a hook gives it."""

    decision: Decision
    reason: str | None
    additional_context: str | None = None
    reminders: tuple[str, ...] = ()
    arguments: dict[str, Any] | None = None


class HookTestRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one handler did in a dry run.

    Attributes:
        hook: Its name; None for a handler that is written nowhere.
        exit_code: None after a signal, a time-out or a failed start.
        signal: Its number.
        stdout: What is kept of it, as text, also after a time-out.
        stderr: The same.
        timed_out: It was ended at its deadline.
        stdout_truncated: More was written than kept.
        stderr_truncated: More was written than kept.
        duration_ms: From its start to the decision.
        matched: Whether it would run for this event; it was run all the same.
        interpreted: How its answer is read; None where there is no valid one.
        problem: What is wrong, such as a program that is not there.
        environment: The names of its variables, sorted; never their values.
        cwd: Where it ran.
        command: The command line that ran.
    """

    hook: str | None = None
    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str
    timed_out: bool
    stdout_truncated: bool
    stderr_truncated: bool
    duration_ms: float
    matched: bool
    interpreted: Interpreted | None
    problem: HookProblem | None
    environment: tuple[str, ...]
    cwd: str
    command: tuple[str, ...]


class HookTestResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `hook/test` in the pipeline form: one entry per handler, in run order.

    For a handler that is written nowhere the result is a single `HookTestRun`.
    """

    results: tuple[HookTestRun, ...]


METHODS = (
    Method(
        name="hook/dispatch",
        kind=MethodKind.REQUEST,
        params=HookDispatchParams,
        result=Outcome,
        summary="Run the pipeline of one event and answer with the outcome.",
        section="2.3",
    ),
    Method(
        name="hook/notify",
        kind=MethodKind.EITHER,
        params=HookDispatchParams,
        result=HookNotifyResult,
        summary="Report an observer event; its hooks are started and nobody waits for them.",
        section="2.4",
    ),
    Method(
        name="hook/explain",
        kind=MethodKind.REQUEST,
        params=HookDispatchParams,
        result=HookExplainResult,
        summary="Tell what would run for an event, in order, and why the rest would not; run nothing.",
        section="2.6",
    ),
    Method(
        name="hook/result",
        kind=MethodKind.REQUEST,
        params=HookResultParams,
        result=HookResultResult,
        summary="Tell what one recent invocation said: reason, contexts, output.",
        section="2.3",
    ),
    Method(
        name="hook/test",
        kind=MethodKind.REQUEST,
        params=HookTestParams,
        result=HookTestResult,
        summary="Dry run of one handler, or of the configured pipeline.",
        section="2.7",
    ),
)
