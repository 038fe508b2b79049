"""Removing a directory that a hook could put anything into."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest

from hooksd.process import removal
from hooksd.process.removal import MAX_AT_ONCE, MAX_FILES, Remover, remove_tree


def deep(top: Path, levels: int, name: str = "d") -> None:
    here = os.open(top, os.O_RDONLY)
    try:
        for _ in range(levels):
            os.mkdir(name, dir_fd=here)
            Path(f"/proc/self/fd/{here}/file").touch()
            inner = os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
    finally:
        os.close(here)


def test_what_is_not_there_is_gone(tmp_path: Path) -> None:
    assert remove_tree(str(tmp_path / "nothing"), 1)


def test_a_file_and_a_symlink_go_and_what_the_link_leads_to_stays(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    (top / "sub" / "link").symlink_to(kept)
    (top / "link").symlink_to(kept)
    (tmp_path / "single").symlink_to(kept)

    assert remove_tree(str(top), MAX_FILES)
    assert remove_tree(str(tmp_path / "single"), MAX_FILES)

    assert os.listdir(tmp_path) == ["kept"]
    assert (kept / "file").exists()


@pytest.mark.parametrize("name", ["d", "long" * 50])
def test_it_may_be_deeper_than_stacks_and_paths_and_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    top = tmp_path / "top"
    top.mkdir()
    deep(top, 1500, name)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 20, limits[1]))
    try:
        assert remove_tree(str(top), MAX_FILES)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mode", [0, 0o400, 0o500])
def test_no_mode_keeps_it(own: Path, mode: int) -> None:
    top = own / "top"
    (top / "sub" / "inner").mkdir(parents=True)
    (top / "sub" / "inner" / "file").touch(0)
    for directory in (top / "sub" / "inner", top / "sub", top):
        directory.chmod(mode)

    assert remove_tree(str(top), MAX_FILES)

    assert os.listdir(own) == []


def test_it_removes_no_more_than_it_may_and_says_so(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    for number in range(5):
        (top / f"{number}").touch()
        (top / "sub" / f"{number}").touch()

    assert not remove_tree(str(top), 4)
    assert sum(len(files) for _, _, files in os.walk(top)) >= 6
    assert remove_tree(str(top), MAX_FILES)


def test_what_cannot_be_removed_ends_it(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = own / "top"
    (top / "sub").mkdir(parents=True)
    (top / "sub" / "file").touch()

    def refuse(_path: str, *_more: str) -> None:
        raise PermissionError

    for name in ("unlink", "rename"):
        monkeypatch.setattr(removal.os, name, refuse)

    assert remove_tree(str(top), MAX_FILES)
    assert (top / "sub" / "file").exists()


def test_a_few_files_are_gone_at_once(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "file").touch()

    Remover().remove(str(top))

    assert not top.exists()


def test_many_go_without_anybody_waiting(tmp_path: Path) -> None:
    remover = Remover()
    tops = [tmp_path / "first", tmp_path / "second"]
    for top in tops:
        top.mkdir()
        for number in range(2 * MAX_AT_ONCE):
            (top / f"{number}").touch()

    for top in tops:
        remover.remove(str(top))

    deadline = time.monotonic() + 20
    while any(top.exists() for top in tops):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_without_a_thread_it_is_left_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path / "top"
    top.mkdir()
    for number in range(2 * MAX_AT_ONCE):
        (top / f"{number}").touch()

    def refuse(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(removal.threading.Thread, "start", refuse)
    Remover().remove(str(top))

    assert top.exists()
