"""Durable jobs of a real daemon: killed, started again, looked at and dealt with on the command line."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


pytestmark = pytest.mark.e2e

HOOKS = """
version: 1
settings: {outbox_retry_age_seconds: 0}
hooks:
  - id: telemetry
    event: after_turn
    run: {type: shell, shell: "echo started >> runs; echo oops >&2; until [ -e go ]; do sleep 0.02; done; test -e good"}
    execution: {mode: async, delivery: durable}
"""


@pytest.fixture
def workspace(home: Any) -> Path:
    """The workspace of the agent, with the hooks in place."""
    directory = home.root / "home" / ".chrys" / "hooks"
    directory.mkdir(parents=True)
    (directory / "hooks.yaml").write_text(HOOKS)
    made: Path = home.root / "project"
    made.mkdir()
    return made


@pytest.fixture
def outbox(home: Any) -> Callable[..., tuple[int, str]]:
    """Runs `hooksd outbox …`; the exit status, and what it printed."""

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "hooksd", "outbox", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=home.environment,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def end_turn(home: Any, workspace: Path) -> None:
    with home.client() as client:
        client.open(agent="chrys", workspace_path=str(workspace))
        turn = {"turn": 1, "status": "ok", "failed": False}
        client.call("hook/dispatch", execution_id="run-1", event="after_turn", payload=turn)


def starts(workspace: Path) -> int:
    runs = workspace / "runs"
    return len(runs.read_text().splitlines()) if runs.exists() else 0


def test_a_daemon_that_is_killed_loses_no_job(
    home: Any, workspace: Path, outbox: Callable[..., tuple[int, str]], until: Callable[..., Any]
) -> None:
    daemon = home.start()
    assert not (home.state / "outbox.sqlite3").exists()
    end_turn(home, workspace)
    until(lambda: starts(workspace) == 1)
    _, told = outbox("list", "--json")
    (job,) = json.loads(told)["jobs"]
    assert (job["state"], job["attempts"]) == ("running", 1)

    daemon.kill()
    home.start()

    until(lambda: starts(workspace) == 2)
    (workspace / "good").touch()
    (workspace / "go").touch()
    done = home.wait_for_record("outbox.done")
    assert (done["job_id"], done["attempts"], done["exit_code"]) == (job["job_id"], 2, 0)
    with home.client() as client:
        assert client.call("daemon/status")["outbox"] == {"pending": 0, "running": 0, "failed": 0}
    code, told = outbox("list", "--state", "done")
    assert code == 0
    assert job["job_id"] in told


def test_dead_letters_by_hand(
    home: Any, workspace: Path, outbox: Callable[..., tuple[int, str]], until: Callable[..., Any]
) -> None:
    home.start()
    (workspace / "go").touch()
    end_turn(home, workspace)
    retry = home.wait_for_record("outbox.retry")
    job_id = retry["job_id"]
    for count in (2, 3):
        # Before their time, so that nobody waits here.
        until(lambda: outbox("retry", job_id)[0] == 0)
        until(lambda count=count: starts(workspace) == count)
    home.wait_for_record("outbox.failed")

    code, told = outbox("list", "--state", "failed")
    assert code == 0
    assert f"failed   {job_id}  chrys:user:chrys:telemetry  after_turn" in told
    assert "started 3 of 3 times" in told
    assert "exited with code 1" in told
    assert "oops" in told
    assert "1 failed" in told
    (workspace / "good").touch()
    assert outbox("retry", "--all") == (0, "1 job to be started again\n")
    home.wait_for_record("outbox.done")

    assert outbox("discard", "--state", "done", "--json") == (0, '{"discarded": 1}\n')
    assert outbox("discard", "--state", "failed") == (1, "0 jobs given up\n")
    assert outbox("list")[1] == "in all: 0 running, 0 pending, 0 failed\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("retry",), "takes the id of a job, or --all"),
        (("retry", "job-1", "--all"), "takes the id of a job, or --all"),
        (("retry", "--state", "failed"), "takes no --state"),
        (("discard",), "takes the id of a job, or --state"),
        (("discard", "job-1", "--state", "done"), "takes the id of a job, or --state"),
        (("discard", "--all"), "takes no --all"),
        (("list", "job-1"), "takes no job"),
        (("list", "--all"), "takes no --all"),
        (("frob",), "invalid choice"),
    ],
)
def test_what_is_no_command(
    home: Any, outbox: Callable[..., tuple[int, str]], arguments: tuple[str, ...], words: str
) -> None:
    code, told = outbox(*arguments)

    assert code == 2
    assert words in told


def test_a_job_that_is_not_there(home: Any, outbox: Callable[..., tuple[int, str]]) -> None:
    home.start()

    code, told = outbox("retry", "job-00000000000000aa")

    assert code == 2
    assert "there is no job" in told


def test_a_damaged_outbox_is_told_and_hooks_run(
    home: Any, workspace: Path, until: Callable[..., Any]
) -> None:
    home.state.mkdir(mode=0o700)
    (home.state / "outbox.sqlite3").write_bytes(os.urandom(50_000))
    home.start()
    (workspace / "good").touch()
    (workspace / "go").touch()

    end_turn(home, workspace)

    home.wait_for_record("outbox.done")
    damaged = home.wait_for_record("outbox.damaged")
    assert Path(damaged["moved_to"]).stat().st_size == 50_000
    with home.client() as client:
        (problem,) = client.call("daemon/status")["problems"]
    assert "damaged" in problem["message"]


def test_jobs_of_a_hook_that_is_gone_wait_and_say_why(
    home: Any, workspace: Path, outbox: Callable[..., tuple[int, str]], until: Callable[..., Any]
) -> None:
    daemon = home.start()
    end_turn(home, workspace)
    until(lambda: starts(workspace) == 1)
    daemon.kill()
    hooks = home.root / "home" / ".chrys" / "hooks" / "hooks.yaml"
    hooks.rename(hooks.with_suffix(".away"))

    home.start()
    home.wait_for_record("outbox.waiting")

    assert "waiting: no hook of this name is configured for the event now" in outbox("list")[1]
    connection = sqlite3.connect(home.state / "outbox.sqlite3")
    assert connection.execute("SELECT state, starts FROM jobs").fetchall() == [("pending", 1)]
    connection.close()
    hooks.with_suffix(".away").rename(hooks)
    until(lambda: starts(workspace) == 2)
    (workspace / "good").touch()
    (workspace / "go").touch()
    home.wait_for_record("outbox.done")
