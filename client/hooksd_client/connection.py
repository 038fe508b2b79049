"""A blocking connection: the thread shell around `session.py`.

There is no reader thread as long as nobody needs one. Whoever waits reads: of the threads that wait on a connection,
one at a time reads the socket, for all of them, and wakes the others with what came. A call of a single thread costs
one `send` and one `recv` and no switch of threads.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import threading
from typing import Any, Callable, List, Optional, TypeVar

from hooksd_client.calls import Call
from hooksd_client.deadline import Deadline
from hooksd_client.errors import ClientError, ConnectionLost, ProtocolViolation
from hooksd_client.session import (
    MAX_CALLBACKS,
    Answered,
    Happening,
    Invoked,
    Refused,
    RequestId,
    Session,
    answer_line,
    busy_line,
    failure_line,
    not_sent,
)
from hooksd_client.standing import Standing


__all__ = ["Connection"]

T = TypeVar("T")

READ_BYTES = 64 * 1024
"""Of one read, for which as much memory is taken every time: below what `malloc` asks the kernel for by itself."""

CANCEL_TIMEOUT_S = 1.0
"""For the line that cancels a call which was given up: it must not make a caller wait for a daemon that hangs."""

MAX_POLL_S = 86_400.0
"""Of one wait for the socket; the system call takes no more than some weeks."""

_logger = logging.getLogger("hooksd_client")

_SEND_FLAGS = getattr(socket, "MSG_DONTWAIT", 0) | getattr(socket, "MSG_NOSIGNAL", 0)


class _Slot:
    """Where one call's answer goes."""

    __slots__ = ("done", "error", "value")

    def __init__(self) -> None:
        self.done = False
        self.value: Any = None
        self.error: Optional[ClientError] = None


class Connection:
    """One connection, used by any number of threads at once.

    Args:
        sock: Connected and blocking; belongs to the connection from now on.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._readable = select.poll()
        self._readable.register(sock, select.POLLIN)
        self._sending = threading.Lock()
        # Guards all below, and is what waiting threads wait on. Never taken by a thread that holds `_sending`.
        self._changed = threading.Condition(threading.Lock())
        self.session: Session[_Slot] = Session()
        self._reading = False
        self._callbacks = 0
        self._lost: Optional[ClientError] = None

    @property
    def lost(self) -> bool:
        """Whether it has ended."""
        return self._lost is not None

    def call(self, call: Call[T], deadline: Deadline, request_id: Optional[str] = None) -> T:
        """Send a request and wait for its answer. A call that is given up is cancelled at the daemon.

        Raises:
            RequestFailed: The daemon answered with an error.
            RequestTimeout: The deadline passed.
            ConnectionLost: See its `may_have_run`.
        """
        slot = _Slot()
        with self._changed:
            self._check()
            chosen, line = self.session.begin(call, slot, request_id)
        try:
            self.send(line, deadline)
            self.wait(lambda: slot.done, deadline)
        except BaseException:
            self._give_up(chosen)
            raise
        if slot.error is not None:
            raise slot.error
        value: T = slot.value
        return value

    def withdraw(self, standing: Standing, deadline: Deadline) -> None:
        """Take a hook or a subscription out, as far as this connection has it."""
        with self._changed:
            call = self.session.withdraw(standing)
        if call is not None:
            self.call(call, deadline)

    def send(self, line: bytes, deadline: Deadline) -> None:
        """Send a whole line.

        Raises:
            ConnectionLost: It was not sent whole; the daemon runs no part of it.
            RequestTimeout: The daemon did not read. A line that was cut off ends the connection.
        """
        rest = memoryview(line)
        try:
            with self._sending:
                self._check()
                while rest:
                    rest = rest[self._send_some(rest, deadline) :]
        except OSError as error:
            if isinstance(error, ClientError):
                if len(rest) < len(line):
                    self.lose(ConnectionLost("a line was cut off by a time limit"))
                raise
            lost = ConnectionLost(error.strerror or str(error), may_have_run=False)
            self.lose(ConnectionLost(lost.reason))
            raise lost from error

    def wait(self, ready: Callable[[], bool], deadline: Deadline) -> None:
        """Read, or let another thread read, until `ready` says so. It is asked while the lock is held.

        Raises:
            ConnectionLost: The connection has ended and `ready` still says no.
            RequestTimeout: The deadline passed.
        """
        with self._changed:
            while not ready():
                self._check()
                if not self._reading:
                    self._read(deadline)
                elif not self._changed.wait(deadline.left()) and deadline.left() == 0:
                    raise deadline.error()

    def lose(self, error: ClientError) -> None:
        """End the connection; every call under way gets the error. Safe to repeat."""
        with self._changed:
            self._lose(error)

    def _send_some(self, rest: memoryview, deadline: Deadline) -> int:
        try:
            return self._socket.send(rest, _SEND_FLAGS)
        except BlockingIOError:
            left = deadline.left()
            poll = select.poll()
            poll.register(self._socket, select.POLLOUT)
            if not poll.poll(None if left is None else min(left, MAX_POLL_S) * 1000) and deadline.left() == 0:
                raise deadline.error() from None
            return 0

    def _read(self, deadline: Deadline) -> None:
        """Read once and carry out what came. The lock is held before and after, and not while it waits."""
        self._reading = True
        self._changed.release()
        try:
            data = self._receive(deadline)
        except OSError as error:
            data, reason = b"", error.strerror or str(error)
        else:
            reason = "the daemon closed it"
        finally:
            self._changed.acquire()
            self._reading = False
            # Those who wait: one of them has to read now.
            self._changed.notify_all()
            if self._lost is not None:
                self._close()
        if data is None:
            if deadline.left() == 0:
                raise deadline.error()
            return
        if not data:
            self._lose(ConnectionLost(reason))
            return
        try:
            happenings = self.session.receive_data(data)
        except ProtocolViolation as violation:
            self._lose(violation)
            return
        self._carry_out(happenings)

    def _receive(self, deadline: Deadline) -> Optional[bytes]:
        """What comes next; b"" at the end, None when nothing came in time."""
        left = deadline.left()
        if left is not None and not self._readable.poll(min(left, MAX_POLL_S) * 1000):
            return None
        return self._socket.recv(READ_BYTES)

    def _carry_out(self, happenings: List[Happening]) -> None:
        for happening in happenings:
            if isinstance(happening, Answered):
                self._answer(happening)
            elif isinstance(happening, Invoked):
                self._invoke(happening)
            elif isinstance(happening, Refused):
                self._start(self._reply, happening.line)

    def _answer(self, answered: Answered) -> None:
        slot: _Slot = answered.waiter
        slot.value, slot.error, slot.done = answered.value, answered.error, True

    def _invoke(self, invoked: Invoked) -> None:
        if self._callbacks >= MAX_CALLBACKS:
            self._start(self._reply, busy_line(invoked.request_id))
        else:
            self._callbacks += 1
            self._start(self._serve, invoked)

    def _start(self, run: Callable[[Any], None], argument: Any) -> None:
        """On a thread of its own: a callback may take long, and may use the client; the reader must go on."""
        threading.Thread(target=run, args=(argument,), name="hooksd-client-hook", daemon=True).start()

    def _serve(self, invoked: Invoked) -> None:
        try:
            line = _run_callback(invoked)
        finally:
            with self._changed:
                self._callbacks -= 1
        self._reply(line)

    def _reply(self, line: bytes) -> None:
        # Where the connection has ended there is nobody to tell: the daemon has seen that itself.
        with contextlib.suppress(ClientError):
            self.send(line, Deadline(float("inf"), "a place for the answer to hook/invoke"))

    def _give_up(self, request_id: RequestId) -> None:
        with self._changed:
            line = None if self._lost else self.session.abandon(request_id)
        if line is not None:
            # If it cannot be told, the connection is at its end, and the daemon cancels by that.
            with contextlib.suppress(ClientError):
                self.send(line, Deadline(CANCEL_TIMEOUT_S, "a place for $/cancel"))

    def _check(self) -> None:
        if self._lost is not None:
            raise not_sent(self._lost)

    def _lose(self, error: ClientError) -> None:
        if self._lost is not None:
            return
        self._lost = error
        for answered in self.session.fail(error):
            self._answer(answered)
        self._changed.notify_all()
        # Wakes a thread that reads or sends; only then may the descriptor be closed, or it could become another file's
        # under that thread's hands.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if not self._reading:
            self._close()

    def _close(self) -> None:
        with self._sending:
            self._socket.close()


def _run_callback(invoked: Invoked) -> bytes:
    """The line that answers an invocation."""
    try:
        answer = invoked.offer.callback(invoked.call)
    except Exception as error:  # noqa: BLE001  # whatever it raises is a failed hook, which the daemon is told
        _logger.warning("the programmatic hook %r raised %s", invoked.offer.name, type(error).__name__)
        return failure_line(invoked.request_id, error)
    return answer_line(invoked.request_id, answer)
