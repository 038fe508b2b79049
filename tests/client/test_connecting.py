from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hooksd_client import connecting
from hooksd_client.connecting import Connecting, try_connect
from hooksd_client.deadline import Deadline
from hooksd_client.errors import DaemonNotReachable


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "l.sock")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path)
        sock.listen()
        yield path


def test_a_connection_is_blocking(listener: str) -> None:
    sock = try_connect(listener)

    assert sock is not None
    with sock:
        assert sock.getpeername() == listener
        assert sock.getblocking()


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DaemonNotReachable, match="no socket is there; start the daemon with `hooksd serve`"):
        try_connect(str(tmp_path / "none.sock"))


def test_a_stale_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "stale.sock")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path)

    with pytest.raises(DaemonNotReachable, match="nobody listens on it"):
        try_connect(path)


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(DaemonNotReachable) as caught:
        try_connect(str(tmp_path / "file"))
    assert isinstance(caught.value.__cause__, OSError)


def test_a_name_that_can_be_none(tmp_path: Path) -> None:
    with pytest.raises(DaemonNotReachable, match="too long"):
        try_connect("/" + "x" * 200)
    (tmp_path / "file").touch()
    with pytest.raises(DaemonNotReachable, match="Not a directory"):
        try_connect(str(tmp_path / "file" / "d.sock"))


def test_a_python_without_unix_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")

    with pytest.raises(DaemonNotReachable, match="no Unix sockets"):
        try_connect("/s")


class TestTheListener:
    """A listener of another user cannot be had without being root, so the kernel's word is put in its place."""

    @pytest.mark.parametrize(
        ("mine", "theirs", "fault"),
        [
            (1000, 1000, None),
            (1000, 0, None),
            (0, 1000, None),
            (1000, 1001, "its listener belongs to uid 1001, not to uid 1000"),
        ],
    )
    def test_whose_it_may_be(
        self, monkeypatch: pytest.MonkeyPatch, mine: int, theirs: int, fault: str | None
    ) -> None:
        class Peer:
            def getsockopt(self, *option: Any) -> bytes:
                assert option == (socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                return struct.pack("iII", 1, theirs, 0)

        monkeypatch.setattr(os, "geteuid", lambda: mine)

        if fault is None:
            connecting._check_listener(Peer(), "/s")  # type: ignore[arg-type]
        else:
            with pytest.raises(DaemonNotReachable, match=fault):
                connecting._check_listener(Peer(), "/s")  # type: ignore[arg-type]

    def test_a_real_one_that_is_refused(self, listener: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_connection: Any, path: str) -> None:
            raise DaemonNotReachable(path, "somebody else's")

        monkeypatch.setattr(connecting, "_check_listener", refuse)

        with pytest.raises(DaemonNotReachable, match="somebody else's"):
            try_connect(listener)

    def test_where_the_kernel_does_not_tell(self, listener: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(socket, "SO_PEERCRED")
        monkeypatch.setattr(os, "geteuid", lambda: 4711)

        sock = try_connect(listener)

        assert sock is not None
        sock.close()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
    def test_a_real_listener_of_another_user(self, listener: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The listener is root's, which is fine for every user."""
        monkeypatch.setattr(os, "geteuid", lambda: 4711)

        sock = try_connect(listener)

        assert sock is not None
        sock.close()


class TestTheSharedDirectory:
    @pytest.fixture
    def directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Stands for `/tmp/hooksd-<uid>`: a test must not touch the real one."""
        directory = tmp_path / "shared"
        directory.mkdir(mode=0o700)
        monkeypatch.setattr(connecting, "_shared_directory", lambda: str(directory))
        return directory

    def test_one_that_somebody_else_could_change_is_refused(self, directory: Path) -> None:
        directory.chmod(0o777)

        with pytest.raises(
            DaemonNotReachable, match=r"its directory is not safe: .* has mode 0777, not 0700"
        ):
            try_connect(str(directory / "d.sock"))

    def test_a_private_one(self, directory: Path) -> None:
        with pytest.raises(DaemonNotReachable, match="no socket is there"):
            try_connect(str(directory / "d.sock"))

    def test_none_at_all(self, directory: Path) -> None:
        directory.rmdir()

        with pytest.raises(DaemonNotReachable, match="no socket is there"):
            try_connect(str(directory / "d.sock"))

    def test_which_it_is(self) -> None:
        assert connecting._shared_directory() == f"/tmp/hooksd-{os.geteuid()}"


def test_an_attempt(listener: str) -> None:
    sock = Connecting(listener, Deadline(1, "a connection")).once()

    assert sock is not None
    sock.close()
