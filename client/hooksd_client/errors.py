"""The exceptions of the client.

One root, split by what the caller can do about it:

- `ClientError`: of a `dispatch`, `guarded` says whether the event must then be taken as blocked
  - `NoAnswer`: nobody answered
    - `DaemonNotReachable`: there is no connection, and nothing was run
    - `ConnectionLost`: the connection broke while the request was under way
    - `RequestTimeout`: the caller's own time limit passed
  - `RequestFailed`: the daemon answered with an error; one subclass per code of protocol section 4
  - `ProtocolViolation`: the daemon sent something that the protocol does not allow
  - `ClientClosed`: the client was used after it had been closed
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Type


__all__ = [
    "Busy",
    "ClientClosed",
    "ClientError",
    "ConfigurationInvalid",
    "ConnectionLost",
    "DaemonNotReachable",
    "Draining",
    "ExecutionConflict",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "MessageTooLarge",
    "MethodNotFound",
    "NoAnswer",
    "NotPermitted",
    "ParseError",
    "ProtocolViolation",
    "RequestCancelled",
    "RequestFailed",
    "RequestTimeout",
    "StaleRevision",
    "UnknownEvent",
    "UnknownExecution",
    "Untrusted",
    "request_failed",
]


class ClientError(Exception):
    """Root of every error that this package raises on purpose.

    Attributes:
        guarded: Only ever true for a `dispatch`, none of whose errors is a decision: a guard of this user wants the
            event answered closed when nobody decides it (design rule 2). The caller must then treat the event as
            blocked, whatever it does otherwise when hooksd is not there.
    """

    guarded: bool = False


class NoAnswer(ClientError):
    """The request got no answer, so nothing is known about what became of it."""


class DaemonNotReachable(NoAnswer, ConnectionError):
    """No connection could be made, or the listener is not one that may be trusted; nothing was run.

    Attributes:
        path: The address that was tried.
        reason: Why it cannot be reached.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"hooksd cannot be reached at {self.path}: {self.reason}"


class ConnectionLost(NoAnswer, ConnectionError):
    """The connection broke before the answer came.

    Attributes:
        reason: What was seen of it.
        may_have_run: Whether the daemon may have got the whole request. Where it is true, the client repeats only
            requests that change nothing.
    """

    def __init__(self, reason: str, *, may_have_run: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.may_have_run = may_have_run

    def __str__(self) -> str:
        told = "the request may have been run" if self.may_have_run else "the request was not run"
        return f"the connection to hooksd was lost: {self.reason}; {told}"


class RequestTimeout(NoAnswer, TimeoutError):
    """The time that the caller gave has passed; the daemon has been told to cancel the request.

    Attributes:
        what: What was waited for, such as the answer to a method.
        timeout_s: The time that was given, in seconds.
    """

    def __init__(self, what: str, timeout_s: float) -> None:
        super().__init__(what, timeout_s)
        self.what = what
        self.timeout_s = timeout_s

    def __str__(self) -> str:
        return f"{self.what} did not come within {self.timeout_s:g} s"


class ProtocolViolation(ClientError):
    """The daemon sent something that the protocol does not allow; the connection is given up where it cannot go on."""


class ClientClosed(ClientError):
    """The client has been closed."""

    def __str__(self) -> str:
        return "the client has been closed; make a new one"


class RequestFailed(ClientError):
    """The daemon answered with an error (protocol section 4). Codes without a subclass are of this class itself.

    Attributes:
        code: The number.
        message: One sentence of the daemon.
        kind: A short constant word for programs, "" if there is none.
        data: All of the error's `data`: `kind`, `detail`, `problems`.
    """

    def __init__(self, code: int, message: str, data: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data: Mapping[str, Any] = data or {}
        self.kind: str = str(self.data.get("kind", ""))

    def __str__(self) -> str:
        detail = self.data.get("detail")
        return f"{self.message} ({detail})" if detail else self.message


class ParseError(RequestFailed):
    """-32700: the line was no JSON."""


class InvalidRequest(RequestFailed):
    """-32600: the line was JSON, but no request."""


class MethodNotFound(RequestFailed):
    """-32601: this daemon has no such method."""


class InvalidParams(RequestFailed):
    """-32602: a field is missing, unknown, of the wrong type or not possible here."""


class InternalError(RequestFailed):
    """-32603: a fault of hooksd itself; the log has the incident of `detail`."""


class MessageTooLarge(RequestFailed):
    """-32001: the request is longer than `limits.max_message_bytes`."""


class Draining(RequestFailed):
    """-32002: the daemon shuts down and takes nothing new; for a gate: it was cut off and nothing was decided."""


class Busy(RequestFailed):
    """-32003: a limit on what is open or under way is reached."""


class ExecutionConflict(RequestFailed):
    """-32010: the execution id is open with another agent, session or workspace."""


class UnknownExecution(RequestFailed):
    """-32011: never opened, closed, or dropped as idle; for a gate: cut off by a close, and nothing was decided."""


class StaleRevision(RequestFailed):
    """-32012: what was to be replaced is no longer what the caller saw."""


class ConfigurationInvalid(RequestFailed):
    """-32013: the configuration allows no answer; `data["problems"]` tells why."""


class Untrusted(RequestFailed):
    """-32014: the project has not been trusted."""


class UnknownEvent(RequestFailed):
    """-32015: an event or a dialect that the daemon does not know."""


class NotPermitted(RequestFailed):
    """-32016: not for this user."""


class RequestCancelled(RequestFailed):
    """-32800: the request was cancelled, and nothing was decided."""


_BY_CODE: Dict[int, Type[RequestFailed]] = {
    -32700: ParseError,
    -32600: InvalidRequest,
    -32601: MethodNotFound,
    -32602: InvalidParams,
    -32603: InternalError,
    -32001: MessageTooLarge,
    -32002: Draining,
    -32003: Busy,
    -32010: ExecutionConflict,
    -32011: UnknownExecution,
    -32012: StaleRevision,
    -32013: ConfigurationInvalid,
    -32014: Untrusted,
    -32015: UnknownEvent,
    -32016: NotPermitted,
    -32800: RequestCancelled,
}


def request_failed(error: Any) -> RequestFailed:
    """The exception for the `error` object of an answer.

    Raises:
        ProtocolViolation: It is no error object.
    """
    fields = error if isinstance(error, dict) else {}
    code, message, data = fields.get("code"), fields.get("message"), fields.get("data")
    if not isinstance(code, int) or not isinstance(message, str):
        raise ProtocolViolation("the daemon sent an error without a code and a message")
    return _BY_CODE.get(code, RequestFailed)(code, message, data if isinstance(data, dict) else None)
