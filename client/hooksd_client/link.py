"""The blocking client's way to the daemon: one connection at a time, made when it is needed and made again when lost."""

from __future__ import annotations

import logging
import socket
import threading
from typing import Any, Callable, List, Optional, TypeVar

from hooksd_client.calls import Call
from hooksd_client.connecting import CONNECT_RETRY_S, RECONNECT_MAX_S, RECONNECT_MIN_S, Connecting
from hooksd_client.connection import Connection
from hooksd_client.deadline import Deadline
from hooksd_client.errors import ClientClosed, ClientError, ConnectionLost, RequestFailed
from hooksd_client.results import EventRecord
from hooksd_client.session import Session, cancel_line
from hooksd_client.standing import Feed, Standing


__all__ = ["Link"]

T = TypeVar("T")

_logger = logging.getLogger("hooksd_client")


class Link:
    """Any number of threads may use it at once.

    Args:
        path: The daemon's address.
        greeting: The call with which every connection begins, if any.
        timeout_s: Limit for making a connection where no caller waits.
    """

    def __init__(self, path: str, greeting: Optional[Call[Any]], timeout_s: float) -> None:
        self._path = path
        self._greeting = greeting
        self._timeout_s = timeout_s
        self._closed = threading.Event()
        # Guards all below, and is held while a connection is made; reentrant, since making one means to call.
        self._lock = threading.RLock()
        self._connection: Optional[Connection] = None
        self._standing: List[Standing] = []
        self._server: Optional[threading.Thread] = None

    def run(self, call: Call[T], deadline: Deadline, request_id: Optional[str] = None) -> T:
        """Carry out a call, once more on a new connection where that is safe."""
        return self._run(lambda _session: call, deadline, request_id)

    def keep(self, standing: Standing, deadline: Deadline) -> None:
        """Register a hook or subscribe, and renew it on every connection to come."""
        with self._lock:
            self._run(lambda session: session.stand(standing), deadline)
            self._standing.append(standing)

    def withdraw(self, standing: Standing, deadline: Deadline) -> None:
        """Take a hook or a subscription out. Safe to repeat."""
        with self._lock:
            if standing in self._standing:
                self._standing.remove(standing)
            connection = self._connection
        if connection is not None and not connection.lost:
            connection.withdraw(standing, deadline)

    def next_record(self, feed: Feed, deadline: Deadline) -> EventRecord:
        """Wait for a record of a feed."""
        while not feed.ready:
            try:
                self._connected(deadline).wait(lambda: feed.ready, deadline)
            except ConnectionLost:
                continue  # the next connection goes on where this one ended
        return feed.take()

    def cancel(self, request_id: str, deadline: Deadline) -> None:
        """Cancel a call of another thread; without a connection there is none."""
        connection = self._connection
        if connection is not None and not connection.lost:
            connection.send(cancel_line(request_id), deadline)

    def serve(self) -> None:
        """Keep a connection up, and read it, until the link is closed."""
        pause, said = RECONNECT_MIN_S, ""
        while not self._closed.is_set():
            try:
                connection = self._connected(Deadline(self._timeout_s, "a connection"))
                pause = RECONNECT_MIN_S
                connection.wait(lambda: False, Deadline(float("inf"), "the end of the connection"))
            except ClientClosed:
                return
            except ClientError as error:
                # Every try says the same as long as there is no daemon: worth one word, not one each.
                if str(error) != said:
                    said = str(error)
                    _logger.warning("connecting again: %s", said)
                self._closed.wait(pause)
                pause = min(pause * 2, RECONNECT_MAX_S)

    def serve_in_background(self) -> None:
        """Have a thread of the link `serve`; more than one is not needed."""
        with self._lock:
            if self._server is None:
                self._server = threading.Thread(target=self.serve, name="hooksd-client", daemon=True)
                self._server.start()

    def close(self) -> None:
        """End the connection; calls under way get `ClientClosed`. Safe to repeat."""
        self._closed.set()
        # First without the lock: whoever holds it may be waiting on this very connection.
        if self._connection is not None:
            self._connection.lose(ClientClosed())
        with self._lock:
            if self._connection is not None:
                self._connection.lose(ClientClosed())
            server, self._server = self._server, None
        if server is not None and server is not threading.current_thread():
            server.join()

    def _run(
        self, make: Callable[[Session[Any]], Call[T]], deadline: Deadline, request_id: Optional[str] = None
    ) -> T:
        connection = self._connected(deadline)
        call = make(connection.session)
        try:
            return connection.call(call, deadline, request_id)
        except ConnectionLost as lost:
            if lost.may_have_run and not call.repeatable:
                raise
        connection = self._connected(deadline)
        return connection.call(make(connection.session), deadline, request_id)

    def _connected(self, deadline: Deadline) -> Connection:
        """The connection; a new one, with everything renewed, where there is none."""
        with self._lock:
            if self._closed.is_set():
                raise ClientClosed
            if self._connection is None or self._connection.lost:
                self._connection = Connection(self._connect(deadline))
                try:
                    self._renew(self._connection, deadline)
                except BaseException:
                    # Half renewed is not usable; the next call begins afresh.
                    self._connection.lose(ConnectionLost("it could not be set up", may_have_run=False))
                    raise
            return self._connection

    def _connect(self, deadline: Deadline) -> socket.socket:
        attempt = Connecting(self._path, deadline)
        while (sock := attempt.once()) is None:
            self._closed.wait(CONNECT_RETRY_S)
        return sock

    def _renew(self, connection: Connection, deadline: Deadline) -> None:
        """Bring a new connection to where the last one was."""
        if self._greeting is not None:
            connection.call(self._greeting, deadline)
        for standing in self._standing:
            try:
                connection.call(connection.session.stand(standing), deadline)
            except RequestFailed as refused:
                standing.refuse(refused)
