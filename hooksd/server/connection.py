"""One client: bytes in, answers out (protocol section 1).

An `asyncio.Protocol`, not a pair of streams: everything that one read brings is handled in that read, and all answers
that are there at its end leave in one write.

Nothing here grows without bound, and no client waits for another. Reading pauses while too many requests have no answer,
or too many answers are unread; past `limits.max_write_buffer_bytes` of these the client is dropped.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from hooksd.config.settings import Limits
from hooksd.model.records import Level, Recorder
from hooksd.protocol import jsonrpc
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.jsonrpc import Batch, Failure, Request, Response, Single, parse
from hooksd.server.hangup import HangupWatch
from hooksd.server.peer import Peer, depth_of_process
from hooksd.server.requests import BatchAnswers, Requests
from hooksd.server.table import Served
from hooksd_client.wire import LineSplitter, LineTooLong


__all__ = ["MAX_UNANSWERED", "STALL_S", "Connection", "House"]

MAX_UNANSWERED: Final = 4_096
"""Requests of one connection without an answer, past which it is not read. More than hooks can run and queue."""

MAX_TURN_MESSAGES: Final = 1_024
"""Messages of one client that are handled before others have their turn: some milliseconds."""

WRITE_HIGH_BYTES: Final = 1_048_576
"""Unread answers past which events wait in their own queue, where the oldest can be dropped, until three quarters are
read. Less where `limits.max_write_buffer_bytes` is small."""

FLUSH_BYTES: Final = 262_144
"""Answers of one read that are joined before they are written."""

STALL_S: Final = 10.0
"""How long a client whose reading was paused for its unread answers may read nothing at all; then it is dropped."""


class House:
    """What all connections of a listener have in common.

    Attributes:
        served: The methods, and what they keep for each connection that was let in.
        record: Takes the records.
        hangups: Watches connections that are not read.
        limits: The limits that are in force now; a connection keeps those of its start.
        admit: Who is at the other end of a new connection; None if it is not let in.
        closed: Called once for each connection that was let in, when its descriptor is given back.
    """

    __slots__ = ("admit", "closed", "hangups", "limits", "record", "served")

    def __init__(
        self,
        *,
        served: Served[Connection],
        record: Recorder,
        hangups: HangupWatch,
        limits: Callable[[], Limits],
        admit: Callable[[socket.socket, Connection], Peer | None],
        closed: Callable[[Connection], None],
    ) -> None:
        self.served = served
        self.record = record
        self.hangups = hangups
        self.limits = limits
        self.admit = admit
        self.closed = closed


class Connection:
    """One client: an `asyncio.Protocol` by its shape. The methods get it as their first argument.

    Attributes:
        peer: Who it is; set once it was let in.
        client_name: What it called itself in `initialize`, "" if nothing.
        gone: Nothing that is sent arrives any more.
        half_closed: It sends nothing any more.
        owed: How many of our requests it has not answered. While there are any, its messages are never left unread,
            since the answer may be the next one: requests over `MAX_UNANSWERED` are refused instead.
        on_response: Takes its answers to requests of ours.
        on_writable: Called when what waits for a slow client may go on.
        keeps_open: Whether it is to stay open after the client has closed its side and has all its answers.
    """

    def __init__(self, house: House) -> None:
        limits = house.limits()
        self.peer: Peer
        self.client_name = ""
        self.gone = False
        self.half_closed = False
        self.owed = 0
        self.on_response: Callable[[Response], None] | None = None
        self.on_writable: Callable[[], None] | None = None
        self.keeps_open: Callable[[], bool] | None = None
        self._house = house
        self._splitter = LineSplitter(limits.max_message_bytes)
        self._max_message_bytes = limits.max_message_bytes
        self._max_write_buffer_bytes = limits.max_write_buffer_bytes
        self._requests: Requests[Connection] = Requests(
            self, house.served.table, send=self.send, ended=self._request_ended, record=house.record
        )
        self._start = self._requests.start
        self._unanswered = self._requests.unanswered
        self._backlog: deque[tuple[_Item, BatchAnswers | None]] = deque()
        """What was read and is not handled yet, in order: at most what one read or one batch brought."""
        self._out: list[bytes] = []
        """Answers that are collected, to be written together."""
        self._out_bytes = 0
        self._collecting = False
        self._pump_is_due = False
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._let_in = False
        self._closing = False
        self._depth: int | None = None
        self._depth_known = False
        self._reading = True
        self._writing_paused = False
        self._since_pause_bytes = 0
        self._stall: asyncio.TimerHandle | None = None
        self._watch: int | None = None

    # ------------------------------------------------------------------------------------------------------------------
    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)
        peer = self._house.admit(transport.get_extra_info("socket"), self)
        if peer is None:
            self._transport.abort()
            return
        self.peer = peer
        self._let_in = True
        high = min(WRITE_HIGH_BYTES, self._max_write_buffer_bytes // 2)
        self._transport.set_write_buffer_limits(high=high, low=high // 4)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        lines = self._splitter.receive_data(data)
        if len(lines) == 1 and not (
            self._backlog or self._writing_paused or len(self._unanswered) >= MAX_UNANSWERED
        ):
            # By far the commonest case has a short way: one message, whose answer leaves as it is.
            self._receive_line(lines[0])
            if self._backlog:
                self._pump()
        else:
            self._handle(lines)

    def eof_received(self) -> bool:
        """See `asyncio.Protocol`: the client sends nothing any more, and may still wait for answers."""
        self._handle(self._splitter.receive_eof())
        self._end_of_requests()
        if self.gone or self._is_done():
            return False  # the transport writes what it has and closes
        self._watch_for_hangup()
        return True

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._writing_paused = True
        self._since_pause_bytes = 0

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._writing_paused = False
        self._pump()
        if self.on_writable is not None:
            self.on_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if not self._let_in:
            return
        self._end_of_requests()
        self._client_is_gone()
        self._splitter.receive_eof()  # half a line is no message; its memory goes now, not with a collection
        self._end_stall()
        self._end_watch()
        self._house.closed(self)

    # ------------------------------------------------------------------------------------------------------------------
    # What methods call

    @property
    def depth(self) -> int | None:
        """How deep in hooks of ours the client runs; None where the system does not tell. Looked up once."""
        if not self._depth_known:
            self._depth_known = True
            self._depth = depth_of_process(self.peer.pid)
        return self._depth

    @property
    def writable(self) -> bool:
        """Whether the client reads what it is sent; `on_writable` is called when it does again."""
        return not self._writing_paused and not self.gone

    def send(self, line: bytes) -> None:
        """Send a whole line; nothing happens where the client is gone."""
        if not self._collecting:
            self._write(line)
            return
        self._out.append(line)
        self._out_bytes += len(line)
        if self._out_bytes > FLUSH_BYTES:
            self._flush()

    def owe(self, difference: int) -> None:
        """The client owes us this many answers more, or less."""
        self.owed += difference
        if difference > 0 and self._backlog:
            self._pump_soon()

    def cancel(self, request_id: str | int) -> None:
        """Cancel a request of this connection."""
        self._requests.cancel(request_id)

    def close(self) -> None:
        """Write what there is, then close; what is sent from now on is lost."""
        self._closing = True
        self._transport.close()

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()

    # ------------------------------------------------------------------------------------------------------------------
    # Messages

    def _handle(self, lines: list[bytes | LineTooLong]) -> None:
        """Handle the lines of one read and write the answers that are there."""
        self._backlog.extend([(line, None) for line in lines])
        self._pump()

    def _pump(self) -> None:
        """Handle what is there, as far as that is possible now, and write the answers together."""
        self._collecting = True
        backlog = self._backlog
        for _ in range(MAX_TURN_MESSAGES):
            if not backlog or self._is_held_up():
                break
            item, batch = backlog.popleft()
            if type(item) is bytes or type(item) is LineTooLong:
                self._receive_line(item)
            else:
                self._receive(cast("Single", item), batch)
        self._collecting = False
        if self._out:
            self._flush()
        if backlog and not self._is_held_up():
            self._pump_soon()
        self._fit_reading()
        if self.half_closed:
            self._close_if_done()

    def _pump_soon(self) -> None:
        """Go on in the next turn of the loop."""
        if not self._pump_is_due:
            self._pump_is_due = True
            self._loop.call_soon(self._pump_now)

    def _pump_now(self) -> None:
        self._pump_is_due = False
        self._pump()

    def _is_held_up(self) -> bool:
        """Whether nothing more may be started for this client now."""
        if self._writing_paused and self._is_choked():
            return True
        return len(self._unanswered) >= MAX_UNANSWERED and not self.owed

    def _receive_line(self, line: bytes | LineTooLong) -> None:
        if type(line) is LineTooLong:
            self.send(jsonrpc.encode(jsonrpc.too_long(self._max_message_bytes)))
            return
        message = parse(cast("bytes", line))
        if type(message) is Request and len(self._unanswered) < MAX_UNANSWERED:
            answer = self._start(message)
            if answer is not None:
                self.send(answer)
        elif type(message) is Batch:
            answers = BatchAnswers(
                len(message.members), self.send, self._max_write_buffer_bytes, self._batch_is_too_big
            )
            self._backlog.extendleft((member, answers) for member in reversed(message.members))
        else:
            self._receive(cast("Single", message), None)

    def _receive(self, message: Single, batch: BatchAnswers | None) -> None:
        answer: bytes | None = None
        if type(message) is Request:
            if len(self._unanswered) < MAX_UNANSWERED:
                answer = self._start(message, batch)
            else:
                answer = self._requests.refuse(message, batch, _TOO_MANY)
        elif type(message) is Response:
            self._take_response(message)
            if batch is not None:
                batch.add(None)
        else:
            answer = jsonrpc.encode(cast("Failure", message))
            if batch is not None:
                batch.add(answer)
                answer = None
        if answer is not None:
            self.send(answer)

    def _batch_is_too_big(self) -> None:
        self._drop("max_write_buffer_bytes", self._max_write_buffer_bytes)

    def _take_response(self, response: Response) -> None:
        if self.on_response is not None:
            self.on_response(response)
        else:
            self._tell(Level.WARNING, "daemon.unexpected_response")

    def _request_ended(self) -> None:
        if self._backlog:
            self._pump()
        elif self.half_closed:
            self._close_if_done()

    # ------------------------------------------------------------------------------------------------------------------
    # Writing

    def _flush(self) -> None:
        out = self._out
        line = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        self._out_bytes = 0
        self._write(line)

    def _write(self, data: bytes) -> None:
        if self.gone or self._closing:
            return
        self._transport.write(data)
        if self._writing_paused:
            self._since_pause_bytes += len(data)
            self._look_at_write_buffer()

    def _look_at_write_buffer(self) -> None:
        limit = self._max_write_buffer_bytes
        size = self._transport.get_write_buffer_size()
        if size > limit:
            self._drop("max_write_buffer_bytes", limit)
        elif size > limit // 2:
            self._fit_reading()

    def _is_choked(self) -> bool:
        """Whether so many answers are unread that no more may be asked for."""
        return (
            self._writing_paused
            and not self.gone
            and self._transport.get_write_buffer_size() > self._max_write_buffer_bytes // 2
        )

    def _fit_reading(self) -> None:
        """Pause or resume reading as what is unread and unanswered allows."""
        choked = self._is_choked()
        if choked and self._stall is None:
            self._begin_stall()
        elif not choked:
            self._end_stall()
        if self.half_closed or self._transport.is_closing():
            return
        wanted = not choked and not self._backlog
        if wanted is self._reading:
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
            self._end_watch()
        else:
            self._transport.pause_reading()
            self._watch_for_hangup()

    def _begin_stall(self) -> None:
        self._stall = self._loop.call_later(STALL_S, self._look_at_stall, self._read_by_client())

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _look_at_stall(self, before: int) -> None:
        self._stall = None
        if self._read_by_client() > before:
            self._begin_stall()
        else:
            self._drop("stalled_s", STALL_S)

    def _read_by_client(self) -> int:
        """How much it has taken since writing was paused, less a constant."""
        return self._since_pause_bytes - self._transport.get_write_buffer_size()

    def _drop(self, why: str, limit: float) -> None:
        """It does not read its answers, or asks for more at once than can be held."""
        if self.gone:
            return
        self._tell(Level.WARNING, "daemon.connection_dropped", why=why, limit=limit)
        self._transport.abort()
        self._client_is_gone()

    # ------------------------------------------------------------------------------------------------------------------
    # The end

    def _is_done(self) -> bool:
        return not (self._unanswered or self._backlog or (self.keeps_open is not None and self.keeps_open()))

    def _close_if_done(self) -> None:
        if self._is_done():
            self.close()

    def _watch_for_hangup(self) -> None:
        if self.gone:
            return
        try:
            descriptor = self._transport.get_extra_info("socket").fileno()
            self._watch = self._house.hangups.watch(descriptor, self._hung_up)
        except OSError as error:
            self._tell(Level.WARNING, "daemon.hangup_not_watched", error=error.strerror)

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._house.hangups.forget(self._watch)
            self._watch = None

    def _hung_up(self) -> None:
        self._client_is_gone()
        if self.half_closed:
            self._transport.abort()
        else:
            # What it sent before it went still counts: events may be in it.
            self._pump()

    def _end_of_requests(self) -> None:
        if not self.half_closed:
            self.half_closed = True
            self._house.served.half_closed(self)

    def _client_is_gone(self) -> None:
        if self.gone:
            return
        self.gone = True
        self._requests.client_gone()
        self._house.served.gone(self)

    def _tell(self, level: Level, kind: str, **fields: object) -> None:
        self._house.record(level, kind, {"uid": self.peer.uid, "pid": self.peer.pid, **fields})


_Item = bytes | LineTooLong | Single

_TOO_MANY: Final = protocol_error(
    ErrorCode.BUSY,
    f"{MAX_UNANSWERED} requests of this connection have no answer yet, which is the limit; wait for some",
    kind="max_unanswered",
)
