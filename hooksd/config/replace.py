"""Replacing a file so that every reader sees the old content or the new one, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import time
from typing import Final


__all__ = ["STALE_S", "remove_leftovers", "replace_file"]

STALE_S: Final = 60.0
"""A temporary file that nobody has written to for so long was left behind: replacing a file takes milliseconds."""

_TEMPORARY: Final = re.compile(r"\..+\.[0-9a-f]{16}\.tmp", re.DOTALL)


def replace_file(path: str, content: bytes, *, mode: int | None = None) -> str:
    """Replace a file atomically and durably: temporary file beside it, fsync, rename, fsync of the directory.

    A symbolic link stays; what it points to is replaced. Missing directories are not made.

    Args:
        path: Absolute path of the file, which need not exist.
        content: All of the new content.
        mode: Permission bits; None keeps those of the file (0600 for a new one), its owner too where that is possible.

    Returns:
        The real path that was replaced.

    Raises:
        OSError: It could not be done; the file is as it was, and no temporary file is left.
    """
    target = os.path.realpath(path)
    directory = os.path.dirname(target)
    owner: tuple[int, int] | None = None
    if mode is None:
        try:
            status = os.stat(target)
            mode, owner = stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)
        except FileNotFoundError:
            mode = 0o600
    temporary = os.path.join(directory, f".{os.path.basename(target)}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb", closefd=True) as file:
            file.write(content)
            file.flush()
            if owner is not None and hasattr(os, "fchown"):
                # Giving a file away takes privileges; without them it becomes ours, which is what a new file is.
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, *owner)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.rename(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_directory(directory)
    return target


def remove_leftovers(directory: str) -> None:
    """Remove the temporary files that a kill in the middle of `replace_file` left in a directory.

    Files that may still be written, and whatever has another name, are not touched. A directory that is not there has
    none.

    Raises:
        OSError: The directory cannot be read, or one of them cannot be removed.
    """
    stale_before = time.time() - STALE_S
    try:
        entries = list(os.scandir(directory))
    except FileNotFoundError:
        return
    for entry in entries:
        if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            with contextlib.suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_mtime < stale_before:
                    os.unlink(entry.path)


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
