"""The tables of the outbox, and how a database comes to have them.

Each index holds a part of the jobs only: what is kept for one job should cost few pages, since every page of a commit is
written to the disk while somebody waits for it.
"""

from __future__ import annotations

import sqlite3
from typing import Final


__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "SchemaTooNew", "prepare"]

SCHEMA_VERSION: Final = 1
APPLICATION_ID: Final = 0x686B6F62
"""`hkob`, by which `file` and others can know it."""

PAGE_BYTES: Final = 4096

_HAS_STRICT: Final = sqlite3.sqlite_version_info >= (3, 37)

_TABLES: Final = """
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY,
    hook TEXT NOT NULL,
    lane TEXT NOT NULL,
    event TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'done', 'failed')),
    owner INTEGER REFERENCES owners,
    starts INTEGER NOT NULL DEFAULT 0,
    max_starts INTEGER NOT NULL,
    retry_age_s REAL NOT NULL,
    created_at REAL NOT NULL,
    due_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    exit_code INTEGER,
    error TEXT NOT NULL DEFAULT '',
    stderr_tail TEXT NOT NULL DEFAULT '',
    shared INTEGER REFERENCES shared,
    payload BLOB NOT NULL
) STRICT;

CREATE TABLE owners (
    instance INTEGER PRIMARY KEY,
    pid INTEGER NOT NULL,
    started TEXT NOT NULL
) STRICT;

CREATE TABLE shared (
    number INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    content BLOB NOT NULL
) STRICT;

CREATE INDEX jobs_free ON jobs (lane, due_at) WHERE state = 'pending' AND owner IS NULL;
CREATE INDEX jobs_owned ON jobs (owner) WHERE owner IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (state, ended_at) WHERE ended_at IS NOT NULL;
"""


class SchemaTooNew(Exception):
    """A later hooksd made the database; `version` is what it says of itself."""

    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(f"it has schema {version}; this hooksd knows {SCHEMA_VERSION}")


def prepare(connection: sqlite3.Connection) -> None:
    """Give a database its tables, unless it has them.

    Two daemons may do it at the same time; one waits for the other.

    Raises:
        SchemaTooNew: It is not for us; nothing was changed.
        sqlite3.Error: It cannot be read or written.
    """
    if _version(connection) == SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _known_version(connection)
        if version == 0:
            text = _TABLES if _HAS_STRICT else _TABLES.replace(") STRICT;", ");")
            # Not `executescript`, which would commit first.
            for statement in text.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _known_version(connection: sqlite3.Connection) -> int:
    version = _version(connection)
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(version)
    return version


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
