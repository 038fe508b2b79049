"""What the asyncio client hands out: the handles of `handles.py`, for `async with`."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, Mapping, Optional, Type

from hooksd_client import calls, results
from hooksd_client.aio_link import AsyncLink
from hooksd_client.deadline import Deadline
from hooksd_client.errors import ClientError, UnknownExecution
from hooksd_client.standing import Feed, Offer


if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hooksd_client.aio import AsyncClient

__all__ = ["AsyncEventStream", "AsyncExecution", "AsyncRegistration"]

_logger = logging.getLogger("hooksd_client")


class AsyncExecution:
    """One run of an agent. `async with` opens it and closes it; its verbs are the client's without the execution id.

    Where the connection was made anew in between, the next event opens the execution again, in the same round trip: the
    same daemon answers with the same snapshot, another one takes a new snapshot (`Outcome.revision` tells).

    Attributes:
        execution_id: Its id.
        opened: What opening it answered; None before.
    """

    def __init__(self, client: AsyncClient, params: Dict[str, Any]) -> None:
        self.execution_id: str = params["execution_id"]
        self.opened: Optional[results.OpenedExecution] = None
        self._client = client
        self._params = params

    async def __aenter__(self) -> AsyncExecution:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        try:
            await self.close()
        except UnknownExecution:
            pass  # what was wanted is so: it is not open
        except ClientError as problem:
            if error is None:
                raise
            _logger.warning("the execution %s could not be closed: %s", self.execution_id, problem)

    async def open(self, *, timeout: Optional[float] = None) -> results.OpenedExecution:
        """See `AsyncClient.open_execution`."""
        self.opened = await self._client.run(calls.open_execution(self._params), timeout)
        return self.opened

    async def dispatch(
        self,
        event: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        request_id: Optional[str] = None,
        **options: Unpack[calls.EventOptions],
    ) -> results.Outcome:
        """See `AsyncClient.dispatch`."""
        return await self._client.dispatch(
            self.execution_id,
            event,
            payload,
            execution=self._params,
            timeout=timeout,
            request_id=request_id,
            **options,
        )

    async def notify(
        self,
        event: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        **options: Unpack[calls.EventOptions],
    ) -> results.Accepted:
        """See `AsyncClient.notify`."""
        return await self._client.notify(
            self.execution_id, event, payload, execution=self._params, timeout=timeout, **options
        )

    async def explain(
        self,
        event: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        **options: Unpack[calls.EventOptions],
    ) -> results.Explanation:
        """See `AsyncClient.explain`."""
        return await self._client.explain(
            self.execution_id, event, payload, execution=self._params, timeout=timeout, **options
        )

    async def drain(
        self, scope: str = "turn", *, grace_ms: Optional[int] = None, timeout: Optional[float] = None
    ) -> results.Drained:
        """See `AsyncClient.drain_execution`."""
        return await self._client.drain_execution(
            self.execution_id, scope, grace_ms=grace_ms, timeout=timeout
        )

    async def close(
        self, *, grace_ms: Optional[int] = None, timeout: Optional[float] = None
    ) -> results.Drained:
        """See `AsyncClient.close_execution`."""
        return await self._client.close_execution(self.execution_id, grace_ms=grace_ms, timeout=timeout)


class AsyncRegistration:
    """A programmatic hook of this client, until `unregister` or the end of the client."""

    def __init__(self, link: AsyncLink, offer: Offer, timeout_s: float) -> None:
        self._link = link
        self._timeout_s = timeout_s
        self._offer = offer

    async def __aenter__(self) -> AsyncRegistration:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.unregister()

    @property
    def name(self) -> str:
        """The name it was registered with."""
        return self._offer.name

    async def unregister(self, *, timeout: Optional[float] = None) -> None:
        """Take the hook out of every execution. Safe to repeat."""
        await self._link.withdraw(
            self._offer,
            Deadline(self._timeout_s if timeout is None else timeout, "the answer to hook/unregister"),
        )


class AsyncEventStream:
    """The records of one subscription, in order; iterate over it, or ask with `get`.

    The stream ends (`StopAsyncIteration`) when it is closed. Where the daemon cannot be reached an iteration raises
    `DaemonNotReachable`; the stream can be read on later, and goes on after the last record that came.
    """

    def __init__(self, link: AsyncLink, feed: Feed, timeout_s: float) -> None:
        self._link = link
        self._timeout_s = timeout_s
        self._feed = feed
        self._closed = False

    async def __aenter__(self) -> AsyncEventStream:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[results.EventRecord]:
        return self

    async def __anext__(self) -> results.EventRecord:
        if self._closed:
            raise StopAsyncIteration
        return await self.get()

    async def get(self, timeout: float = float("inf")) -> results.EventRecord:
        """The next record; an `events.dropped` record tells of those that were lost.

        Args:
            timeout: Seconds to wait for one.

        Raises:
            RequestTimeout: None came in time.
            RequestFailed: The daemon refused to renew the subscription.
        """
        return await self._link.next_record(self._feed, Deadline(timeout, "a record of the event stream"))

    async def close(self, *, timeout: Optional[float] = None) -> None:
        """End the subscription. Safe to repeat."""
        self._closed = True
        await self._link.withdraw(
            self._feed,
            Deadline(self._timeout_s if timeout is None else timeout, "the answer to events/unsubscribe"),
        )
