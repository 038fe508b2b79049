"""The asyncio client's way to the daemon: `link.py` for the tasks of one event loop."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any, Callable, List, Optional, TypeVar

from hooksd_client.aio_connection import AsyncConnection
from hooksd_client.calls import Call
from hooksd_client.connecting import CONNECT_RETRY_S, RECONNECT_MAX_S, RECONNECT_MIN_S, Connecting
from hooksd_client.deadline import Deadline
from hooksd_client.errors import ClientClosed, ClientError, ConnectionLost, RequestFailed
from hooksd_client.results import EventRecord
from hooksd_client.session import Session, cancel_line
from hooksd_client.standing import Feed, Standing


__all__ = ["AsyncLink"]

T = TypeVar("T")

_logger = logging.getLogger("hooksd_client")


class AsyncLink:
    """Any number of tasks of one loop may use it at once.

    Args:
        path: The daemon's address.
        greeting: The call with which every connection begins, if any.
        timeout_s: Limit for making a connection where no caller waits.
    """

    def __init__(self, path: str, greeting: Optional[Call[Any]], timeout_s: float) -> None:
        self._path = path
        self._greeting = greeting
        self._timeout_s = timeout_s
        self._closed = False
        self._connecting: Optional[asyncio.Lock] = None  # made in the loop, as Python 3.9 wants it
        self._connection: Optional[AsyncConnection] = None
        self._standing: List[Standing] = []
        self._server: Optional[asyncio.Task[None]] = None

    async def run(self, call: Call[T], deadline: Deadline, request_id: Optional[str] = None) -> T:
        """Carry out a call, once more on a new connection where that is safe."""
        return await self._run(lambda _session: call, deadline, request_id)

    async def keep(self, standing: Standing, deadline: Deadline) -> None:
        """Register a hook or subscribe, and renew it on every connection to come."""
        while True:
            await self._run(lambda session: session.stand(standing), deadline)
            if self._connection is not None and self._connection.session.has(standing):
                self._standing.append(standing)
                return
            # Another task has made a new connection since the answer came, and renewed it without this one.

    async def withdraw(self, standing: Standing, deadline: Deadline) -> None:
        """Take a hook or a subscription out. Safe to repeat."""
        if standing in self._standing:
            self._standing.remove(standing)
        if self._connection is not None and not self._connection.lost:
            await self._connection.withdraw(standing, deadline)

    async def next_record(self, feed: Feed, deadline: Deadline) -> EventRecord:
        """Wait for a record of a feed."""
        while not feed.ready:
            connection = await self._connected(deadline)
            if not feed.ready:
                await connection.news(deadline)
        return feed.take()

    def cancel(self, request_id: str) -> None:
        """Cancel a call of another task; without a connection there is none."""
        if self._connection is not None and not self._connection.lost:
            self._connection.send(cancel_line(request_id))

    async def serve(self) -> None:
        """Keep a connection up until the link is closed."""
        pause, said = RECONNECT_MIN_S, ""
        while True:
            try:
                connection = await self._connected(Deadline(self._timeout_s, "a connection"))
                pause = RECONNECT_MIN_S
                while True:
                    await connection.news(Deadline(float("inf"), "the end of the connection"))
            except ClientClosed:
                return
            except ClientError as error:
                # Every try says the same as long as there is no daemon: worth one word, not one each.
                if str(error) != said:
                    said = str(error)
                    _logger.warning("connecting again: %s", said)
                await asyncio.sleep(pause)
                pause = min(pause * 2, RECONNECT_MAX_S)

    def serve_in_background(self) -> None:
        """Have a task of the link `serve`; more than one is not needed."""
        if self._server is None:
            self._server = asyncio.get_running_loop().create_task(self.serve())

    async def close(self) -> None:
        """End the connection; calls under way get `ClientClosed`. Safe to repeat."""
        self._closed = True
        if self._connection is not None:
            self._connection.lose(ClientClosed())
            await self._connection.ended()
        server, self._server = self._server, None
        if server is not None and server is not asyncio.current_task():
            server.cancel()
            await asyncio.wait({server})

    async def _run(
        self, make: Callable[[Session[Any]], Call[T]], deadline: Deadline, request_id: Optional[str] = None
    ) -> T:
        connection = await self._connected(deadline)
        call = make(connection.session)
        try:
            return await connection.call(call, deadline, request_id)
        except ConnectionLost as lost:
            if lost.may_have_run and not call.repeatable:
                raise
        connection = await self._connected(deadline)
        return await connection.call(make(connection.session), deadline, request_id)

    async def _connected(self, deadline: Deadline) -> AsyncConnection:
        """The connection; a new one, with everything renewed, where there is none."""
        if self._connecting is None:
            self._connecting = asyncio.Lock()
        async with self._connecting:
            self._check_open()
            if self._connection is None or self._connection.lost:
                self._connection = AsyncConnection(await self._connect(deadline))
                try:
                    await self._renew(self._connection, deadline)
                except BaseException:
                    # Half renewed is not usable; the next call begins afresh.
                    self._connection.lose(ConnectionLost("it could not be set up", may_have_run=False))
                    raise
            return self._connection

    async def _connect(self, deadline: Deadline) -> socket.socket:
        attempt = Connecting(self._path, deadline)
        while (sock := attempt.once()) is None:
            await asyncio.sleep(CONNECT_RETRY_S)
            self._check_open()
        return sock

    async def _renew(self, connection: AsyncConnection, deadline: Deadline) -> None:
        """Bring a new connection to where the last one was."""
        if self._greeting is not None:
            await connection.call(self._greeting, deadline)
        for standing in list(self._standing):
            try:
                await connection.call(connection.session.stand(standing), deadline)
            except RequestFailed as refused:
                standing.refuse(refused)

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed
