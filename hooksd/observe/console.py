"""A record as one line for a person who watches the daemon in a terminal (`--log-format console`)."""

from __future__ import annotations

from typing import Any

import msgspec

from hooksd.observe.record_text import encode_record


__all__ = ["console_line"]

_HEAD = frozenset({"ts", "seq", "level", "event", "hook", "status"})
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@+[]")
_MAX_VALUE_BYTES = 400
"""Longest value on a console line; the whole text is in the JSON form."""


def console_line(line: bytes) -> bytes:
    """`12:00:01.123 warning hook.finished NAME failed exit_code=1 …`, with the line end; empty fields are left out.

    Args:
        line: The record's JSON object, as `record_text` made it.
    """
    record = msgspec.json.decode(line)
    head = [str(record["ts"])[11:-1], f"{record['level']:<7}", str(record["event"])]
    head += [_value(record[name]) for name in ("hook", "status") if record.get(name)]
    rest = [
        f"{name}={_value(value)}"
        for name, value in record.items()
        if name not in _HEAD and value not in (None, False, 0, "", (), [])
    ]
    return " ".join([*head, *rest]).encode() + b"\n"


def _value(value: Any) -> str:
    if isinstance(value, str) and value and _PLAIN.issuperset(value):
        return value
    # Through JSON everything is quoted and nothing in it can act on the terminal.
    return encode_record({"": value}, _MAX_VALUE_BYTES)[4:-1].decode()
