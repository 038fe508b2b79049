"""The directories of the daemon's own: the one of the socket and the one of its state."""

from __future__ import annotations

import os
import stat

from hooksd.model.errors import ServiceError, SocketUnusable, UnsafePermissions


__all__ = ["prepare_runtime_directory", "prepare_state_directory"]

_PRIVATE = 0o700


def prepare_runtime_directory(path: str) -> None:
    """Make sure that the directory of the socket is there and that only we can change it.

    Whoever can write to it could put a socket of their own in the place of ours.

    Raises:
        UnsafePermissions: It is a symlink, not ours, or writable by others.
        SocketUnusable: It cannot be made or looked at.
    """
    try:
        _make(path)
        status = os.lstat(path)
    except OSError as error:
        raise SocketUnusable(path, f"cannot make the directory: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise UnsafePermissions(path, "it must be a directory, and no symlink to one")
    _check_owner(path, status)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        raise UnsafePermissions(path, f"others can write to it (mode {mode:04o}); run `chmod go-w {path}`")


def prepare_state_directory(path: str) -> None:
    """Make sure that the state directory is there, ours, and closed to others.

    One of ours that is open to others is closed: it may have been made by hand. It may be a symlink of the user's (to
    another disk): what counts is where it leads.

    Raises:
        UnsafePermissions: It belongs to somebody else.
        ServiceError: It cannot be made or is no directory.
    """
    try:
        _make(path)
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(0, "it is no directory")
        _check_owner(path, status)
        if stat.S_IMODE(status.st_mode) != _PRIVATE:
            os.chmod(path, _PRIVATE)
    except OSError as error:
        raise ServiceError(f"cannot use the state directory {path}: {error.strerror}") from error


def _make(path: str) -> None:
    """Make the directory, and those above it that are missing, unless something is there."""
    if os.path.lexists(path):
        return
    # Those above are everybody's kind of directory (`~/.local`); ours is closed, whatever the umask.
    os.makedirs(os.path.dirname(path) or "/", mode=0o755, exist_ok=True)
    os.mkdir(path, _PRIVATE)
    os.chmod(path, _PRIVATE)


def _check_owner(path: str, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise UnsafePermissions(path, f"it belongs to uid {status.st_uid}, not to us (uid {os.geteuid()})")
