"""JSON-RPC 2.0 as protocol section 1 narrows it: a line of bytes into messages, messages into lines.

Sans-I/O and total: `parse` gives a message for every line, never an exception. What is wrong with a line is a `Failure`,
which is the answer to send. Params stay unparsed (`msgspec.Raw`) until the method is known.
"""

from __future__ import annotations

import json
import re
from array import array
from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Final, Literal

import msgspec

from hooksd.model.errors import ProtocolError
from hooksd.protocol.errors import ErrorCode, ErrorData, protocol_error


__all__ = [
    "MAX_BATCH_MESSAGES",
    "MAX_NESTING",
    "NO_PARAMS",
    "Batch",
    "Call",
    "Error",
    "Failure",
    "Message",
    "Notification",
    "Request",
    "RequestId",
    "Response",
    "Single",
    "Success",
    "encode",
    "encode_batch",
    "failure",
    "parse",
    "too_long",
]

MAX_NESTING: Final = 512
"""Deepest nesting of arrays and objects in a message.

Far more than any tool's arguments have, and far enough below the interpreter's recursion limit (1000) that whatever is
accepted can also be put into an envelope and encoded again, from any depth of the stack.
"""

MAX_BATCH_MESSAGES: Final = 10_000
"""Most messages of one batch: its answers leave together, so all of them are held until the last is there."""

RequestId = str | int | None
NO_PARAMS: Final = msgspec.Raw(b"{}")
_ABSENT: Final = msgspec.Raw(b"")
_CHUNK_BYTES = 65_536


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request, or a notification where `id` is UNSET. `params` is any JSON value, unparsed."""

    jsonrpc: Literal["2.0"]
    method: str
    id: RequestId | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw = NO_PARAMS

    @property
    def is_notification(self) -> bool:
        """Whether no answer must be sent."""
        return self.id is msgspec.UNSET


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A client's answer to a request of ours.

    Attributes:
        id: Of our request.
        result: Unparsed; None where it is an error.
        error: Unparsed; None where it is a result.
    """

    id: RequestId
    result: msgspec.Raw | None
    error: msgspec.Raw | None


class Error(msgspec.Struct, frozen=True, kw_only=True):
    """The `error` member of an answer."""

    code: int
    message: str
    data: ErrorData


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with an error; `id` is null where the request's own is not known."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: RequestId
    error: Error


class Success(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with a result."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: RequestId
    result: Any


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A notification that we send."""

    jsonrpc: Literal["2.0"] = "2.0"
    method: str
    params: Any


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request that we send."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: str
    method: str
    params: Any


Single = Request | Response | Failure


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a batch in their order; never empty."""

    members: tuple[Single, ...]


Message = Single | Batch
Answer = Success | Failure
Outgoing = Answer | Notification | Call


# ----------------------------------------------------------------------------------------------------------------------
# Lines into messages


class _Members(msgspec.Struct, frozen=True, kw_only=True):
    """Any object, to find out what it is or what is wrong with it."""

    jsonrpc: msgspec.Raw = _ABSENT
    method: msgspec.Raw = _ABSENT
    id: msgspec.Raw = _ABSENT
    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT


_decode_request = msgspec.json.Decoder(Request).decode
_decode_members = msgspec.json.Decoder(_Members).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_raw = msgspec.json.Decoder(msgspec.Raw).decode
_decode_id: Callable[[msgspec.Raw], RequestId] = msgspec.json.Decoder(RequestId).decode
_decode_version = msgspec.json.Decoder(Literal["2.0"]).decode

_HALF_PAIR = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


def parse(line: bytes) -> Message:
    r"""Make a message of one line without its line end.

    Never raises. A line that is not JSON gives a `Failure` -32700, JSON that is no request one with -32600. Whether
    `params` fit the method, or are an object at all, is not looked at.

    Half of a surrogate pair (`\ud83d` alone) is JSON, comes from every JavaScript agent whose model cut an emoji in two,
    and is no character: it becomes U+FFFD, as in what we send. Refused, it would leave a gate without any answer, since the
    id of a line that is not read is not known.
    """
    try:
        if not line.isascii():
            _check_utf8(line)
        # A nesting of n takes 2 n brackets at least, so most lines need no look.
        if len(line) >= 2 * MAX_NESTING and line.count(b"{") + line.count(b"[") > MAX_NESTING:
            _check_nesting(line)
        return _decode_request(line)
    except msgspec.ValidationError:
        return _parse_other(line)
    except msgspec.DecodeError as error:
        return _parse_mended(line, error)
    except (UnicodeDecodeError, _TooDeep) as error:
        return _not_json(error)


def too_long(limit: int) -> Failure:
    """The answer to a line of more than `limit` bytes, which was skipped."""
    return _failure(
        None,
        ErrorCode.MESSAGE_TOO_LARGE,
        f"the message is longer than {limit} bytes (limits.max_message_bytes); it was skipped",
    )


def failure(request_id: RequestId, error: ProtocolError) -> Failure:
    """The answer that an error becomes."""
    data = ErrorData(kind=error.kind, detail=error.detail, problems=error.problems)
    return Failure(id=request_id, error=Error(code=error.code, message=error.message, data=data))


class _TooDeep(Exception):
    """More than `MAX_NESTING`."""


def _failure(request_id: RequestId, code: ErrorCode, message: str) -> Failure:
    return failure(request_id, protocol_error(code, message))


def _not_json(error: Exception) -> Failure:
    return _failure(None, ErrorCode.PARSE_ERROR, f"the line is not JSON in UTF-8: {error}")


def _check_utf8(line: bytes) -> None:
    """Whatever is skipped unparsed must be UTF-8 too.

    In chunks: decoded at once, a long line with one wide character would take four times its size.
    """
    decode = getincrementaldecoder("utf-8")().decode
    view = memoryview(line)
    for start in range(0, len(line), _CHUNK_BYTES):
        decode(view[start : start + _CHUNK_BYTES])
    decode(b"", final=True)


def _check_nesting(line: bytes) -> None:
    """Count the brackets outside strings; no Python runs per byte, as lines are long where this matters."""
    brackets = _STRINGS.sub(b"", line).translate(_STEPS, _NOT_BRACKETS)
    if max(accumulate(array("b", brackets)), default=0) > MAX_NESTING:
        raise _TooDeep(f"nested deeper than {MAX_NESTING} levels")


def _parse_other(line: bytes) -> Message:
    """Make something of JSON that is not one request: a batch, a response of the client, or nothing valid."""
    try:
        if line.lstrip()[:1] != b"[":
            return _parse_single(line)
        if line.count(b",") >= MAX_BATCH_MESSAGES and _is_long_array(line):
            return _failure(
                None,
                ErrorCode.INVALID_REQUEST,
                f"a batch may have at most {MAX_BATCH_MESSAGES} messages; send several, or single lines",
            )
        members = _decode_list(line)
    except msgspec.DecodeError as error:
        return _parse_mended(line, error)
    if not members:
        return _failure(None, ErrorCode.INVALID_REQUEST, "a batch must have at least one message")
    return Batch(members=tuple(map(_parse_member, members)))


def _parse_mended(line: bytes, error: msgspec.DecodeError) -> Message:
    """A line that could not be read, with its halves of surrogate pairs replaced; no Python runs per escape."""
    if _HALF_PAIR.search(line) is None:
        return _not_json(error)
    # An escaped backslash is written in another way first, so that what follows it is no escape.
    message = parse(_HALF_PAIR.sub(rb"\\ufffd", line.replace(rb"\\", rb"\u005c")))
    if type(message) is Failure and message.error.code == ErrorCode.PARSE_ERROR:
        return _not_json(error)
    return message


def _parse_member(raw: msgspec.Raw) -> Single:
    try:
        return _decode_request(raw)
    except msgspec.ValidationError:
        return _parse_single(raw)


def _parse_single(text: bytes | msgspec.Raw) -> Single:
    """A response, or what keeps a value from being a request.

    Raises:
        msgspec.DecodeError: The text is not JSON.
    """
    _decode_raw(text)
    try:
        members = _decode_members(text)
    except msgspec.ValidationError:
        return _failure(
            None, ErrorCode.INVALID_REQUEST, "a message must be a JSON object, or an array of them"
        )
    request_id: RequestId = None
    if members.id is not _ABSENT:
        try:
            request_id = _decode_id(members.id)
        except msgspec.ValidationError:
            return _failure(None, ErrorCode.INVALID_REQUEST, "`id` must be a string, an integer or null")
    try:
        _decode_version(members.jsonrpc or b"null")
    except msgspec.ValidationError:
        return _failure(request_id, ErrorCode.INVALID_REQUEST, '`jsonrpc` must be "2.0"')
    if members.method is not _ABSENT:
        return _failure(request_id, ErrorCode.INVALID_REQUEST, "`method` must be a string")
    result, error = members.result, members.error
    if members.id is not _ABSENT and (result is _ABSENT) != (error is _ABSENT):
        return Response(
            id=request_id,
            result=None if result is _ABSENT else result,
            error=None if error is _ABSENT else error,
        )
    return _failure(request_id, ErrorCode.INVALID_REQUEST, "`method` is missing")


def _is_long_array(line: bytes) -> bool:
    """Whether an array has more than `MAX_BATCH_MESSAGES` members, found out without holding them all."""
    text = line.decode()
    decode = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
    position = text.index("[") + 1
    for _ in range(MAX_BATCH_MESSAGES):
        try:
            _, position = decode(text, _after_space(text, position))
        except ValueError:
            return False  # the end, or not JSON: the real decoder says what is wrong
        position = _after_space(text, position)
        if text[position : position + 1] != ",":
            return False
        position += 1
    return True


def _after_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


# ----------------------------------------------------------------------------------------------------------------------
# Messages into lines

_encode_lines = msgspec.json.Encoder().encode_lines


def encode(message: Outgoing) -> bytes:
    """One message as a line, its end included; no raw line break inside.

    A lone surrogate has no UTF-8 form; it becomes U+FFFD, so that one odd file name or argument does not keep a whole
    answer from its client.

    Raises:
        TypeError: A value has no JSON form.
        RecursionError: It is nested too deep.
    """
    try:
        return _encode_lines((message,))
    except UnicodeEncodeError:
        return _encode_lines((_without_surrogates(msgspec.to_builtins(message)),))


def encode_batch(answers: Sequence[bytes]) -> bytes:
    """The answer to a batch: one array on one line, of answers that `encode` made."""
    return b"[" + b",".join([answer[:-1] for answer in answers]) + b"]\n"


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        # Escaped pairs become the one character that they mean, what is left alone is replaced.
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value
