"""The other process, as the kernel tells it."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys

import pytest

from hooksd.server import peer as peer_module
from hooksd.server.peer import Peer, depth_of_process, parse_depth, peer_of


@pytest.fixture
def pair():
    left, right = socket.socketpair()
    yield left, right
    left.close()
    right.close()


def test_the_process_at_the_other_end(pair):
    assert peer_of(pair[0]) == Peer(uid=os.geteuid(), pid=os.getpid())


def test_a_socket_without_a_peer():
    with socket.socket(socket.AF_INET) as alone:
        # Linux tells nobody's credentials of it, which are no user's of ours; others refuse.
        try:
            peer = peer_of(alone)
        except OSError:
            return
        assert peer.pid is None
        assert peer.uid not in (0, os.geteuid())


class Darwin:
    """What getsockopt gives on macOS."""

    def __init__(self, version):
        self._version = version

    def getsockopt(self, level, option, size):
        assert level == 0
        if option == 1:
            return struct.pack("IiH2x", self._version, 501, 1).ljust(size, b"\0")
        assert (option, size) == (2, 4)
        return struct.pack("i", 4_242)


def test_macos(monkeypatch):
    monkeypatch.setattr(peer_module.sys, "platform", "darwin")

    assert peer_of(Darwin(0)) == Peer(uid=501, pid=4_242)
    with pytest.raises(OSError, match="version 7"):
        peer_of(Darwin(7))


@pytest.fixture
def process_with():
    """Start a process with an environment; gives its pid."""
    running = []

    def start(**variables):
        code = "import sys; print('up', flush=True); sys.stdin.read()"
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code],
            env={"PATH": "/bin", **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        process.stdout.readline()
        running.append(process)
        return process.pid

    yield start
    for process in running:
        process.communicate()


def test_the_depth_of_a_process(process_with):
    assert depth_of_process(process_with(HOOKSD_DEPTH="3")) == 3
    assert depth_of_process(process_with(NOT_HOOKSD_DEPTH="3", X="HOOKSD_DEPTH=4")) is None
    assert depth_of_process(process_with(HOOKSD_DEPTH="many")) is None


def test_the_depth_of_a_process_that_cannot_be_looked_at():
    assert depth_of_process(None) is None
    assert depth_of_process(2**22 + 1) is None


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("0", 0),
        ("12", 12),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("٣", None),
        (" 1", None),
        ("9" * 7, None),
    ],
)
def test_what_is_a_depth(text, depth):
    assert parse_depth(text) == depth
