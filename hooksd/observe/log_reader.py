"""Reading the log back: from the end, from the beginning, and as it grows (`hooksd logs`, `hooksd history`).

What is read may be anything: a file that another program wrote to, half a line after a crash, a log that is rotated,
truncated or deleted while it is read. Lines that are no record are passed over and counted; a last line without its
end is not a line yet. Memory is bounded by one block and one line, however large the log is.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from io import FileIO
from typing import Self

from hooksd.observe.log_file import KEEP_FILES
from hooksd.observe.log_records import Record, RecordFilter, parse_record
from hooksd.observe.record_text import MAX_RECORD_BYTES


__all__ = ["LogReader"]

_BLOCK_BYTES = 64 * 1024
_MAX_LINE_BYTES = 2 * MAX_RECORD_BYTES
"""Longest line that is kept in memory; ours are at most half as long."""


class LogReader:
    """A log with its rotated files, as they were when it was opened, and what comes after that.

    Opening holds every file open, so that nothing is lost or read twice when the log is rotated meanwhile.

    Args:
        path: The current file; rotated ones lie beside it. None of them needs to exist.

    Attributes:
        foreign: How many lines were passed over because they are no records.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.foreign = 0
        self._files = _open_all(path)
        self._tail = _Tail(path, next((file for file, is_current in self._files if is_current), None))

    def close(self) -> None:
        """Close all files."""
        for file, _ in self._files:
            file.close()
        self._tail.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def last(self, count: int, wanted: RecordFilter) -> list[Record]:
        """The newest `count` records that are wanted, oldest first."""
        accepts = wanted.compile()
        found: deque[Record] = deque()
        for file, _ in reversed(self._files):
            for line in _lines_backwards(file):
                if len(found) >= count:
                    return list(found)
                record = self._parse(line)
                if record is not None and accepts(record):
                    found.appendleft(record)
        return list(found)

    def all(self, wanted: RecordFilter) -> Iterator[Record]:
        """Every record that is wanted, oldest first."""
        accepts = wanted.compile()
        for file, _ in self._files:
            if wanted.since is not None and os.fstat(file.fileno()).st_mtime < wanted.since - 1:
                continue
            for line in _lines_forwards(file):
                record = self._parse(line)
                if record is not None and accepts(record):
                    yield record

    def new(self, wanted: RecordFilter) -> list[Record]:
        """What was written since the last call, or since the opening. Never waits; call it again and again.

        A log that was rotated, renamed, deleted, truncated or that comes into being is followed.
        """
        accepts = wanted.compile()
        records = (self._parse(line) for line in self._tail.read())
        return [record for record in records if record is not None and accepts(record)]

    def _parse(self, line: bytes) -> Record | None:
        record = parse_record(line)
        if record is None and line.strip():
            self.foreign += 1
        return record


class _Tail:
    """What is appended to a file that may be rotated, truncated or replaced meanwhile."""

    def __init__(self, path: str, file: FileIO | None) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._offset = 0
        self._rest = b""
        self._skipping = False
        if file is not None:
            self._file = FileIO(os.dup(file.fileno()), "rb")
            self._offset = _end_of_lines(self._file)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def read(self) -> Iterator[bytes]:
        if self._file is not None:
            yield from self._read_file(self._file)
        replaced = self._replaced_by()
        if replaced is None:
            return
        if self._file is not None:
            # Written between the look at the file and the look at its name.
            yield from self._read_file(self._file)
            self.close()
        for file in replaced:
            self._file, self._offset, self._rest, self._skipping = file, 0, b"", False
            yield from self._read_file(file)
            if file is not replaced[-1]:
                self.close()

    def _read_file(self, file: FileIO) -> Iterator[bytes]:
        descriptor = file.fileno()
        if os.fstat(descriptor).st_size < self._offset:
            self._offset, self._rest, self._skipping = 0, b"", False
        while block := os.pread(descriptor, _BLOCK_BYTES, self._offset):
            self._offset += len(block)
            *lines, rest = (self._rest + block).split(b"\n")
            for line in lines:
                if not self._skipping:
                    yield line
                self._skipping = False
            self._rest = b"" if self._skipping else rest
            if len(self._rest) > _MAX_LINE_BYTES:
                self._rest, self._skipping = b"", True

    def _replaced_by(self) -> list[FileIO] | None:
        """The files that came after the one we read, oldest first; None while it is still the current one."""
        own = _identity(self._file) if self._file is not None else None
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        if own == (status.st_dev, status.st_ino):
            return None
        files = [file for file, _ in _open_all(self._path)]
        places = [index for index, file in enumerate(files) if _identity(file) == own]
        # Found among the rotated ones: what came after it is new. Else it is gone, and only the current file is ours.
        first = places[0] + 1 if places else len(files) - 1
        for file in files[:first]:
            file.close()
        return files[first:]


def _open_all(path: str) -> list[tuple[FileIO, bool]]:
    """The log and its rotated files, oldest first, each once, as far as they are there; whether it is the current one."""
    # The rotated files lie where the log really is.
    real = os.path.realpath(path)
    files: list[tuple[FileIO, bool]] = []
    seen: set[tuple[int, int]] = set()
    # The newest first: a file that is renamed meanwhile is then met twice, not missed.
    for name in [real, *(f"{real}.{number}" for number in range(1, KEEP_FILES))]:
        try:
            file = FileIO(name)
        except FileNotFoundError:
            continue
        identity = _identity(file)
        if identity in seen:
            file.close()
            continue
        seen.add(identity)
        files.insert(0, (file, name == real))
    return files


def _identity(file: FileIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def _end_of_lines(file: FileIO) -> int:
    """Where the last whole line ends."""
    end = os.fstat(file.fileno()).st_size
    size = min(end, _MAX_LINE_BYTES)
    data = os.pread(file.fileno(), size, end - size)
    return end - size + data.rfind(b"\n") + 1 if b"\n" in data else end


def _lines_forwards(file: FileIO) -> Iterator[bytes]:
    descriptor, offset, rest, skipping = file.fileno(), 0, b"", False
    end = os.fstat(descriptor).st_size
    while block := os.pread(descriptor, min(_BLOCK_BYTES, end - offset), offset):
        offset += len(block)
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if not skipping:
                yield line
            skipping = False
        if skipping or len(rest) > _MAX_LINE_BYTES:
            rest, skipping = b"", True


def _lines_backwards(file: FileIO) -> Iterator[bytes]:
    descriptor, rest = file.fileno(), b""
    offset = os.fstat(descriptor).st_size
    # What comes after the last line end is no line yet.
    skipping = True
    while offset:
        size = min(_BLOCK_BYTES, offset)
        offset -= size
        rest, *lines = (os.pread(descriptor, size, offset) + rest).split(b"\n")
        for line in reversed(lines):
            if not skipping:
                yield line
            skipping = False
        if skipping or len(rest) > _MAX_LINE_BYTES:
            rest, skipping = b"", True
    if not skipping:
        yield rest
