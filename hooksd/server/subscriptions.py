"""The subscriptions of one connection (protocol section 2.11).

The stream keeps what waits, drops the oldest and counts them. Here it is only handed on, as far as the client reads.
"""

from __future__ import annotations

import asyncio
from typing import Final

from hooksd.observe.stream import EventStream, Subscription
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.methods.events import EventsSubscribeParams, EventsSubscribeResult
from hooksd.server.connection import Connection


__all__ = ["Subscriptions"]

_HEAD: Final = b'{"jsonrpc":"2.0","method":"events/event","params":'
_TAIL: Final = b"}\n"


class Subscriptions:
    """Hands records to one client. The connection stays open for it after the client has closed its side."""

    def __init__(self, connection: Connection, stream: EventStream) -> None:
        self._connection = connection
        self._stream = stream
        self._subscriptions: dict[str, Subscription] = {}
        self._scheduled = False
        connection.on_writable = self._schedule
        connection.keeps_open = lambda: bool(self._subscriptions)

    def subscribe(self, params: EventsSubscribeParams) -> EventsSubscribeResult:
        """Begin one; its first record leaves after the answer.

        Raises:
            ProtocolError: -32003, there are too many.
        """
        subscription = self._stream.subscribe(
            notify=self._schedule,
            kinds=params.kinds,
            execution_id=params.execution_id,
            since_seq=params.since_seq,
        )
        self._subscriptions[subscription.subscription_id] = subscription
        self._schedule()
        return EventsSubscribeResult(subscription_id=subscription.subscription_id, seq=self._stream.seq)

    def unsubscribe(self, subscription_id: str) -> None:
        """End one.

        Raises:
            ProtocolError: -32602, this connection has none of that id.
        """
        if self._subscriptions.pop(subscription_id, None) is None:
            raise protocol_error(
                ErrorCode.INVALID_PARAMS,
                f"this connection has no subscription {subscription_id[:100]!r}",
                kind="unknown_subscription",
            )
        self._stream.unsubscribe(subscription_id)

    def close(self) -> None:
        """End all."""
        for subscription_id in self._subscriptions:
            self._stream.unsubscribe(subscription_id)
        self._subscriptions.clear()

    def _schedule(self) -> None:
        # Not at once: a record may be made in the middle of an answer, and the stream must not be called back.
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._hand_on)

    def _hand_on(self) -> None:
        self._scheduled = False
        # A copy: sending may find that the client is gone, which ends all of them.
        for subscription in list(self._subscriptions.values()):
            while subscription.pending and self._connection.writable:
                self._connection.send(b"".join(_HEAD + record + _TAIL for record in subscription.take()))
