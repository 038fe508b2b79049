"""A record as one line of JSON that nobody's text can forge or break.

Pure. Whatever a field holds, the result is one JSON object in valid UTF-8 without a line break of any kind, no control
character, nothing that changes the direction of text, and of bounded size.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence, Set as AbstractSet
from typing import Any

import msgspec


__all__ = ["MAX_ITEMS", "MAX_RECORD_BYTES", "cut", "encode_record", "timestamp"]

MAX_RECORD_BYTES = 65_536
"""Longest line. Beyond it a record keeps what identifies it and loses the rest."""

MAX_ITEMS = 64
"""Most items of a list or an object inside a record; a configuration can have any number of problems."""

_MAX_DEPTH = 5
"""Deepest nesting; our own records need three levels."""

_IDENTITY = ("ts", "seq", "level", "event", "execution_id", "invocation_id", "hook", "status", "revision")
"""Fields that stay when a record is too long as a whole."""

# JSON allows all of these inside a string, but a terminal, an editor or `str.splitlines` acts on them: DEL and the C1
# controls, the separators of lines and paragraphs, marks and overrides of direction, invisible formats, tags.
_ACTIVE = re.compile(
    "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def _foreign(value: object) -> str:
    return f"<{type(value).__name__}>"


_encode = msgspec.json.Encoder(enc_hook=_foreign).encode


def encode_record(record: Mapping[str, Any], max_field_bytes: int) -> bytes:
    """The line of a record, without a line end.

    Args:
        record: JSON values; anything else becomes the name of its type.
        max_field_bytes: Longest text in it, in bytes of UTF-8, with the mark of the cut.
    """
    try:
        line = _encode(record)
        # No text in a line can be longer than the line: nearly every record is done here.
        exact = len(line) <= max_field_bytes
    except (ValueError, TypeError, OverflowError, RecursionError):
        # A lone surrogate, a number or key that JSON does not have, a structure that holds itself.
        exact = False
        line = b""
    if not exact:
        line = _encode(_bounded(record, max_field_bytes, 0))
        if len(line) > MAX_RECORD_BYTES:
            kept = {key: record[key] for key in _IDENTITY if key in record}
            line = _encode({**_bounded(kept, min(max_field_bytes, 2_048), 0), "record_cut": True})
    if line.isascii() and b"\x7f" not in line:
        return line
    return _ACTIVE.sub(_escape, line.decode()).encode()


def timestamp(at_s: float) -> str:
    """Seconds since the epoch in the form of RFC 3339: UTC, with milliseconds."""
    seconds, thousandths = divmod(int(at_s * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{thousandths:03d}Z"


def cut(text: str, limit_bytes: int) -> str:
    """The text, if it is longer than the limit cut at a border of characters and marked with what is missing."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > limit_bytes:
        # The mark itself counts; its own length depends on the number in it, which is at most that of all bytes.
        room = max(0, limit_bytes - len(f"… [{len(data)} bytes more]".encode()))
        kept = data[:room].decode("utf-8", "ignore")
        text = f"{kept}… [{len(data) - len(kept.encode())} bytes more]"
    return text if text.isascii() else _without_surrogates(text)


def _without_surrogates(text: str) -> str:
    """Lone surrogates have no UTF-8 form: they become U+FFFD; a pair becomes the character that it stands for."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _bounded(value: Any, limit: int, depth: int) -> Any:
    if isinstance(value, str):
        return cut(value, limit)
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else f"<{value.bit_length()} bit number>"
    if depth >= _MAX_DEPTH:
        return f"<{type(value).__name__}>"
    if isinstance(value, msgspec.Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        items = [
            (cut(str(key), limit), _bounded(item, limit, depth + 1))
            for key, item in list(value.items())[:MAX_ITEMS]
        ]
        if len(value) > MAX_ITEMS:
            items.append(("…", f"{len(value) - MAX_ITEMS} more"))
        return dict(items)
    if isinstance(value, (Sequence, AbstractSet)) and not isinstance(value, (bytes, bytearray, memoryview)):
        some = [_bounded(item, limit, depth + 1) for item in list(value)[:MAX_ITEMS]]
        if len(value) > MAX_ITEMS:
            some.append(f"… {len(value) - MAX_ITEMS} more")
        return some
    return f"<{type(value).__name__}>"


def _escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))
