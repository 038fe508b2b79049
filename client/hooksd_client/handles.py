"""What the blocking client hands out: an execution, a registered hook, an event stream. Each is for `with`."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional, Type

from hooksd_client import calls, results
from hooksd_client.deadline import Deadline
from hooksd_client.errors import ClientError, UnknownExecution
from hooksd_client.link import Link
from hooksd_client.standing import Feed, Offer


if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hooksd_client.client import Client

__all__ = ["EventStream", "Execution", "Registration"]

_logger = logging.getLogger("hooksd_client")


class Execution:
    """One run of an agent. `with` opens it and closes it; its verbs are the client's without the execution id.

    Where the connection was made anew in between, the next event opens the execution again, in the same round trip: the
    same daemon answers with the same snapshot, another one takes a new snapshot (`Outcome.revision` tells).

    Attributes:
        execution_id: Its id.
        opened: What opening it answered; None before.
    """

    def __init__(self, client: Client, params: Dict[str, Any]) -> None:
        self.execution_id: str = params["execution_id"]
        self.opened: Optional[results.OpenedExecution] = None
        self._client = client
        self._params = params

    def __enter__(self) -> Execution:
        self.open()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        try:
            self.close()
        except UnknownExecution:
            pass  # what was wanted is so: it is not open
        except ClientError as problem:
            if error is None:
                raise
            _logger.warning("the execution %s could not be closed: %s", self.execution_id, problem)

    def open(self, *, timeout: Optional[float] = None) -> results.OpenedExecution:
        """See `Client.open_execution`."""
        self.opened = self._client.run(calls.open_execution(self._params), timeout)
        return self.opened

    def dispatch(
        self,
        event: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        request_id: Optional[str] = None,
        **options: Unpack[calls.EventOptions],
    ) -> results.Outcome:
        """See `Client.dispatch`."""
        return self._client.dispatch(
            self.execution_id,
            event,
            payload,
            execution=self._params,
            timeout=timeout,
            request_id=request_id,
            **options,
        )

    def notify(
        self,
        event: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        **options: Unpack[calls.EventOptions],
    ) -> results.Accepted:
        """See `Client.notify`."""
        return self._client.notify(
            self.execution_id, event, payload, execution=self._params, timeout=timeout, **options
        )

    def explain(
        self,
        event: str,
        payload: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        **options: Unpack[calls.EventOptions],
    ) -> results.Explanation:
        """See `Client.explain`."""
        return self._client.explain(
            self.execution_id, event, payload, execution=self._params, timeout=timeout, **options
        )

    def drain(
        self, scope: str = "turn", *, grace_ms: Optional[int] = None, timeout: Optional[float] = None
    ) -> results.Drained:
        """See `Client.drain_execution`."""
        return self._client.drain_execution(self.execution_id, scope, grace_ms=grace_ms, timeout=timeout)

    def close(self, *, grace_ms: Optional[int] = None, timeout: Optional[float] = None) -> results.Drained:
        """See `Client.close_execution`."""
        return self._client.close_execution(self.execution_id, grace_ms=grace_ms, timeout=timeout)


class Registration:
    """A programmatic hook of this client, until `unregister` or the end of the client."""

    def __init__(self, link: Link, offer: Offer, timeout_s: float) -> None:
        self._link = link
        self._timeout_s = timeout_s
        self._offer = offer

    def __enter__(self) -> Registration:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.unregister()

    @property
    def name(self) -> str:
        """The name it was registered with."""
        return self._offer.name

    def unregister(self, *, timeout: Optional[float] = None) -> None:
        """Take the hook out of every execution. Safe to repeat."""
        self._link.withdraw(
            self._offer,
            Deadline(self._timeout_s if timeout is None else timeout, "the answer to hook/unregister"),
        )


class EventStream:
    """The records of one subscription, in order; iterate over it, or ask with `get`.

    The stream ends (`StopIteration`) when it is closed. Where the daemon cannot be reached an iteration raises
    `DaemonNotReachable`; the stream can be read on later, and goes on after the last record that came.
    """

    def __init__(self, link: Link, feed: Feed, timeout_s: float) -> None:
        self._link = link
        self._timeout_s = timeout_s
        self._feed = feed
        self._closed = False

    def __enter__(self) -> EventStream:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[results.EventRecord]:
        return self

    def __next__(self) -> results.EventRecord:
        if self._closed:
            raise StopIteration
        return self.get()

    def get(self, timeout: float = float("inf")) -> results.EventRecord:
        """The next record; an `events.dropped` record tells of those that were lost.

        Args:
            timeout: Seconds to wait for one.

        Raises:
            RequestTimeout: None came in time.
            RequestFailed: The daemon refused to renew the subscription.
        """
        return self._link.next_record(self._feed, Deadline(timeout, "a record of the event stream"))

    def close(self, *, timeout: Optional[float] = None) -> None:
        """End the subscription. Safe to repeat."""
        self._closed = True
        self._link.withdraw(
            self._feed,
            Deadline(self._timeout_s if timeout is None else timeout, "the answer to events/unsubscribe"),
        )
