"""An asyncio connection: the shell around `session.py` for the tasks of one event loop.

The socket is read by a callback of the loop and written to at once. With a transport in between, nobody could tell
whether a request had left before the connection broke, and so whether it may be repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import socket
from typing import Any, Optional, Set, TypeVar, cast

from hooksd_client.calls import Call
from hooksd_client.deadline import Deadline
from hooksd_client.errors import ClientError, ConnectionLost, ProtocolViolation
from hooksd_client.session import (
    MAX_CALLBACKS,
    Answered,
    Happening,
    Invoked,
    Refused,
    Session,
    answer_line,
    busy_line,
    failure_line,
    not_sent,
)
from hooksd_client.standing import Standing


__all__ = ["AsyncConnection"]

T = TypeVar("T")

READ_BYTES = 64 * 1024
"""Of one read; see `connection.py`."""

_logger = logging.getLogger("hooksd_client")


class AsyncConnection:
    """One connection; made and used inside a running loop.

    What does not fit into the socket waits here: at most the lines of those who wait for an answer, and those of
    `MAX_CALLBACKS` hooks.

    Args:
        sock: Connected; belongs to the connection from now on.

    Attributes:
        session: Its protocol state.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.session: Session[asyncio.Future[Any]] = Session()
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._unsent = bytearray()
        self._lost: Optional[ClientError] = None
        self._callbacks: Set[asyncio.Task[None]] = set()
        self._waiting: Set[asyncio.Future[None]] = set()
        self._loop.add_reader(sock, self._readable)

    @property
    def lost(self) -> bool:
        """Whether it has ended."""
        return self._lost is not None

    async def call(self, call: Call[T], deadline: Deadline, request_id: Optional[str] = None) -> T:
        """Send a request and wait for its answer. A call that is given up is cancelled at the daemon.

        Raises:
            RequestFailed: The daemon answered with an error.
            RequestTimeout: The deadline passed.
            ConnectionLost: See its `may_have_run`.
        """
        self._check()
        answer: asyncio.Future[Any] = self._loop.create_future()
        chosen, line = self.session.begin(call, answer, request_id)
        try:
            self.send(line)
            return cast("T", await _within(answer, deadline))
        finally:
            given_up = self.session.abandon(chosen)
            if given_up is not None:
                self._reply(given_up)
            if answer.done() and not answer.cancelled():
                answer.exception()  # asked for, so that the loop does not complain where `send` has said it already

    async def withdraw(self, standing: Standing, deadline: Deadline) -> None:
        """Take a hook or a subscription out, as far as this connection has it."""
        call = self.session.withdraw(standing)
        if call is not None:
            await self.call(call, deadline)

    async def news(self, deadline: Deadline) -> None:
        """Return when something has come that is no answer to a call.

        Raises:
            RequestTimeout: The deadline passed.
            ConnectionLost: The connection has ended.
        """
        self._check()
        waiting: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(waiting)
        try:
            await _within(waiting, deadline)
        finally:
            self._waiting.discard(waiting)

    def send(self, line: bytes) -> None:
        """Send a whole line, later if the socket takes no more now.

        Raises:
            ConnectionLost: The connection has ended; the daemon has got no part of it.
        """
        self._check()
        if self._unsent:
            self._unsent += line
            return
        try:
            sent = self._socket.send(line)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            lost = ConnectionLost(error.strerror or str(error), may_have_run=False)
            self.lose(ConnectionLost(lost.reason))
            raise lost from error
        if sent < len(line):
            self._unsent += memoryview(line)[sent:]
            self._loop.add_writer(self._socket, self._writable)

    def lose(self, error: ClientError) -> None:
        """End the connection; every call under way gets the error, hooks that run are cancelled. Safe to repeat."""
        if self._lost is not None:
            return
        self._lost = error
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._unsent = bytearray()
        for answered in self.session.fail(error):
            _settle(answered)
        self._wake()
        for task in self._callbacks:
            task.cancel()

    async def ended(self) -> None:
        """Wait for the hooks that were cancelled when the connection was lost."""
        await asyncio.gather(*(self._callbacks - {asyncio.current_task()}), return_exceptions=True)

    def _readable(self) -> None:
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self.lose(ConnectionLost(error.strerror or str(error)))
            return
        if not data:
            self.lose(ConnectionLost("the daemon closed it"))
            return
        try:
            happenings = self.session.receive_data(data)
        except ProtocolViolation as violation:
            self.lose(violation)
            return
        self._carry_out(happenings)

    def _writable(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError as error:
            self.lose(ConnectionLost(error.strerror or str(error)))
            return
        del self._unsent[:sent]
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def _carry_out(self, happenings: list[Happening]) -> None:
        for happening in happenings:
            if isinstance(happening, Answered):
                _settle(happening)
            elif isinstance(happening, Invoked):
                self._invoke(happening)
            elif isinstance(happening, Refused):
                self._reply(happening.line)
            else:
                self._wake()

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    def _invoke(self, invoked: Invoked) -> None:
        if len(self._callbacks) >= MAX_CALLBACKS:
            self._reply(busy_line(invoked.request_id))
            return
        task = self._loop.create_task(self._serve(invoked))
        self._callbacks.add(task)
        task.add_done_callback(self._callbacks.discard)

    async def _serve(self, invoked: Invoked) -> None:
        try:
            answer = invoked.offer.callback(invoked.call)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:  # noqa: BLE001  # whatever it raises is a failed hook, which the daemon is told
            _logger.warning("the programmatic hook %r raised %s", invoked.offer.name, type(error).__name__)
            self._reply(failure_line(invoked.request_id, error))
        else:
            self._reply(answer_line(invoked.request_id, answer))

    def _reply(self, line: bytes) -> None:
        """Send what nobody waits for. Where the connection has ended, the daemon has seen that itself."""
        if not self.lost:
            with contextlib.suppress(ConnectionLost):
                self.send(line)

    def _check(self) -> None:
        if self._lost is not None:
            raise not_sent(self._lost)


def _settle(answered: Answered) -> None:
    answer: asyncio.Future[Any] = answered.waiter
    if answer.done():
        return  # its task was cancelled and has not run since
    if answered.error is not None:
        answer.set_exception(answered.error)
    else:
        answer.set_result(answered.value)


async def _within(future: asyncio.Future[T], deadline: Deadline) -> T:
    left = deadline.left()
    if left is not None:
        await asyncio.wait({future}, timeout=left)
        if not future.done():
            raise deadline.error()
    return await future
