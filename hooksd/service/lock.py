"""The lock of the daemon's life: who holds it is the one daemon of a socket directory.

The lock is `flock` on a file that is never unlinked (unlinking would let two daemons hold "the" lock on two inodes).
What the file says about its holder is only information; the lock is the truth.
"""

from __future__ import annotations

import fcntl
import os
import stat

import msgspec

from hooksd.model.errors import AlreadyRunning, SocketUnusable


__all__ = ["DaemonLock", "LockInfo", "read_lock_info"]

_MAX_INFO_BYTES = 4096
"""Most that is read of a lock file: ours are a hundred bytes, and the file may be anybody's work."""


class LockInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the holder wrote into the lock file."""

    pid: int
    version: str = ""
    socket: str = ""


class DaemonLock:
    """A held lock. It is released by `release` and, whatever happens, by the end of the process."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self.path = path

    @classmethod
    def acquire(cls, path: str) -> DaemonLock:
        """Take the lock, without waiting.

        Args:
            path: The lock file; made with mode 0600 if it is not there. Its directory must exist.

        Raises:
            AlreadyRunning: Another process holds it.
            SocketUnusable: The file cannot be opened, or is no regular file of ours.
        """
        try:
            descriptor = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600
            )
        except OSError as error:
            raise SocketUnusable(path, f"cannot open the lock file: {error.strerror}") from error
        try:
            _check(descriptor, path)
            os.fchmod(descriptor, 0o600)  # whatever the umask took away: others read who holds it
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                info = read_lock_info(path)
                raise AlreadyRunning(path, info.pid if info else None) from error
            if isinstance(error, OSError):
                raise SocketUnusable(path, f"cannot lock the lock file: {error.strerror}") from error
            raise
        return cls(descriptor, path)

    def write(self, info: LockInfo) -> None:
        """Tell others who holds it.

        Raises:
            SocketUnusable: The file cannot be written; most often its disk is full, and a socket could not be made either.
        """
        data = msgspec.json.encode(info) + b"\n"
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, data, 0)
        except OSError as error:
            raise SocketUnusable(self.path, f"cannot write the lock file: {error.strerror}") from error

    def release(self) -> None:
        """Let the lock go; the file stays, empty."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                os.ftruncate(descriptor, 0)
            finally:
                os.close(descriptor)


def _check(descriptor: int, path: str) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise SocketUnusable(path, "the lock file must be a regular file that belongs to this user")


def read_lock_info(path: str) -> LockInfo | None:
    """What a lock file says about its holder; None if it cannot be read or says nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return msgspec.json.decode(os.read(descriptor, _MAX_INFO_BYTES), type=LockInfo)
    except (OSError, msgspec.MsgspecError):
        return None
    finally:
        os.close(descriptor)
