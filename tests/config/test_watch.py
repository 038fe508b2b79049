"""Noticing changes: what is watched, and every way a file can come to be another one."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from watchdog import observers
from watchdog.utils import BaseThread

from hooksd.config.watch import THREADS, Watcher, watch_points


LONG_S = 10.0


# -- what to watch


def test_the_directory_of_a_file_and_its_parent(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_text("")
    points = watch_points([f"{tmp_path}/a/file"])

    assert points.contents == {f"{tmp_path}/a"}
    assert points.names == {str(tmp_path)}
    assert points.paths == {f"{tmp_path}/a", f"{tmp_path}/a/file"}


def test_the_nearest_directory_that_exists(tmp_path: Path) -> None:
    points = watch_points([f"{tmp_path}/a/b/file"])

    assert points.contents == {str(tmp_path)}
    assert f"{tmp_path}/a" in points.paths


def test_every_directory_with_a_link_on_the_way(tmp_path: Path) -> None:
    for name in ("links", "there", "deep/real"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "deep" / "real" / "file").write_text("")
    (tmp_path / "links" / "absolute").symlink_to(tmp_path / "there")
    (tmp_path / "there" / "relative").symlink_to("../deep/./real")
    points = watch_points([f"{tmp_path}/links/absolute/relative/file"])

    assert points.contents == {f"{tmp_path}/deep/real"}
    assert points.names == {f"{tmp_path}/links", f"{tmp_path}/there", f"{tmp_path}/deep"}
    assert points.paths >= {f"{tmp_path}/links/absolute", f"{tmp_path}/there/relative"}


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert watch_points([f"{tmp_path}/a/file"]).contents == {str(tmp_path)}


def test_a_file_in_the_place_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert f"{tmp_path}/file" in watch_points([f"{tmp_path}/file/below"]).paths


def test_a_path_that_cannot_be(tmp_path: Path) -> None:
    assert watch_points([f"{tmp_path}/a\0b"]).contents == {str(tmp_path)}


# -- watching


class Watched:
    """A watcher of one file, and whether it called."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.called = asyncio.Event()
        self.told: list[tuple[str, str]] = []
        self.watcher = Watcher(
            asyncio.get_running_loop(),
            self.called.set,
            lambda message, hint: self.told.append((message, hint)),
        )

    async def off_loop(self, job: Callable[[], object]) -> object:
        return await asyncio.get_running_loop().run_in_executor(None, job)

    async def follow(self) -> bool:
        return bool(await self.off_loop(lambda: self.watcher.follow(frozenset([str(self.path)]))))

    async def settle(self) -> None:
        """Follow until nothing new is to be watched, as the store does."""
        while await self.follow():
            pass
        self.called.clear()

    async def call(self) -> None:
        await asyncio.wait_for(self.called.wait(), LONG_S)
        await self.settle()

    async def noticed(self, change: Callable[[], object]) -> None:
        """Make a change and wait until the watcher calls."""
        change()
        await self.call()


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    (tmp_path / "etc").mkdir()
    watched = Watched(tmp_path / "etc" / "hooks.json")
    yield watched
    await watched.off_loop(watched.watcher.close)


def save_by_renaming(path: Path, text: str) -> None:
    other = path.with_name("." + path.name)
    other.write_text(text)
    other.rename(path)


async def test_a_file_that_is_made_written_renamed_and_removed(watched: Watched) -> None:
    assert await watched.follow()
    await watched.settle()
    path = watched.path
    await watched.noticed(lambda: path.write_text("one"))
    await watched.noticed(lambda: path.write_text("two"))
    await watched.noticed(lambda: save_by_renaming(path, "three"))
    await watched.noticed(lambda: save_by_renaming(path, "four"))
    await watched.noticed(lambda: path.chmod(0o600))
    await watched.noticed(path.unlink)
    await watched.noticed(lambda: path.write_text("five"))

    assert not watched.watcher.failing
    assert watched.told == []


async def test_a_directory_made_later(watched: Watched) -> None:
    watched.path = watched.path.parent / "later" / "still" / "hooks.json"
    await watched.settle()
    await watched.noticed(watched.path.parent.parent.mkdir)
    await watched.noticed(watched.path.parent.mkdir)
    await watched.noticed(lambda: watched.path.write_text("one"))


async def test_a_directory_removed_and_made_again(watched: Watched) -> None:
    await watched.settle()
    for text in ("one", "two"):
        await watched.noticed(lambda: shutil.rmtree(watched.path.parent))
        await watched.noticed(watched.path.parent.mkdir)
        await watched.noticed(lambda text=text: watched.path.write_text(text))


async def test_a_directory_removed_and_made_again_at_once(watched: Watched) -> None:
    await watched.settle()
    directory = watched.path.parent

    def again() -> None:
        directory.rmdir()
        directory.mkdir()

    await watched.noticed(again)
    await watched.noticed(lambda: watched.path.write_text("one"))


async def test_a_directory_moved_away_and_replaced(watched: Watched) -> None:
    await watched.settle()
    directory = watched.path.parent

    def replace() -> None:
        directory.rename(directory.with_name("old"))
        directory.mkdir()

    await watched.noticed(replace)
    await watched.noticed(lambda: watched.path.write_text("one"))


async def test_a_directory_swapped_by_a_link(watched: Watched, tmp_path: Path) -> None:
    for name in ("v1", "v2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hooks.json").write_text(name)
    (tmp_path / "now").symlink_to("v1")
    watched.path = tmp_path / "now" / "hooks.json"
    await watched.settle()

    def swap() -> None:
        (tmp_path / "new").symlink_to("v2")
        (tmp_path / "new").rename(tmp_path / "now")

    await watched.noticed(swap)
    await watched.noticed(lambda: (tmp_path / "v2" / "hooks.json").write_text("more"))


async def test_the_target_of_a_link(watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "real.json").write_text("one")
    watched.path.symlink_to("../there/real.json")
    await watched.settle()
    await watched.noticed(lambda: save_by_renaming(tmp_path / "there" / "real.json", "two"))

    def retarget() -> None:
        watched.path.unlink()
        watched.path.symlink_to("../there/other.json")

    await watched.noticed(retarget)
    await watched.noticed(lambda: (tmp_path / "there" / "other.json").write_text("three"))


async def test_our_own_reading_and_other_files_wake_nobody(watched: Watched) -> None:
    watched.path.write_text("one")
    await watched.settle()
    watched.path.read_text()
    os.listdir(watched.path.parent)
    (watched.path.parent / "hooksd.log").write_text("a line")
    # Events come in order: when this one is through, the others were, too.
    marker = watched.path.parent.with_name("marker")
    other = Watched(marker)
    try:
        await other.settle()
        await other.noticed(marker.mkdir)
        await asyncio.get_running_loop().run_in_executor(None, watched.watcher.close)
    finally:
        await other.off_loop(other.watcher.close)

    assert not watched.called.is_set()


def watching_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if isinstance(thread, BaseThread)}


async def test_the_same_files_are_watched_once(watched: Watched) -> None:
    await watched.settle()
    before = watching_threads()

    assert not await watched.follow()
    assert watching_threads() == before


async def test_nothing_to_watch_takes_no_thread(watched: Watched) -> None:
    assert await watched.off_loop(lambda: watched.watcher.follow(frozenset())) is False
    assert not watching_threads()


async def test_closing_ends_every_thread(watched: Watched) -> None:
    await watched.settle()
    assert watching_threads()
    await watched.off_loop(watched.watcher.close)

    assert not watching_threads()


async def test_a_call_that_comes_after_closing_is_dropped(watched: Watched) -> None:
    await watched.settle()
    watched.watcher._arrived()
    await watched.off_loop(watched.watcher.close)
    watched.watcher._fire()

    assert not watched.called.is_set()


async def test_limits_of_the_system_are_told_once(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    monkeypatch.setattr(observers.Observer, "schedule", refuse)

    assert not await watched.follow()
    assert not await watched.follow()
    assert watched.watcher.failing
    ((message, hint),) = watched.told
    assert "inotify watch limit reached" in message
    assert "max_user_watches" in hint

    monkeypatch.undo()
    assert await watched.follow()
    assert not watched.watcher.failing


@pytest.mark.parametrize("left", range(THREADS))
async def test_without_threads_nothing_is_begun_and_nothing_is_lost(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    start = threading.Thread.start
    descriptors = len(os.listdir("/proc/self/fd"))
    budget = 0

    def limited(thread: threading.Thread) -> None:
        nonlocal budget
        if budget <= 0:
            raise RuntimeError("can't start new thread")
        budget -= 1
        start(thread)

    # In this thread, which is there already.
    files = frozenset([str(watched.path)])
    monkeypatch.setattr(threading.Thread, "start", limited)
    for _ in range(3):
        budget = left
        assert not watched.watcher.follow(files)
    monkeypatch.undo()

    assert watched.watcher.failing
    ((message, hint),) = watched.told
    assert "no more threads" in message
    assert "TasksMax" in hint
    assert len(os.listdir("/proc/self/fd")) == descriptors

    # As soon as there is room again, everything is as it should be.
    assert await watched.follow()
    assert not watched.watcher.failing
    await watched.settle()
    await watched.noticed(lambda: watched.path.write_text("{}"))


async def test_threads_that_are_gone_at_the_last_moment(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(observers.Observer, "schedule", refuse)

    assert not await watched.follow()
    assert watched.watcher.failing
    assert "no more threads" in watched.told[0][0]


async def test_a_directory_that_cannot_be_read_is_told(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    assert not await watched.follow()
    assert watched.watcher.failing
    assert "readable" in watched.told[0][1]


async def test_a_directory_that_vanishes_just_then_is_no_failure(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanish(*_: object, **__: object) -> None:
        shutil.rmtree(watched.path.parent, ignore_errors=True)
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))

    monkeypatch.setattr(observers.Observer, "schedule", vanish)
    await watched.follow()

    assert watched.told == [] or "etc" not in watched.told[0][0]


def test_watchdog_is_imported_late() -> None:
    """Its import would make a third of the daemon's start."""
    code = "import sys, hooksd.config.store; sys.exit('watchdog' in sys.modules)"

    subprocess.run([sys.executable, "-c", code], check=True)
