"""Replacing a file at one stroke."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from hooksd.config.replace import replace_file


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_ours_alone(tmp_path: Path) -> None:
    path = tmp_path / "new"

    assert replace_file(str(path), b"text") == str(path)
    assert path.read_bytes() == b"text"
    assert mode_of(path) == 0o600
    assert os.listdir(tmp_path) == ["new"]


def test_the_mode_stays(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(0o640)
    before = path.stat().st_ino
    replace_file(str(path), b"new")

    assert path.read_bytes() == b"new"
    assert mode_of(path) == 0o640
    assert path.stat().st_ino != before


def test_a_mode_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(0o644)
    replace_file(str(path), b"new", mode=0o600)

    assert mode_of(path) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away takes root")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_bytes(b"old")
    os.chown(path, 54321, 54322)
    replace_file(str(path), b"new")

    assert (path.stat().st_uid, path.stat().st_gid) == (54321, 54322)


def test_an_owner_that_cannot_be_kept_is_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, uid: int, gid: int) -> None:
        raise PermissionError(errno.EPERM, "no")

    path = tmp_path / "old"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fchown", refuse)
    replace_file(str(path), b"new")

    assert path.read_bytes() == b"new"


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "file"
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("real/file")

    assert replace_file(str(link), b"new") == str(target)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("step", ["rename", "fsync"])
def test_a_failure_changes_nothing_and_leaves_nothing(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, step, fail)

    with pytest.raises(OSError, match="No space"):
        replace_file(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_missing_directory_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(f"{tmp_path}/none/file", b"text")
