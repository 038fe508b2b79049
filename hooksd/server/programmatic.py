"""A connected client as the pipeline calls it: `hook/invoke` and its answers (protocol section 2.8)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from hooksd.model.errors import ProtocolError
from hooksd.model.records import Level, Recorder
from hooksd.protocol import jsonrpc
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.jsonrpc import Call, RequestId, Response
from hooksd.protocol.methods.programmatic import HookInvokeParams
from hooksd.server.connection import Connection


__all__ = ["ProgrammaticClient"]


class _ErrorMember(msgspec.Struct, frozen=True, kw_only=True):
    """The `error` of a client's answer, as far as it is looked at."""

    code: int
    message: str


class ProgrammaticClient:
    """A `hooksd.pipeline.programmatic.HookClient` at the other end of a connection."""

    def __init__(self, connection: Connection, record: Recorder) -> None:
        self._connection = connection
        self._record = record
        self._pending: dict[RequestId, asyncio.Future[Any]] = {}
        self._calls = 0
        connection.on_response = self._take

    @property
    def name(self) -> str:
        """What it called itself in `initialize`, "" if nothing."""
        return self._connection.client_name

    @property
    def closed(self) -> bool:
        """Whether it cannot answer any more."""
        return self._connection.half_closed or self._connection.gone

    async def invoke(self, registration_id: str, envelope: dict[str, Any], deadline_ms: int) -> Any:
        """Send `hook/invoke` and give the result as it came.

        Cancelling it takes no answer any more; one that comes later is recorded and dropped.

        Raises:
            ProtocolError: The client answered with an error, or with what cannot be read.
            ConnectionError: The connection was lost before there was an answer.
        """
        if self.closed:
            raise _lost()
        self._calls += 1
        call_id = f"invoke-{self._calls}"
        params = HookInvokeParams(registration_id=registration_id, envelope=envelope, deadline_ms=deadline_ms)
        line = jsonrpc.encode(Call(id=call_id, method="hook/invoke", params=params))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[call_id] = answer
        self._connection.owe(1)
        try:
            self._connection.send(line)
            return await answer
        finally:
            del self._pending[call_id]
            self._connection.owe(-1)

    def lost(self) -> None:
        """No answer comes any more: every call in progress fails."""
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(_lost())

    def _take(self, response: Response) -> None:
        answer = self._pending.get(response.id)
        if answer is None or answer.done():
            # It answered too late, twice, or what it was never asked.
            self._record(Level.WARNING, "daemon.unexpected_response", {"client": self.name or "-"})
            return
        try:
            answer.set_result(_result(response))
        except ProtocolError as error:
            answer.set_exception(error)


def _result(response: Response) -> Any:
    """The result of an answer.

    Raises:
        ProtocolError: It is an error, or holds a number that cannot be represented.
    """
    try:
        if response.result is not None:
            return msgspec.json.decode(response.result)
        error = msgspec.json.decode(response.error or b"null", type=_ErrorMember)
    except msgspec.ValidationError as fault:
        raise protocol_error(
            ErrorCode.INVALID_REQUEST, f"the client's answer cannot be read: {fault}"
        ) from None
    raise ProtocolError(error.code, error.message, kind="client_error")


def _lost() -> ConnectionError:
    return ConnectionResetError("the connection of the client was lost")
