"""The runner as it is where there is neither pidfd nor subreaper: the process group is all that is known."""

from __future__ import annotations

import asyncio
import os
import select

import pytest

from hooksd.model.records import Level
from hooksd.process import exits_pidfd, trees
from hooksd.process.runner import Runner
from hooksd.process.tree_linux import LinuxTrees
from hooksd.process.tree_posix import PosixTrees


@pytest.fixture
async def runner(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.delattr(select, "epoll")
    told = []
    made = Runner(asyncio.get_running_loop(), max_ending=16, record=lambda *record: told.append(record))
    assert isinstance(made._trees, PosixTrees)
    assert [(level, kind) for level, kind, _ in told] == [(Level.WARNING, "daemon.limited")]
    yield made
    await made.aclose(0.1)


async def test_results(runner, helpers):
    result = await runner.run(helpers.bash("cat; exit 3", stdin=b"x"))
    assert (result.exit_code, result.stdout, result.left_running) == (3, b"x", 0)


async def test_a_system_without_waitid(runner, helpers, monkeypatch):
    """The waiting thread reaps there."""
    monkeypatch.delattr(os, "waitid")
    assert (await runner.run(helpers.bash("exit 3"))).exit_code == 3
    assert (await runner.run(helpers.bash("kill -9 $$"))).signal == 9


async def test_the_group_is_ended_at_the_deadline(runner, helpers):
    result = await runner.run(
        helpers.bash("trap '' TERM; sleep 60 & echo $!; wait", timeout_s=0.5, kill_grace_s=0.1)
    )
    assert result.timed_out
    await helpers.ended(runner, "the group is ended")
    await helpers.until(lambda: not helpers.is_alive(int(result.stdout)), "its child has died, too")
    assert not helpers.state_of(result.pid)


async def test_cancelling(runner, helpers):
    tasks = [asyncio.ensure_future(runner.run(helpers.bash("sleep 60"))) for _ in range(3)]
    await helpers.until(lambda: len(helpers.children()) == 3, "they run")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await runner.aclose(0)
    assert not helpers.children()


def test_the_choice(monkeypatch):
    chosen = trees.choose()
    assert isinstance(chosen, LinuxTrees)
    chosen.close()
    monkeypatch.setattr("sys.platform", "darwin")
    assert isinstance(trees.choose(), PosixTrees)
    monkeypatch.undo()
    monkeypatch.setattr(exits_pidfd, "is_possible", lambda: False)
    assert isinstance(trees.choose(), PosixTrees)
