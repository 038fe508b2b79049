"""What is kept of a stream, and whether it already is an answer. Pure: bytes in, bytes out."""

from __future__ import annotations

from typing import Protocol

import msgspec


__all__ = ["Kept", "KeptEnds", "KeptHead", "is_whole_answer"]


class Kept(Protocol):
    """Takes all of a stream, keeps a part. `total` is what was written in all, kept or not."""

    total: int

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        ...

    @property
    def truncated(self) -> bool:
        """Whether more was written than kept; exactly the limit is not truncated."""
        ...

    def value(self) -> bytes:
        """What was kept."""
        ...


class KeptHead:
    """Keeps the first `limit` bytes (Bamboo dialect 3.5)."""

    __slots__ = ("_kept", "_limit", "total")

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        if self.total < self._limit:
            self._kept += data[: self._limit - self.total]
        self.total += len(data)

    @property
    def truncated(self) -> bool:
        """Whether more was written than kept."""
        return self.total > self._limit

    def value(self) -> bytes:
        """The first bytes of the stream."""
        return bytes(self._kept)


class KeptEnds:
    """Keeps the first third and the last two thirds of `limit` bytes, with a marker between them (Chrys dialect).

    The marker is on a line of its own, tells how many bytes are missing, and comes on top of the limit.
    """

    __slots__ = ("_head", "_head_limit", "_tail", "_tail_limit", "total")

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._head_limit = limit // 3
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Cut only once in a while: every byte is then moved at most twice, however small the pieces are.
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: len(self._tail) - self._tail_limit]

    @property
    def truncated(self) -> bool:
        """Whether more was written than kept."""
        return self.total > self._head_limit + self._tail_limit

    def value(self) -> bytes:
        """Both ends of the stream, or all of it."""
        if not self.truncated:
            return bytes(self._head + self._tail)
        dropped = self.total - self._head_limit - self._tail_limit
        marker = b"\n[hooksd: %d bytes dropped here]\n" % dropped
        return bytes(self._head + marker + self._tail[len(self._tail) - self._tail_limit :])


def is_whole_answer(data: bytes) -> bool:
    """Whether `data` is one complete JSON object or array, with a byte order mark or white space around it.

    Other JSON values do not count: a number may be the beginning of a longer one, and no contract has such an answer.
    """
    text = data.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n")
    if not text.startswith((b"{", b"[")):
        return False
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
