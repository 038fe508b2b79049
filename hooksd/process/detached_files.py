"""The files of detached hooks, which lie in the state directory because they outlive the daemon (design.md, "Processes").

    detached/<invocation id>.log        what the hook wrote, kept for a while
    detached/runs/<invocation id>/      one run, until a daemon has seen its end
        lock            held, shared, by the worker as long as it lives and by the daemon that started it
        about.json      what whoever started it wants to know at its end; no secrets
        order.json      commands and environment; removed by the worker as soon as it has read it
        payload.json    the payload, and
        answer.json     the place for an answer that nobody reads; both removed when the hook has ended
        end.json        how it ended; there only then

Files are 0600, directories 0700. Invocation ids are random, so no name can be guessed, or is made of a hook's id.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from hooksd.process.removal import MAX_FILES, remove_tree


__all__ = ["LOGS_KEPT", "LOGS_KEPT_S", "DetachedFiles", "Leftover", "Opened"]

LOGS_KEPT_S: Final = 30 * 86_400.0
"""How long the log of a hook that has ended is kept."""
LOGS_KEPT: Final = 512
"""How many of them are kept."""

ABOUT = "about.json"
ANSWER = "answer.json"
END = "end.json"
LOCK = "lock"
ORDER = "order.json"
PAYLOAD = "payload.json"

_PRIVATE = 0o700
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_BYTES = 4 * 1024 * 1024


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose files are there, before its worker is started.

    Attributes:
        directory: Of the run.
        lock: A descriptor that holds the lock. Whoever has this closes it.
        log: A descriptor of the log, open for appending; the same holds.
    """

    directory: str
    lock: int
    log: int


class Leftover(msgspec.Struct, frozen=True, kw_only=True):
    """A run that an earlier daemon started, or another one of this state directory.

    Attributes:
        run_id: The invocation id.
        about: What its starter wants to know at its end.
        alive: Its worker lives.
    """

    run_id: str
    about: bytes
    alive: bool


class DetachedFiles:
    """The directory of detached hooks. Every method may block, and may be called in any thread.

    Args:
        path: Absolute. It is made when it is first needed.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._runs = os.path.join(path, "runs")

    def directory(self, run_id: str) -> str:
        """Where the files of a run are."""
        return os.path.join(self._runs, run_id)

    def payload_path(self, run_id: str) -> str:
        """Where the payload of a run is."""
        return os.path.join(self.directory(run_id), PAYLOAD)

    def answer_path(self, run_id: str) -> str:
        """Where a run may put an answer, which nobody reads."""
        return os.path.join(self.directory(run_id), ANSWER)

    def log_path(self, run_id: str) -> str:
        """Where the output of a run is kept."""
        return os.path.join(self._path, f"{run_id}.log")

    def create(self, run_id: str, *, about: bytes, order: dict[str, Any], payload: bytes | None) -> Opened:
        """Make the files of a run, and take its lock.

        Raises:
            OSError: They cannot be made; nothing is left behind.
        """
        for path in (self._path, self._runs):
            if not os.path.isdir(path):
                os.makedirs(path, _PRIVATE, exist_ok=True)
                os.chmod(path, _PRIVATE)
        directory = self.directory(run_id)
        os.mkdir(directory, _PRIVATE)
        opened: list[int] = []
        try:
            lock = os.open(f"{directory}/{LOCK}", _NEW, 0o600)
            opened.append(lock)
            # Shared: the worker takes it as well, and whoever wants to remove the run needs it alone.
            fcntl.flock(lock, fcntl.LOCK_SH)
            _write(f"{directory}/{ABOUT}", about)
            _write(f"{directory}/{ORDER}", json.dumps(order).encode("ascii"))
            if payload is not None:
                _write(f"{directory}/{PAYLOAD}", payload)
                _write(f"{directory}/{ANSWER}", b"")
            log = os.open(self.log_path(run_id), _NEW | os.O_APPEND, 0o600)
            opened.append(log)
        except OSError:
            for descriptor in opened:
                os.close(descriptor)
            self.forget(run_id)
            raise
        return Opened(directory=directory, lock=lock, log=log)

    def forget(self, run_id: str) -> None:
        """Remove what is left of a run that never began, its empty log included."""
        self.remove(run_id)
        with suppress(OSError):
            os.unlink(self.log_path(run_id))

    def remove(self, run_id: str) -> None:
        """Remove a run; its log stays. What cannot be removed now is for the next `leftovers`."""
        remove_tree(self.directory(run_id), MAX_FILES)

    def end(self, run_id: str) -> dict[str, Any] | None:
        """How a run ended, as its worker wrote it; None if it did not."""
        data = _read(f"{self.directory(run_id)}/{END}")
        if data is None:
            return None
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def payload(self, run_id: str) -> bytes | None:
        """The payload of a run that never began."""
        return _read(self.payload_path(run_id))

    def has_begun(self, run_id: str) -> bool:
        """Whether the worker has read its order."""
        return not os.path.lexists(f"{self.directory(run_id)}/{ORDER}")

    def is_alive(self, run_id: str) -> bool:
        """Whether anybody holds the lock of a run."""
        try:
            descriptor = os.open(f"{self.directory(run_id)}/{LOCK}", _LOOK)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in {errno.EWOULDBLOCK, errno.EACCES}
        finally:
            os.close(descriptor)
        return False

    def leftovers(self) -> Sequence[Leftover]:
        """The runs that are there; what is none is removed unless it is locked."""
        found = []
        for run_id in _listed(self._runs):
            alive = self.is_alive(run_id)
            about = _read(f"{self.directory(run_id)}/{ABOUT}")
            if about is not None:
                found.append(Leftover(run_id=run_id, about=about, alive=alive))
            elif not alive:
                self.remove(run_id)
        return found

    def prune_logs(self) -> int:
        """Remove logs that are old, or too many, and whose run is over; gives how many."""
        running = set(_listed(self._runs))
        logs: list[tuple[float, str]] = []
        for name in _listed(self._path):
            if name.endswith(".log") and name.removesuffix(".log") not in running:
                path = os.path.join(self._path, name)
                with suppress(OSError):
                    logs.append((os.lstat(path).st_mtime, path))
        logs.sort(reverse=True)
        before = time.time() - LOGS_KEPT_S
        gone = [path for at, (written, path) in enumerate(logs) if at >= LOGS_KEPT or written < before]
        for path in gone:
            with suppress(OSError):
                os.unlink(path)
        return len(gone)


def _listed(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except FileNotFoundError:
        return []


def _write(path: str, data: bytes) -> None:
    with open(os.open(path, _NEW, 0o600), "wb") as file:
        file.write(data)


def _read(path: str) -> bytes | None:
    try:
        with open(os.open(path, _LOOK), "rb") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return None
