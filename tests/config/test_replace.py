"""Replacing a file at one stroke."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hooksd.config.replace import STALE_S, remove_leftovers, replace_file


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


def make(path: Path, age_s: float) -> None:
    path.write_bytes(b"half")
    os.utime(path, (path.stat().st_mtime - age_s,) * 2)


KILLED_IN_THE_MIDDLE = """
import os, sys
from hooksd.config.replace import replace_file
os.rename = lambda *_: os._exit(9)
replace_file(sys.argv[1], b"new")
"""


def test_what_a_kill_left_behind_is_removed(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", KILLED_IN_THE_MIDDLE, str(tmp_path / "file")], check=False)
    assert run.returncode == 9
    (left,) = tmp_path.iterdir()

    remove_leftovers(str(tmp_path))
    assert left.exists(), "somebody may be writing it just now"

    make(left, STALE_S + 1)
    remove_leftovers(str(tmp_path))
    assert not left.exists()


@pytest.mark.parametrize(
    "name",
    ["file", ".file.tmp", "file.0123456789abcdef.tmp", ".0123456789abcdef.tmp", ".f.0123456789ABCDEF.tmp"],
)
def test_only_our_own_leftovers_are_removed(tmp_path: Path, name: str) -> None:
    make(tmp_path / name, STALE_S + 1)
    (tmp_path / ".dir.0123456789abcdef.tmp").mkdir()
    (tmp_path / ".link.0123456789abcdef.tmp").symlink_to(tmp_path / name)
    before = sorted(os.listdir(tmp_path))

    remove_leftovers(str(tmp_path))

    assert sorted(os.listdir(tmp_path)) == before


def test_a_directory_that_is_not_there_has_no_leftovers(tmp_path: Path) -> None:
    remove_leftovers(str(tmp_path / "none"))
