"""Hang-ups of sockets that nobody reads."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import sys
import types

import pytest

from hooksd.server import hangup_epoll
from hooksd.server.hangup import hangup_watch


@pytest.fixture
def pair():
    left, right = socket.socketpair()
    yield left, right
    left.close()
    right.close()


@pytest.fixture
async def watch():
    watch = hangup_watch(asyncio.get_running_loop())
    yield watch
    watch.close()
    watch.close()


async def told(event):
    async with asyncio.timeout(10):
        await event.wait()


async def turns():
    """Let the loop look at its descriptors a few times."""
    for _ in range(5):
        await asyncio.sleep(0.002)


async def test_a_peer_that_closes(watch, pair):
    gone = asyncio.Event()
    handle = watch.watch(pair[0].fileno(), gone.set)
    await turns()
    assert not gone.is_set()

    pair[1].close()

    await told(gone)
    watch.forget(handle)


async def test_a_peer_that_has_already_closed(watch, pair):
    gone = asyncio.Event()
    pair[1].close()
    handle = watch.watch(pair[0].fileno(), gone.set)

    await told(gone)
    watch.forget(handle)


async def test_a_peer_that_closed_only_its_sending_side(watch, pair):
    gone = asyncio.Event()
    handle = watch.watch(pair[0].fileno(), gone.set)
    pair[1].send(b"unread")
    pair[1].shutdown(socket.SHUT_WR)
    await turns()
    assert not gone.is_set()

    pair[1].close()

    await told(gone)
    watch.forget(handle)


async def test_it_is_told_once(watch, pair):
    calls = []
    handle = watch.watch(pair[0].fileno(), lambda: calls.append(1))
    pair[1].close()
    await turns()

    assert calls == [1]
    watch.forget(handle)


async def test_what_is_forgotten_is_not_told(watch, pair):
    calls = []
    watch.forget(watch.watch(pair[0].fileno(), lambda: calls.append(1)))
    pair[1].close()
    await turns()

    assert calls == []


async def test_one_that_is_forgotten_by_another_in_the_same_round(watch):
    pairs = [socket.socketpair() for _ in range(2)]
    calls, handles = [], []

    def gone(at):
        calls.append(at)
        watch.forget(handles[1 - at])

    for at, (left, _) in enumerate(pairs):
        handles.append(watch.watch(left.fileno(), lambda at=at: gone(at)))
    for _, right in pairs:
        right.close()
    await turns()

    assert len(calls) == 1
    watch.forget(handles[calls[0]])
    for left, _ in pairs:
        left.close()


async def test_the_watch_keeps_a_connection_until_it_is_forgotten(watch, pair):
    """It has a copy of the descriptor, whose number may be given away meanwhile."""
    gone = asyncio.Event()
    handle = watch.watch(pair[0].fileno(), gone.set)
    pair[0].close()
    pair[1].setblocking(False)
    with pytest.raises(BlockingIOError):
        pair[1].recv(1)

    watch.forget(handle)

    assert pair[1].recv(1) == b""


async def test_closing_gives_everything_back(pair):
    before = len(os.listdir("/proc/self/fd"))
    watch = hangup_watch(asyncio.get_running_loop())
    watch.watch(pair[0].fileno(), lambda: None)
    watch.close()

    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_descriptor_that_cannot_be_watched(watch, tmp_path):
    with open(tmp_path / "file", "w") as file, pytest.raises(OSError):
        watch.watch(file.fileno(), lambda: None)
    with pytest.raises(OSError):
        watch.watch(-1, lambda: None)


# ----------------------------------------------------------------------------------------------------------------------
# kqueue, on a system that has none: the calls it is made of


class FakeKqueue:
    """Remembers filters and gives prepared events; fails where it is told to."""

    def __init__(self):
        self.closed = False
        self.changes = []
        self.events = []
        self.broken = False

    def fileno(self):
        return 99

    def control(self, changes, limit, timeout=None):
        if self.broken:
            raise OSError(9, "bad")
        if changes:
            self.changes += changes
            return []
        events, self.events = self.events[:limit], self.events[limit:]
        return events

    def close(self):
        self.closed = True


class FakeLoop:
    def __init__(self):
        self.readers = {}

    def add_reader(self, fd, callback):
        self.readers[fd] = callback

    def remove_reader(self, fd):
        del self.readers[fd]


@pytest.fixture
def kqueue(monkeypatch):
    """The module as it is on macOS, on a `select` that has what macOS's has."""
    made = FakeKqueue()
    fake = types.SimpleNamespace(
        kqueue=lambda: made,
        kevent=lambda ident, kind, flags: types.SimpleNamespace(ident=ident, filter=kind, flags=flags),
        KQ_EV_ADD=1,
        KQ_EV_CLEAR=0x20,
        KQ_EV_EOF=0x8000,
        KQ_FILTER_WRITE=-2,
    )
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delitem(sys.modules, "hooksd.server.hangup_kqueue", raising=False)
    from hooksd.server import hangup_kqueue

    monkeypatch.setattr(hangup_kqueue, "select", fake)
    yield made
    sys.modules.pop("hooksd.server.hangup_kqueue", None)


def test_kqueue(kqueue, pair):
    loop = FakeLoop()
    watch = hangup_watch(loop)
    calls = []
    handle = watch.watch(pair[0].fileno(), lambda: calls.append(1))
    assert [(change.ident, change.filter, change.flags) for change in kqueue.changes] == [(handle, -2, 0x21)]

    writable = types.SimpleNamespace(ident=handle, flags=0)
    ended = types.SimpleNamespace(ident=handle, flags=0x8000)
    kqueue.events = [writable]
    loop.readers[99]()
    assert calls == []
    for _ in range(2):
        kqueue.events = [ended]
        loop.readers[99]()
    assert calls == [1]
    watch.forget(handle)
    kqueue.broken = True
    with pytest.raises(OSError):
        watch.watch(pair[0].fileno(), lambda: None)
    kqueue.broken = False
    watch.watch(pair[0].fileno(), lambda: None)
    watch.close()
    watch.close()
    assert kqueue.closed
    assert loop.readers == {}


def test_epoll_is_what_linux_has():
    assert hasattr(select, "epoll")
    assert hangup_epoll.EpollHangupWatch
