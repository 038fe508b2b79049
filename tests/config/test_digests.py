"""Digests of files: remembered only where `stat` can tell that nothing changed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from hooksd.config import digests
from hooksd.config.digests import FileDigests


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    path = tmp_path / "f"
    path.write_bytes(b"one")
    return path


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are really read from now on."""
    found: list[str] = []
    real = digests.read_file

    def read_file(path: str, *rest: object) -> object:
        found.append(path)
        return real(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(digests, "read_file", read_file)
    return found


def test_a_file_that_changed_just_now_is_read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, known = reads(monkeypatch), FileDigests()
    first, second = known.look(str(file)), known.look(str(file))

    assert (first.sha256, first.size_bytes, first.steady) == (sha256(b"one"), 3, False)
    assert second == first
    assert len(found) == 2


def test_a_file_that_stands_still_is_read_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "STEADY_NS", -1)
    found, known = reads(monkeypatch), FileDigests()
    assert known.look(str(file)) is known.look(str(file))
    assert len(found) == 1
    file.write_bytes(b"two")
    assert known.look(str(file)).sha256 == sha256(b"two")


def test_a_time_that_is_set_back_hides_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "STEADY_NS", -1)
    known = FileDigests()
    before = file.stat()
    known.look(str(file))
    file.write_bytes(b"two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert known.look(str(file)).sha256 == sha256(b"two")


@pytest.mark.parametrize(("mode", "says"), [(0o666, "writable by everyone"), (0o755, None)])
def test_what_others_can_write_cannot_be_relied_on(file: Path, mode: int, says: str | None) -> None:
    file.chmod(mode)
    problem = FileDigests().look(str(file)).problem

    assert (problem is None) if says is None else says in str(problem and problem.message)


def test_a_file_that_is_gone_or_none_has_a_problem(file: Path) -> None:
    known = FileDigests()
    assert known.look(f"{file}-none").problem is not None
    assert known.look(str(file.parent)).problem is not None
    assert known.look(str(file.parent)).sha256 == ""


def test_a_file_that_is_too_large_is_not_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "MAX_FILE_BYTES", 2)
    found = reads(monkeypatch)
    problem = FileDigests().look(str(file)).problem

    assert "3 bytes long; one that a hook names may have 2" in str(problem and problem.message)
    assert found == []


def test_a_file_that_never_stands_still_has_a_problem(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hooksd.config.files import Reading

    monkeypatch.setattr(digests, "read_file", lambda *_: Reading())
    known, data = FileDigests().read(str(file))

    assert "changes while it is read" in str(known.problem and known.problem.message)
    assert data == b""


def test_only_so_many_are_remembered(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "MAX_REMEMBERED", 2)
    known = FileDigests()
    for name in "abc":
        (file.parent / name).write_text(name)
        known.look(str(file.parent / name))

    assert [os.path.basename(path) for path in known._known] == ["b", "c"]
