import os
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hooksd.model.errors import SocketUnusable
from hooksd.service.socket import MAX_PATH_BYTES, BoundSocket, bind


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s")


@pytest.fixture
def path(directory: Path) -> str:
    return str(directory / "h.sock")


@pytest.fixture(params=[0, 0o022, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def test_the_socket_is_closed_to_others_whatever_the_umask(path: str, umask: int) -> None:
    bound = bind(path)

    assert stat.S_IMODE(os.lstat(path).st_mode) == 0o600
    connect(path)
    assert os.umask(umask) == umask
    bound.close()
    assert not os.path.lexists(path)


def test_it_does_not_block_and_is_not_inherited(path: str) -> None:
    bound = bind(path)

    assert not bound.socket.getblocking()
    assert not bound.socket.get_inheritable()
    bound.close()


def test_many_clients_can_wait_to_be_accepted(path: str) -> None:
    bound = bind(path)
    clients = [socket.socket(socket.AF_UNIX) for _ in range(400)]
    for client in clients:
        client.setblocking(False)
        client.connect(path)  # raises BlockingIOError when the backlog is full
    for client in clients:
        client.close()
    bound.close()


def test_a_stale_socket_is_replaced(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)

    bound = bind(path)

    connect(path)
    bound.close()


def test_a_socket_that_somebody_serves_is_left_alone(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(path)
        living.listen(1)
        inode = os.lstat(path).st_ino

        with pytest.raises(SocketUnusable, match="listens there"):
            bind(path)

        assert os.lstat(path).st_ino == inode


def test_a_socket_whose_backlog_is_full_is_left_alone(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(path)
        living.listen(0)
        clients = []
        for _ in range(8):
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            clients.append(client)
            try:
                client.connect(path)
            except BlockingIOError:
                break
        with pytest.raises(SocketUnusable, match="listens there"):
            bind(path)
        for client in clients:
            client.close()


def make_file(path: str) -> None:
    Path(path).write_text("mine")


def make_symlink(path: str) -> None:
    os.symlink(path + ".real", path)


@pytest.mark.parametrize("make", [make_file, make_symlink, os.mkdir, os.mkfifo])
def test_what_is_no_socket_is_left_alone(path: str, make: object) -> None:
    make(path)  # type: ignore[operator]
    before = os.lstat(path)

    with pytest.raises(SocketUnusable, match="no socket lies there") as caught:
        bind(path)

    assert caught.value.path == path
    assert os.lstat(path).st_ino == before.st_ino


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_socket_of_another_user_is_left_alone(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    os.chown(path, 12_345, 12_345)

    with pytest.raises(SocketUnusable, match="uid 12345"):
        bind(path)


def test_a_path_that_is_too_long_is_refused_with_the_limit(directory: Path) -> None:
    path = str(directory) + "/" + "x" * MAX_PATH_BYTES

    with pytest.raises(SocketUnusable, match=f"{len(path)} bytes.* {MAX_PATH_BYTES}"):
        bind(path)


def test_the_longest_path_works(directory: Path) -> None:
    path = str(directory) + "/"
    path += "x" * (MAX_PATH_BYTES - len(path))

    bound = bind(path)

    connect(path)
    bound.close()


def test_a_path_that_leads_through_a_file(directory: Path) -> None:
    (directory / "file").write_text("")

    with pytest.raises(SocketUnusable, match="Not a directory"):
        bind(str(directory / "file" / "h.sock"))


def test_a_socket_of_a_service_manager_is_left_to_it(path: str) -> None:
    ours = bind(path)

    BoundSocket(ours.socket.dup(), path, owned=False).close()

    connect(path)
    ours.close()


def test_a_directory_that_is_not_there(directory: Path) -> None:
    with pytest.raises(SocketUnusable, match="No such file"):
        bind(str(directory / "not" / "h.sock"))


@pytest.mark.parametrize("left", ["nothing", "a file", "another socket"])
def test_at_the_end_only_our_own_file_is_removed(path: str, left: str) -> None:
    bound = bind(path)
    os.unlink(path)
    if left == "a file":
        make_file(path)
    elif left == "another socket":
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)

    bound.close()

    assert os.path.lexists(path) is (left != "nothing")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of Linux")
def test_the_limit_is_that_of_the_kernel(directory: Path) -> None:
    path = str(directory) + "/"
    with socket.socket(socket.AF_UNIX) as one, pytest.raises(OSError, match="too long"):
        one.bind(path + "x" * (MAX_PATH_BYTES + 1 - len(path)))
