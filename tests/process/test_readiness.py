from __future__ import annotations

import asyncio
import os
import select

import pytest

from hooksd.process import readiness
from hooksd.process.readiness_epoll import MAX_EVENTS, EpollReadiness


@pytest.fixture
async def ready():
    made = EpollReadiness(asyncio.get_running_loop())
    yield made
    made.close()


@pytest.fixture
def pipes():
    """Makes pipes, and closes what is left of them."""
    ends = []

    def make() -> tuple[int, int]:
        read, write = os.pipe()
        ends.extend((read, write))
        return read, write

    make.ends = ends
    yield make
    for end in ends:
        os.close(end)


async def test_readers_and_writers(ready, pipes, helpers):
    read, write = pipes()
    seen = []
    ready.add_writer(write, lambda: seen.append("room"))
    await helpers.until(lambda: "room" in seen, "there is room")
    ready.remove_writer(write)
    ready.add_reader(read, lambda: seen.append(os.read(read, 10)))
    os.write(write, b"data")
    await helpers.until(lambda: b"data" in seen, "there is something to read")
    ready.remove_reader(read)
    os.write(write, b"more")
    seen.clear()
    await asyncio.sleep(0)
    ready._ready()
    assert not seen


async def test_the_end_and_a_missing_reader_are_told(ready, pipes, helpers):
    read, write = pipes()
    other_read, other_write = pipes()
    seen = []
    ready.add_reader(read, lambda: (seen.append("end"), ready.remove_reader(read)))
    ready.add_writer(other_write, lambda: (seen.append("gone"), ready.remove_writer(other_write)))
    for end in (write, other_read):
        pipes.ends.remove(end)
        os.close(end)
    await helpers.until(lambda: {"end", "gone"} <= set(seen), "both are told")


async def test_the_event_of_a_closed_descriptor_is_not_taken_for_that_of_a_new_one(ready, pipes):
    """A callback closes a descriptor that is ready, too, and opens another, which gets its number."""
    first, first_write = pipes()
    second, second_write = pipes()
    os.write(first_write, b"x")
    os.write(second_write, b"x")
    called = []

    def replace(mine: int, other: int):
        def callback() -> None:
            called.append(mine)
            for end in (mine, other):
                ready.remove_reader(end)
            os.close(other)
            read, write = os.pipe()
            assert read == other
            pipes.ends.append(write)
            ready.add_reader(read, lambda: called.append("new"))

        return callback

    ready.add_reader(first, replace(first, second))
    ready.add_reader(second, replace(second, first))
    ready._ready()
    assert len(called) == 1
    assert "new" not in called
    ready._ready()
    assert "new" not in called


async def test_more_events_than_are_taken_at_once(ready, pipes, helpers):
    seen = set()
    for _ in range(MAX_EVENTS + 10):
        read, write = pipes()
        os.write(write, b"x")
        ready.add_reader(read, lambda read=read: (seen.add(read), ready.remove_reader(read)))
    await helpers.until(lambda: len(seen) == MAX_EVENTS + 10, "all of them are told")


async def test_after_the_end_there_is_nothing_to_remove(ready, pipes):
    read, _ = pipes()
    ready.add_reader(read, lambda: None)
    ready.close()
    ready.remove_reader(read)
    with pytest.raises(ValueError, match="closed"):
        ready.add_reader(read, lambda: None)


async def test_the_choice(monkeypatch):
    loop = asyncio.get_running_loop()
    ready, close = readiness.choose(loop)
    assert isinstance(ready, EpollReadiness)
    close()
    monkeypatch.delattr(select, "epoll")
    ready, close = readiness.choose(loop)
    assert ready is loop
    close()
