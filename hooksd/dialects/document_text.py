"""The text of a configuration document: from bytes, and from offsets to lines."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right

from hooksd.model.problems import ConfigProblem, Severity


__all__ = ["MAX_DOCUMENT_BYTES", "MAX_SHOWN", "LineIndex", "UnreadableText", "cut", "decode_document"]

MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
"""Largest document: what `config/write` can carry in one message; real ones need a thousandth of it."""
MAX_SHOWN = 60
"""Most characters of an offending value that a message repeats."""


class UnreadableText(Exception):
    """Bytes that are no text of a document; `problem` says why."""

    def __init__(self, problem: ConfigProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def decode_document(data: bytes) -> str:
    """The text of a document. A UTF-8 byte order mark is accepted, as editors on Windows write one.

    Raises:
        UnreadableText: It is too large, UTF-16, or not UTF-8.
    """
    message, hint, line = "", "save it as UTF-8", 1
    if len(data) > MAX_DOCUMENT_BYTES:
        message, hint = (
            f"the document has {len(data)} bytes, more than {MAX_DOCUMENT_BYTES}",
            "make it smaller",
        )
    elif data.startswith((b"\xff\xfe", b"\xfe\xff")):
        message = "the document is UTF-16"
    else:
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message, line = (
                f"the document is not UTF-8 (byte {error.start})",
                data.count(b"\n", 0, error.start) + 1,
            )
    raise UnreadableText(
        ConfigProblem(severity=Severity.ERROR, path="", message=message, line=line, hint=hint)
    )


class LineIndex:
    """Turns offsets of one text into lines and columns, both counted from 1, columns in characters."""

    def __init__(self, text: str) -> None:
        # An array: a hostile file is nothing but line ends, and a list of them would take half a gigabyte.
        self._starts = array("L", [0])
        self._starts.extend(found.end() for found in re.finditer("\n", text))

    def line(self, offset: int) -> int:
        """The line that an offset is in."""
        return bisect_right(self._starts, offset)

    def place(self, offset: int) -> tuple[int, int]:
        """The line and the column of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def cut(text: str, limit: int = MAX_SHOWN) -> str:
    """A text as a message may repeat it: short, and nothing in it that is not printable."""
    if len(text) <= limit and text.isprintable():
        return text
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text[: limit + 1])
    return shown if len(shown) <= limit else shown[:limit] + "…"
