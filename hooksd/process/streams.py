"""Our ends of a hook's pipes, on the loop."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable

from hooksd.process.output import Kept
from hooksd.process.readiness import Readiness


__all__ = ["Feeder", "Reader"]

READ_BYTES = 65_536
"""One read: what a pipe holds by default."""


class Reader:
    """Reads a pipe whenever something is in it, all of it to the end, so that the hook never blocks on writing."""

    __slots__ = ("_descriptor", "_ended", "_ready", "kept", "open")

    def __init__(self, ready: Readiness, descriptor: int, kept: Kept, ended: Callable[[], None]) -> None:
        self._ready = ready
        self._descriptor = descriptor
        self._ended = ended
        self.kept = kept
        self.open = True
        ready.add_reader(descriptor, self._readable)

    def drain(self) -> None:
        """Read what is in the pipe now. `ended` is not called.

        After the exit of the hook this is all that it wrote. It is no more than the pipe can hold, so that a descendant
        that writes without end does not keep us here.
        """
        left = READ_BYTES
        asked = False
        while self.open:
            try:
                data = os.read(self._descriptor, READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                self.close()
                return
            self.kept.add(data)
            left -= len(data)
            if left <= 0:
                if asked:
                    return
                asked = True
                left += _capacity(self._descriptor) - READ_BYTES
                if left <= 0:
                    return

    def close(self) -> None:
        """Stop reading; a descendant that still writes gets SIGPIPE."""
        if self.open:
            self.open = False
            self._ready.remove_reader(self._descriptor)
            os.close(self._descriptor)
            # Who is told has this reader: without the ring both go at once, with all that was kept of the stream.
            self._ended = _nothing

    def _readable(self) -> None:
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self.kept.add(data)
        else:
            ended = self._ended
            self.close()
            ended()


class Feeder:
    """Writes to a pipe whenever there is room. A reader that does not want it is no failure."""

    __slots__ = ("_descriptor", "_open", "_ready", "_rest")

    def __init__(self, ready: Readiness, descriptor: int, rest: memoryview) -> None:
        self._ready = ready
        self._descriptor = descriptor
        self._rest = rest
        self._open = True
        ready.add_writer(descriptor, self._writable)

    def close(self) -> None:
        """Let the reader see the end of what it was given so far."""
        if self._open:
            self._open = False
            self._rest.release()
            self._ready.remove_writer(self._descriptor)
            os.close(self._descriptor)

    def _writable(self) -> None:
        try:
            written = os.write(self._descriptor, self._rest)
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.close()
            return
        self._rest = self._rest[written:]
        if not self._rest:
            self.close()


def _nothing() -> None:
    """Nobody is told any more."""


def _capacity(descriptor: int) -> int:
    """How much a pipe holds; its writer may have made it larger."""
    get_size = getattr(fcntl, "F_GETPIPE_SZ", None)
    return fcntl.fcntl(descriptor, get_size) if get_size is not None else READ_BYTES
