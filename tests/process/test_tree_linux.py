from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from hooksd.process import ownership, proc, tree_linux
from hooksd.process.orphans import Look, Orphan
from hooksd.process.reserve import NoDescriptor
from hooksd.process.tree_linux import LinuxTrees


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

ALL = {"plain", "session", "stubborn", "orphan0", "orphan1", "orphan2"}


def scatter(helpers, tmp_path, *flags, **changes):
    return helpers.spawn(
        *helpers.python, str(helpers.hostile / "scatter.py"), str(tmp_path / "pids"), *flags, **changes
    )


# --- whole trees, through the runner


async def test_no_descendant_survives_the_deadline(runner, helpers, tmp_path, pid_log):
    running = asyncio.ensure_future(runner.run(scatter(helpers, tmp_path, timeout_s=2.0)))
    await helpers.until(lambda: "ready" in pid_log(), "the tree is up")
    pids = pid_log()
    assert pids.keys() - {"ready"} == ALL
    assert all(helpers.is_alive(pid) for pid in pids.values())
    result = await running
    assert (result.timed_out, result.stdout) == (True, b"ready\n")
    await helpers.ended(runner, "the tree is ended")
    assert {name for name, pid in pids.items() if helpers.state_of(pid)} == set()


async def end(runner, helpers, spawn, ready):
    """Cancel a hook once the files of all its parts are there, and wait until its tree is ended."""
    running = asyncio.ensure_future(runner.run(spawn))
    await helpers.until(lambda: all(path.exists() and path.read_text() for path in ready), "all of it is up")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await helpers.ended(runner, "the tree is ended")


async def test_those_that_listen_to_sigterm_need_no_sigkill(runner, helpers, tmp_path):
    # The child says that it is up: a signal between its fork and its exec is lost in the shell's handler.
    part = "trap 'echo {0} >> {1}/log; exit 0' TERM; bash -c 'echo up > {1}/{0}; exec sleep 60' & wait"
    (tmp_path / "part.sh").write_text(part.format("escaped", tmp_path))
    script = f"setsid bash {tmp_path}/part.sh & " + part.format("near", tmp_path)
    await end(
        runner, helpers, helpers.bash(script, kill_grace_s=60.0), [tmp_path / "near", tmp_path / "escaped"]
    )
    assert sorted((tmp_path / "log").read_text().split()) == ["escaped", "near"]


async def test_a_handler_that_prints_is_not_killed_by_it(runner, helpers, tmp_path):
    handler = f"head -c 200000 /dev/zero; echo bye; touch {tmp_path}/cleaned; exit"
    script = f"trap '{handler}' TERM; bash -c 'echo up > {tmp_path}/up; exec sleep 60' & wait"
    await end(runner, helpers, helpers.bash(script, kill_grace_s=60.0), [tmp_path / "up"])
    assert (tmp_path / "cleaned").exists()


async def test_a_stopped_descendant_is_continued_to_end_by_itself(runner, helpers, tmp_path):
    script = f"(trap 'touch {tmp_path}/cleaned; exit' TERM; echo $BASHPID > {tmp_path}/pid; kill -STOP $BASHPID) & wait"
    running = asyncio.ensure_future(runner.run(helpers.bash(script, kill_grace_s=60.0)))
    log = tmp_path / "pid"
    await helpers.until(
        lambda: log.exists() and log.read_text() and helpers.state_of(int(log.read_text())) == "T",
        "it is stopped",
    )
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await helpers.ended(runner, "the tree is ended")
    assert (tmp_path / "cleaned").exists()


async def test_a_neighbour_is_not_hit(runner, helpers, tmp_path, pid_log):
    (tmp_path / "other").mkdir()
    neighbour = asyncio.ensure_future(runner.run(scatter(helpers, tmp_path / "other")))
    log = tmp_path / "other" / "pids"
    await helpers.until(lambda: log.exists() and "ready" in log.read_text(), "the neighbour is up")
    theirs = [int(line.split()[1]) for line in log.read_text().splitlines()]
    assert (await runner.run(scatter(helpers, tmp_path, timeout_s=1.0, kill_grace_s=0.0))).timed_out
    await helpers.until(lambda: not runner.ending, "the tree is ended")
    assert not [name for name, pid in pid_log().items() if helpers.state_of(pid)]
    assert [helpers.state_of(pid) for pid in theirs] == ["S"] * 7
    assert not neighbour.done()
    neighbour.cancel()
    await asyncio.gather(neighbour, return_exceptions=True)
    await helpers.ended(runner, "the neighbour is ended, too")
    assert not any(helpers.state_of(pid) for pid in theirs)


async def test_a_chain_that_forks_and_exits_is_caught(runner, helpers, tmp_path, pid_log):
    chain = helpers.spawn(
        *helpers.python,
        str(helpers.hostile / "chain.py"),
        str(tmp_path / "pids"),
        timeout_s=0.5,
        kill_grace_s=0.05,
    )
    assert (await runner.run(chain)).timed_out
    await helpers.ended(runner, "the chain is ended")
    noted = pid_log()
    assert "link0" in noted
    assert "end" not in noted
    await runner.run(helpers.bash("sleep 0.2"))
    assert pid_log() == noted
    assert not helpers.children()


CLEARED = "env -i {} bash -c 'trap \"\" TERM; echo $$ > {}/pid; sleep 60; sleep 60'"


async def test_what_cleared_its_environment_is_found_by_its_parents(runner, helpers, tmp_path):
    """The parent dies of the first SIGTERM, but by then the child has been seen."""
    script = CLEARED.format("setsid", tmp_path) + " & sleep 60"
    await end(runner, helpers, helpers.bash(script, kill_grace_s=0.05), [tmp_path / "pid"])
    assert not helpers.state_of(int((tmp_path / "pid").read_text()))


async def test_an_orphan_that_cleared_its_environment_is_found_by_its_session(runner, helpers, tmp_path):
    script = "(" + CLEARED.format("", tmp_path) + " &); sleep 60"
    await end(runner, helpers, helpers.bash(script, kill_grace_s=0.05), [tmp_path / "pid"])
    assert not helpers.state_of(int((tmp_path / "pid").read_text()))


async def test_the_hole_an_orphan_that_left_the_session_and_cleared_its_environment(
    runner, helpers, tmp_path, pid_log
):
    """What gets away is told in the module's docstring; everything else of the same tree still ends."""
    result = await runner.run(scatter(helpers, tmp_path, "clear", timeout_s=1.5))
    assert result.stdout == b"ready\n"
    await helpers.ended(runner, "the tree is ended")
    pids = pid_log()
    survivors = {name for name, pid in pids.items() if helpers.is_alive(pid)}
    assert survivors == {"stubborn", "orphan0", "orphan1", "orphan2"}
    # They are children of the daemon, so none stays a zombie when it ends.
    await helpers.kill(*(pids[name] for name in survivors))


async def test_after_a_normal_exit_all_live_on_and_are_counted(runner, helpers, tmp_path, pid_log):
    result = await runner.run(scatter(helpers, tmp_path, "exit"))
    assert (result.exit_code, result.left_running, result.inherited_pipe) == (0, 6, True)
    pids = {name: pid for name, pid in pid_log().items() if name != "ready"}
    assert all(helpers.is_alive(pid) for pid in pids.values())
    await helpers.kill(*pids.values())


async def test_another_hooks_leftovers_are_not_counted(runner, helpers):
    first = await runner.run(helpers.bash("(setsid sleep 60 >/dev/null 2>&1 & echo $!)"))
    second = await runner.run(helpers.bash("(setsid sleep 60 >/dev/null 2>&1 & echo $!)"))
    assert (first.left_running, second.left_running) == (1, 1)
    await helpers.kill(int(first.stdout), int(second.stdout))


async def test_trees_can_be_ended_without_a_free_descriptor(runner, helpers, tmp_path, pid_log):
    running = asyncio.ensure_future(runner.run(scatter(helpers, tmp_path)))
    await helpers.until(lambda: "ready" in pid_log(), "the tree is up")
    pids = pid_log()
    taken = []
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        while runner.running or runner.ending:
            await asyncio.sleep(0.01)
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not [name for name, pid in pids.items() if helpers.state_of(pid)]


# --- the parts


@pytest.fixture
def trees():
    made = LinuxTrees()
    yield made
    made.close()
    made.close()


def test_a_signal_goes_only_to_the_process_that_was_meant(helpers):
    child = subprocess.Popen(["/bin/sleep", "60"])
    try:
        seen = proc.stat_of(child.pid)
        assert seen.parent == os.getpid()
        tree_linux._send(child.pid, seen._replace(started=seen.started - 1), signal.SIGKILL)
        assert helpers.is_alive(child.pid)
        tree_linux._send(child.pid, seen, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        tree_linux._send(child.pid, seen, signal.SIGKILL)
    finally:
        child.kill()
        child.wait()


def test_what_is_missing_is_told(trees, monkeypatch):
    assert trees.limitation is None
    monkeypatch.setattr("hooksd.process.orphans._set_subreaper", lambda *, on: None)
    monkeypatch.setattr("hooksd.process.orphans._is_subreaper", lambda: False)
    other = LinuxTrees()
    assert "subreaper" in other.limitation
    other.close()


def test_nothing_is_taken_for_gone_when_it_cannot_be_looked_at(trees, monkeypatch):
    child = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    ownership.own(child.pid)

    def no_descriptor(operation):
        raise NoDescriptor

    monkeypatch.setattr(trees.reserve, "lend", no_descriptor)
    tree = trees.tree(child.pid, "mark")
    try:
        tree.terminate()
        assert not tree.is_gone()
        assert not tree.kill()
        assert trees.survivors(child.pid, "mark") == 0
        assert trees.reap_orphans() == (1, 0), "not known, so the next look must come soon"
    finally:
        assert child.wait() in (-signal.SIGTERM, -signal.SIGKILL)
        ownership.disown(child.pid)


# --- what changes while it is looked at


@pytest.fixture
def tree(trees):
    """The tree of a hook that is long gone; what is below it is given by the tests."""
    return trees.tree(2**22 - 1, "mark")


def stat(pid, parent, *, started=1, dead=False):
    return proc.Stat(parent, pid, started, dead)


@pytest.fixture
def processes(monkeypatch):
    """Processes that exist only here: pid to (stat, children)."""
    table = {}
    monkeypatch.setattr(proc, "stat_of", lambda pid: table.get(pid, (None, []))[0])
    monkeypatch.setattr(proc, "children_of", lambda pid: table.get(pid, (None, []))[1])
    return table


def orphan(pid, *, mark=None, is_certain=True, session=1):
    made = Orphan(pid, session)
    made.mark = mark
    made.is_certain = is_certain
    return made


def test_everything_below_is_found(trees, tree, processes):
    me = os.getpid()
    processes.update({10: (stat(10, tree._pid), [11]), 11: (stat(11, 10), []), 20: (stat(20, me), [21, 22])})
    processes.update(
        {21: (stat(21, 20), []), 22: (stat(22, 20), []), 30: (stat(30, me), []), 40: (stat(40, me), [])}
    )
    living = {20: orphan(20, mark=b"mark"), 30: orphan(30, mark=b"other"), 40: orphan(40, session=tree._pid)}
    members, settled = tree.below(living, [10])
    assert (set(members), settled) == ({10, 11, 20, 21, 22, 40}, True)


def test_a_process_that_ended_between_the_lists_is_news(tree, processes):
    assert tree.below({}, [10]) == ({}, False)


def test_a_process_that_moved_between_the_lists_is_news(tree, processes):
    processes[10] = (stat(10, 1), [])
    assert tree.below({}, [10]) == ({}, False)


def test_a_zombie_that_nobody_reaps_is_news_only_once(tree, processes):
    processes[10] = (stat(10, tree._pid, dead=True), [])
    assert tree.below({}, [10]) == ({}, False)
    assert tree.below({}, [10]) == ({}, True)
    processes[10] = (stat(10, tree._pid, dead=True, started=2), [])
    assert tree.below({}, [10]) == ({}, False)


def test_an_orphan_whose_mark_is_not_known_yet_is_news(tree, processes):
    assert tree.below({20: orphan(20, is_certain=False)}, []) == ({}, False)


def test_a_process_that_is_listed_twice_is_found_once(tree, processes):
    """It became an orphan between the two lists."""
    processes[10] = (stat(10, os.getpid()), [])
    assert tree.below({10: orphan(10, mark=b"mark")}, [10]) == ({10: stat(10, os.getpid())}, False)
    assert tree.below({10: orphan(10, mark=b"mark"), 11: orphan(10, mark=b"mark")}, []).settled


def test_one_that_was_seen_before_is_known_without_a_mark(tree, processes):
    processes[10] = (stat(10, tree._pid), [])
    tree.below({}, [10])
    processes[10] = (stat(10, os.getpid()), [])
    assert set(tree.below({10: orphan(10)}, []).members) == {10}
    processes[10] = (stat(10, os.getpid(), started=2), [])
    assert tree.below({10: orphan(10)}, []) == ({}, True)
    del processes[10]
    assert tree.below({10: orphan(10)}, []) == ({}, True)


@pytest.mark.parametrize(
    ("reaped", "settled"),
    [
        ([], True),
        ([orphan(5, mark=b"other")], True),
        ([orphan(5, mark=b"mark")], False),
        ([orphan(5, is_certain=False)], False),
        ([orphan(5, mark=b"other"), orphan(6, mark=b"mark")], False),
    ],
)
def test_an_orphan_of_the_tree_that_was_reaped_is_news(trees, tree, processes, monkeypatch, reaped, settled):
    monkeypatch.setattr(trees.orphans, "look", lambda: Look({}, reaped))
    assert tree._look() == ({}, settled)
    assert tree.is_gone() == settled


def test_a_tree_that_never_settles_is_not_gone(trees, tree, processes, monkeypatch):
    looks = []
    monkeypatch.setattr(trees.orphans, "look", lambda: looks.append(1) or Look({}, [orphan(5, mark=b"mark")]))
    assert not tree.kill()
    assert len(looks) == tree_linux.MAX_STOP_ROUNDS


@pytest.mark.parametrize(
    ("certain_after", "mark", "known_before", "count"),
    [
        (3, b"mark", False, 1),
        (3, b"other", False, 0),
        # Never certain while it is waited for: it is this hook's if it landed here just now.
        (1_000, None, False, 1),
        (1_000, None, True, 0),
    ],
)
def test_counting_waits_a_little_for_an_exec(
    trees, processes, monkeypatch, certain_after, mark, known_before, count
):
    looks = []
    seen = orphan(10, is_certain=False)
    seen.first_seen_at += -1000 if known_before else 1000

    def look():
        looks.append(1)
        if len(looks) > certain_after:
            seen.mark, seen.is_certain = mark, True
        return Look({10: seen}, [])

    processes[10] = (stat(10, os.getpid()), [])
    monkeypatch.setattr(trees.orphans, "look", look)
    assert trees.survivors(2**22 - 1, "mark") == count
    assert len(looks) == min(certain_after, tree_linux.MAX_EXEC_LOOKS) + 1
