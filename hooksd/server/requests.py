"""The requests of one connection, from their arrival to their answer (protocol section 1).

They start in the order in which they arrive and then run side by side. What needs no wait is answered at once, without a
task. A request that names an execution starts after an earlier open or close of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec

from hooksd.model.errors import ProtocolError
from hooksd.model.records import Level, Recorder
from hooksd.protocol import jsonrpc
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.jsonrpc import Request, RequestId, Success
from hooksd.protocol.params import decode_params
from hooksd.server.incidents import incident
from hooksd.server.table import Entry, MethodTable, Step


__all__ = ["BatchAnswers", "Requests"]

C = TypeVar("C")

_UNSET: Final = msgspec.UNSET  # a local name: it is compared for every request


class BatchAnswers:
    """The answers of one batch; they leave together when the last one is there.

    Args:
        size: How many members the batch has.
        send: Takes the answer.
        limit_bytes: How much may be held.
        too_big: Called once when that is not enough; there will be no answer then.
    """

    __slots__ = ("_answers", "_left_bytes", "_missing", "_send", "_too_big")

    def __init__(
        self, size: int, send: Callable[[bytes], None], limit_bytes: int, too_big: Callable[[], None]
    ) -> None:
        self._missing = size
        self._answers: list[bytes] = []
        self._send = send
        self._left_bytes = limit_bytes
        self._too_big = too_big

    def add(self, answer: bytes | None) -> None:
        """One member is done; None where it has no answer."""
        self._missing -= 1
        if self._left_bytes < 0:
            return
        if answer is not None:
            self._answers.append(answer)
            self._left_bytes -= len(answer)
            if self._left_bytes < 0:
                self._answers.clear()
                self._too_big()
                return
        if not self._missing and self._answers:
            self._send(jsonrpc.encode_batch(self._answers))


class _Flight:
    """A request that could not be answered at once.

    Attributes:
        method: Its name.
        request_id: As sent; UNSET for a notification.
        batch: What it is a member of.
        task: What carries it out.
        begun: Whether the task has had its first turn. Before that it cannot be cancelled: it would never run, and its
            request would have no answer.
        handled: Its handler was called when it arrived; it has started with the first turn of the task.
        waiting: It has not started: whatever arrived later must wait for that.
        for_client: See `Step.for_client`.
        cancelled: It was cancelled from here, so that it answers -32800.
    """

    __slots__ = (
        "batch",
        "begun",
        "cancelled",
        "for_client",
        "handled",
        "method",
        "request_id",
        "task",
        "waiting",
    )

    def __init__(self, request: Request, batch: BatchAnswers | None, *, handled: bool = False) -> None:
        self.method = request.method
        self.request_id = request.id
        self.batch = batch
        self.task: asyncio.Task[None] | None = None
        self.begun = False
        self.handled = handled
        self.waiting = True
        self.for_client = False
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
        if self.begun and self.task is not None:
            self.task.cancel()


class Requests(Generic[C]):
    """Carries requests to their methods and answers back. Belongs to the loop's thread.

    Args:
        connection: What handlers get as their first argument.
        table: The methods.
        send: Takes an answer that was not there at once.
        ended: Called after each request that was not answered at once.
        record: Takes the records.
    """

    def __init__(
        self,
        connection: C,
        table: MethodTable[C],
        *,
        send: Callable[[bytes], None],
        ended: Callable[[], None],
        record: Recorder,
    ) -> None:
        self._connection = connection
        self._table = table
        self._send = send
        self._ended = ended
        self._record = record
        self.unanswered: set[_Flight] = set()
        """Requests that have no answer yet: the same object for ever."""
        self._by_id: dict[RequestId, set[_Flight]] = {}
        self._waiting = 0
        """Requests that have arrived and not started: whatever arrives now must start after them."""
        self._changing: dict[str, list[asyncio.Future[None]]] = {}
        """By execution that is being opened or closed: who waits for the end of that."""
        self._client_gone = False
        self._loop = asyncio.get_running_loop()

    def start(self, request: Request, batch: BatchAnswers | None = None) -> bytes | None:
        """Start a request; never raises.

        Returns:
            The answer, if it is there at once and not part of a batch. Every other one goes to `batch`, or to `send`.
        """
        answer: bytes | None = None
        try:
            entry = self._table.get(request.method) or _unknown_method(request.method)
            params: Any
            try:
                params = entry.decode(request.params)
            except msgspec.ValidationError:
                # Once more, for what is wrong in words of ours.
                params = decode_params(entry.decoder, entry.method.params, request.params, request.method)
            if self._waiting or (
                self._changing and entry.names_execution and params.execution_id in self._changing
            ):
                flight = _Flight(request, batch)
                self._fly(flight, Step(self._start_in_turn(flight, entry, params)))
                return None
            result = entry.handle(self._connection, params)
            if type(result) is Step:
                self._fly(_Flight(request, batch, handled=True), result)
                return None
            if request.id is not _UNSET:
                answer = jsonrpc.encode(Success(id=request.id, result=result))
        except ProtocolError as error:
            answer = self._refusal(request.method, request.id, error)
        except Exception as error:  # noqa: BLE001 - the border: whatever goes wrong is one answer
            answer = self._refusal(request.method, request.id, incident(error, self._record, request.method))
        if batch is None:
            return answer
        batch.add(answer)
        return None

    def refuse(self, request: Request, batch: BatchAnswers | None, error: ProtocolError) -> bytes | None:
        """As `start`, without starting it."""
        answer = self._refusal(request.method, request.id, error)
        if batch is None:
            return answer
        batch.add(answer)
        return None

    def cancel(self, request_id: RequestId) -> None:
        """Cancel what is in progress under an id; it answers -32800. An id that is not in progress is no error."""
        for flight in self._by_id.get(request_id, ()):
            flight.cancel()

    def client_gone(self) -> None:
        """Cancel what only the client has anything of, now and when it comes to that."""
        self._client_gone = True
        for flight in self.unanswered:
            if flight.for_client:
                flight.cancel()

    # ------------------------------------------------------------------------------------------------------------------

    def _fly(self, flight: _Flight, step: Step) -> None:
        """Carry on in a task."""
        self.unanswered.add(flight)
        self._waiting += 1
        if flight.request_id is not _UNSET:
            self._by_id.setdefault(flight.request_id, set()).add(flight)
        if step.changes is not None:
            self._changing[step.changes] = []
        flight.for_client = step.for_client
        flight.task = self._loop.create_task(self._carry_out(flight, step))

    async def _carry_out(self, flight: _Flight, step: Step) -> None:
        flight.begun = True
        if flight.handled:
            self._starts(flight)
        answer: bytes | None = None
        try:
            result: Any = step
            while type(result) is Step:
                flight.for_client = result.for_client
                if flight.cancelled or (result.for_client and self._client_gone):
                    self._abandon(flight, result)
                # One coroutine less for what does not change an execution.
                result = await (
                    result.coroutine if result.changes is None else self._change(result, result.changes)
                )
            if flight.request_id is not _UNSET:
                answer = jsonrpc.encode(Success(id=flight.request_id, result=result))
        except asyncio.CancelledError:
            if not flight.cancelled:
                raise  # the loop itself is ending
            answer = self._refusal(flight.method, flight.request_id, _CANCELLED)
        except ProtocolError as error:
            answer = self._refusal(flight.method, flight.request_id, error)
        except Exception as error:  # noqa: BLE001 - the border, as above
            problem = incident(error, self._record, flight.method)
            answer = self._refusal(flight.method, flight.request_id, problem)
        finally:
            self._land(flight)
        if flight.batch is not None:
            flight.batch.add(answer)
        elif answer is not None:
            self._send(answer)
        self._ended()

    def _abandon(self, flight: _Flight, step: Step) -> NoReturn:
        """Do not even begin with a step."""
        flight.cancelled = True
        step.coroutine.close()
        if step.changes is not None:
            self._changed(step.changes)
        raise asyncio.CancelledError

    async def _change(self, step: Step, execution_id: str) -> Any:
        """Wait for a step that opens or closes an execution."""
        self._changing.setdefault(execution_id, [])
        try:
            return await step.coroutine
        finally:
            self._changed(execution_id)

    def _changed(self, execution_id: str) -> None:
        """Who waits for a change goes on after it, however it ended."""
        for waiter in self._changing.pop(execution_id, ()):
            if not waiter.done():
                waiter.set_result(None)

    async def _start_in_turn(self, flight: _Flight, entry: Entry[C], params: Any) -> Any:
        """Start a request that arrived while earlier ones had not started, or while its execution is changed."""
        while entry.names_execution and params.execution_id in self._changing:
            waiter = self._loop.create_future()
            self._changing[params.execution_id].append(waiter)
            await waiter
        self._starts(flight)
        return entry.handle(self._connection, params)

    def _starts(self, flight: _Flight) -> None:
        if flight.waiting:
            flight.waiting = False
            self._waiting -= 1

    def _land(self, flight: _Flight) -> None:
        self._starts(flight)  # or never will
        self.unanswered.discard(flight)
        if flight.request_id is not _UNSET:
            same = self._by_id[flight.request_id]
            same.discard(flight)
            if not same:
                del self._by_id[flight.request_id]

    def _refusal(
        self, method: str, request_id: RequestId | msgspec.UnsetType, error: ProtocolError
    ) -> bytes | None:
        """The answer with an error; what nobody is to be answered is recorded."""
        if request_id is not _UNSET:
            return jsonrpc.encode(jsonrpc.failure(request_id, error))
        if error.code == ErrorCode.INVALID_REQUEST:
            return jsonrpc.encode(jsonrpc.failure(None, error))
        self._record(
            Level.WARNING,
            "daemon.notification_failed",
            {"method": method[:100], "code": int(error.code), "kind": error.kind},
        )
        return None


_CANCELLED: Final = protocol_error(ErrorCode.CANCELLED, "the request was cancelled; nothing was decided")


def _unknown_method(name: str) -> NoReturn:
    raise protocol_error(
        ErrorCode.METHOD_NOT_FOUND, f"there is no method {name[:100]!r}; `initialize` lists all of them"
    )
