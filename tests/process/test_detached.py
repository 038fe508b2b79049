"""Detached hooks by real workers: what they get, what is left behind, and who sees their end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hooksd.model.problems import ProblemKind
from hooksd.model.records import Level
from hooksd.model.run import LaunchFailure
from hooksd.process import detached, detached_files
from hooksd.process.detached import DetachedEnd, DetachedHooks
from hooksd.process.detached_files import DetachedFiles
from hooksd.process.detached_place import DetachedPlace, Keeping
from hooksd.process.runner import Runner


Helpers = Any
"""The class is in conftest.py, which cannot be imported."""


class House:
    """Detached hooks of one state directory, through several daemons."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = DetachedFiles(str(root / "detached"))
        self.ends: list[DetachedEnd] = []
        self.records: list[tuple[Level, str, dict[str, Any]]] = []
        self.made: list[DetachedHooks] = []

    def hooks(self, place: DetachedPlace | None = None, most: int = 16, **more: Any) -> DetachedHooks:
        made = DetachedHooks(
            asyncio.get_running_loop(),
            self.files,
            place or DetachedPlace(keeping=Keeping.OWN_SESSION),
            most=lambda: most,
            record=lambda level, kind, fields: self.records.append((level, kind, dict(fields))),
            **more,
        )
        made.ended = self.ends.append
        self.made.append(made)
        return made

    @property
    def names(self) -> set[str]:
        """Everything below the directory, but for the logs and the folders themselves."""
        runs = self.root / "detached" / "runs"
        return {path.name for path in runs.iterdir()} if runs.exists() else set()


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: object) -> AsyncIterator[House]:
    made = House(tmp_path)
    yield made
    for hooks in made.made:
        await hooks.aclose()


GATED = "until [ -e go ]; do sleep 0.01; done; "


async def test_it_runs_without_a_deadline_with_its_files_and_a_log(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    hooks = house.hooks()
    spawn = helpers.bash(
        "ls -l /proc/self/fd > fds; cat; echo out; echo err >&2; cat $IN > seen; echo x > $OUT; exit 3",
        cwd=str(tmp_path),
        timeout_s=0.0,
    )
    spawn.env["IN"] = house.files.payload_path(spawn.mark)
    spawn.env["OUT"] = house.files.answer_path(spawn.mark)

    pid = await hooks.start(spawn, b'{"a": 1}', b"about it")

    assert isinstance(pid, int)
    assert os.getsid(pid) == pid
    await helpers.until(lambda: house.ends, "it ended")
    (end,) = house.ends
    assert (end.run_id, end.about) == (spawn.mark, b"about it")
    assert end.result is not None
    assert (end.result.exit_code, end.result.signal, end.result.launch_failure) == (3, None, None)
    assert end.result.argv[:2] == ("/bin/bash", "-c")
    assert (tmp_path / "seen").read_text() == '{"a": 1}'
    log = tmp_path / "detached" / f"{spawn.mark}.log"
    assert log.read_text() == "out\nerr\n"
    assert log.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "detached").stat().st_mode & 0o777 == 0o700
    descriptors = [line.split()[-3] for line in (tmp_path / "fds").read_text().splitlines() if "->" in line]
    assert set(descriptors) <= {"0", "1", "2", "3"}, "3 is the directory that `ls` reads"
    assert house.names == set()
    assert hooks.running == 0
    assert helpers.zombies() == []


async def test_its_files_are_the_owners_only_and_secrets_go_as_soon_as_they_can(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    hooks = house.hooks()
    spawn = helpers.bash("touch began; " + GATED, cwd=str(tmp_path), env={"TOKEN": "sesame"})

    await hooks.start(spawn, b"payload", b"about")
    await helpers.until((tmp_path / "began").exists, "it began")

    directory = Path(house.files.directory(spawn.mark))
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in directory.iterdir()} == {
        "lock",
        "about.json",
        "payload.json",
        "answer.json",
    }
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert not any(b"sesame" in path.read_bytes() for path in directory.iterdir())
    (tmp_path / "go").touch()
    await helpers.until(lambda: house.ends, "it ended")


async def test_the_soft_limit_of_open_files_is_the_one_of_hooks(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    hooks = house.hooks(descriptors=123)

    await hooks.start(helpers.bash("ulimit -Sn > limit", cwd=str(tmp_path)), None, b"")

    await helpers.until(lambda: house.ends, "it ended")
    assert (tmp_path / "limit").read_text() == "123\n"


async def test_a_signal_is_told(house: House, helpers: Helpers, tmp_path: Path) -> None:
    await house.hooks().start(helpers.bash("kill -9 $$"), None, b"")

    await helpers.until(lambda: house.ends, "it ended")
    assert house.ends[0].result is not None
    assert (house.ends[0].result.exit_code, house.ends[0].result.signal) == (None, 9)


async def test_a_killed_worker_leaves_nobody_who_knows(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    hooks = house.hooks()
    spawn = helpers.bash("echo $$ > pid; " + GATED, cwd=str(tmp_path))
    pid = await hooks.start(spawn, b"", b"about")
    await helpers.until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "it began")

    os.kill(pid, signal.SIGKILL)

    await helpers.until(lambda: house.ends, "it ended")
    assert house.ends[0].result is None
    assert house.names == set()
    (tmp_path / "go").touch()
    hook = int((tmp_path / "pid").read_text())
    await helpers.until(lambda: not helpers.is_alive(hook), "the hook itself ended")


# ----------------------------------------------------------------------------------------------------------------------
# What cannot be started


async def test_a_directory_that_is_not_there_leaves_nothing(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    hooks = house.hooks()

    failure = await hooks.start(helpers.bash("true", cwd=str(tmp_path / "gone")), b"p", b"")

    assert isinstance(failure, LaunchFailure)
    assert failure.kind is ProblemKind.MISSING_CWD
    assert not (tmp_path / "detached").exists()
    assert hooks.running == 0


async def test_files_that_cannot_be_made_are_a_launch_failure(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    (tmp_path / "detached").write_text("in the way")

    failure = await house.hooks().start(helpers.bash("true"), b"p", b"")

    assert isinstance(failure, LaunchFailure)
    assert "files of a detached hook" in failure.message


async def test_a_worker_that_cannot_be_started_leaves_nothing(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    place = DetachedPlace(keeping=Keeping.OWN_SESSION, prefix=("/not/there",))
    before = helpers.descriptors()

    failure = await house.hooks(place).start(helpers.bash("true"), b"p", b"")

    assert isinstance(failure, LaunchFailure)
    assert failure.kind is ProblemKind.LAUNCH
    assert list((tmp_path / "detached").iterdir()) == [tmp_path / "detached" / "runs"]
    assert house.names == set()
    assert helpers.descriptors() <= before + 1


async def test_a_program_that_is_gone_is_told_at_the_end(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    await house.hooks().start(helpers.spawn("/not/there"), b"p", b"")

    await helpers.until(lambda: house.ends, "it ended")
    result = house.ends[0].result
    assert result is not None
    assert result.launch_failure is not None
    assert result.launch_failure.kind is ProblemKind.MISSING_RUNTIME
    assert "/not/there does not exist" in result.launch_failure.message


async def test_the_next_candidate_is_tried(house: House, helpers: Helpers, tmp_path: Path) -> None:
    spawn = helpers.spawn("x", candidates=(("/not/there",), ("/bin/bash", "-c", "exit 4")))

    await house.hooks().start(spawn, None, b"")

    await helpers.until(lambda: house.ends, "it ended")
    assert house.ends[0].result is not None
    assert house.ends[0].result.exit_code == 4


async def test_there_is_a_limit(house: House, helpers: Helpers, tmp_path: Path) -> None:
    hooks = house.hooks(most=1)
    await hooks.start(helpers.bash(GATED, cwd=str(tmp_path)), None, b"")

    failure = await hooks.start(helpers.bash("true"), None, b"")

    assert isinstance(failure, LaunchFailure)
    assert failure.kind is ProblemKind.BUSY
    assert "limits.max_detached" in failure.message
    (tmp_path / "go").touch()
    await helpers.until(lambda: house.ends, "it ended")


async def test_a_manager_that_gives_no_scope_is_done_without(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    place = DetachedPlace(keeping=Keeping.SCOPE, prefix=("/bin/false", "{id}"))
    hooks = house.hooks(place)
    spawn = helpers.bash("cat $IN > seen", cwd=str(tmp_path))
    spawn.env["IN"] = house.files.payload_path(spawn.mark)

    await hooks.start(spawn, b"payload", b"about")

    await helpers.until(lambda: house.ends, "it ended")
    assert (tmp_path / "seen").read_text() == "payload"
    assert len(house.ends) == 1
    assert [kind for _, kind, _ in house.records] == ["daemon.limited"]


@pytest.mark.parametrize(
    "prefix",
    [("/usr/bin/env", "UNIT={id}"), ("/bin/sh", "-c", 'exec 3>&-; exec "$@"', "{id}")],
    ids=["hands-on", "closes-descriptors"],
)
async def test_it_is_locked_whatever_program_stands_before_the_worker(
    house: House, helpers: Helpers, tmp_path: Path, prefix: tuple[str, ...]
) -> None:
    hooks = house.hooks(DetachedPlace(keeping=Keeping.SCOPE, prefix=prefix))
    spawn = helpers.bash("touch began; " + GATED, cwd=str(tmp_path))
    pid = await hooks.start(spawn, None, b"about")
    await helpers.until((tmp_path / "began").exists, "it began")

    await hooks.aclose()

    assert house.files.is_alive(spawn.mark), "the worker has a lock of its own"
    (tmp_path / "go").touch()
    os.waitpid(pid, 0)
    assert not house.files.is_alive(spawn.mark), "the hook never had it"
    assert house.records == []


# ----------------------------------------------------------------------------------------------------------------------
# Several lives


async def test_it_outlives_its_daemon_and_the_next_one_sees_its_end(
    house: House, helpers: Helpers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached, "LOOK_S", 0.05)
    first = house.hooks()
    pid = await first.start(helpers.bash(GATED + "exit 5", cwd=str(tmp_path)), b"p", b"about")
    await first.aclose()
    second = house.hooks()

    assert await second.recover() == (0, 1)

    assert helpers.is_alive(pid)
    assert second.running == 1
    (tmp_path / "go").touch()
    await helpers.until(lambda: house.ends, "it ended")
    assert house.ends[0].about == b"about"
    assert house.ends[0].result is not None
    assert house.ends[0].result.exit_code == 5
    await helpers.until(lambda: not house.names, "the files are gone")
    os.waitpid(pid, 0)


async def test_what_ended_while_no_daemon_lived_is_told_at_the_next_start(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    first = house.hooks()
    spawn = helpers.bash(GATED + "exit 0", cwd=str(tmp_path))
    pid = await first.start(spawn, b"p", b"about")
    await first.aclose()
    (tmp_path / "go").touch()
    os.waitpid(pid, 0)
    left = {path.name for path in Path(house.files.directory(spawn.mark)).iterdir()}
    assert left == {"lock", "about.json", "end.json"}, "the payload is gone without a daemon"

    assert await house.hooks().recover() == (1, 0)

    assert [(end.about, end.result and end.result.exit_code) for end in house.ends] == [(b"about", 0)]
    assert house.names == set()


async def test_a_daemon_that_is_killed_takes_no_worker_with_it(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    starter = tmp_path / "starter.py"
    starter.write_text(
        "import asyncio, os, signal, sys\n"
        "from hooksd.model.run import Spawn\n"
        "from hooksd.process.detached import DetachedHooks\n"
        "from hooksd.process.detached_files import DetachedFiles\n"
        "from hooksd.process.detached_place import DetachedPlace, Keeping\n"
        "root = sys.argv[1]\n"
        "async def main():\n"
        "    hooks = DetachedHooks(asyncio.get_running_loop(), DetachedFiles(root + '/detached'),\n"
        "        DetachedPlace(keeping=Keeping.OWN_SESSION), most=lambda: 99)\n"
        "    spawns = [Spawn(candidates=(('/bin/sh', '-c', f'until [ -e go ]; do sleep 0.02; done; touch done-{at}'),),\n"
        "        cwd=root, env=dict(os.environ), stdin=None, stdout_limit_bytes=1, stderr_limit_bytes=1,\n"
        "        deadline=None, kill_grace_s=0.0, mark=f'run-{at}') for at in range(5)]\n"
        "    await asyncio.gather(*(hooks.start(spawn, b'p', b'a') for spawn in spawns))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )

    killed = subprocess.run([sys.executable, str(starter), str(tmp_path)], check=False)

    assert killed.returncode == -signal.SIGKILL
    hooks = house.hooks()
    assert await hooks.recover() == (0, 5), "killed right after the last start"
    (tmp_path / "go").touch()
    await helpers.until(lambda: len(house.ends) == 5, "they ended")
    assert all(end.result is not None and end.result.exit_code == 0 for end in house.ends)
    assert all((tmp_path / f"done-{at}").exists() for at in range(5))


async def test_closing_waits_for_what_is_being_started_and_starts_nothing_more(
    house: House, helpers: Helpers, tmp_path: Path
) -> None:
    hooks = house.hooks()
    spawn = helpers.bash("touch ran", cwd=str(tmp_path))
    starting = asyncio.ensure_future(hooks.start(spawn, b"p", b""))
    await asyncio.sleep(0)
    starting.cancel()

    await hooks.aclose()

    await helpers.until((tmp_path / "ran").exists, "what was begun is carried out")
    refused = await hooks.start(helpers.bash("true"), None, b"")
    assert isinstance(refused, LaunchFailure)
    (pid,) = helpers.children()
    os.waitpid(pid, 0)


async def test_the_runner_neither_reaps_nor_counts_nor_kills_it(
    house: House, helpers: Helpers, tmp_path: Path, runner: Runner
) -> None:
    hooks = house.hooks()
    pid = await hooks.start(helpers.bash("touch began; " + GATED + "exit 7", cwd=str(tmp_path)), None, b"")
    await helpers.until((tmp_path / "began").exists, "it began")

    normal = await runner.run(helpers.bash("true"))
    late = await runner.run(helpers.bash("sleep 30", timeout_s=0.1))

    assert normal.left_running == 0
    assert late.timed_out
    await helpers.ended(runner, "the tree is gone")
    assert helpers.is_alive(pid)
    (tmp_path / "go").touch()
    await helpers.until(lambda: house.ends, "it ended")
    assert house.ends[0].result is not None
    assert house.ends[0].result.exit_code == 7


@pytest.mark.parametrize("worker_is_killed", [False, True])
async def test_what_it_leaves_behind_is_reaped_by_the_runner(
    house: House,
    helpers: Helpers,
    tmp_path: Path,
    runner: Runner,
    monkeypatch: pytest.MonkeyPatch,
    worker_is_killed: bool,
) -> None:
    monkeypatch.setattr("hooksd.process.runner.FIRST_REAP_S", 0.05)
    monkeypatch.setattr("hooksd.process.runner.LONGEST_REAP_S", 0.1)
    hooks = house.hooks()
    hooks.changed, runner.others = runner.keep_reaping, lambda: hooks.running
    # Long after it began: by then nobody looks for orphans of the hooks that the runner itself has started.
    gated = "touch began; until [ -e leave ]; do sleep 0.02; done; (sleep 0.2 & echo $! > orphan); "
    pid = await hooks.start(helpers.bash(gated + GATED, cwd=str(tmp_path)), None, b"")
    await helpers.until((tmp_path / "began").exists, "it began")
    if worker_is_killed:
        os.kill(pid, signal.SIGKILL)
        await helpers.until(lambda: house.ends, "it ended")
    else:
        await helpers.until(lambda: runner._reap_pause_s == 0.1, "nothing happens")

    (tmp_path / "leave").touch()
    await helpers.until(
        lambda: (tmp_path / "orphan").exists() and (tmp_path / "orphan").read_text(), "it left one"
    )
    orphan = (tmp_path / "orphan").read_text().strip()
    await helpers.until(lambda: not Path("/proc", orphan).exists(), "the orphan is reaped")

    (tmp_path / "go").touch()
    await helpers.until(lambda: house.ends and not helpers.children(), "nothing is left")


async def test_without_pidfds_it_is_looked_at(
    house: House, helpers: Helpers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached, "LOOK_S", 0.02)
    monkeypatch.setattr("hooksd.process.exits_pidfd.is_possible", lambda: False)

    await house.hooks().start(helpers.bash("exit 6"), None, b"")

    await helpers.until(lambda: house.ends, "it ended")
    assert house.ends[0].result is not None
    assert house.ends[0].result.exit_code == 6
    assert helpers.zombies() == []


# ----------------------------------------------------------------------------------------------------------------------
# The worker's own failures


@pytest.mark.parametrize(
    ("order", "status", "says"),
    [(None, 1, "order"), ("[]", 1, "order"), ("{}", 1, "order"), ("nonsense", 1, "order")],
)
def test_a_worker_says_what_is_wrong_with_its_order(
    tmp_path: Path, order: str | None, status: int, says: str
) -> None:
    (tmp_path / "lock").touch()
    if order is not None:
        (tmp_path / "order.json").write_text(order)

    done = subprocess.run(
        [sys.executable, "-I", "-S", detached.WORKER, str(tmp_path)], capture_output=True, check=False
    )

    assert done.returncode == status
    assert says.encode() in done.stderr


def test_a_worker_that_is_called_wrongly_tells_its_usage() -> None:
    done = subprocess.run([sys.executable, "-I", "-S", detached.WORKER], capture_output=True, check=False)

    assert done.returncode == 2
    assert b"usage" in done.stderr


def test_a_worker_exits_as_its_hook_says(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    order = {"commands": [["/bin/sh", "-c", "exit 9"]], "env": {}, "cwd": "/", "descriptors": None}
    (tmp_path / "order.json").write_text(json.dumps(order))

    done = subprocess.run([sys.executable, "-I", "-S", detached.WORKER, str(tmp_path)], check=False)

    assert done.returncode == 1
    assert json.loads((tmp_path / "end.json").read_text())["exit_code"] == 9


# ----------------------------------------------------------------------------------------------------------------------
# Files


def test_old_logs_and_too_many_go_and_those_of_what_runs_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached_files, "LOGS_KEPT", 2)
    (tmp_path / "runs" / "running").mkdir(parents=True)
    for name, age in (("running", 10**8), ("old", 10**8), ("a", 3), ("b", 2), ("c", 1)):
        log = tmp_path / f"{name}.log"
        log.touch()
        os.utime(log, (time.time() - age, time.time() - age))
    (tmp_path / "no-log").touch()

    assert DetachedFiles(str(tmp_path)).prune_logs() == 2

    assert {path.name for path in tmp_path.iterdir()} == {"runs", "running.log", "b.log", "c.log", "no-log"}


def test_what_is_no_run_is_removed(tmp_path: Path) -> None:
    files = DetachedFiles(str(tmp_path))
    (tmp_path / "runs" / "odd").mkdir(parents=True)

    assert files.leftovers() == []
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{", "nothing"])
def test_an_end_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    files = DetachedFiles(str(tmp_path))
    (tmp_path / "runs" / "r").mkdir(parents=True)
    (tmp_path / "runs" / "r" / "end.json").write_text(text)

    assert files.end("r") is None
