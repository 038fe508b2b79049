"""Reading a configuration file safely: its signature, who may write it, its bytes.

Every function here makes system calls and waits for nothing but the disk. *When* a file that is being changed may be
read is decided by `settling.py`; what a text means by the dialects.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Final

import msgspec

from hooksd.model.problems import ConfigProblem, Severity


__all__ = [
    "MAX_FILE_BYTES",
    "FileRead",
    "Reading",
    "Signature",
    "follow",
    "is_missing",
    "read_file",
    "sign",
    "signed_times",
]

MAX_FILE_BYTES: Final = 16_777_216
"""Largest configuration file: what one `config/write` message can carry, and room for well over 10,000 hooks."""

Signature = tuple[int, ...]
"""What tells one version of a file from another without reading it.

Of a file that is there: device, inode, size, mtime and ctime in nanoseconds, then mode, uid and gid of each directory
that decides who may replace it. Of one that cannot be looked at: the error number alone.
"""

_PRESENT: Final = 5
"""Length of the part of a signature that is about the file itself."""

_MISSING: Final = (errno.ENOENT, errno.ENOTDIR)


class FileRead(msgspec.Struct, frozen=True, kw_only=True):
    """A regular file that only we can write, read in one piece while nothing changed it.

    Attributes:
        real_path: Where the file really lies, symbolic links followed.
        signature: Of exactly these bytes.
    """

    data: bytes
    real_path: str
    signature: Signature


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What came of reading a file. At most one of `file` and `problem` is set.

    Attributes:
        file: The file, when it could be read.
        problem: Why it may not or cannot be used.
        changed: Neither is set: it changed under our hands, and has to be looked at again.
    """

    file: FileRead | None = None
    problem: ConfigProblem | None = None

    @property
    def changed(self) -> bool:
        """Whether the file has to be looked at again."""
        return self.file is None and self.problem is None


def sign(path: str, directories: tuple[str, ...]) -> Signature:
    """Look at a file without opening it; about a microsecond for each path.

    Args:
        path: The file; symbolic links are followed.
        directories: Directories whose mode and owner are part of the answer (see `follow`).

    Returns:
        The signature. Never raises: a path that cannot be looked at has the error number as its signature.
    """
    try:
        file = os.stat(path)
    except OSError as error:
        return (error.errno or errno.EIO,)
    except ValueError:
        # A zero byte or a lone surrogate in the path: no such file can exist.
        return (errno.ENOENT,)
    signature: Signature = (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns)
    for directory in directories:
        try:
            status = os.stat(directory)
            signature += (status.st_mode, status.st_uid, status.st_gid)
        except OSError as error:
            # The file is there by another way now: not the version that was read.
            signature += (-(error.errno or errno.EIO), 0, 0)
    return signature


def is_missing(signature: Signature) -> bool:
    """Whether the signature says that there is no such file."""
    return len(signature) == 1 and signature[0] in _MISSING


def signed_times(signature: Signature) -> int | None:
    """The later of mtime and ctime in nanoseconds since the epoch; None if the file could not be looked at.

    The ctime counts too, because a copy may set the mtime back, and nothing can set the ctime.
    """
    return max(signature[3], signature[4]) if len(signature) >= _PRESENT else None


def follow(path: str) -> tuple[str, tuple[str, ...]]:
    """Where a file really lies, and the directories in which somebody could put another one in its place.

    Returns:
        The real path, and the directory of the path as given and of the real one (once, if they are the same).
    """
    real_path = os.path.realpath(path)
    given, real = os.path.dirname(path), os.path.dirname(real_path)
    if given == real or os.path.realpath(given) == real:
        return real_path, (real,)
    return real_path, (given, real)


def read_file(path: str, expected: Signature, directories: tuple[str, ...]) -> Reading:
    """Read a file that had a given signature a moment ago.

    It is opened without blocking, so that a named pipe in its place holds nobody up, and its signature is compared
    before and after, so that no mixture of two versions is ever taken.

    Args:
        path: The file; symbolic links are followed.
        expected: What `sign(path, directories)` said.
        directories: As for `sign`.
    """
    if len(expected) < _PRESENT:
        return Reading(problem=_cannot_read(path, expected[0]))
    try:
        # Never open what is no file: opening a device can have effects of its own.
        kind = _kind_fault(os.stat(path).st_mode)
        if kind is not None:
            return Reading(problem=_refused(f"is {kind}, not a regular file", "put a regular file there"))
        descriptor = os.open(
            path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
        )
    except OSError as error:
        return _unreadable(path, error)
    try:
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) != expected[:2] or not stat.S_ISREG(status.st_mode):
            return Reading()
        writable = _writable_by_others(path, status, directories)
        if writable is not None:
            return Reading(problem=writable)
        if status.st_size > MAX_FILE_BYTES:
            return Reading(
                problem=_refused(
                    f"is {status.st_size} bytes long; the limit is {MAX_FILE_BYTES} (MAX_FILE_BYTES)",
                    "split it into several sources",
                )
            )
        data = _read_all(descriptor, status.st_size)
    except OSError as error:
        return _unreadable(path, error)
    finally:
        os.close(descriptor)
    if len(data) != expected[2] or sign(path, directories) != expected:
        return Reading()
    return Reading(file=FileRead(data=data, real_path=os.path.realpath(path), signature=expected))


def _read_all(descriptor: int, size: int) -> bytes:
    """Up to one byte more than `size`, so that a file that grew is noticed."""
    parts: list[bytes] = []
    left = size + 1
    while left > 0 and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


# ----------------------------------------------------------------------------------------------------------------------
# What is refused


def _refused(message: str, hint: str) -> ConfigProblem:
    return ConfigProblem(severity=Severity.ERROR, path="", message=f"the file {message}", hint=hint)


def _cannot_read(path: str, number: int) -> ConfigProblem:
    hint = {
        errno.EACCES: "make the file readable, and every directory above it searchable, for the user that hooksd runs as",
        errno.ELOOP: "its symbolic links lead in a circle",
        errno.ENAMETOOLONG: "the path is too long for this system",
    }.get(number, "see whether the disk is well and mounted")
    return _refused(f"cannot be read: {os.strerror(number)}", hint)


def _unreadable(path: str, error: OSError) -> Reading:
    """A file that vanished between two calls is only one that changed; everything else is a problem to tell."""
    if error.errno in _MISSING:
        return Reading()
    return Reading(problem=_cannot_read(path, error.errno or errno.EIO))


def _kind_fault(mode: int) -> str | None:
    kinds = (
        (stat.S_ISREG, None),
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    for test, name in kinds:
        if test(mode):
            return name
    return "a device"


def _writable_by_others(
    path: str, file: os.stat_result, directories: tuple[str, ...]
) -> ConfigProblem | None:
    """Design rule 8: refuse what somebody else could write, and say how to close it.

    Beyond the letter of the rule an owner who is neither we nor root is somebody else, too: an owner can always write.
    """
    if sys.platform == "win32":
        # Access lists, not mode bits, decide there.
        return None
    fault = _write_fault(file)
    if fault is not None:
        return _refused(f"could be changed by others: {fault}", f"chmod go-w {path}, or chown it to yourself")
    for directory in directories:
        fault = _write_fault(os.stat(directory))
        if fault is not None:
            return _refused(
                f"could be replaced by others: its directory {directory} {fault.removeprefix('it ')}",
                f"chmod go-w {directory}, or move the file to a directory that only you can write",
            )
    return None


def _write_fault(status: os.stat_result) -> str | None:
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to uid {status.st_uid}, hooksd runs as uid {os.geteuid()}"
    if status.st_mode & stat.S_IWOTH:
        return "it is writable by everyone"
    if status.st_mode & stat.S_IWGRP:
        return _group_fault(status.st_gid)
    return None


def _group_fault(gid: int) -> str | None:
    """Who else is in a group that may write; a private group of our own (the default on many systems) is fine."""
    # Late: only a group-writable file needs the user database.
    import grp
    import pwd

    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return (
            None
            if gid == os.getegid()
            else f"it is writable by group {gid}, whose members are not known here"
        )
    ours = {entry.pw_name for entry in pwd.getpwall() if entry.pw_uid in (os.geteuid(), 0)}
    members = {*group.gr_mem, *(entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == gid)}
    others = sorted(members - ours)
    if not others:
        return None
    shown = ", ".join(others[:3]) + (" and others" if len(others) > 3 else "")
    return (
        f"it is writable by group {group.gr_name}, which {shown} belong{'s' if len(others) == 1 else ''} to"
    )
