"""The example hooks for Chrys through a real daemon, and what outlives it: detached hooks and durable jobs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "chrys"

needs_tools = pytest.mark.skipif(
    not (shutil.which("jq") and shutil.which("curl")), reason="needs jq and curl"
)


class Receiver:
    """An HTTP server that takes what is posted, if it is told to.

    Attributes:
        taken: The bodies that it has answered with 204.
        refused: How many it has answered with 503.
        accepts: What it does with the next ones.
        gate: Each request waits for this.
    """

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.refused = 0
        self.waiting = 0
        self.accepts = True
        self.gate = threading.Event()
        self.gate.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.waiting += 1
                receiver.gate.wait(30)
                if receiver.accepts:
                    receiver.taken.append(body)
                else:
                    receiver.refused += 1
                self.send_response(204 if receiver.accepts else 503)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def hooks(home: Any) -> Path:
    """The examples, where Chrys keeps its hooks."""
    directory: Path = home.root / "home" / ".chrys" / "hooks"
    directory.parent.mkdir(mode=0o700)
    shutil.copytree(EXAMPLES, directory)
    directory.chmod(0o700)
    return directory


@pytest.fixture
def agent(home: Any, hooks: Path, receiver: Receiver) -> Callable[..., Any]:
    """Starts the daemon, and dispatches events of a Chrys session."""
    workspace = home.root / "project"
    workspace.mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home.root / "home"),
        "TURN_WEBHOOK_URL": receiver.url,
        "TELEMETRY_URL": receiver.url,
        "NOTIFY_LOG": str(workspace / "notified"),
    }
    home.start()

    def run(event: str, **payload: Any) -> Any:
        with home.client() as client:
            client.open(agent="chrys", workspace_path=str(workspace), profile="Code", env=env)
            return client.call("hook/dispatch", execution_id="run-1", event=event, payload=payload)

    return run


def tool(kind: str, **args: Any) -> dict[str, Any]:
    return {"name": "a_tool", "kind": kind, "call_id": "abcdef123456", "args": args}


def jobs(home: Any) -> list[dict[str, Any]]:
    with home.client() as client:
        found: list[dict[str, Any]] = client.call("outbox/list")["jobs"]
        return found


# ----------------------------------------------------------------------------------------------------------------------
# Blocking examples


@needs_tools
@pytest.mark.parametrize(
    ("path", "decision"),
    [("/etc/hosts", "block"), ("/tmp/../etc/hosts", "block"), ("/etcetera", "none"), ("src/a.py", "none")],
)
def test_protect_etc(agent: Callable[..., Any], path: str, decision: str) -> None:
    outcome = agent("before_tool_call", tool=tool("filesystem.write", path=path))

    assert outcome["decision"] == decision
    if decision == "block":
        assert outcome["reason"] == (
            f"protect-etc: {path} is system configuration; ask a person to change it"
        )
        assert outcome["decided_by"] == "chrys:user:chrys:protect-etc"


@needs_tools
def test_a_guard_that_cannot_run_blocks(agent: Callable[..., Any], hooks: Path) -> None:
    (hooks / "scripts" / "protect-etc.sh").write_text("#!/usr/bin/env bash\necho broken >&2\nexit 1\n")

    outcome = agent("before_tool_call", tool=tool("filesystem.write", path="a.py"))

    assert outcome["decision"] == "block"
    assert outcome["reason"] == "protect-etc: exit_code=1: broken"


def test_redact_aws_keys(agent: Callable[..., Any]) -> None:
    command = "aws --key AKIAABCDEFGHIJKLMNOP ls"

    outcome = agent("before_tool_call", tool=tool("shell", command=command, reason="look"))

    assert outcome["decision"] == "none"
    assert outcome["arguments"] == {"command": "aws --key AKIA-REDACTED ls", "reason": "look"}
    other = agent("before_tool_call", tool=tool("shell", command="ls"))
    assert (other["arguments"], other["handlers"]) == (None, [])


def test_project_reminder(agent: Callable[..., Any], home: Any) -> None:
    (home.root / "project" / "REMINDER.md").write_text("Write tests first.\n")

    fresh = agent("user_prompt_submit", text="go on", injected=False)
    injected = agent("user_prompt_submit", text="and this", injected=True)

    assert (fresh["reminders"], injected["reminders"]) == (["Write tests first."], [])


def test_lint_summary(agent: Callable[..., Any], home: Any) -> None:
    (home.root / "project" / "bad.py").write_text("def f(:\n")
    result = {
        "text": "written",
        "duration_ms": 1,
        "error": False,
        "failed": False,
        "approval_rejected": False,
    }

    outcome = agent("after_tool_call", tool=tool("filesystem.write", path="bad.py"), result=result)

    (context,) = outcome["contexts"]
    assert context.startswith("[lint]\n")
    assert "bad.py:1" in context


# ----------------------------------------------------------------------------------------------------------------------
# Telemetry: durable, async and detached


@needs_tools
def test_a_turn_is_told_once_the_receiver_is_back(
    agent: Callable[..., Any], home: Any, receiver: Receiver, until: Callable[..., Any]
) -> None:
    receiver.accepts = False

    outcome = agent("after_turn", turn=7, status="ok", failed=False)

    assert [report["status"] for report in outcome["handlers"]] == ["started", "started"]
    until(lambda: receiver.refused, "the first try")
    until(lambda: jobs(home)[0]["state"] == "pending", "it waits for the next one")
    (job,) = jobs(home)
    assert (job["hook"], job["attempts"]) == ("chrys:user:chrys:turn-webhook", 1)
    assert "exit_code" in job["last_error"]
    receiver.accepts = True
    until(lambda: receiver.taken, "the second try")
    assert receiver.taken == [{"session": "s-1", "turn": 7, "status": "ok"}]
    until(lambda: jobs(home)[0]["state"] == "done", "the job is done")
    assert (home.root / "project" / "notified").read_text() == "Chrys: turn 7 has ended (ok)\n"


def test_a_detached_durable_hook_outlives_a_killed_daemon_and_is_not_started_again(
    agent: Callable[..., Any], home: Any, receiver: Receiver, until: Callable[..., Any]
) -> None:
    receiver.gate.clear()
    (report,) = agent("session_end")["handlers"]
    assert (report["status"], report["mode"]) == ("started", "detached")
    until(lambda: receiver.waiting, "the hook posts")

    home.started[0].kill()
    home.start()

    until(lambda: [job["state"] for job in jobs(home)] == ["running"], "its worker has the job")
    receiver.gate.set()
    until(lambda: [job["state"] for job in jobs(home)] == ["done"], "the new daemon sees its end")
    assert [body["session"] for body in receiver.taken] == ["s-1"]
    record = home.wait_for_record("hook.finished")
    assert (record["invocation_id"], record["status"]) == (report["invocation_id"], "ok")
    assert list((home.state / "detached" / "runs").iterdir()) == []


def test_a_detached_durable_hook_that_ended_without_a_daemon_is_done(
    agent: Callable[..., Any],
    home: Any,
    receiver: Receiver,
    until: Callable[..., Any],
    is_gone: Callable[[int], bool],
) -> None:
    receiver.gate.clear()
    (report,) = agent("session_end")["handlers"]
    until(lambda: receiver.waiting, "the hook posts")
    assert home.started[0].stop() == 0
    receiver.gate.set()
    until(lambda: is_gone(report["pid"]), "its worker has ended")

    home.start()

    until(lambda: [job["state"] for job in jobs(home)] == ["done"], "the job is done")
    assert len(receiver.taken) == 1


def test_a_durable_job_whose_worker_was_killed_waits_for_its_next_start(
    agent: Callable[..., Any], home: Any, receiver: Receiver, until: Callable[..., Any]
) -> None:
    receiver.gate.clear()
    (report,) = agent("session_end")["handlers"]
    until(lambda: receiver.waiting, "the hook posts")

    os.kill(report["pid"], signal.SIGKILL)

    until(lambda: [job["state"] for job in jobs(home)] == ["pending"], "it waits")
    (job,) = jobs(home)
    assert job["attempts"] == 1
    assert "worker was killed" in job["last_error"]
    # The hook itself lives on as a child of the daemon, and is no zombie when it has ended.
    receiver.gate.set()
    until(lambda: not home.started[0].children, "nothing is left of it")


def test_a_detached_durable_hook_that_fails_is_started_again(
    agent: Callable[..., Any], home: Any, receiver: Receiver, until: Callable[..., Any]
) -> None:
    receiver.accepts = False

    agent("session_end")

    until(lambda: receiver.refused, "the first try")
    until(lambda: [job["state"] for job in jobs(home)] == ["pending"], "it waits")
    receiver.accepts = True
    until(lambda: receiver.taken, "the second try")
    until(lambda: [job["state"] for job in jobs(home)] == ["done"], "the job is done")
    home.wait_for_record("hook.finished", 2)
    assert [record["status"] for record in home.records("hook.finished")] == ["failed", "ok"]


def test_stopping_leaves_detached_hooks_alone(
    agent: Callable[..., Any], home: Any, receiver: Receiver, is_gone: Callable[[int], bool]
) -> None:
    receiver.gate.clear()
    (report,) = agent("session_end")["handlers"]

    assert home.started[0].stop() == 0

    assert not is_gone(report["pid"])


@needs_tools
def test_no_detached_durable_hook_is_lost_whenever_the_daemon_is_killed(
    home: Any, until: Callable[..., Any]
) -> None:
    hooks: Path = home.root / "home" / ".chrys" / "hooks" / "hooks.yaml"
    hooks.parent.mkdir(parents=True)
    hooks.write_text(
        "settings: {outbox_retry_age_seconds: 0, outbox_max_retries: 50}\n"
        "hooks:\n"
        "  - id: note\n"
        "    event: after_turn\n"
        "    run: {type: shell, shell: jq .turn $CHRYS_HOOK_PAYLOAD_FILE >> ran}\n"
        "    execution: {mode: fire_and_forget, detach: true, delivery: durable}\n"
    )
    workspace = home.root / "project"
    workspace.mkdir()
    answered: set[int] = set()
    for at, pause_s in enumerate((0.02, 0.1, 0.2, 0.4)):
        running = home.start()
        with home.client() as client:
            client.open(agent="chrys", workspace_path=str(workspace))
            sent = {}
            for turn in range(4 * at, 4 * at + 4):
                payload = {"turn": turn, "status": "ok", "failed": False}
                number = client.send(
                    "hook/dispatch", execution_id="run-1", event="after_turn", payload=payload
                )
                sent[number] = turn
            if pause_s == 0.4:
                answered.add(sent[client.receive()["id"]])
            time.sleep(pause_s)
            running.kill()
            with suppress(ConnectionError):
                while message := client.receive():
                    answered.add(sent[message["id"]])
    home.start()

    until(lambda: {job["state"] for job in jobs(home)} <= {"done"}, "every job is done")

    ran = {int(line) for line in (workspace / "ran").read_text().split()}
    assert answered <= ran
    assert answered
    until(lambda: list((home.state / "detached" / "runs").iterdir()) == [], "every run was seen to its end")
