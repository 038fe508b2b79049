"""Digests of files, remembered by what `stat` says of them.

A remembered digest counts only if the file had not changed for a while when it was read: a clock of the file system
ticks in steps, and a write within the step of the one before it changes no time stamp.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from typing import Final

import msgspec

from hooksd.config.files import MAX_FILE_BYTES, Signature, follow, read_file, sign, signed_times
from hooksd.model.problems import ConfigProblem, Severity


__all__ = ["MAX_REMEMBERED", "STEADY_NS", "FileDigests", "Known"]

MAX_REMEMBERED: Final = 4096
"""Files whose digests are remembered; the one not asked for longest goes first."""

STEADY_NS: Final = 2_000_000_000
"""A file that changed less than this before it was read is read again the next time. The coarsest clock (FAT) ticks so."""

_SIZE: Final = 2
"""Where a signature of a file that is there has its size."""

_TRIES: Final = 3
"""How often a file is read that changes under our hands."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it is.

    Attributes:
        signature: What `stat` says of it and of the directories it lies in.
        directories: These directories.
        sha256: Of its content; "" where `problem` is set.
        size_bytes: Of its content.
        steady: The signature alone proves that the content is this one.
        problem: Why the file cannot be relied on: unreadable, too large, or others can write it.
    """

    signature: Signature
    directories: tuple[str, ...]
    sha256: str = ""
    size_bytes: int = 0
    steady: bool = False
    problem: ConfigProblem | None = None


class FileDigests:
    """Belongs to one thread at a time. Makes system calls, and reads files of up to `files.MAX_FILE_BYTES`."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Known] = OrderedDict()

    def look(self, path: str) -> Known:
        """The file as it is now; it was there a moment ago."""
        known = self._known.get(path)
        if known is not None and known.steady and sign(path, known.directories) == known.signature:
            self._known.move_to_end(path)
            return known
        known, _ = self.read(path)
        self._known[path] = known
        self._known.move_to_end(path)
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
        return known

    def read(self, path: str) -> tuple[Known, bytes]:
        """The same with the content, which is read in any case."""
        for _ in range(_TRIES):
            _, directories = follow(path)
            signature = sign(path, directories)
            now_ns = time.time_ns()
            if len(signature) > _SIZE and signature[_SIZE] > MAX_FILE_BYTES:
                return Known(
                    signature=signature, directories=directories, problem=_too_large(path, signature[_SIZE])
                ), b""
            reading = read_file(path, signature, directories)
            if reading.file is not None:
                data = reading.file.data
                changed_ns = signed_times(signature)
                known = Known(
                    signature=signature,
                    directories=directories,
                    sha256=hashlib.sha256(data).hexdigest(),
                    size_bytes=len(data),
                    steady=changed_ns is not None and now_ns - changed_ns > STEADY_NS,
                )
                return known, data
            if reading.problem is not None:
                problem = msgspec.structs.replace(reading.problem, file=path)
                return Known(signature=signature, directories=directories, problem=problem), b""
        problem = ConfigProblem(
            severity=Severity.ERROR,
            path="",
            message="the file changes while it is read",
            hint="let whatever writes it finish",
            file=path,
        )
        return Known(signature=sign(path, ()), directories=(), problem=problem), b""


def _too_large(path: str, size: int) -> ConfigProblem:
    return ConfigProblem(
        severity=Severity.ERROR,
        path="",
        message=f"the file is {size} bytes long; one that a hook names may have {MAX_FILE_BYTES} (MAX_FILE_BYTES)",
        hint="let the hook name a smaller file that reads this one",
        file=path,
    )
