"""One connection to the daemon, without the connection: calls and bytes in, lines to send and happenings out.

Sans-I/O, shared by the blocking and the asyncio client. The shell writes the lines that it is given, feeds in what it
reads, and carries out the happenings in their order. A session ends with its connection; what a client keeps up over
connections is in `standing.py`. It is not thread-safe: a shell with threads guards it.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Generic, List, Mapping, NamedTuple, Optional, Tuple, TypeVar, Union

from hooksd_client.calls import Call, nothing
from hooksd_client.errors import (
    ClientError,
    ConnectionLost,
    MessageTooLarge,
    ProtocolViolation,
    UnknownExecution,
    request_failed,
)
from hooksd_client.standing import Feed, HookAnswer, HookCall, Offer, Standing, reply_fields
from hooksd_client.wire import LineSplitter, LineTooLong, encode


__all__ = [
    "MAX_ANSWER_BYTES",
    "MAX_CALLBACKS",
    "Answered",
    "Fed",
    "Happening",
    "Invoked",
    "Refused",
    "RequestId",
    "Session",
]

W = TypeVar("W")
RequestId = Union[int, str]

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Longest line taken from the daemon: what its own default write buffer of one connection holds."""

MAX_CALLBACKS = 64
"""Programmatic hooks of one connection that run at once: as many as the daemon runs gates (`limits.max_running_gates`)."""

_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602
_INTERNAL_ERROR = -32603


class Answered(NamedTuple):
    """A call is over: `error` says how, or `value` is its result."""

    waiter: Any
    value: Any
    error: Optional[ClientError]


class Invoked(NamedTuple):
    """The daemon calls a programmatic hook: run `offer.callback(call)`, then send `answer_line` or `failure_line`."""

    request_id: Any
    offer: Offer
    call: HookCall


class Fed(NamedTuple):
    """A subscription has a record more."""

    feed: Feed


class Refused(NamedTuple):
    """The daemon asked for what this client does not have; the line with the error is to be sent."""

    line: bytes


Happening = Union[Answered, Invoked, Fed, Refused]


class _Pending(NamedTuple):
    call: Call[Any]
    waiter: Any
    size: int


class Session(Generic[W]):
    """The state of one connection.

    A *waiter* is whatever the shell waits for an answer with; the session only hands it back.
    """

    def __init__(self, max_answer_bytes: int = MAX_ANSWER_BYTES) -> None:
        self._splitter = LineSplitter(max_answer_bytes)
        self._next_id = 1
        self._pending: Dict[RequestId, _Pending] = {}
        self._opened: Dict[str, Mapping[str, Any]] = {}
        self._standing: Dict[str, Standing] = {}

    def begin(self, call: Call[Any], waiter: W, request_id: Optional[str] = None) -> Tuple[RequestId, bytes]:
        """Start a call; send the line. An `Answered` with the waiter follows, unless the call is abandoned.

        Args:
            call: What is asked.
            waiter: Comes back with the answer.
            request_id: The caller's own id, so that somebody else can cancel the call. Default: the next number.

        Raises:
            TypeError: A value of the params has no JSON form.
            ValueError: A number of the params has none, or a call with that id is already under way.
        """
        if request_id is not None and request_id in self._pending:
            raise ValueError(f"a request with the id {request_id!r} is already under way")
        chosen: RequestId = self._next_id if request_id is None else request_id
        params = call.params
        if call.opens is not None and params is not call.opens and not self._has_opened(call.opens):
            params = {**params, "execution": call.opens}
        line = encode({"jsonrpc": "2.0", "id": chosen, "method": call.method, "params": params})
        self._next_id += 1
        self._pending[chosen] = _Pending(call, waiter, len(line))
        return chosen, line

    def abandon(self, request_id: RequestId) -> Optional[bytes]:
        """Nobody waits for this call any more: the line that cancels it, or None where it is over."""
        if self._pending.pop(request_id, None) is None:
            return None
        return cancel_line(request_id)

    def stand(self, standing: Standing) -> Call[None]:
        """The call that registers a hook or subscribes. What comes for it comes from the answer on.

        It may be repeated: a lost connection takes the hook or the subscription along.
        """

        def read(answer: Any) -> None:
            key = answer.get(standing.KEY) if isinstance(answer, dict) else None
            if not isinstance(key, str):
                raise ProtocolViolation(f"an answer without `{standing.KEY}`")
            self._standing[key] = standing
            # A feed that gets no record on this connection goes on from here on the next one.
            if (
                isinstance(standing, Feed)
                and standing.last_seq is None
                and isinstance(answer.get("seq"), int)
            ):
                standing.last_seq = answer["seq"]

        return Call(standing.METHOD, standing.params(), read, repeatable=True)

    def has(self, standing: Standing) -> bool:
        """Whether this connection has that hook or subscription."""
        return self._key_of(standing) is not None

    def withdraw(self, standing: Standing) -> Optional[Call[None]]:
        """The call that takes a hook or a subscription out; None if this connection does not have it."""
        key = self._key_of(standing)
        if key is None:
            return None
        del self._standing[key]
        return Call(standing.WITHDRAW, {standing.KEY: key}, nothing)

    def _key_of(self, standing: Standing) -> Optional[str]:
        return next((key for key, found in self._standing.items() if found is standing), None)

    def receive_data(self, data: bytes) -> List[Happening]:
        """Take what was read.

        Raises:
            ProtocolViolation: The connection cannot go on; end it with `fail`.
        """
        happenings: List[Happening] = []
        for line in self._splitter.receive_data(data):
            if isinstance(line, LineTooLong):
                raise ProtocolViolation(f"an answer is longer than {line.limit} bytes")
            happening = self._receive_line(line)
            if happening is not None:
                happenings.append(happening)
        return happenings

    def fail(self, error: ClientError) -> List[Answered]:
        """The connection has ended: every call that is under way is over."""
        pending, self._pending = self._pending, {}
        return [Answered(entry.waiter, None, _copy(error)) for entry in pending.values()]

    def _has_opened(self, params: Mapping[str, Any]) -> bool:
        return self._opened.get(params["execution_id"]) == params

    def _receive_line(self, line: bytes) -> Optional[Happening]:
        try:
            # Decoded here: `loads` would first guess which encoding the bytes are in.
            message = json.loads(line.decode())
        except (ValueError, RecursionError) as error:
            raise ProtocolViolation(f"the daemon sent a line that is no JSON: {error}") from error
        if not isinstance(message, dict):
            raise ProtocolViolation("the daemon sent a line that is no JSON-RPC message")
        if "method" in message:
            return self._receive_request(message)
        if message.get("id") is None:
            return self._unaddressed(message)
        return self._receive_answer(message)

    def _receive_answer(self, message: Mapping[str, Any]) -> Optional[Happening]:
        request_id = message["id"]
        entry = self._pending.pop(request_id, None) if isinstance(request_id, (int, str)) else None
        if entry is None:
            # Of a call that was abandoned: its answer and the cancellation crossed.
            return None
        try:
            error = message.get("error")
            if error is not None:
                raise request_failed(error)
            value = entry.call.read(message.get("result"))
        except ClientError as problem:
            if entry.call.opens is not None and isinstance(problem, UnknownExecution):
                # Closed by somebody, or dropped as idle: without the params along it would stay unknown for ever.
                self._opened.pop(entry.call.opens["execution_id"], None)
            return Answered(entry.waiter, None, problem)
        if entry.call.opens is not None:
            self._opened[entry.call.opens["execution_id"]] = entry.call.opens
        if entry.call.closes is not None:
            self._opened.pop(entry.call.closes, None)
        return Answered(entry.waiter, value, None)

    def _unaddressed(self, message: Mapping[str, Any]) -> Answered:
        """An error that names no request. Only one can be ours: a line that was too long for the daemon to read.

        It is told in the order of arrival, and a longer line than the one that was refused cannot have been taken: so
        it belongs to the longest that is under way.
        """
        problem = request_failed(message.get("error"))
        if not isinstance(problem, MessageTooLarge) or not self._pending:
            raise ProtocolViolation(f"the daemon could not read a request: {problem}")
        longest = max(self._pending, key=lambda request_id: self._pending[request_id].size)
        return Answered(self._pending.pop(longest).waiter, None, problem)

    def _receive_request(self, message: Mapping[str, Any]) -> Optional[Happening]:
        method, params = message["method"], message.get("params")
        if not isinstance(params, dict):
            params = {}
        if method == "events/event":
            feed = self._standing.get(str(params.get("subscription_id")))
            if not isinstance(feed, Feed):
                return None  # unsubscribed, and this one was still on its way
            feed.put(params)
            return Fed(feed)
        return self._receive_call(message["id"], method, params) if "id" in message else None

    def _receive_call(self, request_id: Any, method: Any, params: Mapping[str, Any]) -> Happening:
        if method != "hook/invoke":
            return Refused(_error_line(request_id, _METHOD_NOT_FOUND, f"this client has no method {method}"))
        offer = self._standing.get(str(params.get("registration_id")))
        envelope, deadline_ms = params.get("envelope"), params.get("deadline_ms")
        if not isinstance(offer, Offer):
            return Refused(_error_line(request_id, _INVALID_PARAMS, "this client has no such registration"))
        if not isinstance(envelope, dict) or not isinstance(deadline_ms, int):
            return Refused(_error_line(request_id, _INVALID_PARAMS, "`envelope` or `deadline_ms` is missing"))
        return Invoked(request_id, offer, HookCall(offer.name, envelope, deadline_ms))


def notification_line(method: str, params: Mapping[str, Any]) -> bytes:
    """A message that is not answered."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def cancel_line(request_id: RequestId) -> bytes:
    """Cancels a request of the same connection."""
    return notification_line("$/cancel", {"id": request_id})


def answer_line(request_id: Any, answer: HookAnswer) -> bytes:
    """The answer to an invocation. An answer that cannot be carried becomes a failure: the hook then has failed."""
    try:
        return encode({"jsonrpc": "2.0", "id": request_id, "result": reply_fields(answer)})
    except (TypeError, ValueError) as error:
        return failure_line(request_id, error)


def failure_line(request_id: Any, error: Exception) -> bytes:
    """The answer to an invocation whose callback raised; its words reach the caller of the dispatch as `detail`."""
    return _error_line(request_id, _INTERNAL_ERROR, f"{type(error).__name__}: {error}")


def busy_line(request_id: Any) -> bytes:
    """The answer to an invocation beyond `MAX_CALLBACKS`."""
    message = f"this client runs {MAX_CALLBACKS} hooks already, which is as many as it may"
    return _error_line(request_id, _INTERNAL_ERROR, message)


def _error_line(request_id: Any, code: int, message: str) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})


def not_sent(error: ClientError) -> ClientError:
    """What to raise for a request that was not sent, since the connection had ended with `error` before."""
    if isinstance(error, ConnectionLost):
        return ConnectionLost(error.reason, may_have_run=False)
    return _copy(error)


def _copy(error: ClientError) -> ClientError:
    """One exception per waiter: raised in several places, one object would mix up their tracebacks."""
    if isinstance(error, ConnectionLost):
        return ConnectionLost(error.reason, may_have_run=error.may_have_run)
    return type(error)(*error.args)
