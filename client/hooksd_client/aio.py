"""The asyncio client: the verbs of `client.py`, as coroutines."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Tuple, Type, TypeVar

from hooksd_client import calls, paths, results
from hooksd_client.aio_handles import AsyncEventStream, AsyncExecution, AsyncRegistration
from hooksd_client.aio_link import AsyncLink
from hooksd_client.calls import (
    Call,
    DryRunOptions,
    EventOptions,
    ExecutionOptions,
    RegisterOptions,
    execution_params,
)
from hooksd_client.client import DEFAULT_TIMEOUT_S
from hooksd_client.deadline import Deadline
from hooksd_client.errors import ClientError
from hooksd_client.guards import is_guarded
from hooksd_client.standing import Feed, HookCallback, Offer


if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient:
    """A client of the daemon for asyncio. It connects with its first call.

    It has the verbs of `Client`, where they are described; what is said there of lost connections, time limits and
    errors holds here too. The differences:

    - It belongs to the event loop of its first call, and is not thread-safe. Any number of tasks may call at once.
    - Cancelling a task that waits for an answer cancels the request at the daemon.
    - The callback of a programmatic hook runs in the loop: a plain function must not block; a coroutine function gets a
      task of its own, which is cancelled when the connection is lost.

    Args:
        socket_path: See `Client`.
        name: See `Client`.
        version: See `Client`.
        timeout: See `Client`.
        state_dir: See `Client`.

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
        self._link = AsyncLink(self.socket_path, self._greeting if name is not None else None, timeout)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """See `Client.close`."""
        await self._link.close()

    # --- the daemon ---

    async def initialize(self, *, timeout: Optional[float] = None) -> results.Welcome:
        """See `Client.initialize`."""
        return await self.run(self._greeting, timeout)

    async def ping(self, *, timeout: Optional[float] = None) -> None:
        """See `Client.ping`."""
        await self.run(calls.ping(), timeout)

    async def status(self, *, timeout: Optional[float] = None) -> results.Status:
        """See `Client.status`."""
        return await self.run(calls.status(), timeout)

    async def shutdown(self, *, grace_ms: Optional[int] = None, timeout: Optional[float] = None) -> None:
        """See `Client.shutdown`."""
        await self.run(calls.shutdown(grace_ms), timeout)

    # --- executions ---

    async def open_execution(
        self, execution_id: str, *, timeout: Optional[float] = None, **options: Unpack[ExecutionOptions]
    ) -> results.OpenedExecution:
        """See `Client.open_execution`."""
        return await self.run(calls.open_execution(execution_params(execution_id, **options)), timeout)

    async def close_execution(
        self, execution_id: str, *, grace_ms: Optional[int] = None, timeout: Optional[float] = None
    ) -> results.Drained:
        """See `Client.close_execution`."""
        return await self.run(calls.close_execution(execution_id, grace_ms), timeout)

    async def drain_execution(
        self,
        execution_id: str,
        scope: str = "turn",
        *,
        grace_ms: Optional[int] = None,
        timeout: Optional[float] = None,
        request_id: Optional[str] = None,
    ) -> results.Drained:
        """See `Client.drain_execution`."""
        return await self.run(calls.drain_execution(execution_id, scope, grace_ms), timeout, request_id)

    async def executions(self, *, timeout: Optional[float] = None) -> Tuple[results.ExecutionInfo, ...]:
        """See `Client.executions`."""
        return await self.run(calls.list_executions(), timeout)

    def execution(self, execution_id: str, **options: Unpack[ExecutionOptions]) -> AsyncExecution:
        """See `Client.execution`; for `async with`."""
        return AsyncExecution(self, execution_params(execution_id, **options))

    # --- events ---

    async def dispatch(
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
        """See `Client.dispatch`, above all for what an error with `guarded` asks of the caller."""
        params = calls.event_params(execution_id, event, payload, options)
        return await self.run(calls.dispatch(params, execution), timeout, request_id)

    async def notify(
        self,
        execution_id: str,
        event: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        execution: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        **options: Unpack[EventOptions],
    ) -> results.Accepted:
        """See `Client.notify`."""
        params = calls.event_params(execution_id, event, payload, options)
        return await self.run(calls.notify(params, execution), timeout)

    async def explain(
        self,
        execution_id: str,
        event: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        execution: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
        **options: Unpack[EventOptions],
    ) -> results.Explanation:
        """See `Client.explain`."""
        params = calls.event_params(execution_id, event, payload, options)
        return await self.run(calls.explain(params, execution), timeout)

    async def result(
        self, invocation_id: str, *, timeout: Optional[float] = None
    ) -> results.InvocationResult:
        """See `Client.result`."""
        return await self.run(calls.result(invocation_id), timeout)

    async def test(
        self,
        event: str,
        *,
        handler: Optional[Mapping[str, Any]] = None,
        hook: Optional[str] = None,
        timeout: Optional[float] = None,
        request_id: Optional[str] = None,
        **options: Unpack[DryRunOptions],
    ) -> Tuple[results.DryRun, ...]:
        """See `Client.test`."""
        return await self.run(calls.dry_run(event, handler, hook, options), timeout, request_id)

    # --- the configuration ---

    async def show_config(
        self, *, workspace_path: Optional[str] = None, timeout: Optional[float] = None
    ) -> results.Configuration:
        """See `Client.show_config`."""
        return await self.run(calls.show_config(workspace_path), timeout)

    async def validate_config(
        self,
        dialect: str,
        *,
        content: Optional[str] = None,
        path: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> results.Validation:
        """See `Client.validate_config`."""
        return await self.run(calls.validate_config(dialect, content, path), timeout)

    async def reload_config(self, *, timeout: Optional[float] = None) -> results.Reloaded:
        """See `Client.reload_config`."""
        return await self.run(calls.reload_config(), timeout)

    async def write_config(
        self, source: str, expected_revision: int, content: str, *, timeout: Optional[float] = None
    ) -> results.Written:
        """See `Client.write_config`."""
        return await self.run(calls.write_config(source, expected_revision, content), timeout)

    # --- trust in projects ---

    async def list_trust(self, *, timeout: Optional[float] = None) -> Tuple[results.TrustedProject, ...]:
        """See `Client.list_trust`."""
        return await self.run(calls.list_trust(), timeout)

    async def show_trust(self, directory: str, *, timeout: Optional[float] = None) -> results.TrustReview:
        """See `Client.show_trust`."""
        return await self.run(calls.show_trust(directory), timeout)

    async def grant_trust(
        self, directory: str, digest: str, *, timeout: Optional[float] = None
    ) -> results.TrustGranted:
        """See `Client.grant_trust`."""
        return await self.run(calls.grant_trust(directory, digest), timeout)

    async def revoke_trust(self, directory: str, *, timeout: Optional[float] = None) -> results.TrustRevoked:
        """See `Client.revoke_trust`."""
        return await self.run(calls.revoke_trust(directory), timeout)

    # --- durable jobs ---

    async def list_jobs(
        self,
        *,
        state: Optional[str] = None,
        limit: Optional[int] = None,
        after: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Tuple[results.DurableJob, ...]:
        """See `Client.list_jobs`."""
        return await self.run(calls.list_jobs(state, limit, after), timeout)

    async def retry_jobs(self, job_id: Optional[str] = None, *, timeout: Optional[float] = None) -> int:
        """See `Client.retry_jobs`."""
        return await self.run(calls.retry_jobs(job_id), timeout)

    async def discard_jobs(
        self,
        job_id: Optional[str] = None,
        *,
        state: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> int:
        """See `Client.discard_jobs`."""
        return await self.run(calls.discard_jobs(job_id, state), timeout)

    # --- programmatic hooks and the event stream ---

    async def register_hook(
        self,
        callback: HookCallback,
        *,
        events: Iterable[str],
        name: str,
        timeout: Optional[float] = None,
        **options: Unpack[RegisterOptions],
    ) -> AsyncRegistration:
        """See `Client.register_hook`; the callback runs in the loop, and may be a coroutine function.

        From the first registration on, a task of the client keeps the connection up until the client is closed.
        """
        offer = Offer(calls.given(events=list(events), name=name, **options), callback)
        await self._link.keep(offer, self._deadline(timeout, "hook/register"))
        self._link.serve_in_background()
        return AsyncRegistration(self._link, offer, self._timeout)

    async def events(
        self,
        *,
        kinds: Optional[Iterable[str]] = None,
        execution_id: Optional[str] = None,
        since_seq: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> AsyncEventStream:
        """See `Client.events`; the stream is an asynchronous iterator."""
        feed = Feed(calls.subscription(kinds, execution_id, since_seq))
        await self._link.keep(feed, self._deadline(timeout, "events/subscribe"))
        return AsyncEventStream(self._link, feed, self._timeout)

    async def serve(self) -> None:
        """See `Client.serve`."""
        await self._link.serve()

    # --- below the verbs ---

    async def call(
        self,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        repeatable: bool = False,
        timeout: Optional[float] = None,
    ) -> Any:
        """See `Client.call`."""
        return await self.run(calls.raw(method, params or {}, repeatable=repeatable), timeout)

    def cancel(self, request_id: str) -> None:
        """Cancel the call that another task made with this `request_id`; that one raises `RequestCancelled`."""
        self._link.cancel(request_id)

    async def run(
        self, call: Call[T], timeout: Optional[float] = None, request_id: Optional[str] = None
    ) -> T:
        """Carry out a call; see `calls.py`."""
        limit = float("inf") if timeout is None and call.patient else timeout
        try:
            return await self._link.run(call, self._deadline(limit, call.method), request_id)
        except ClientError as problem:
            if call.gate is not None:
                problem.guarded = is_guarded(self._guards_file, call.gate.agent, call.gate.event)
            raise

    def _deadline(self, timeout: Optional[float], method: str) -> Deadline:
        return Deadline(self._timeout if timeout is None else timeout, f"the answer to {method}")
