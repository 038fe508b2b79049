"""The blocking client."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Tuple, Type, TypeVar

from hooksd_client import calls, paths, results
from hooksd_client.calls import (
    Call,
    DryRunOptions,
    EventOptions,
    ExecutionOptions,
    RegisterOptions,
    execution_params,
)
from hooksd_client.deadline import Deadline
from hooksd_client.errors import ClientError
from hooksd_client.guards import is_guarded
from hooksd_client.handles import EventStream, Execution, Registration
from hooksd_client.link import Link
from hooksd_client.standing import Feed, HookCallback, Offer


if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["DEFAULT_TIMEOUT_S", "Client"]

T = TypeVar("T")

DEFAULT_TIMEOUT_S = 30.0
"""For calls that the daemon answers by itself. Calls that wait for hooks have no limit unless they are given one: the
daemon bounds every hook."""


class Client:
    """A blocking client of the daemon. It connects with its first call.

    **Threads.** Any number of threads may call at once; every call waits for its own answer only. An `EventStream` is
    read by one thread at a time. After a `fork`, the child makes a client of its own.

    **Lost connections.** The next call makes a new one, and renews registrations and event streams on it. A request
    that may have been run is never repeated, but for those that change nothing (`open_execution`, `executions`,
    `explain`, `result`, `show_config`, `validate_config`, `reload_config`, `status`, `ping`). Executions that are
    bound to the daemon go on; where the daemon is a new one, an `Execution` opens itself again with its next event.

    **Time limits.** Every method takes `timeout` in seconds (`float("inf")`: none); see `DEFAULT_TIMEOUT_S`. A request
    that is given up, by its limit or by an interrupt, is cancelled at the daemon.

    **Errors** are described in `errors.py`; every method that talks to the daemon may raise any `ClientError`.

    Args:
        socket_path: The daemon's address. Default: the rule of protocol section 1, from `os.environ`.
        name: The name of this program; part of the names of its programmatic hooks.
        version: Its version.
        timeout: Default time limit in seconds.
        state_dir: The daemon's state directory, for `guards.json`. Default: the user's.

    Raises:
        SocketPathError: The address cannot be used.
    """

    def __init__(
        self,
        socket_path: Optional[str] = None,
        *,
        name: Optional[str] = None,
        version: Optional[str] = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        state_dir: Optional[str] = None,
    ) -> None:
        self.socket_path: str = paths.socket_path(os.environ, socket_path)
        self._greeting = calls.initialize(name, version)
        self._timeout = timeout
        self._guards_file = paths.guards_file(os.environ, state=state_dir)
        self._link = Link(self.socket_path, self._greeting if name is not None else None, timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection. Calls under way in other threads get `ClientClosed`. Safe to repeat.

        Executions stay open unless they are bound to the connection; programmatic hooks of this client fail from now
        on in the executions that have them.
        """
        self._link.close()

    # --- the daemon ---

    def initialize(self, *, timeout: Optional[float] = None) -> results.Welcome:
        """Versions, capabilities and limits of the daemon. Never required."""
        return self.run(self._greeting, timeout)

    def ping(self, *, timeout: Optional[float] = None) -> None:
        """Return when the daemon has answered."""
        self.run(calls.ping(), timeout)

    def status(self, *, timeout: Optional[float] = None) -> results.Status:
        """How the daemon is."""
        return self.run(calls.status(), timeout)

    def shutdown(self, *, grace_ms: Optional[int] = None, timeout: Optional[float] = None) -> None:
        """Tell the daemon to drain and stop; it answers before it does."""
        self.run(calls.shutdown(grace_ms), timeout)

    # --- executions ---

    def open_execution(
        self, execution_id: str, *, timeout: Optional[float] = None, **options: Unpack[ExecutionOptions]
    ) -> results.OpenedExecution:
        """Freeze the current configuration under an execution id.

        Raises:
            ExecutionConflict: It is open with another agent, session or workspace.
        """
        return self.run(calls.open_execution(execution_params(execution_id, **options)), timeout)

    def close_execution(
        self, execution_id: str, *, grace_ms: Optional[int] = None, timeout: Optional[float] = None
    ) -> results.Drained:
        """Wait for what still runs for an execution, then forget it."""
        return self.run(calls.close_execution(execution_id, grace_ms), timeout)

    def drain_execution(
        self,
        execution_id: str,
        scope: str = "turn",
        *,
        grace_ms: Optional[int] = None,
        timeout: Optional[float] = None,
        request_id: Optional[str] = None,
    ) -> results.Drained:
        """Wait for the asynchronous hooks of the `turn` or of the whole `session`."""
        return self.run(calls.drain_execution(execution_id, scope, grace_ms), timeout, request_id)

    def executions(self, *, timeout: Optional[float] = None) -> Tuple[results.ExecutionInfo, ...]:
        """The open executions."""
        return self.run(calls.list_executions(), timeout)

    def execution(self, execution_id: str, **options: Unpack[ExecutionOptions]) -> Execution:
        """One run of an agent, for `with`: opened at its start, closed at its end."""
        return Execution(self, execution_params(execution_id, **options))

    # --- events ---

    def dispatch(
        self,
        execution_id: str,
        event: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        execution: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        request_id: Optional[str] = None,
        **options: Unpack[EventOptions],
    ) -> results.Outcome:
        """Run the hooks of one event and wait for what they come to (protocol section 2.3).

        Args:
            execution_id: The execution that the event belongs to.
            event: The agent's own name of the event, or the dotted one.
            payload: The event's own fields (protocol section 3).
            execution: `execution_params(…)`: opens the execution on first use, in the same round trip.
            timeout: This caller's own limit in seconds; none by default.
            request_id: An id of the caller's for `cancel`.
            **options: See `EventOptions`.

        Raises:
            ClientError: Nothing was decided. If its `guarded` is true, the event must be taken as blocked. `NoAnswer`:
                nobody is there, or not in time. `RequestFailed`: the daemon refuses, or (`Draining`,
                `UnknownExecution`, `RequestCancelled`) has cut the gate off.
        """
        params = calls.event_params(execution_id, event, payload, options)
        return self.run(calls.dispatch(params, execution), timeout, request_id)

    def notify(
        self,
        execution_id: str,
        event: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        execution: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        **options: Unpack[EventOptions],
    ) -> results.Accepted:
        """Report an observer event; its hooks are started and nobody waits for them."""
        params = calls.event_params(execution_id, event, payload, options)
        return self.run(calls.notify(params, execution), timeout)

    def explain(
        self,
        execution_id: str,
        event: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        execution: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        **options: Unpack[EventOptions],
    ) -> results.Explanation:
        """What would run for an event, in order, and why the rest would not. Runs nothing."""
        params = calls.event_params(execution_id, event, payload, options)
        return self.run(calls.explain(params, execution), timeout)

    def result(self, invocation_id: str, *, timeout: Optional[float] = None) -> results.InvocationResult:
        """What one recent invocation said, in its own words."""
        return self.run(calls.result(invocation_id), timeout)

    def test(
        self,
        event: str,
        *,
        handler: Optional[Mapping[str, Any]] = None,
        hook: Optional[str] = None,
        timeout: Optional[float] = None,
        request_id: Optional[str] = None,
        **options: Unpack[DryRunOptions],
    ) -> Tuple[results.DryRun, ...]:
        """Dry run (protocol section 2.7): of `handler`, of the configured `hook`, else of the configured pipeline.

        Args:
            event: The event to pretend.
            handler: The keys of a handler that is written nowhere, in the dialect's terms.
            hook: The full name of a configured hook.
            timeout: This caller's own limit in seconds; none by default.
            request_id: An id of the caller's for `cancel`.
            **options: See `DryRunOptions`.
        """
        return self.run(calls.dry_run(event, handler, hook, options), timeout, request_id)

    # --- the configuration ---

    def show_config(
        self, *, workspace_path: Optional[str] = None, timeout: Optional[float] = None
    ) -> results.Configuration:
        """The configuration that is in force."""
        return self.run(calls.show_config(workspace_path), timeout)

    def validate_config(
        self,
        dialect: str,
        *,
        content: Optional[str] = None,
        path: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> results.Validation:
        """Check a text, or a file that the daemon reads; nothing is kept."""
        return self.run(calls.validate_config(dialect, content, path), timeout)

    def reload_config(self, *, timeout: Optional[float] = None) -> results.Reloaded:
        """Have everything read again; return when it is in force."""
        return self.run(calls.reload_config(), timeout)

    def write_config(
        self, source: str, expected_revision: int, content: str, *, timeout: Optional[float] = None
    ) -> results.Written:
        """Replace the file of a source.

        Raises:
            StaleRevision: Another revision than the expected one is in force.
        """
        return self.run(calls.write_config(source, expected_revision, content), timeout)

    # --- trust in projects ---

    def list_trust(self, *, timeout: Optional[float] = None) -> Tuple[results.TrustedProject, ...]:
        """The projects that were granted trust, and those that bring hooks along and were not."""
        return self.run(calls.list_trust(), timeout)

    def show_trust(self, directory: str, *, timeout: Optional[float] = None) -> results.TrustReview:
        """What trusting a project would cover, and how it differs from what was granted; the directory is absolute."""
        return self.run(calls.show_trust(directory), timeout)

    def grant_trust(
        self, directory: str, digest: str, *, timeout: Optional[float] = None
    ) -> results.TrustGranted:
        """Trust a project's hooks. Only for programs in which a person has just seen what the digest stands for.

        Raises:
            StaleRevision: Something else is there than what the digest stands for.
        """
        return self.run(calls.grant_trust(directory, digest), timeout)

    def revoke_trust(self, directory: str, *, timeout: Optional[float] = None) -> results.TrustRevoked:
        """Take the trust in a project back."""
        return self.run(calls.revoke_trust(directory), timeout)

    # --- durable jobs ---

    def list_jobs(
        self,
        *,
        state: Optional[str] = None,
        limit: Optional[int] = None,
        after: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Tuple[results.DurableJob, ...]:
        """Durable jobs in the order in which they came; `after` (a job id) leads on from the last one of an answer."""
        return self.run(calls.list_jobs(state, limit, after), timeout)

    def retry_jobs(self, job_id: Optional[str] = None, *, timeout: Optional[float] = None) -> int:
        """Have one job, or every one that has failed, started as soon as may be; gives how many."""
        return self.run(calls.retry_jobs(job_id), timeout)

    def discard_jobs(
        self,
        job_id: Optional[str] = None,
        *,
        state: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> int:
        """Give up one job, or every one in a state (`pending`, `done`, `failed`); gives how many."""
        return self.run(calls.discard_jobs(job_id, state), timeout)

    # --- programmatic hooks and the event stream ---

    def register_hook(
        self,
        callback: HookCallback,
        *,
        events: Iterable[str],
        name: str,
        timeout: Optional[float] = None,
        **options: Unpack[RegisterOptions],
    ) -> Registration:
        """Offer a function of this program as a hook (protocol section 2.8).

        It is part of the executions that are opened from now on. From the first registration on, a thread of the client
        reads the connection and keeps it up (`serve`), so that the hook answers whatever the program does. Every call
        of the hook runs on a thread of its own, also several at once, and may use this client. What the callback raises,
        and any answer that is none, is a failed hook.

        Args:
            callback: Gets a `HookCall`; answers a `HookReply`, a mapping with its fields, or None.
            events: Normalised names, or those of the `agent` of the options.
            name: Last part of the hook's name.
            timeout: Limit of this call in seconds.
            **options: See `RegisterOptions`.
        """
        offer = Offer(calls.given(events=list(events), name=name, **options), callback)
        self._link.keep(offer, self._deadline(timeout, "hook/register"))
        self._link.serve_in_background()
        return Registration(self._link, offer, self._timeout)

    def events(
        self,
        *,
        kinds: Optional[Iterable[str]] = None,
        execution_id: Optional[str] = None,
        since_seq: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> EventStream:
        """Subscribe to the records of the log (protocol section 2.11); nothing after this call is missed.

        Args:
            kinds: Patterns of record kinds such as `hook.*`.
            execution_id: Only records of this execution.
            since_seq: Also the records after this number that the daemon still has.
            timeout: Limit of this call in seconds.
        """
        feed = Feed(calls.subscription(kinds, execution_id, since_seq))
        self._link.keep(feed, self._deadline(timeout, "events/subscribe"))
        return EventStream(self._link, feed, self._timeout)

    def serve(self) -> None:
        """Keep the connection up and serve this client's hooks until the client is closed.

        For programs that do nothing else; where hooks are registered, a thread of the client does this anyway.
        """
        self._link.serve()

    # --- below the verbs ---

    def call(
        self,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        repeatable: bool = False,
        timeout: Optional[float] = None,
    ) -> Any:
        """Call any method; gives the answer's `result` as it is.

        Args:
            method: As on the wire.
            params: As on the wire.
            repeatable: Whether it may be sent again when a connection was lost after it had been sent.
            timeout: Limit in seconds.
        """
        return self.run(calls.raw(method, params or {}, repeatable=repeatable), timeout)

    def cancel(self, request_id: str) -> None:
        """Cancel the call that another thread made with this `request_id`; that one raises `RequestCancelled`."""
        self._link.cancel(request_id, self._deadline(None, "$/cancel"))

    def run(self, call: Call[T], timeout: Optional[float] = None, request_id: Optional[str] = None) -> T:
        """Carry out a call; see `calls.py`."""
        limit = float("inf") if timeout is None and call.patient else timeout
        try:
            return self._link.run(call, self._deadline(limit, call.method), request_id)
        except ClientError as problem:
            if call.gate is not None:
                problem.guarded = is_guarded(self._guards_file, call.gate.agent, call.gate.event)
            raise

    def _deadline(self, timeout: Optional[float], method: str) -> Deadline:
        return Deadline(self._timeout if timeout is None else timeout, f"the answer to {method}")
