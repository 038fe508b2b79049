"""What an error of SQLite means for the outbox, and where a damaged file goes."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import Final

from hooksd.outbox.errors import OutboxUnusable


__all__ = ["concerns_all", "is_damage", "set_aside", "unusable"]

_COMPANIONS: Final = ("", "-wal", "-shm")

_PRIMARY: Final = 0xFF
"""The part of an extended error code that says what kind it is."""

_REASONS: Final = {
    sqlite3.SQLITE_FULL: ("the disk is full", "make room; durable hooks run meanwhile, but are not kept"),
    sqlite3.SQLITE_IOERR: ("the disk does not take what is written", "see to the disk and its space"),
    sqlite3.SQLITE_READONLY: ("it cannot be written", "see to the permissions of the state directory"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "see to the permissions of the state directory"),
    sqlite3.SQLITE_BUSY: ("another process has locked it for too long", "see which program has it open"),
}


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is broken, so that no later try can succeed."""
    return _code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def concerns_all(error: sqlite3.Error) -> bool:
    """Whether every transaction would fail like this one, and none is worth a wait."""
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


def unusable(path: str, error: sqlite3.Error | OSError) -> OutboxUnusable:
    """What to tell of an error: its reason is the same for the same trouble."""
    if isinstance(error, OSError):
        return OutboxUnusable(path, error.strerror or type(error).__name__, "see to the state directory")
    reason, hint = _REASONS.get(_code(error), ("SQLite refuses it", "move the file away to begin anew"))
    name = getattr(error, "sqlite_errorname", "") or type(error).__name__
    return OutboxUnusable(path, f"{reason} ({name})", hint)


def set_aside(path: str, identity: tuple[int, int]) -> str | None:
    """Move a damaged database and its companions out of the way; it may still be read by hand.

    Args:
        path: Where it lies.
        identity: Device and inode of the one that is meant.

    Returns:
        Its new path; None if another file lies there by now.

    Raises:
        OSError: It cannot be moved.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if (status.st_dev, status.st_ino) != identity:
        return None
    wanted = target = f"{path}.corrupt-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    number = 1
    while os.path.lexists(target):
        number += 1
        target = f"{wanted}-{number}"
    for companion in _COMPANIONS:
        try:
            os.rename(path + companion, target + companion)
        except FileNotFoundError:
            continue
    return target


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY
