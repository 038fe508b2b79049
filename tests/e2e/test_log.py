"""The log of a real daemon: what is in it, what never is, and what happens when it cannot be written."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest


pytestmark = pytest.mark.e2e

FORGED = (
    '\n{"ts":"2026-01-01T00:00:00.000Z","seq":1,"level":"info","event":"hook.finished","decision":"allow"}\n'
)


def decide(daemon: Any, count: int = 1, **params: Any) -> list[dict[str, Any]]:
    """The outcomes of so many gate events."""
    with daemon.client() as client:
        client.open(**params)
        outcomes = []
        for _ in range(count):
            client.pre_tool_use(params.get("execution_id", "run-1"))
            outcomes.append(client.receive()["result"])
        return outcomes


def test_one_record_for_each_invocation_with_every_field_of_its_report(home: Any) -> None:
    home.write_hooks(PreToolUse=["exit 3"])
    daemon = home.start()
    (outcome,) = decide(daemon)

    record = home.wait_for_record("hook.finished")

    (report,) = outcome["handlers"]
    report["problem"].pop("detail", None)
    logged = dict(record["problem"])
    assert {
        key: value for key, value in report["problem"].items() if value is not None
    }.items() <= logged.items()
    for name, value in report.items():
        if name != "problem":
            assert record[name] == value, name
    assert record["execution_id"] == "run-1"
    assert record["session_id"] == "s-1"
    assert record["agent"] == "bamboo"
    assert record["hook_event"] == "PreToolUse"
    assert record["revision"] == outcome["revision"]
    assert len(record["trace_id"]) == 32
    assert record["level"] == "warning"


@pytest.mark.parametrize("level", ["debug", "info"])
def test_nothing_of_payloads_environment_or_output_is_in_it(home: Any, level: str) -> None:
    home.write_hooks(
        PreToolUse=[
            "cat; echo sk-stdout-1; echo sk-stderr-2 >&2; exit 1",
            "echo sk-reason-3 >&2; exit 2",
        ],
        PostToolUse=["""echo '{"additional_context": "sk-context-4"}'"""],
    )
    daemon = home.start("--log-level", level, SECRET_TOKEN="sk-daemon-env-5")
    with daemon.client() as client:
        client.open(env={"PATH": os.environ["PATH"], "API_KEY": "sk-client-env-6"})
        payload = {"tool_call_id": "c", "tool_name": "Bash", "parsed_args": {"command": "sk-argument-7"}}
        client.call("hook/dispatch", execution_id="run-1", event="PreToolUse", payload=payload)
        client.answer(
            "hook/dispatch", execution_id="run-1", event="PreToolUse", payload={"tool_name": {"sk-bad-8": 1}}
        )
        client.answer("hook/dispatch", execution_id="run-1", event="sk-unknown-9", payload={})
    daemon.stop()

    assert len(home.records("hook.finished")) == 2
    assert b"sk-" not in home.log.read_bytes()


def test_no_text_can_forge_a_record(home: Any) -> None:
    home.write_hooks(PreToolUse=[f"printf '%s' '{FORGED}'; printf '%s' '{FORGED}' >&2; exit 2"])
    daemon = home.start()
    odd = "s-\u2028-\u202e-\x9b31m" + FORGED
    decide(daemon, session_id=odd, workspace_path="/nowhere" + FORGED)
    home.wait_for_record("hook.finished")
    with daemon.client() as client:
        client.answer("no/such" + FORGED)
    daemon.stop()

    lines = home.log.read_text().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert len(home.records("hook.finished")) == 1
    assert home.records("hook.finished")[0]["session_id"] == odd


def test_renamed_and_reopened(home: Any, daemon: Any, until: Any) -> None:
    home.write_hooks(PreToolUse=["true"])
    old = home.log.with_name("hooksd.log.old")
    home.log.rename(old)

    decide(daemon)
    home.wait_for_record("hook.finished")
    home.log.rename(old)
    daemon.send(signal.SIGUSR1)
    decide(daemon)
    home.wait_for_record("hook.finished")

    assert old.stat().st_mode & 0o777 == home.log.stat().st_mode & 0o777 == 0o600


def test_lines_for_people_on_stderr(home: Any) -> None:
    home.write_hooks(PreToolUse=["exit 3"])
    daemon = home.start("--log-file", "-", "--log-format", "console")
    decide(daemon)
    daemon.stop()

    lines = daemon.stderr.splitlines()
    assert not home.log.exists()
    assert any("info    daemon.started" in line for line in lines)
    assert any("warning hook.finished" in line and "exit_code=3" in line for line in lines)
    assert "daemon.stopped" in lines[-1]


def is_quick(started: float) -> bool:
    return time.monotonic() - started < 10


def test_a_full_disk_stops_no_decision_and_no_end(home: Any) -> None:
    home.write_hooks(PreToolUse=["exit 2"])
    daemon = home.start("--log-file", "/dev/full")

    outcomes = decide(daemon, 20)
    with daemon.client() as client:
        problems = client.call("daemon/status")["problems"]
    started = time.monotonic()

    assert daemon.stop() == 0
    assert is_quick(started)
    assert [outcome["decision"] for outcome in outcomes] == ["block"] * 20
    assert any(
        "No space left" in problem["message"] and problem["file"] == "/dev/full" for problem in problems
    )
    assert "No space left" in daemon.stderr
    assert "records could not be written" in daemon.stderr


@pytest.mark.parametrize("reader", [False, True])
def test_a_pipe_that_nobody_reads_stops_no_decision_and_no_end(home: Any, reader: bool) -> None:
    pipe = home.root / "pipe"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK) if reader else -1
    # Records are long, so that they fill the pipe.
    home.write_hooks(PreToolUse=["exit 2"])
    daemon = home.start("--log-file", str(pipe))

    outcomes = decide(daemon, 30, session_id="s" * 500)
    started = time.monotonic()
    status = daemon.stop()
    if reader:
        os.close(descriptor)

    assert status == 0
    assert is_quick(started)
    assert [outcome["decision"] for outcome in outcomes] == ["block"] * 30


def test_stderr_that_nobody_reads_stops_no_decision_and_no_end(home: Any, until: Any) -> None:
    """A parent that has a pipe for stderr and never reads it."""
    home.write_hooks(PreToolUse=["exit 2"])
    process = subprocess.Popen(
        [sys.executable, "-m", "hooksd", "serve", "--log-file", "-", "--log-level", "debug"],
        env=home.environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        until(home.socket.exists)
        from_here = type("Daemon", (), {"client": lambda self: home.client()})()
        outcomes = decide(from_here, 200, session_id="s" * 400)
        assert {outcome["decision"] for outcome in outcomes} == {"block"}
    finally:
        started = time.monotonic()
        process.terminate()
        status = process.wait(20)
        assert process.stderr is not None
        process.stderr.close()

    assert status == 0
    assert is_quick(started)


def test_a_place_that_cannot_be_written_is_told_and_hooks_run(home: Any) -> None:
    place = home.root / "file" / "hooksd.log"
    place.parent.write_text("")
    home.write_hooks(PreToolUse=["exit 2"])
    daemon = home.start("--log-file", str(place))

    (outcome,) = decide(daemon)

    assert outcome["decision"] == "block"
    assert daemon.stop() == 0
    assert str(place) in daemon.stderr


def test_records_come_to_subscribers_too(home: Any) -> None:
    home.write_hooks(PreToolUse=["exit 2"])
    daemon = home.start("--log-level", "error")
    with daemon.client() as listener:
        listener.call("events/subscribe", kinds=["hook.*"], execution_id="run-1")
        decide(daemon)
        decide(daemon, execution_id="run-2")
        message = listener.receive()
        assert message["method"] == "events/event"
        record = message["params"]
        assert (record["event"], record["execution_id"], record["decision"]) == (
            "hook.finished",
            "run-1",
            "block",
        )

        # What was missed meanwhile can be had by number.
        with daemon.client() as late:
            late.call("events/subscribe", kinds=["hook.finished"], since_seq=record["seq"] - 1)
            assert late.receive()["params"]["seq"] == record["seq"]
            assert late.receive()["params"]["execution_id"] == "run-2"
    daemon.stop()

    assert home.records() == []


def test_a_subscriber_that_does_not_read_slows_nobody_and_is_told_what_it_missed(home: Any) -> None:
    home.write_settings("[limits]\nmax_executions = 100000\n")
    daemon = home.start()
    with daemon.client() as slow, daemon.client() as client:
        subscription = slow.call("events/subscribe")
        for number in range(6_000):
            client.open(f"run-{number}", session_id="s" * 400)

        seen, dropped, last = 0, 0, subscription["seq"]
        while last < 6_000:
            record = slow.receive()["params"]
            if record["event"] == "events.dropped":
                dropped += record["dropped"]
            else:
                seen += 1
            assert record["seq"] > last
            last = record["seq"]

    assert dropped > 0
    assert seen + dropped == last - subscription["seq"]
