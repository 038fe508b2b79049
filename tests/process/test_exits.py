"""Both ways of learning of an exit, side by side."""

from __future__ import annotations

import asyncio
import os
import subprocess
from functools import partial

import pytest

from hooksd.process import exits, exits_pidfd, exits_thread


@pytest.fixture(params=["pidfd", "thread"])
async def watch(request):
    loop = asyncio.get_running_loop()
    if request.param == "thread":
        return partial(exits_thread.watch, loop)
    return exits.choose(loop, loop)


async def test_the_exit_is_told_once_and_nothing_is_reaped(watch, helpers):
    told = []
    with subprocess.Popen(["/bin/sh", "-c", "exit 7"]) as child:
        watch(child, lambda: told.append(helpers.state_of(child.pid)))
        await helpers.until(lambda: told, "the exit is told")
        assert told == ["Z"]
        assert child.wait() == 7
    await asyncio.sleep(0)
    assert told == ["Z"]


async def test_without_a_descriptor_a_thread_waits(watch, helpers, monkeypatch):
    def refuse(pid):
        raise OSError(24, "Too many open files")

    told = []
    with subprocess.Popen(["/bin/true"]) as child:
        with monkeypatch.context() as patch:
            patch.setattr(os, "pidfd_open", refuse)
            watch(child, lambda: told.append(1))
        await helpers.until(lambda: told, "the exit is told")


async def test_a_system_without_waitid_reaps_at_once(helpers, monkeypatch):
    monkeypatch.delattr(os, "waitid")
    told = []
    child = subprocess.Popen(["/bin/true"])
    exits_thread.watch(asyncio.get_running_loop(), child, lambda: told.append(child.returncode))
    await helpers.until(lambda: told, "the exit is told")
    assert told == [0]


def test_a_loop_that_is_closed_is_not_told(helpers):
    loop = asyncio.new_event_loop()
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as child:
        exits_thread.watch(loop, child, lambda: None)
        loop.close()
        child.stdin.close()
        child.wait()


async def test_the_choice(monkeypatch):
    loop = asyncio.get_running_loop()
    assert exits.choose(loop, loop).func is exits_pidfd.watch
    monkeypatch.setattr(
        os, "pidfd_open", lambda pid: (_ for _ in ()).throw(OSError(38, "Function not implemented"))
    )
    assert exits.choose(loop, loop).func is exits_thread.watch
    monkeypatch.delattr(os, "pidfd_open")
    assert exits.choose(loop, loop).func is exits_thread.watch
