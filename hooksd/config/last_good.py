"""Copies of the last good configuration, and the revision that was in force, so that a restart drops no gate.

Each copy is one file, 0600, in a 0700 directory: a line of JSON that says what it is a copy of and what its digest
is, then the text itself. A copy that cannot be read, or whose digest does not fit, is told and does not count. Nothing
here is fatal: a state directory that is read-only or full costs only what a restart would have kept.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from typing import BinaryIO, Final

import msgspec

from hooksd.config.files import MAX_FILE_BYTES
from hooksd.config.replace import remove_leftovers, replace_file


__all__ = ["MAX_COPIES", "InForce", "LastGood"]

MAX_COPIES: Final = 256
"""Copies kept; beyond it the ones written longest ago go. Sources are few, but settings come and go."""

_DIRECTORY: Final = "last-good"
_IN_FORCE: Final = "revision.json"
_HEADER_BYTES: Final = 64 * 1024


class _Header(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    dialect: str
    sha256: str


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """What was in force last; a daemon that finds the same again goes on with the same revision number."""

    revision: int
    digest: str


class LastGood:
    """The copies in one state directory. Makes system calls; use it off the event loop.

    Args:
        state_dir: Absolute path of the state directory; it need not exist.
        tell: Told once about each different thing that goes wrong, with what to do.
    """

    def __init__(self, state_dir: str, tell: Callable[[str], None]) -> None:
        self._state_dir = state_dir
        self._directory = os.path.join(state_dir, _DIRECTORY)
        self._tell = tell
        self._told: set[str] = set()
        self._saved: dict[str, str] = {}

    def tidy(self) -> None:
        """Remove what daemons that were killed while they wrote have left behind."""
        for directory in (self._state_dir, self._directory):
            try:
                remove_leftovers(directory)
            except OSError as error:
                self._report(
                    f"temporary files in {directory} cannot be removed ({error.strerror}); do it by hand"
                )

    def load(self, path: str, dialect: str) -> bytes | None:
        """The last good text of a source; None if there is none that can be used."""
        name = self._file(path, dialect)
        try:
            with _open(name) as file:
                raw = file.read(MAX_FILE_BYTES + _HEADER_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._report(f"the last good copy of {path} cannot be read ({name}: {error.strerror})")
            return None
        line, _, text = raw.partition(b"\n")
        try:
            header = msgspec.json.decode(line, type=_Header)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            header = None
        if (
            header is None
            or header.sha256 != _digest(text)
            or (header.path, header.dialect) != (path, dialect)
        ):
            self._report(f"the last good copy of {path} is damaged and does not count ({name})")
            return None
        self._saved[name] = header.sha256
        return text

    def save(self, path: str, dialect: str, text: bytes) -> None:
        """Keep a text that is good; does nothing when it is the one that is kept already."""
        name, digest = self._file(path, dialect), _digest(text)
        if self._saved.get(name) == digest:
            return
        header = msgspec.json.encode(_Header(path=path, dialect=dialect, sha256=digest))
        if self._write(name, header + b"\n" + text, f"the last good copy of {path}"):
            self._saved[name] = digest
            self._prune()

    def forget(self, path: str, dialect: str) -> None:
        """Drop the copy of a source that was deleted on purpose; one that is not there is fine."""
        name = self._file(path, dialect)
        self._saved.pop(name, None)
        try:
            os.unlink(name)
        except FileNotFoundError:
            return
        except OSError as error:
            self._report(f"the last good copy of {path}, which is deleted, stays ({name}: {error.strerror})")

    def load_in_force(self) -> InForce | None:
        """The revision that was in force when it was last saved."""
        name = os.path.join(self._state_dir, _IN_FORCE)
        try:
            with _open(name) as file:
                return msgspec.json.decode(file.read(_HEADER_BYTES), type=InForce)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._report(
                f"the last revision cannot be read; counting starts at 1 again ({name}: {error.strerror})"
            )
        except (msgspec.MsgspecError, UnicodeDecodeError):
            self._report(f"the last revision is damaged; counting starts at 1 again ({name})")
        return None

    def save_in_force(self, in_force: InForce) -> None:
        """Keep the revision, so that no number is ever given to two configurations."""
        name = os.path.join(self._state_dir, _IN_FORCE)
        self._write(name, msgspec.json.encode(in_force) + b"\n", "the revision in force")

    def save_guards(self, content: bytes) -> None:
        """Keep what clients answer closed while no daemon can be reached (design rule 2); nothing if it is kept already."""
        name = os.path.join(self._state_dir, "guards.json")
        try:
            with _open(name) as file:
                if (
                    file.read(MAX_FILE_BYTES) == content
                    and stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
                ):
                    return
        except OSError:
            # Whatever is wrong with the old one, the new one replaces it, or tells why it cannot.
            pass
        self._write(name, content, "the list of guarded events")

    def _file(self, path: str, dialect: str) -> str:
        return os.path.join(
            self._directory, _digest(f"{dialect}\0{path}".encode("utf-8", "surrogateescape"))[:32]
        )

    def _write(self, name: str, content: bytes, what: str) -> bool:
        try:
            # One after the other: `makedirs` gives its mode to the last one only.
            for directory in (self._state_dir, os.path.dirname(name)):
                if not os.path.isdir(directory):
                    os.makedirs(directory, mode=0o700)
                    os.chmod(directory, 0o700)  # whatever the umask took away
            replace_file(name, content, mode=0o600)
        except OSError as error:
            self._report(f"{what} cannot be kept ({name}: {error.strerror}); a restart will not know it")
            return False
        return True

    def _prune(self) -> None:
        try:
            with os.scandir(self._directory) as entries:
                files = sorted(entries, key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
            for entry in files[MAX_COPIES:]:
                os.unlink(entry.path)
        except OSError as error:
            self._report(f"old copies in {self._directory} cannot be removed ({error.strerror})")

    def _report(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._tell(message)


def _open(path: str) -> BinaryIO:
    """Open a regular file for reading; never waits, whatever lies there.

    Raises:
        OSError: It cannot be opened, or is something else.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return open(descriptor, "rb")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
