"""The database file of the outbox: open, closed to others, with its tables, and every commit on disk."""

from __future__ import annotations

import os
import sqlite3
import stat
from typing import Final
from urllib.parse import quote

from hooksd.outbox.errors import OutboxUnusable
from hooksd.outbox.owner import Owner
from hooksd.outbox.schema import PAGE_BYTES, SchemaTooNew, prepare
from hooksd.outbox.table import JobTable


__all__ = ["Database", "secured"]

BUSY_S: Final = 5.0
"""Longest wait for another daemon's transaction; ours take milliseconds."""
CHECKPOINT_PAGES: Final = 1000
"""Pages in the write-ahead log after which it is copied into the database, between two batches."""


class Database:
    """An open database. Belongs to the thread that opened it.

    Everything that writes belongs between `begin` and `commit`.

    Args:
        path: The file, as `secured` left it.
        owner: Who takes jobs through this connection.
        identity: What `secured` gave.

    Attributes:
        jobs: What is in it.

    Raises:
        OutboxUnusable: It is not for us, or lies where it cannot work.
        sqlite3.Error: It cannot be opened, or is damaged.
    """

    def __init__(self, path: str, owner: Owner, identity: tuple[int, int]) -> None:
        self._path = path
        self._identity = identity
        self._connection = sqlite3.connect(
            f"file:{quote(path)}?mode=rw",
            uri=True,
            timeout=BUSY_S,
            # Transactions are begun and ended by hand.
            isolation_level=None,
        )
        self._execute = self._connection.execute
        try:
            self._set_up()
        except BaseException:
            self._connection.close()
            raise
        self.jobs = JobTable(self._connection, owner)

    def _set_up(self) -> None:
        for pragma in ("auto_vacuum = INCREMENTAL", "fullfsync = ON", "checkpoint_fullfsync = ON"):
            self._execute(f"PRAGMA {pragma}")
        mode = self._execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise OutboxUnusable(
                self._path,
                f"its file system cannot hold a write-ahead log (journal mode {mode})",
                "put the state directory on a local disk",
            )
        self._execute("PRAGMA synchronous = FULL")
        # Copying the log back is done between batches, so that nobody waits for it.
        self._execute("PRAGMA wal_autocheckpoint = 0")
        try:
            prepare(self._connection)
        except SchemaTooNew as error:
            raise OutboxUnusable(
                self._path, str(error), "use the hooksd that made it, or move it away"
            ) from error

    @property
    def is_in_place(self) -> bool:
        """Whether the path still leads to what was opened: what is written to a file that was removed is lost."""
        try:
            status = os.stat(self._path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def begin(self) -> None:
        """Begin a transaction that may write."""
        self._execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Have everything on disk."""
        self._execute("COMMIT")
        self.jobs.committed()

    def rollback(self) -> None:
        """Take everything back since `begin`, if there was one."""
        self.jobs.rolled_back()
        if self._connection.in_transaction:
            self._execute("ROLLBACK")

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the database if it has grown."""
        try:
            pages = os.stat(f"{self._path}-wal").st_size // PAGE_BYTES
        except OSError:
            return
        if pages >= CHECKPOINT_PAGES:
            # Without a wait for readers: after a long list the next batch tries again.
            self._execute("PRAGMA busy_timeout = 0")
            self._execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._execute(f"PRAGMA busy_timeout = {round(BUSY_S * 1000)}")

    def close(self) -> None:
        """Close it."""
        self._connection.close()


def secured(path: str) -> tuple[int, int]:
    """See to it that the file is there, is ours and closed to others; gives its identity.

    An existing file is never opened here: closing it would drop the locks that another connection of this process has
    on it. SQLite gives its two companions the same mode.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        os.chmod(path, 0o600)
    except FileExistsError:
        pass
    except OSError as error:
        raise OutboxUnusable(
            path, f"it cannot be made ({error.strerror})", "see to it that the state directory can be written"
        ) from error
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise OutboxUnusable(path, "it is no regular file of this user", "move it away")
    if stat.S_IMODE(status.st_mode) != 0o600:
        os.chmod(path, 0o600)
    return status.st_dev, status.st_ino
