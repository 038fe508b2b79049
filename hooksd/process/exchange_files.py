"""The files through which a contract gives a hook its payload and takes its answer (Chrys dialect 4, design rule 8).

Each run has a directory of its own, 0700 and with a name that nobody can guess, never made of an id; in it lie the
payload and the answer, 0600. What a hook leaves beside them (`$RESULT.tmp` before a rename) goes with the directory,
and a hook that is still being ended cannot make the answer again once it is gone.

What is read is whatever lies at the answer's path when the hook has exited, so that an atomic replacement works; a
symlink, a device or a pipe in its place is refused, and nothing waits for it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress

from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.process.removal import Remover


__all__ = ["Exchange", "ExchangeFiles"]

PAYLOAD = "payload.json"
ANSWER = "answer.json"
LOCK = "lock"
"""Whoever uses a run's directory beyond the life of the daemon holds a lock on this file in it."""

_PRIVATE = 0o700
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a named pipe would wait for somebody to write to it.
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SYMLINK_ERRORS = frozenset({errno.ELOOP, errno.EMLINK})


class ExchangeFiles:
    """The directory that the runs' directories lie in. Used by one daemon at a time.

    Args:
        path: Absolute. It is made (0700) when it is first needed.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._remover = Remover()

    def sweep(self) -> int:
        """Remove what earlier daemons left behind, except what is locked; how many runs that were."""
        try:
            names = os.listdir(self._path)
        except FileNotFoundError:
            return 0
        removed = 0
        for name in names:
            path = os.path.join(self._path, name)
            if not _is_locked(path):
                self._remover.remove(path)
                removed += 1
        return removed

    def create(self, payload: bytes) -> Exchange:
        """The files of one run: the payload, and an empty answer.

        Raises:
            OSError: They cannot be made; nothing is left behind.
        """
        path = os.path.join(self._path, os.urandom(16).hex())
        try:
            os.mkdir(path, _PRIVATE)
        except (FileNotFoundError, PermissionError):
            # Not there yet, or a hook has shut it: that would be the end of all hooks with files.
            os.makedirs(self._path, _PRIVATE, exist_ok=True)
            os.chmod(self._path, _PRIVATE)
            os.mkdir(path, _PRIVATE)
        exchange = Exchange(path, self._remover)
        try:
            _write_new(exchange.payload_path, payload)
            _write_new(exchange.answer_path, b"")
        except OSError:
            exchange.remove()
            raise
        return exchange


class Exchange:
    """The files of one run.

    Attributes:
        directory: Where they lie.
        payload_path: The payload.
        answer_path: The answer.
    """

    __slots__ = ("_remover", "answer_path", "directory", "payload_path")

    def __init__(self, directory: str, remover: Remover) -> None:
        self._remover = remover
        self.directory = directory
        self.payload_path = os.path.join(directory, PAYLOAD)
        self.answer_path = os.path.join(directory, ANSWER)

    def read_answer(self, limit_bytes: int) -> bytes | HookProblem:
        """What lies at the answer's path now, or why it was not read; nothing there is an empty answer."""
        try:
            descriptor = os.open(self.answer_path, _LOOK)
        except FileNotFoundError:
            return b""
        except OSError as error:
            if error.errno in _SYMLINK_ERRORS:
                return _refused("is a symbolic link")
            return _refused(f"cannot be read: {error.strerror}")
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return _refused("is no regular file")
            return _read(descriptor, limit_bytes)
        except OSError as error:
            return _refused(f"cannot be read: {error.strerror}")
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Remove everything, payload and answer at once. What cannot be removed is for the next `sweep`."""
        with suppress(OSError):
            for path in (self.payload_path, self.answer_path):
                with suppress(FileNotFoundError):
                    os.unlink(path)
            os.rmdir(self.directory)
            return
        # The hook left more in it, put a directory in the place of a file, or shut it. Under another name, no process
        # that still runs can put anything into it by path.
        gone = f"{self.directory}.gone"
        with suppress(OSError):
            os.chmod(os.path.dirname(self.directory), _PRIVATE)
            os.rename(self.directory, gone)
            os.chmod(gone, _PRIVATE)
            os.unlink(os.path.join(gone, PAYLOAD))
        self._remover.remove(gone)
        self._remover.remove(self.directory)


def _write_new(path: str, data: bytes) -> None:
    descriptor = os.open(path, _NEW_FILE, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


def _read(descriptor: int, limit_bytes: int) -> bytes | HookProblem:
    parts = []
    left = limit_bytes + 1
    while left > 0 and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    if left <= 0:
        return HookProblem(
            kind=ProblemKind.OVERSIZE_RESULT,
            message=f"the result file has more than {limit_bytes} bytes (limits.result_file_bytes), and was not read",
            hint="write a short answer; what a hook has to tell people belongs elsewhere",
        )
    return b"".join(parts)


def _refused(why: str) -> HookProblem:
    return HookProblem(
        kind=ProblemKind.MALFORMED_OUTPUT,
        message=f"the result file {why}, and was not read",
        hint="write the answer to the path in CHRYS_HOOK_RESULT, or rename a file onto it",
    )


def _is_locked(path: str) -> bool:
    """Whether somebody holds the lock of a run's directory."""
    try:
        descriptor = os.open(os.path.join(path, LOCK), _LOOK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
