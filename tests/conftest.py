"""What every test has: both event loops for asynchronous ones, and nothing left behind.

Asynchronous tests are run by anyio's plugin, once on uvloop and once on the stock loop. After each test the number of
open descriptors and the set of child processes must be what they were before.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings


# An example that takes long says how busy the machine is, and nothing about the code.
settings.register_profile("hooksd", deadline=None)
settings.load_profile("hooksd")

HAS_PROC = Path("/proc/self/fd").is_dir()

# libuv opens a pipe for its signals with the first loop and keeps it for the life of the process.
with suppress(ImportError):
    import uvloop

    uvloop.new_event_loop().close()


@pytest.fixture(
    params=[
        pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
        pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
    ]
)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    """The loops that asynchronous tests run on."""
    return request.param


def _children() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found.update(int(pid) for pid in (task / "children").read_text().split())
        except OSError:
            continue
    return found


def _descriptors() -> set[str]:
    found = set()
    for entry in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{entry} -> {os.readlink(f'/proc/self/fd/{entry}')}")
        except OSError:
            continue
    return found


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a descriptor open or a child process alive."""
    if not HAS_PROC or request.node.get_closest_marker("may_leave"):
        yield
        return
    descriptors, children = _descriptors(), _children()
    yield
    deadline = time.monotonic() + 3
    while True:
        more = _descriptors() - descriptors
        alive = _children() - children
        if not more and not alive:
            return
        # Only now: what hangs in a cycle is no leak, but collecting after every test would take most of the time.
        gc.collect()
        if time.monotonic() > deadline:
            break
        # The loop of an asynchronous test is closed by its fixture, which may come after this one.
        time.sleep(0.02)
    # One descriptor more that replaced another of the same kind is no leak.
    if alive or len(_descriptors()) > len(descriptors):
        pytest.fail(f"left behind: descriptors {sorted(more)}, children {sorted(alive)}")


async def other_tasks() -> list[asyncio.Task[object]]:
    """Tasks of the running loop besides the current one; a helper for tests that assert there are none."""
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
