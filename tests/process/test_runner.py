from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import signal
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from hooksd.model.problems import ProblemKind
from hooksd.model.records import Level
from hooksd.model.run import LaunchFailure
from hooksd.process.launch import launch
from hooksd.process.runner import Runner


GENEROUS_S = 20.0


# --- what the process gets


LOOK_AROUND = """
import json, os, stat, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
kinds = []
for fd in sorted(int(name) for name in os.listdir("/proc/self/fd")):
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        continue  # the directory that was just listed
    kinds.append([fd, "pipe" if stat.S_ISFIFO(mode) else os.readlink("/proc/self/fd/%d" % fd)])
json.dump({
    "descriptors": kinds, "cwd": os.getcwd(), "env": dict(os.environ),
    "leads": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
    "blocked": int(status["SigBlk"], 16), "ignored": int(status["SigIgn"], 16), "argv": sys.argv,
}, sys.stdout)
"""
# Python ignores SIGPIPE and SIGXFSZ for itself, whatever it was given.
PYTHON_IGNORES = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)


async def test_gets_exactly_what_the_protocol_says(runner, helpers, tmp_path):
    read, write = os.pipe()
    os.set_inheritable(read, True)
    os.set_inheritable(write, True)
    try:
        spawn = helpers.spawn(*helpers.python, "-c", LOOK_AROUND, "one", cwd=str(tmp_path), env={"A": "ä b"})
        result = await runner.run(spawn)
    finally:
        os.close(read)
        os.close(write)
    assert result.exit_code == 0, result.stderr
    seen = json.loads(result.stdout)

    assert seen["descriptors"] == [[0, "pipe"], [1, "pipe"], [2, "pipe"]]
    assert seen["cwd"] == str(tmp_path)
    assert seen["leads"] == [True, True]
    assert seen["argv"][1:] == ["one"]
    assert seen["blocked"] == 0
    assert seen["ignored"] & ~PYTHON_IGNORES == 0
    assert {name: seen["env"][name] for name in spawn.env} == spawn.env


async def test_without_stdin_reads_the_null_device(runner, helpers):
    result = await runner.run(helpers.bash("readlink /proc/self/fd/0; cat", stdin=None))
    assert result.stdout == b"/dev/null\n"


# --- what comes of it


async def test_tells_what_the_process_did(runner, helpers):
    spawn = helpers.bash("cat; echo oops >&2; exit 7", stdin=b"hello")
    result = await runner.run(spawn)
    assert result.launch_failure is None
    assert result.argv == spawn.candidates[0]
    assert result.pid is not None
    assert (result.exit_code, result.signal, result.timed_out) == (7, None, False)
    assert (result.stdout, result.stderr) == (b"hello", b"oops\n")
    assert (result.stdout_bytes, result.stderr_bytes) == (5, 5)
    assert (result.stdout_truncated, result.stderr_truncated, result.inherited_pipe) == (False, False, False)
    assert result.left_running == 0
    assert 0 < result.duration_s < 20
    assert result.search_path is None


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE, signal.SIGHUP]
)
async def test_death_by_signal(runner, helpers, number):
    result = await runner.run(helpers.bash(f"echo before; ulimit -c 0; kill -{number.name[3:]} $$; sleep 30"))
    assert (result.exit_code, result.signal) == (None, number)
    assert result.stdout == b"before\n"


async def test_command_not_found_tells_the_path(runner, helpers):
    result = await runner.run(helpers.bash("no-such-command-here", env={"PATH": "/nowhere"}))
    assert result.exit_code == 127
    assert result.search_path == "/nowhere"


async def test_exactly_the_limit_is_not_truncated(runner, helpers):
    result = await runner.run(helpers.bash("head -c 65536 /dev/zero; head -c 65537 /dev/zero >&2"))
    assert (len(result.stdout), result.stdout_bytes, result.stdout_truncated) == (65536, 65536, False)
    assert (len(result.stderr), result.stderr_bytes, result.stderr_truncated) == (65536, 65537, True)


async def test_output_beyond_the_limit_is_drained_and_counted(runner, helpers):
    spawn = helpers.bash(
        "head -c 5000000 /dev/zero; head -c 3000000 /dev/zero >&2; exit 4", stdout_limit_bytes=10
    )
    result = await runner.run(spawn)
    assert result.exit_code == 4
    assert (result.stdout, result.stdout_bytes, result.stdout_truncated) == (b"\0" * 10, 5_000_000, True)
    assert (len(result.stderr), result.stderr_bytes, result.stderr_truncated) == (65_536, 3_000_000, True)


async def test_keep_tail_keeps_both_ends(runner, helpers):
    spawn = helpers.bash(
        "printf 'begin'; head -c 200000 /dev/zero; printf 'end'", stdout_limit_bytes=9, keep_tail=True
    )
    result = await runner.run(spawn)
    assert result.stdout.startswith(b"beg\n")
    assert result.stdout.endswith(b"\n\0\0\0end")
    assert b"199999 bytes" in result.stdout
    assert result.stdout_bytes == 200_008


# --- all pipes at once


async def test_one_mebibyte_in_and_out(runner, helpers):
    data = os.urandom(1 << 20)
    result = await runner.run(helpers.spawn("/bin/cat", stdin=data, stdout_limit_bytes=1 << 21))
    assert result.exit_code == 0
    assert result.stdout == data


@pytest.mark.parametrize("size", [1_000, 1_000_000])
async def test_nothing_keeps_the_input_of_a_hook_that_is_over(runner, helpers, size):
    data = os.urandom(size)
    before = sys.getrefcount(data)
    gc.disable()
    try:
        assert (await runner.run(helpers.bash("cat >&2", stdin=data))).exit_code == 0
        await helpers.until(lambda: sys.getrefcount(data) == before, "it is let go")
    finally:
        gc.enable()


async def test_writes_a_lot_before_it_reads(runner, helpers):
    spawn = helpers.bash(
        "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; wc -c >&2", stdin=b"x" * 500_000
    )
    result = await runner.run(spawn)
    assert (result.exit_code, result.stdout_bytes, result.stderr_bytes) == (0, 1_000_000, 1_000_007)


async def test_stdin_that_is_never_read_is_no_failure(runner, helpers):
    result = await runner.run(helpers.bash("echo fine", stdin=b"x" * 10_000_000))
    assert (result.exit_code, result.stdout) == (0, b"fine\n")


async def test_stdin_that_is_closed_early_is_no_failure(runner, helpers):
    result = await runner.run(
        helpers.bash("head -c 3; exec <&-; sleep 0.05; echo fine", stdin=b"abc" * 1_000_000)
    )
    assert (result.exit_code, result.stdout) == (0, b"abcfine\n")


async def test_stdin_that_is_never_read_until_the_deadline(runner, helpers):
    result = await runner.run(helpers.bash("echo started; sleep 60", stdin=b"x" * 10_000_000, timeout_s=0.3))
    assert (result.timed_out, result.stdout) == (True, b"started\n")


async def test_closing_stdout_early_is_no_end(runner, helpers):
    result = await runner.run(helpers.bash("echo ok; exec >&- 2>&-; sleep 0.1; exit 5"))
    assert (result.exit_code, result.stdout) == (5, b"ok\n")
    assert result.duration_s >= 0.1


# --- when the result is decided


async def test_a_descendant_that_holds_a_pipe_does_not_delay(runner, helpers):
    result = await runner.run(helpers.bash("sleep 60 & echo $!; exit 2"))
    assert (result.exit_code, result.inherited_pipe, result.left_running) == (2, True, 1)
    assert result.duration_s < 10
    assert helpers.is_alive(int(result.stdout))
    await helpers.kill(int(result.stdout))


async def test_a_whole_answer_is_not_waited_on(runner, helpers, monkeypatch):
    monkeypatch.setattr("hooksd.process.invocation.LATE_BYTES_S", 30.0)
    results = [await runner.run(helpers.bash("""sleep 60 & echo '{"pid": '$!'}'""")) for _ in range(3)]
    await helpers.kill(*(json.loads(result.stdout)["pid"] for result in results))
    assert all(result.inherited_pipe for result in results)
    assert max(result.duration_s for result in results) < 10


async def test_late_bytes_are_kept(runner, helpers, monkeypatch):
    monkeypatch.setattr("hooksd.process.invocation.LATE_BYTES_S", 10.0)
    result = await runner.run(helpers.bash("echo late > >(sleep 0.02; cat)"))
    assert (result.exit_code, result.stdout, result.inherited_pipe) == (0, b"late\n", False)
    await helpers.until(lambda: not helpers.children(), "the process substitution is reaped")


async def test_a_flood_from_a_descendant_does_not_delay(runner, helpers):
    result = await runner.run(helpers.bash("(trap '' PIPE; while :; do echo spam || exit; done) & exit 3"))
    assert (result.exit_code, result.inherited_pipe) == (3, True)
    await helpers.until(lambda: not helpers.children(), "the flood ends with our end of the pipe")


async def test_quiet_background_processes_live_on_and_are_counted(runner, helpers):
    script = "(setsid sleep 60 >/dev/null 2>&1 & echo $!); sleep 60 >/dev/null 2>&1 & echo $!"
    result = await runner.run(helpers.bash(script))
    pids = [int(pid) for pid in result.stdout.split()]
    assert (result.exit_code, result.inherited_pipe, result.left_running) == (0, False, 2)
    assert all(helpers.is_alive(pid) for pid in pids)
    assert (await runner.run(helpers.bash("true"))).left_running == 0
    await helpers.kill(*pids)


async def test_an_orphan_that_ends_while_another_hook_runs_is_reaped(runner, helpers):
    long = asyncio.ensure_future(
        runner.run(helpers.bash("(sleep 0.1 &) ; sleep 0.4; cat /dev/null; sleep 60"))
    )
    await helpers.until(lambda: len(helpers.children()) > 1, "the orphan landed here")
    await helpers.until(
        lambda: len(helpers.children()) == 1 and not helpers.zombies(), "the orphan is reaped"
    )
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long


# --- the deadline


async def test_deadline_keeps_what_was_written(runner, helpers):
    started = time.monotonic()
    result = await runner.run(helpers.bash("echo out; echo err >&2; sleep 60", timeout_s=0.3))
    assert time.monotonic() - started < 10
    assert (result.timed_out, result.exit_code, result.signal) == (True, None, None)
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert result.pid is not None
    await helpers.ended(runner, "the tree is ended")
    assert not helpers.is_alive(result.pid)


async def test_deadline_of_a_stopped_hook(runner, helpers):
    result = await runner.run(helpers.bash("echo $$; kill -STOP $$; sleep 60", timeout_s=0.3))
    assert result.timed_out
    await helpers.ended(runner, "the tree is ended")
    assert not helpers.state_of(result.pid)


async def test_deadline_that_has_passed_starts_nothing(runner, helpers, tmp_path):
    result = await runner.run(helpers.bash(f"touch {tmp_path}/ran", timeout_s=-1))
    assert result.timed_out
    assert result.pid is None
    await runner.aclose(1)
    assert not (tmp_path / "ran").exists()


async def test_deadline_in_the_grace_for_late_bytes_is_no_timeout(runner, helpers, monkeypatch):
    monkeypatch.setattr("hooksd.process.invocation.LATE_BYTES_S", 30.0)
    result = await runner.run(helpers.bash("sleep 60 & echo $!; exit 6", timeout_s=0.5))
    assert (result.exit_code, result.timed_out, result.inherited_pipe) == (6, False, True)
    await helpers.kill(int(result.stdout))


async def test_no_deadline(runner, helpers):
    assert (await runner.run(helpers.bash("exit 3", timeout_s=None))).exit_code == 3


# --- launch failures


async def test_only_not_there_moves_on(runner, helpers, tmp_path):
    locked = tmp_path / "locked"
    locked.write_text("#!/bin/sh\n")
    ok = ("/bin/echo", "ok")
    result = await runner.run(helpers.spawn(candidates=(("/nowhere/a", "x"), ("/etc/passwd/b",), ok)))
    assert (result.exit_code, result.stdout, result.argv) == (0, b"ok\n", ok)

    result = await runner.run(helpers.spawn(candidates=(("/nowhere/a",), (str(locked),), ok)))
    assert result.launch_failure.kind is ProblemKind.LAUNCH
    assert result.launch_failure.message == f"the program {locked} is not executable"

    result = await runner.run(helpers.spawn(candidates=(("/nowhere/a",), ("/nowhere/b",))))
    assert result.launch_failure.kind is ProblemKind.MISSING_RUNTIME
    assert "/nowhere/a, /nowhere/b" in result.launch_failure.message


async def test_a_hundred_failing_launches_leak_nothing(runner, helpers):
    await runner.run(helpers.bash("true"))
    before = helpers.descriptors()
    results = [await runner.run(helpers.spawn("/nonexistent/hook", stdin=b"x" * 1000)) for _ in range(50)]
    results += await asyncio.gather(*(runner.run(helpers.spawn("/etc/passwd")) for _ in range(50)))
    assert {result.launch_failure.kind for result in results} == {
        ProblemKind.MISSING_RUNTIME,
        ProblemKind.LAUNCH,
    }
    assert helpers.descriptors() == before
    assert not helpers.children()
    assert runner.running == 0


async def test_a_fault_of_ours_after_the_deadline_is_not_lost(runner, helpers, monkeypatch):
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
    free = threading.Event()

    def broken(spawn, limit):
        free.wait(GENEROUS_S)
        raise TypeError("odd")

    monkeypatch.setattr("hooksd.process.runner.launch", broken)
    assert (await runner.run(helpers.bash("true", timeout_s=0.05))).timed_out
    free.set()
    await helpers.until(lambda: not runner.running, "it is over")
    assert [str(context["exception"]) for context in told] == ["odd"]


async def test_a_fault_of_ours_is_raised(runner, helpers):
    with pytest.raises(TypeError):
        await runner.run(helpers.spawn(*("/bin/echo", 5)))
    assert runner.running == 0


# --- cancelling and closing


async def test_cancelling_raises_at_once_and_ends_the_tree(runner, helpers, tmp_path):
    script = f"trap '' TERM; echo $$ > {tmp_path}/pid; sleep 60 & wait; sleep 60"
    task = asyncio.ensure_future(runner.run(helpers.bash(script, kill_grace_s=60.0)))
    await helpers.until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "it runs")
    pid = int((tmp_path / "pid").read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # On a busy machine it may run before the loop has been told that it was started.
    await helpers.until(lambda: (runner.running, runner.ending) == (0, 1), "its tree is being ended")
    assert helpers.is_alive(pid)
    await runner.aclose(0.05)
    assert not helpers.state_of(pid)
    assert not helpers.children()


async def test_cancelling_while_late_bytes_are_waited_for(runner, helpers, monkeypatch, tmp_path):
    """The hook has exited: nothing is killed any more."""
    monkeypatch.setattr("hooksd.process.invocation.LATE_BYTES_S", 60.0)
    before = helpers.descriptors()
    task = asyncio.ensure_future(runner.run(helpers.bash(f"sleep 60 & echo $! > {tmp_path}/pid; exit 3")))
    log = tmp_path / "pid"
    await helpers.until(lambda: log.exists() and log.read_text(), "it runs")
    left = int(log.read_text())
    await helpers.until(lambda: helpers.children() == {left}, "it has exited")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert runner.ending == 0
    assert helpers.is_alive(left)
    await helpers.kill(left)
    assert helpers.descriptors() == before


async def test_cancelling_before_the_spawn_is_done(runner, helpers):
    tasks = [asyncio.ensure_future(runner.run(helpers.bash("sleep 60"))) for _ in range(20)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    assert all(
        isinstance(one, asyncio.CancelledError)
        for one in await asyncio.gather(*tasks, return_exceptions=True)
    )
    await runner.aclose(1)
    assert not helpers.children()
    assert (runner.running, runner.ending) == (0, 0)


async def test_closing_ends_everything(runner, helpers):
    tasks = [
        asyncio.ensure_future(runner.run(helpers.bash("trap '' TERM; sleep 60; sleep 60"))) for _ in range(4)
    ]
    await helpers.until(lambda: len(helpers.children()) == 4, "they run")
    await runner.aclose(0.05)
    assert not helpers.children()
    assert all(
        isinstance(one, asyncio.CancelledError)
        for one in await asyncio.gather(*tasks, return_exceptions=True)
    )
    result = await runner.run(helpers.bash("true"))
    assert result.launch_failure.kind is ProblemKind.LAUNCH
    assert "shutting down" in result.launch_failure.message


async def test_a_hook_that_changed_its_user_is_given_up(runner, helpers, monkeypatch):
    """What cannot be killed does not hold the daemon up; it is told, and reaped when it comes out."""
    records = []
    monkeypatch.setattr("hooksd.process.ending.KILL_LIMIT_S", 0.05)
    monkeypatch.setattr("hooksd.process.tree_linux.os.killpg", lambda pid, number: None)
    runner = Runner(asyncio.get_running_loop(), max_ending=4, record=lambda *record: records.append(record))
    spawn = helpers.bash("echo $$; sleep 60", timeout_s=0.3, kill_grace_s=0.0)
    result = await runner.run(spawn)
    await helpers.ended(runner, "it is given up")
    assert [(level, kind, fields["invocation_id"]) for level, kind, fields in records] == [
        (Level.WARNING, "hook.not_killed", spawn.mark)
    ]
    assert helpers.is_alive(result.pid)
    os.kill(result.pid, signal.SIGKILL)
    await helpers.until(lambda: not helpers.state_of(result.pid), "it is reaped")
    monkeypatch.undo()
    await runner.aclose(0)


async def test_beyond_max_ending_there_is_no_grace(helpers):
    records = []
    runner = Runner(asyncio.get_running_loop(), max_ending=2, record=lambda *record: records.append(record))
    script = "trap '' TERM; echo up; while :; do sleep 60; done"
    results = await asyncio.gather(
        *(runner.run(helpers.bash(script, timeout_s=1.0, kill_grace_s=60.0)) for _ in range(4))
    )
    assert {result.stdout for result in results} == {b"up\n"}
    await helpers.until(lambda: runner.ending == 2, "two are killed, two have their grace")
    assert [(level, kind, fields["limit"]) for level, kind, fields in records] == [
        (Level.WARNING, "hook.killed_without_grace", 2)
    ] * 2
    assert sum(helpers.is_alive(result.pid) for result in results) == 2
    await runner.aclose(0.05)
    assert not any(helpers.state_of(result.pid) for result in results)


async def test_a_status_that_somebody_else_took_is_no_success(runner, helpers):
    running = asyncio.ensure_future(runner.run(helpers.bash("read; exit 0", stdin=b"x" * 100_000)))
    await helpers.until(helpers.children, "it runs")
    (pid,) = helpers.children()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    result = await running
    assert result.exit_code is None
    assert result.launch_failure.kind is ProblemKind.LAUNCH
    assert "exit status was lost" in result.launch_failure.message


async def test_a_spawn_that_hangs_does_not_outlast_the_deadline(runner, helpers, monkeypatch):
    """As an `exec` on a dead network disk does."""
    free = threading.Event()
    monkeypatch.setattr(
        "hooksd.process.runner.launch", lambda spawn, limit: free.wait(GENEROUS_S) and launch(spawn, limit)
    )
    spawn = helpers.bash("sleep 60", timeout_s=0.1)
    result = await runner.run(spawn)
    assert (result.timed_out, result.pid) == (True, None)
    assert (runner.running, runner.ending) == (1, 0)
    free.set()
    await helpers.until(lambda: not runner.running, "it is started after all")
    await helpers.until(lambda: not runner.ending, "and ended at once")
    assert not helpers.children()


def test_a_loop_that_is_closed_under_a_spawn(helpers, monkeypatch):
    before = helpers.descriptors()
    started, closed = threading.Event(), threading.Event()

    def slow(spawn, limit):
        launched = launch(spawn, limit)
        started.set()
        closed.wait(GENEROUS_S)
        return launched

    monkeypatch.setattr("hooksd.process.runner.launch", slow)
    loop = asyncio.new_event_loop()

    async def start():
        runner = Runner(loop, max_ending=1)
        running = asyncio.ensure_future(runner.run(helpers.bash("sleep 60", timeout_s=None)))
        await asyncio.to_thread(started.wait, GENEROUS_S)
        running.cancel()
        return runner

    runner = loop.run_until_complete(start())
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    closed.set()
    runner._pool.close()
    runner._trees.close()
    runner._ready._epoll.close()
    assert not helpers.children()
    assert helpers.descriptors() == before


async def test_a_loop_without_room(runner, helpers, monkeypatch):
    """What goes wrong after the start leaves nothing either."""

    def refuse(*_):
        raise OSError(28, "No space left on device")

    before = helpers.descriptors()
    monkeypatch.setattr(runner, "_watch_exit", refuse)
    with pytest.raises(OSError, match="No space left"):
        await runner.run(helpers.bash("sleep 60"))
    assert not helpers.children()
    assert helpers.descriptors() == before
    assert runner.running == 0


async def test_hooks_have_a_limit_of_their_own(helpers):
    runner = Runner(asyncio.get_running_loop(), max_ending=1, hook_descriptors=700)
    results = await asyncio.gather(*(runner.run(helpers.bash("ulimit -Sn")) for _ in range(8)))
    assert {result.stdout for result in results} == {b"700\n"}
    await runner.aclose(0)


async def test_few_descriptors(runner, helpers):
    """With a limit of 64 some hooks cannot start, and say why; the others run; nothing leaks."""
    await runner.run(helpers.bash("true"))
    before = helpers.descriptors()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
    try:
        results = await asyncio.gather(
            *(runner.run(helpers.bash("sleep 0.1; cat", stdin=b"x")) for _ in range(60))
        )
        assert (await runner.run(helpers.bash("cat", stdin=b"x"))).stdout == b"x"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    failed = [result.launch_failure for result in results if result.launch_failure]
    assert {(result.exit_code, result.stdout) for result in results if not result.launch_failure} == {
        (0, b"x")
    }
    assert failed
    assert len(failed) < 60
    assert all("Too many open files" in failure.message for failure in failed)
    assert helpers.descriptors() == before


async def test_closing_does_not_wait_for_ever(helpers, monkeypatch):
    """As for a spawn that hangs, or a process that hangs in the kernel."""
    monkeypatch.setattr("hooksd.process.runner.KILL_LIMIT_S", 0.05)
    monkeypatch.setattr("hooksd.process.runner.CLOSE_MARGIN_S", 0.0)
    monkeypatch.setattr("hooksd.process.spawn_pool.JOIN_S", 0.05)
    started, free = threading.Event(), threading.Event()

    def hangs(spawn, limit):
        started.set()
        free.wait(GENEROUS_S)
        return LaunchFailure(kind=ProblemKind.MISSING_RUNTIME, message="gone")

    monkeypatch.setattr("hooksd.process.runner.launch", hangs)
    runner = Runner(asyncio.get_running_loop(), max_ending=1)
    task = asyncio.ensure_future(runner.run(helpers.bash("true")))
    await helpers.until(started.is_set, "it hangs")
    await runner.aclose(0)
    assert runner.running == 1
    assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
    free.set()
    await helpers.until(lambda: not runner.running, "it came back")


async def test_orphans_are_looked_for_ever_less_often(runner, helpers, monkeypatch):
    pauses = []
    call_later = runner._loop.call_later
    monkeypatch.setattr("hooksd.process.runner.FIRST_REAP_S", 0.01)
    monkeypatch.setattr("hooksd.process.runner.LONGEST_REAP_S", 0.05)
    loop = SimpleNamespace(
        call_later=lambda delay, callback: pauses.append(delay) or call_later(delay, callback),
        create_future=runner._loop.create_future,
        call_soon_threadsafe=runner._loop.call_soon_threadsafe,
    )
    monkeypatch.setattr(runner, "_loop", loop)
    result = await runner.run(helpers.bash("sleep 60 >/dev/null 2>&1 & echo $!", timeout_s=None))
    await helpers.until(lambda: pauses[-3:] == [0.05] * 3, "nothing changes any more")
    assert 0.02 in pauses
    assert (await runner.run(helpers.bash("true", timeout_s=None))).exit_code == 0
    assert pauses.count(0.01) > pauses[: pauses.index(0.05)].count(0.01)
    await helpers.kill(int(result.stdout))
    await helpers.until(lambda: runner._reap_timer is None, "there is nothing to look for")


async def test_what_forks_and_ends_all_the_time_is_reaped_all_the_time(
    runner, helpers, tmp_path, monkeypatch
):
    pauses = []
    call_later = runner._loop.call_later
    monkeypatch.setattr("hooksd.process.runner.FIRST_REAP_S", 0.1)
    loop = SimpleNamespace(
        call_later=lambda delay, callback: pauses.append(delay) or call_later(delay, callback),
        create_future=runner._loop.create_future,
        call_soon_threadsafe=runner._loop.call_soon_threadsafe,
    )
    monkeypatch.setattr(runner, "_loop", loop)
    # As many live as before whenever it is looked at, and many have ended.
    chain = (
        "import os, time\nwhile not os.path.exists('stop'):\n  time.sleep(0.02)\n  if os.fork(): os._exit(0)"
        "\n  open('going', 'w').close()"
    )
    command = f'{sys.executable} -c "{chain}" </dev/null >/dev/null 2>&1 &'

    await runner.run(helpers.bash(command, cwd=str(tmp_path), timeout_s=None))
    # The interpreter takes its time to start, and nothing happens until then.
    await helpers.until((tmp_path / "going").exists, "it forks and ends")
    await helpers.until(lambda: pauses[-1] == 0.1, "that is noticed")
    pauses.clear()
    await helpers.until(lambda: len(pauses) >= 8, "it is looked for orphans")
    (tmp_path / "stop").touch()

    assert max(pauses) < 1
    await helpers.until(lambda: not helpers.children(), "all are reaped")


async def test_many_at_once(runner, helpers):
    results = await asyncio.gather(
        *(runner.run(helpers.bash(f"cat; exit {n}", stdin=b"%d" % n)) for n in range(40))
    )
    assert [(result.exit_code, result.stdout) for result in results] == [(n, b"%d" % n) for n in range(40)]
