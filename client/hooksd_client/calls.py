"""Every verb of the client as a value: which method, which params, how to read the answer, what a repeat would mean.

Pure, and shared by the blocking and the asyncio client, which only carry the calls out. Params that were not given are
left out, so that the daemon's own defaults hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypedDict,
    TypeVar,
)

from hooksd_client import results
from hooksd_client.errors import ProtocolViolation


if TYPE_CHECKING:
    # Known to every type checker; at run time the annotations stay text.
    from typing_extensions import Unpack

__all__ = [
    "Call",
    "EventOptions",
    "ExecutionOptions",
    "Gate",
    "RegisterOptions",
    "DryRunOptions",
    "execution_params",
]

T = TypeVar("T")

PROTOCOL_VERSION = 1

_PATIENT = {"execution/drain", "execution/close", "hook/dispatch", "hook/test"}
"""Methods that take as long as the hooks do."""


@dataclass(frozen=True)
class Gate:
    """Whose event a call dispatches: what a guard is looked up by when nobody answers."""

    agent: Optional[str]
    event: str


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request, not yet sent.

    Attributes:
        method: As on the wire.
        params: As on the wire.
        read: Makes the typed result of the answer's `result`.
        repeatable: Whether it may be sent again when a connection was lost after it had been sent: it changes nothing,
            or doing it twice is the same as doing it once.
        patient: Whether it may take as long as the hooks do; it then has no time limit unless the caller gives one.
        gate: Set for a dispatch.
        opens: The params that open the execution it is about. They are sent along unless this connection has opened it
            before: the daemon may be another one than before the connection was lost.
        closes: The execution that is closed by it.
    """

    method: str
    params: Mapping[str, Any]
    read: Callable[[Any], T]
    repeatable: bool = False
    patient: bool = False
    gate: Optional[Gate] = None
    opens: Optional[Mapping[str, Any]] = None
    closes: Optional[str] = None


class _ExecutionNeeds(TypedDict):
    """What an execution cannot do without."""

    agent: str
    session_id: str


class ExecutionOptions(_ExecutionNeeds, total=False):
    """What an execution is opened with (protocol section 2.2).

    Attributes:
        agent: The dialect whose vocabulary the caller speaks.
        session_id: The agent's session.
        workspace_path: Absolute; default: none.
        model: The session's model.
        profile: The agent's profile.
        env: The environment of the hooks. Default: the daemon's own, cleaned.
        accepts: What the caller can carry out. Default: by the dialect.
        bound_to: `daemon` (the default) or `connection`.
    """

    workspace_path: str
    model: Optional[str]
    profile: Optional[str]
    env: Optional[Mapping[str, str]]
    accepts: Optional[Sequence[str]]
    bound_to: Optional[str]


class EventOptions(TypedDict, total=False):
    """What can be told of an event besides its payload (protocol section 2.3).

    Attributes:
        background: The completion of a tool that ran in the background.
        timeout_ms: The daemon's budget for all hooks; what is left when it is spent does not run.
        env: The environment of the hooks, for this event only.
        cwd: Their working directory, for this event only; absolute.
        model: The model, for this event only.
        profile: The profile, for this event only.
        traceparent: W3C trace context.
    """

    background: bool
    timeout_ms: Optional[int]
    env: Optional[Mapping[str, str]]
    cwd: Optional[str]
    model: Optional[str]
    profile: Optional[str]
    traceparent: Optional[str]


class DryRunOptions(TypedDict, total=False):
    """What a dry run can be told (protocol section 2.7).

    Attributes:
        dialect: Whose terms the handler, the event and the payload are in.
        payload: The event's own fields. Default: synthetic ones.
        workspace_path: Workspace to pretend; absolute.
        env: The environment of the hooks.
        cwd: Their working directory; absolute.
    """

    dialect: Optional[str]
    payload: Optional[Mapping[str, Any]]
    workspace_path: Optional[str]
    env: Optional[Mapping[str, str]]
    cwd: Optional[str]


class RegisterOptions(TypedDict, total=False):
    """How a programmatic hook is registered (protocol section 2.8).

    Attributes:
        agent: The dialect of the events' names and of the envelope. Default: `bamboo`.
        matcher: Pattern over the tool name.
        priority: Ascending; default 100. Configured hooks have 100 and come after this one at the same.
        mode: `control` (the default) or `observer`.
        timeout_ms: How long the daemon waits for one answer.
        on_failure: `warn` (the default) or `block`.
    """

    agent: Optional[str]
    matcher: Optional[str]
    priority: Optional[int]
    mode: Optional[str]
    timeout_ms: Optional[int]
    on_failure: Optional[str]


def given(**params: Any) -> Dict[str, Any]:
    """The params without those that are None; any kind of mapping becomes one that JSON has."""
    return {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in params.items()
        if value is not None
    }


def nothing(_answer: Any) -> None:
    """Reads an answer that has nothing to tell."""


def execution_params(execution_id: str, **options: Unpack[ExecutionOptions]) -> Dict[str, Any]:
    """The params of `execution/open`, also taken by `dispatch` to open on first use."""
    return {"workspace_path": "", **given(execution_id=execution_id, **options)}


def event_params(
    execution_id: str, event: str, payload: Optional[Mapping[str, Any]], options: EventOptions
) -> Dict[str, Any]:
    """The params that `hook/dispatch`, `hook/notify` and `hook/explain` share."""
    return given(execution_id=execution_id, event=event, payload=payload, **options)


def raw(method: str, params: Mapping[str, Any], *, repeatable: bool = False) -> Call[Any]:
    """Any method; the answer comes as it is."""
    return Call(
        method,
        params,
        lambda answer: answer,
        repeatable=repeatable,
        patient=method in _PATIENT,
        gate=_gate(params) if method == "hook/dispatch" else None,
    )


def initialize(name: Optional[str], version: Optional[str]) -> Call[results.Welcome]:
    """`initialize`; the name becomes part of the names of this client's programmatic hooks."""
    who = None if name is None else {"name": name, "version": version or ""}
    params = given(protocol_version=PROTOCOL_VERSION, client=who)
    return Call("initialize", params, results.Welcome.from_answer, repeatable=True)


def open_execution(params: Mapping[str, Any]) -> Call[results.OpenedExecution]:
    """`execution/open`: the same params again give the same snapshot."""
    read = results.OpenedExecution.from_answer
    return Call("execution/open", params, read, repeatable=True, opens=params)


def drain_execution(execution_id: str, scope: str, grace_ms: Optional[int]) -> Call[results.Drained]:
    """`execution/drain`: a repeat would not tell again what the first one finished."""
    params = given(execution_id=execution_id, scope=scope, grace_ms=grace_ms)
    return Call("execution/drain", params, results.Drained.from_answer, patient=True)


def close_execution(execution_id: str, grace_ms: Optional[int]) -> Call[results.Drained]:
    """`execution/close`: a repeat would find no such execution."""
    params = given(execution_id=execution_id, grace_ms=grace_ms)
    read = results.Drained.from_answer
    return Call("execution/close", params, read, patient=True, closes=execution_id)


def list_executions() -> Call[Tuple[results.ExecutionInfo, ...]]:
    """`execution/list`."""
    return Call("execution/list", {}, _many("executions", results.ExecutionInfo), repeatable=True)


def dispatch(params: Mapping[str, Any], opens: Optional[Mapping[str, Any]]) -> Call[results.Outcome]:
    """`hook/dispatch`: runs hooks, so it is never repeated once it may have been run."""
    agent = opens.get("agent") if opens is not None else None
    return Call(
        "hook/dispatch",
        params,
        results.Outcome.from_answer,
        patient=True,
        gate=Gate(agent, params["event"]),
        opens=opens,
    )


def notify(params: Mapping[str, Any], opens: Optional[Mapping[str, Any]]) -> Call[results.Accepted]:
    """`hook/notify` as a request."""
    return Call("hook/notify", params, results.Accepted.from_answer, opens=opens)


def explain(params: Mapping[str, Any], opens: Optional[Mapping[str, Any]]) -> Call[results.Explanation]:
    """`hook/explain`: runs nothing."""
    return Call("hook/explain", params, results.Explanation.from_answer, repeatable=True, opens=opens)


def result(invocation_id: str) -> Call[results.InvocationResult]:
    """`hook/result`."""
    read = results.InvocationResult.from_answer
    return Call("hook/result", {"invocation_id": invocation_id}, read, repeatable=True)


def dry_run(
    event: str, handler: Optional[Mapping[str, Any]], hook: Optional[str], options: DryRunOptions
) -> Call[Tuple[results.DryRun, ...]]:
    """`hook/test`: runs a hook for real, though with no effect on executions."""
    params = {**given(event=event, hook=hook, **options), **(handler or {})}
    return Call("hook/test", params, _dry_runs, patient=True)


def subscription(
    kinds: Optional[Iterable[str]], execution_id: Optional[str], since_seq: Optional[int]
) -> Dict[str, Any]:
    """The params of `events/subscribe`."""
    return given(kinds=None if kinds is None else list(kinds), execution_id=execution_id, since_seq=since_seq)


def show_config(workspace_path: Optional[str]) -> Call[results.Configuration]:
    """`config/show`."""
    read = results.Configuration.from_answer
    return Call("config/show", given(workspace_path=workspace_path), read, repeatable=True)


def validate_config(dialect: str, content: Optional[str], path: Optional[str]) -> Call[results.Validation]:
    """`config/validate`: keeps nothing."""
    params = given(dialect=dialect, content=content, path=path)
    return Call("config/validate", params, results.Validation.from_answer, repeatable=True)


def reload_config() -> Call[results.Reloaded]:
    """`config/reload`: reading twice is reading once."""
    return Call("config/reload", {}, results.Reloaded.from_answer, repeatable=True)


def write_config(source: str, expected_revision: int, content: str) -> Call[results.Written]:
    """`config/write`: a repeat would find a stale revision."""
    params = {"source": source, "expected_revision": expected_revision, "content": content}
    return Call("config/write", params, results.Written.from_answer)


def list_trust() -> Call[Tuple[results.TrustedProject, ...]]:
    """`trust/list`."""
    return Call("trust/list", {}, _many("projects", results.TrustedProject), repeatable=True)


def show_trust(directory: str) -> Call[results.TrustReview]:
    """`trust/show`."""
    return Call("trust/show", {"dir": directory}, results.TrustReview.from_answer, repeatable=True)


def grant_trust(directory: str, digest: str) -> Call[results.TrustGranted]:
    """`trust/grant`: granting the same digest twice is granting it once."""
    params = {"dir": directory, "digest": digest}
    return Call("trust/grant", params, results.TrustGranted.from_answer, repeatable=True)


def revoke_trust(directory: str) -> Call[results.TrustRevoked]:
    """`trust/revoke`: a repeat would not tell that there was a grant."""
    return Call("trust/revoke", {"dir": directory}, results.TrustRevoked.from_answer)


def list_jobs(
    state: Optional[str], limit: Optional[int], after: Optional[str]
) -> Call[Tuple[results.DurableJob, ...]]:
    """`outbox/list`."""
    params = given(state=state, limit=limit, after=after)
    return Call("outbox/list", params, _many("jobs", results.DurableJob), repeatable=True)


def retry_jobs(job_id: Optional[str]) -> Call[int]:
    """`outbox/retry`: a repeat would not tell how many there were."""
    params = {"all": True} if job_id is None else {"job_id": job_id}
    return Call("outbox/retry", params, _number("retried"))


def discard_jobs(job_id: Optional[str], state: Optional[str]) -> Call[int]:
    """`outbox/discard`: a repeat would find no such job."""
    return Call("outbox/discard", given(job_id=job_id, state=state), _number("discarded"))


def status() -> Call[results.Status]:
    """`daemon/status`."""
    return Call("daemon/status", {}, results.Status.from_answer, repeatable=True)


def ping() -> Call[None]:
    """`daemon/ping`."""
    return Call("daemon/ping", {}, nothing, repeatable=True)


def shutdown(grace_ms: Optional[int]) -> Call[None]:
    """`daemon/shutdown`: a repeat could end the daemon's successor."""
    return Call("daemon/shutdown", given(grace_ms=grace_ms), nothing)


def _gate(params: Mapping[str, Any]) -> Gate:
    execution = params.get("execution") or {}
    return Gate(execution.get("agent"), str(params.get("event", "")))


def _many(key: str, cls: Any) -> Callable[[Any], Any]:
    def read(answer: Any) -> Any:
        items = answer.get(key) if isinstance(answer, dict) else None
        if not isinstance(items, list):
            raise ProtocolViolation(f"an answer without the list `{key}`")
        return tuple(cls.from_answer(item) for item in items)

    return read


def _number(key: str) -> Callable[[Any], int]:
    def read(answer: Any) -> int:
        number = answer.get(key) if isinstance(answer, dict) else None
        if not isinstance(number, int):
            raise ProtocolViolation(f"an answer without the number `{key}`")
        return number

    return read


def _dry_runs(answer: Any) -> Tuple[results.DryRun, ...]:
    """One object for a handler that is written nowhere, a list of them for what is configured."""
    if isinstance(answer, dict) and "results" in answer:
        found: Tuple[results.DryRun, ...] = _many("results", results.DryRun)(answer)
        return found
    return (results.DryRun.from_answer(answer),)
