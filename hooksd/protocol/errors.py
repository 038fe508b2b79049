"""The error codes of the protocol (section 4) and what goes into the `data` of an error.

An error is raised as `hooksd.model.errors.ProtocolError`; `protocol_error` makes one with the kind that belongs to its
code. The room `jsonrpc` turns it into an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType

import msgspec

from hooksd.model.errors import ProtocolError
from hooksd.model.problems import ConfigProblem


__all__ = ["KINDS", "ErrorCode", "ErrorData", "protocol_error"]


class ErrorCode(IntEnum):
    """Every code that an answer can carry (protocol section 4)."""

    PARSE_ERROR = -32700
    """The line is not JSON: bad syntax, not UTF-8, a lone surrogate, nested too deep."""
    INVALID_REQUEST = -32600
    """JSON, but no request: also an empty batch and a batch that is too long."""
    METHOD_NOT_FOUND = -32601
    """This daemon has no such method; `initialize` lists those it has."""
    INVALID_PARAMS = -32602
    """A field is missing, unknown, of the wrong type or not possible here; the message names it."""
    INTERNAL_ERROR = -32603
    """A fault of hooksd; `detail` is the incident id that the log record has too."""
    MESSAGE_TOO_LARGE = -32001
    """A line longer than `limits.max_message_bytes`."""
    DRAINING = -32002
    """The daemon is shutting down and takes no new work; a gate it cut off answers this too."""
    BUSY = -32003
    """A limit on what is open or under way is reached."""
    EXECUTION_CONFLICT = -32010
    """The execution id is open with another agent, session or workspace."""
    UNKNOWN_EXECUTION = -32011
    """No such execution: never opened, closed, or dropped as idle."""
    STALE_REVISION = -32012
    """What is to be replaced or granted is no longer what the caller saw."""
    CONFIG_INVALID = -32013
    """The configuration does not allow an answer; `problems` tells why."""
    UNTRUSTED = -32014
    """It belongs to a project that is not trusted."""
    UNKNOWN_EVENT = -32015
    """An event or a dialect that is not known."""
    NOT_PERMITTED = -32016
    """The caller may not do this."""
    CANCELLED = -32800
    """The request was cancelled by `$/cancel`."""


KINDS: Mapping[ErrorCode, str] = MappingProxyType({code: code.name.lower() for code in ErrorCode})
"""The `kind` an error has unless it says a closer one."""


class ErrorData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The `data` of every error.

    Attributes:
        kind: A short constant word for programs, such as `unknown_execution`.
        detail: More text; for an internal error the incident id.
        problems: Located problems, where the fault is in a document or a payload.
    """

    kind: str
    detail: str | None = None
    problems: tuple[ConfigProblem, ...] = ()


def protocol_error(
    code: ErrorCode,
    message: str,
    *,
    kind: str | None = None,
    detail: str | None = None,
    problems: Sequence[ConfigProblem] = (),
) -> ProtocolError:
    """Make the exception for an answer with an error; `kind` defaults to the word of the code."""
    return ProtocolError(code, message, kind=kind or KINDS[code], detail=detail, problems=problems)
