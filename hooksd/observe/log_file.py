"""The file of the log: opening, appending, rotating, finding out that it was moved. Blocking; no threads here.

A regular file is rotated by size. What is no regular file (`/dev/full`, a FIFO, a terminal, stderr) is only written
to. A path that is a symlink is resolved at every opening, so that the log may lie elsewhere and is rotated there.
"""

from __future__ import annotations

import errno
import os
import select
import stat


__all__ = ["KEEP_FILES", "MAX_FILE_BYTES", "AppendFailed", "LogFile"]

MAX_FILE_BYTES = 10 * 1024 * 1024
"""Size at which a log file is rotated (cli.md, "Files")."""

KEEP_FILES = 5
"""Log files in all, the current one included: `hooksd.log`, `hooksd.log.1` (newest) … `hooksd.log.4`."""

_PIPE_CHUNK_BYTES = 4_096
"""A pipe that polls writable takes so much without waiting (PIPE_BUF of Linux; POSIX guarantees 512)."""

_STDERR = 2


class AppendFailed(Exception):
    """Not everything could be written.

    Attributes:
        written: How many bytes of the data were.
        busy: Only the reader of a pipe or terminal is slow; the next attempt may go on at once.
    """

    def __init__(self, reason: str, *, written: int, busy: bool = False) -> None:
        super().__init__(reason)
        self.written = written
        self.busy = busy


class LogFile:
    """An append-only log file.

    Args:
        path: Where it lies, or `-` for stderr.
        max_bytes: Size at which it is rotated.
        keep: Files in all, at least 1.

    Attributes:
        path: As given.
        rotation_failure: Why the last rotation failed; the file then grows over its size.
    """

    def __init__(self, path: str, *, max_bytes: int = MAX_FILE_BYTES, keep: int = KEEP_FILES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._descriptor = -1
        self._regular = False
        self._real = path
        self._identity = (0, 0)
        self._size = 0
        self._rotate_at = max_bytes
        self.rotation_failure: str | None = None
        self._broken_line = False

    @property
    def is_stderr(self) -> bool:
        """Whether the records go to stderr."""
        return self.path == "-"

    def append(self, data: bytes, wait_s: float) -> None:
        """Write whole lines; opens, reopens and rotates as needed.

        After a failure the next attempt opens the file anew, and begins on a line of its own.

        Args:
            data: Whole lines.
            wait_s: How long to wait for a pipe or terminal that takes nothing.

        Raises:
            AppendFailed: It cannot be opened or written, or the wait was in vain.
        """
        written = 0
        try:
            self._ensure_open()
            if self._regular and self._size and self._size + len(data) > self._rotate_at:
                self._rotate()
            if self._broken_line:
                self._write(memoryview(b"\n"), wait_s)
                self._broken_line = False
            view = memoryview(data)
            while written < len(data):
                written += self._write(view[written:], wait_s)
        except BlockingIOError as error:
            self._broken_line = _is_inside_line(data, written) if written else self._broken_line
            raise AppendFailed(str(error.strerror), written=written, busy=True) from error
        except OSError as error:
            self.close()
            self._broken_line = _is_inside_line(data, written) if written else self._broken_line
            raise AppendFailed(error.strerror or str(error), written=written) from error

    def close(self) -> None:
        """Close it; the next `append` opens it again."""
        if self._descriptor > _STDERR:
            os.close(self._descriptor)
        self._descriptor = -1

    def _ensure_open(self) -> None:
        if self._descriptor >= 0 and (not self._regular or self._is_still_there()):
            return
        self.close()
        if self.is_stderr:
            self._descriptor, self._regular = _STDERR, False
            return
        self._real = os.path.realpath(self.path)
        os.makedirs(os.path.dirname(self._real), mode=0o700, exist_ok=True)
        # O_NONBLOCK: opening a FIFO must not wait for its reader. It means nothing to a regular file.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
        descriptor = os.open(self._real, flags, 0o600)
        try:
            status = os.fstat(descriptor)
            self._regular = stat.S_ISREG(status.st_mode)
            if self._regular and stat.S_IMODE(status.st_mode) != 0o600 and status.st_uid == os.geteuid():
                # The umask took bits away, or the file was made by hand and is open to others.
                os.fchmod(descriptor, 0o600)
            if self._regular:
                # A full disk or a crash left half a line: it stays a foreign line and does not spoil the next record.
                self._broken_line = status.st_size > 0 and not _ends_with_newline(self._real)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self._identity = (status.st_dev, status.st_ino)
        self._size = status.st_size
        self._rotate_at = self._max_bytes

    def _is_still_there(self) -> bool:
        """Whether the path still leads to the open file: it may have been renamed, deleted or replaced."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def _write(self, view: memoryview, wait_s: float) -> int:
        if not self._regular:
            poll = select.poll()
            poll.register(self._descriptor, select.POLLOUT)
            if not poll.poll(wait_s * 1000):
                raise BlockingIOError(errno.EAGAIN, "its reader does not read")
            view = view[:_PIPE_CHUNK_BYTES]
        count = os.write(self._descriptor, view)
        self._size += count
        return count

    def _rotate(self) -> None:
        """Shift the old files by one and begin a new one. Where that fails the current file goes on."""
        try:
            for number in range(self._keep - 1, 0, -1):
                source = self._real if number == 1 else f"{self._real}.{number - 1}"
                if os.path.lexists(source):
                    os.replace(source, f"{self._real}.{number}")
            if self._keep == 1:
                os.unlink(self._real)
        except OSError as error:
            self.rotation_failure = f"cannot rotate: {error.strerror}"
            # Not with every line: each attempt shifts the older files.
            self._rotate_at = self._size + self._max_bytes
        else:
            self.rotation_failure = None
            self.close()
            self._ensure_open()


def _is_inside_line(data: bytes, written: int) -> bool:
    return written > 0 and data[written - 1 : written] != b"\n"


def _ends_with_newline(path: str) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
