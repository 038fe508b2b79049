from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hooksd.outbox.database import CHECKPOINT_PAGES, Database, secured
from hooksd.outbox.errors import OutboxUnusable
from hooksd.outbox.jobs import NewJob, OutboxLimits
from hooksd.outbox.owner import Owner
from hooksd.outbox.schema import SCHEMA_VERSION


Open = Callable[..., Database]
NewJobs = Callable[..., NewJob]
LIMITS = OutboxLimits(max_jobs=1000, max_bytes=1 << 30)


def mode_of(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o277])
def test_every_file_is_closed_to_others_whatever_the_umask(
    umask: int, tmp_path: Path, open_database: Open, new_job: NewJobs
) -> None:
    before = os.umask(umask)
    try:
        database = open_database()
    finally:
        os.umask(before)
    database.begin()
    database.jobs.add([new_job()], now=1.0, hold=False, limits=LIMITS)
    database.commit()

    assert {name: mode_of(str(tmp_path / name)) for name in os.listdir(tmp_path)} == {
        "outbox.sqlite3": 0o600,
        "outbox.sqlite3-wal": 0o600,
        "outbox.sqlite3-shm": 0o600,
    }


def test_a_file_that_is_open_to_others_is_closed(tmp_path: Path, open_database: Open) -> None:
    path = tmp_path / "outbox.sqlite3"
    path.touch(mode=0o644)

    open_database()

    assert mode_of(str(path)) == 0o600


def test_every_commit_goes_to_the_disk(open_database: Open) -> None:
    database = open_database()

    asked = {
        name: database._execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
    }

    assert asked == {"journal_mode": "wal", "synchronous": 2}


def test_what_is_no_file_of_ours_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("precious")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "fifo.d").mkdir()

    for name in ("link", "fifo.d"):
        with pytest.raises(OutboxUnusable, match="no regular file"):
            secured(str(tmp_path / name))
    assert target.read_text() == "precious"
    with pytest.raises(OutboxUnusable, match="cannot be made"):
        secured(str(tmp_path / "no" / "such" / "place"))


def test_a_later_schema_is_not_touched(tmp_path: Path, open_database: Open) -> None:
    path = str(tmp_path / "outbox.sqlite3")
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    content = Path(path).read_bytes()

    with pytest.raises(
        OutboxUnusable, match=f"schema {SCHEMA_VERSION + 1}; this hooksd knows {SCHEMA_VERSION}"
    ):
        open_database()

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    connection.close()
    assert len(content) == len(Path(path).read_bytes())


def test_tables_are_made_once(open_database: Open, new_job: NewJobs) -> None:
    first, second = open_database(), open_database()
    first.begin()
    first.jobs.add([new_job()], now=1.0, hold=False, limits=LIMITS)
    first.commit()

    assert second.jobs.counts().pending == 1


def test_an_sqlite_without_strict_tables(
    monkeypatch: pytest.MonkeyPatch, open_database: Open, new_job: NewJobs
) -> None:
    monkeypatch.setattr("hooksd.outbox.schema._HAS_STRICT", False)
    database = open_database()
    database.begin()
    database.jobs.add([new_job()], now=1.0, hold=False, limits=LIMITS)
    database.commit()

    text = "".join(row[0] for row in database._execute("SELECT sql FROM sqlite_master WHERE type = 'table'"))
    assert "STRICT" not in text
    assert database.jobs.counts().pending == 1


def test_the_log_is_copied_back_when_it_has_grown(
    tmp_path: Path, open_database: Open, new_job: NewJobs
) -> None:
    database = open_database()
    wal = tmp_path / "outbox.sqlite3-wal"

    database.checkpoint()
    assert wal.stat().st_size > 0
    database.begin()
    database.jobs.add([new_job(payload=bytes(CHECKPOINT_PAGES * 4096))], now=1.0, hold=False, limits=LIMITS)
    database.commit()
    database.checkpoint()

    assert wal.stat().st_size == 0
    assert database.jobs.counts().pending == 1


def test_a_reader_does_not_hold_it_up(tmp_path: Path, open_database: Open, new_job: NewJobs) -> None:
    database, reader = open_database(), open_database()
    reader._execute("BEGIN")
    reader.jobs.counts()
    database.begin()
    database.jobs.add([new_job(payload=bytes(CHECKPOINT_PAGES * 4096))], now=1.0, hold=False, limits=LIMITS)
    database.commit()

    database.checkpoint()

    assert (tmp_path / "outbox.sqlite3-wal").stat().st_size > 0
    assert reader.jobs.counts().pending == 0
    reader.rollback()


def test_a_file_that_was_taken_away_is_noticed(tmp_path: Path, open_database: Open) -> None:
    database = open_database()
    assert database.is_in_place
    path = tmp_path / "outbox.sqlite3"

    path.rename(tmp_path / "moved")
    assert not database.is_in_place
    path.touch()
    assert not database.is_in_place


def test_a_file_system_without_a_write_ahead_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Refusing(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:  # type: ignore[override]
            return super().execute("SELECT 'delete'" if "journal_mode" in sql else sql, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(
        "hooksd.outbox.database.sqlite3.connect",
        lambda *args, **more: connect(*args, factory=Refusing, **more),
    )
    path = str(tmp_path / "outbox.sqlite3")

    with pytest.raises(OutboxUnusable, match="write-ahead log"):
        Database(path, Owner.of(os.getpid()), secured(path))
