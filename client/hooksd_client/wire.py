"""Framing, shared by the daemon and its clients: one JSON-RPC message or batch per line (protocol section 1).

Sans-I/O: bytes in, lines out. No message is parsed here. The module stays cheap to import (no `re`, `typing` or
`json` before the first message is encoded), because a one-shot hook command pays for it at every start.
"""

from __future__ import annotations


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Union

    Line = Union[bytes, "LineTooLong"]

__all__ = ["DEFAULT_LIMIT", "LineSplitter", "LineTooLong", "encode"]

DEFAULT_LIMIT = 16 * 1024 * 1024
"""Longest message in bytes where nobody said otherwise: the default of `limits.max_message_bytes`."""

_LF, _CR, _SPACE = b"\n\r "


class LineTooLong:
    """Stands in the list of lines for one that was longer than the limit; the line itself is lost.

    Attributes:
        limit: The limit in bytes, the line end not counted.
    """

    __slots__ = ("limit",)

    def __init__(self, limit: int) -> None:
        self.limit: int = limit

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LineTooLong) and other.limit == self.limit

    def __hash__(self) -> int:
        return hash((LineTooLong, self.limit))

    def __repr__(self) -> str:
        return f"LineTooLong({self.limit})"


class LineSplitter:
    r"""Cuts a byte stream into lines. How the stream was cut into chunks never changes the lines.

    A line ends with `\n` or `\r\n`; neither is part of it, and neither counts for the limit. Blank lines (nothing but
    white space) are dropped. A line over the limit comes exactly once, as a `LineTooLong`, as soon as that is certain;
    the rest of it is skipped.

    Every byte is looked at once and copied a constant number of times. What is held between two calls never exceeds
    the limit by more than a byte, and is given back with the line that it belongs to.
    """

    __slots__ = ("_held", "_limit", "_skipping")

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._held = bytearray()
        self._skipping = False

    def receive_data(self, data: bytes) -> list[Line]:
        """Take the next bytes of the stream; give the lines that they complete, in order."""
        limit = self._limit
        end = data.find(_LF)
        # By far the commonest case has a short way: one whole line, nothing held, nothing to strip.
        if (
            end == len(data) - 1
            and 0 < end <= limit
            and data[0] > _SPACE
            and data[end - 1] != _CR
            and not self._held
            and not self._skipping
        ):
            return [data[:end]]
        pieces = data.split(b"\n")
        rest = pieces.pop()
        lines: list[Line] = []
        if pieces and (self._held or self._skipping):
            self._end_of_held(pieces, lines)
        for line in pieces:
            if line.endswith(b"\r"):
                line = line[:-1]  # noqa: PLW2901
            if len(line) > limit:
                lines.append(LineTooLong(limit))
            elif line and not line.isspace():
                lines.append(line)
        if rest and not self._skipping:
            self._hold(rest, lines)
        return lines

    def receive_eof(self) -> list[Line]:
        """The stream has ended: what is left is taken as a message (empty list: nothing is).

        A one-shot client such as `printf '%s' … | nc -N` sends no last line end; a message that was cut off does not
        parse anyway. The splitter is empty afterwards.
        """
        return self.receive_data(b"\n")

    def _end_of_held(self, pieces: list[bytes], lines: list[Line]) -> None:
        """Join the first piece to what is held, or leave it out where the line is being skipped."""
        if self._skipping:
            self._skipping = False
            del pieces[0]
        elif len(self._held) + len(pieces[0]) > self._limit + 1:
            # Even a `\r` at the end could not save it; told before joining, so that no memory is spent on it.
            lines.append(LineTooLong(self._limit))
            del pieces[0]
            self._held = bytearray()
        else:
            self._held += pieces[0]
            pieces[0] = bytes(self._held)
            # A new one: `clear()` would do, but says less of what matters here, that the memory goes.
            self._held = bytearray()

    def _hold(self, rest: bytes, lines: list[Line]) -> None:
        """Keep the start of a line, or begin to skip it once it is certainly too long."""
        size = len(self._held) + len(rest)
        # One byte over is not certain yet where that byte is a `\r`, which may belong to the line end.
        if size > self._limit + 1 or (size == self._limit + 1 and not rest.endswith(b"\r")):
            lines.append(LineTooLong(self._limit))
            self._held = bytearray()
            self._skipping = True
        else:
            self._held += rest


_dumps: Callable[[Any], str] | None = None


def encode(message: Any) -> bytes:
    """One message as compact JSON in UTF-8, with its line end; no raw line break inside.

    A lone surrogate has no UTF-8 form, and its escape is refused by strict readers: it becomes U+FFFD, so that one odd
    character in an argument does not keep a whole event from its hooks.

    Raises:
        TypeError: A value has no JSON form.
        ValueError: A number is NaN or infinite, or the message contains itself.
    """
    global _dumps  # noqa: PLW0603
    if _dumps is None:
        from json import JSONEncoder  # it imports `re`: not before it is needed

        _dumps = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    text = _dumps(message)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return whole.encode() + b"\n"
