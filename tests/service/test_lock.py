import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hooksd.model.errors import AlreadyRunning, SocketUnusable
from hooksd.service.lock import DaemonLock, LockInfo, read_lock_info


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "daemon.lock")


def test_the_holder_is_told(path: str) -> None:
    lock = DaemonLock.acquire(path)
    lock.write(LockInfo(pid=42, version="1.2.3", socket="/run/hooksd.sock"))

    assert json.loads(Path(path).read_bytes()) == {
        "pid": 42,
        "version": "1.2.3",
        "socket": "/run/hooksd.sock",
    }
    assert read_lock_info(path) == LockInfo(pid=42, version="1.2.3", socket="/run/hooksd.sock")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    lock.release()


def test_there_is_only_one_holder(path: str) -> None:
    lock = DaemonLock.acquire(path)
    lock.write(LockInfo(pid=42))

    with pytest.raises(AlreadyRunning, match="pid 42") as caught:
        DaemonLock.acquire(path)

    assert caught.value.pid == 42
    lock.release()


def test_a_holder_that_has_told_nothing_yet(path: str) -> None:
    lock = DaemonLock.acquire(path)

    with pytest.raises(AlreadyRunning, match="pid is not known"):
        DaemonLock.acquire(path)
    lock.release()


def test_after_the_release_the_file_stays_empty_and_can_be_locked_again(path: str) -> None:
    lock = DaemonLock.acquire(path)
    lock.write(LockInfo(pid=42))
    inode = os.stat(path).st_ino
    lock.release()
    lock.release()

    assert os.stat(path).st_ino == inode
    assert read_lock_info(path) is None
    DaemonLock.acquire(path).release()


def test_a_shorter_text_replaces_a_longer_one(path: str) -> None:
    Path(path).write_text("x" * 1_000)

    lock = DaemonLock.acquire(path)
    lock.write(LockInfo(pid=1))

    assert read_lock_info(path) == LockInfo(pid=1)
    lock.release()


def test_the_end_of_the_process_releases_it(path: str) -> None:
    code = "import os, sys; from hooksd.service.lock import *; DaemonLock.acquire(sys.argv[1]); print(flush=True); os.read(0, 1)"
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(AlreadyRunning):
            DaemonLock.acquire(path)
        holder.kill()

    DaemonLock.acquire(path).release()


def test_it_is_not_inherited_by_programs(path: str) -> None:
    lock = DaemonLock.acquire(path)
    with subprocess.Popen(["sleep", "30"], close_fds=False) as child:
        lock.release()
        DaemonLock.acquire(path).release()
        child.kill()


def make_symlink(path: str) -> None:
    os.symlink("/nowhere", path)


@pytest.mark.parametrize("make", [make_symlink, os.mkdir, os.mkfifo])
def test_what_is_no_file_of_ours_is_left_alone(path: str, make: object) -> None:
    make(path)  # type: ignore[operator]
    before = os.lstat(path)

    with pytest.raises(SocketUnusable, match="lock file"):
        DaemonLock.acquire(path)

    assert os.lstat(path).st_ino == before.st_ino


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid":"x"}', "\x00" * 10_000])
def test_a_lock_file_that_says_nothing(path: str, text: str) -> None:
    Path(path).write_text(text)

    assert read_lock_info(path) is None


def test_a_lock_file_that_is_not_there(path: str) -> None:
    assert read_lock_info(path) is None


@pytest.mark.parametrize("umask", [0, 0o077, 0o777])
def test_whatever_the_umask_the_holder_can_be_read(path: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        lock = DaemonLock.acquire(path)
    finally:
        os.umask(before)
    lock.release()

    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_file_that_cannot_be_written_is_told_with_the_path(path: str) -> None:
    lock = DaemonLock.acquire(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(SocketUnusable, match="cannot write the lock file: File too large") as caught:
            lock.write(LockInfo(pid=42))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    lock.release()

    assert caught.value.path == path
