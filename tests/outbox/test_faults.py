from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from hooksd.outbox.faults import concerns_all, is_damage, set_aside, unusable


def error_of(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("no row or value of a table ever stands here")
    error.sqlite_errorcode = code
    error.sqlite_errorname = "SQLITE_SOMETHING"
    return error


@pytest.mark.parametrize(
    ("code", "damage", "all_of_them", "reason"),
    [
        (sqlite3.SQLITE_FULL, False, False, "disk is full"),
        (sqlite3.SQLITE_IOERR_WRITE, False, False, "does not take what is written"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, False, True, "cannot be written"),
        (sqlite3.SQLITE_CANTOPEN, False, True, "cannot be opened"),
        (sqlite3.SQLITE_BUSY, False, True, "locked"),
        (sqlite3.SQLITE_CORRUPT, True, False, "SQLite refuses it"),
        (sqlite3.SQLITE_NOTADB, True, False, "SQLite refuses it"),
        (sqlite3.SQLITE_MISUSE, False, False, "SQLite refuses it"),
    ],
)
def test_what_an_error_means(code: int, damage: bool, all_of_them: bool, reason: str) -> None:
    error = error_of(code)
    told = unusable("/state/outbox.sqlite3", error)

    assert (is_damage(error), concerns_all(error)) == (damage, all_of_them)
    assert reason in told.reason
    assert "SQLITE_SOMETHING" in told.reason
    assert told.hint
    assert "table" not in str(told)


def test_an_error_of_the_system() -> None:
    assert unusable("/x", OSError(13, "Permission denied")).reason == "Permission denied"
    assert unusable("/x", sqlite3.ProgrammingError("closed")).reason == "SQLite refuses it (ProgrammingError)"


def test_a_damaged_file_and_its_companions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "outbox.sqlite3"
    moved = []
    for content in ("a", "b"):
        for end in ("", "-wal", "-shm") if content == "a" else ("",):
            path.with_name(path.name + end).write_text(content + end)
        status = path.stat()
        moved.append(set_aside(str(path), (status.st_dev, status.st_ino)))

    first, second = moved
    assert first is not None
    assert second is not None
    assert first.startswith(f"{path}.corrupt-")
    assert sorted(os.listdir(tmp_path)) == sorted(
        os.path.basename(name) for name in (first, f"{first}-wal", f"{first}-shm", second)
    )
    assert Path(f"{first}-wal").read_text() == "a-wal"
    assert Path(second).read_text() == "b"


def test_the_file_of_somebody_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "outbox.sqlite3"
    assert set_aside(str(path), (1, 2)) is None
    path.write_text("new")

    assert set_aside(str(path), (1, 2)) is None
    assert path.read_text() == "new"
