from __future__ import annotations

import asyncio
import fcntl
import os

import pytest

from hooksd.process import streams
from hooksd.process.output import KeptHead
from hooksd.process.readiness_epoll import EpollReadiness
from hooksd.process.streams import Feeder, Reader


@pytest.fixture
def pipe():
    """A pipe that does not block; the test closes what it opens of it."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    open_ends = {read, write}

    def close(end: int) -> None:
        open_ends.discard(end)
        os.close(end)

    yield read, write, close
    for end in open_ends:
        os.close(end)


@pytest.fixture(params=["loop", "epoll"])
async def ready(request):
    """Both that there are."""
    loop = asyncio.get_running_loop()
    if request.param == "loop":
        yield loop
        return
    epoll = EpollReadiness(loop)
    yield epoll
    epoll.close()
    epoll.close()


@pytest.fixture
def ended():
    return asyncio.Event()


async def test_reads_to_the_end(pipe, ready, ended, helpers):
    read, write, close = pipe
    reader = Reader(ready, os.dup(read), KeptHead(100), ended.set)
    os.set_blocking(read, False)
    os.write(write, b"one ")
    await helpers.until(lambda: reader.kept.total == 4, "the first piece is read")
    os.write(write, b"two")
    close(write)
    await asyncio.wait_for(ended.wait(), 10)
    assert reader.kept.value() == b"one two"
    assert not reader.open
    reader.close()


async def test_drain_takes_what_is_there_and_tells_nothing(pipe, ready, ended):
    read, write, close = pipe
    reader = Reader(ready, os.dup(read), KeptHead(100), ended.set)
    os.write(write, b"now")
    reader.drain()
    assert (reader.kept.value(), reader.open) == (b"now", True)
    close(write)
    reader.drain()
    assert not reader.open
    reader.drain()
    await asyncio.sleep(0)
    assert not ended.is_set()


@pytest.mark.parametrize("capacity", [65_536, 1_048_576])
async def test_drain_takes_all_that_the_pipe_can_hold(pipe, ready, ended, capacity):
    """Whoever wrote may have made the pipe larger."""
    read, write, _ = pipe
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, capacity)
    while True:
        try:
            os.write(write, bytes(65_536))
        except BlockingIOError:
            break
    reader = Reader(ready, os.dup(read), KeptHead(0), ended.set)
    reader.drain()
    assert reader.kept.total == capacity
    reader.close()


@pytest.mark.parametrize("known", [True, False])
async def test_drain_ends_although_somebody_goes_on_writing(pipe, ready, ended, monkeypatch, known):
    read, write, _ = pipe
    really_read = os.read
    os.write(write, bytes(65_536))

    def refilled(descriptor: int, size: int) -> bytes:
        data = really_read(descriptor, size)
        os.write(write, bytes(65_536))
        return data

    monkeypatch.setattr(streams.os, "read", refilled)
    if not known:
        # As on macOS.
        monkeypatch.delattr(fcntl, "F_GETPIPE_SZ")
    reader = Reader(ready, os.dup(read), KeptHead(0), ended.set)
    reader.drain()
    assert reader.kept.total == 65_536
    assert reader.open
    reader.close()


async def test_being_woken_for_nothing_is_nothing(pipe, ready, ended):
    read, write, _ = pipe
    reader = Reader(ready, os.dup(read), KeptHead(0), ended.set)
    reader._readable()
    assert reader.open
    reader.close()
    while True:
        try:
            os.write(write, bytes(65_536))
        except BlockingIOError:
            break
    feeder = Feeder(ready, os.dup(write), memoryview(b"x"))
    feeder._writable()
    feeder.close()
    feeder.close()


async def test_feeds_all_and_closes(pipe, ready):
    read, write, close = pipe
    data = os.urandom(300_000)
    Feeder(ready, os.dup(write), memoryview(data))
    close(write)
    os.set_blocking(read, True)

    def read_all() -> bytes:
        pieces = []
        while piece := os.read(read, 65_536):
            pieces.append(piece)
        return b"".join(pieces)

    assert await asyncio.to_thread(read_all) == data


async def test_a_reader_that_goes_away(pipe, ready, helpers):
    read, write, close = pipe
    before = helpers.descriptors()
    feeder = Feeder(ready, os.dup(write), memoryview(bytes(300_000)))
    await asyncio.sleep(0)
    close(read)
    await helpers.until(lambda: helpers.descriptors() == before - 1, "the feeder gave up")
    feeder.close()
