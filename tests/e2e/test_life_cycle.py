"""A daemon from its start to its end: lock, socket, signals, drain."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest


pytestmark = pytest.mark.e2e


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def make_slow_gate(home: Any, seconds: float = 30) -> Path:
    """A gate whose hook writes its process id to a file and takes its time."""
    started = home.root / "started"
    home.write_hooks(PreToolUse=[f"echo $$ > {started}.new; mv {started}.new {started}; sleep {seconds}"])
    return started


def test_a_whole_life(home: Any) -> None:
    daemon = home.start()
    assert daemon.ready
    with daemon.client() as client:
        assert client.call("daemon/ping") == {"pong": True}
        status = client.call("daemon/status")
    lock = json.loads(home.lock.read_bytes())
    assert daemon.stop() == 0

    assert status["pid"] == lock["pid"] == daemon.pid
    assert status["state"] == "ready"
    assert status["socket"] == lock["socket"] == str(home.socket)
    assert status["problems"] == []
    assert not os.path.lexists(home.socket)
    assert home.lock.read_bytes() == b""
    kinds = [record["event"] for record in home.records()]
    assert kinds == ["daemon.started", "config.loaded", "daemon.ready", "daemon.stopping", "daemon.stopped"]
    assert [record["seq"] for record in home.records()] == [1, 2, 3, 4, 5]
    assert home.records("daemon.stopping")[0]["reason"] == "SIGTERM"
    assert daemon.stderr == ""


@pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o777])
def test_what_the_daemon_makes_is_closed_to_others_whatever_the_umask(home: Any, umask: int) -> None:
    daemon = home.start(umask=umask)
    # The log has a thread of its own, which readiness does not wait for.
    home.wait_for_record("daemon.ready")

    assert mode(home.socket) == 0o600
    assert mode(home.socket.parent) == 0o700
    assert mode(home.lock) == 0o600
    assert mode(home.state) == 0o700
    assert mode(home.log) == 0o600
    assert daemon.stop() == 0
    for path in home.state.rglob("*"):
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_hooks_have_the_umask_that_the_daemon_was_started_with(home: Any, umask: int) -> None:
    made = home.root / "made"
    home.write_hooks(PreToolUse=[f"touch {made}"])
    daemon = home.start(umask=umask)

    with daemon.client() as client:
        client.open()
        client.pre_tool_use()
        assert client.receive()["result"]["handlers"][0]["status"] == "ok"

    assert mode(made) == 0o666 & ~umask


def test_a_second_daemon_tells_who_runs_and_harms_nothing(home: Any, daemon: Any) -> None:
    inode = home.socket.lstat().st_ino

    second = home.start()

    assert not second.ready
    assert second.wait() == 4
    assert second.stderr.count("\n") == 1
    assert re.search(rf"already running \(pid {daemon.pid};", second.stderr)
    assert home.socket.lstat().st_ino == inode
    with daemon.client() as client:
        assert client.call("daemon/ping") == {"pong": True}


def test_of_two_that_start_at_once_one_serves(home: Any) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "hooksd", "serve"],
            env=home.environment,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        for _ in range(4)
    ]
    home.wait_for_record("daemon.ready")
    ended = []
    deadline = time.monotonic() + 20
    while len(ended) < 3 and time.monotonic() < deadline:
        ended = [process for process in started if process.poll() is not None]
        time.sleep(0.01)

    assert [process.returncode for process in ended] == [4, 4, 4]
    (serving,) = [process for process in started if process not in ended]
    serving.terminate()
    for process in started:
        _, stderr = process.communicate(timeout=20)
        assert stderr == b"" if process is serving else b"already running" in stderr
    assert serving.returncode == 0
    assert len(home.records("daemon.started")) == 1


def test_after_a_kill_the_next_one_starts(home: Any) -> None:
    first = home.start()
    first.kill()
    assert stat.S_ISSOCK(home.socket.lstat().st_mode)

    second = home.start()

    assert second.ready
    with second.client() as client:
        assert client.call("daemon/ping") == {"pong": True}


def test_a_log_that_ends_in_half_a_line_is_gone_on_with(home: Any) -> None:
    home.log.parent.mkdir(mode=0o700)
    home.log.write_bytes(b'{"ts":"2026-01-01T00:00:00.000Z","se')

    daemon = home.start()
    daemon.stop()

    first, *rest = home.log.read_bytes().splitlines()
    assert first == b'{"ts":"2026-01-01T00:00:00.000Z","se'
    assert json.loads(rest[0])["event"] == "daemon.started"


# ----------------------------------------------------------------------------------------------------------------------
# It cannot start


def refused(home: Any, *arguments: str, status: int = 1, **environment: str) -> str:
    """The message of a daemon that cannot start."""
    daemon = home.start(*arguments, **environment)
    assert not daemon.ready
    assert daemon.wait() == status
    message: str = daemon.stderr
    assert message.startswith("hooksd serve: ")
    assert message.count("\n") == 1
    return message


def test_a_file_at_the_socket_path_is_left_alone(home: Any) -> None:
    home.socket.parent.mkdir(mode=0o700)
    home.socket.write_text("mine")

    message = refused(home)

    assert str(home.socket) in message
    assert "no socket lies there" in message
    assert home.socket.read_text() == "mine"


def test_a_foreign_server_at_the_socket_path_is_left_alone(home: Any) -> None:
    home.socket.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.bind(str(home.socket))
        foreign.listen()

        assert "listens there" in refused(home)


def test_a_socket_path_that_is_too_long(home: Any) -> None:
    assert "107" in refused(home, "--socket", str(home.root / ("x" * 100)))


def test_a_directory_that_others_can_write_to(home: Any) -> None:
    home.socket.parent.mkdir(mode=0o777)
    home.socket.parent.chmod(0o777)

    assert "chmod go-w" in refused(home)


def test_a_state_directory_that_is_none(home: Any) -> None:
    home.state.write_text("")

    assert "state directory" in refused(home)
    assert not os.path.lexists(home.socket)


def test_a_descriptor_for_readiness_that_is_not_open(home: Any) -> None:
    assert "--ready-fd 77" in refused(home, "--ready-fd", "77")


@pytest.mark.parametrize("descriptor", [1, 2])
def test_readiness_can_be_told_on_a_standard_stream(home: Any, descriptor: int) -> None:
    read_end, write_end = os.pipe()
    stdout, stderr = (write_end, subprocess.DEVNULL) if descriptor == 1 else (subprocess.DEVNULL, write_end)
    with subprocess.Popen(
        [sys.executable, "-m", "hooksd", "serve", "--ready-fd", str(descriptor)],
        env=home.environment,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
    ) as process:
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            assert pipe.read() == b"\n"
        # Its number is still taken.
        assert os.readlink(f"/proc/{process.pid}/fd/{descriptor}") == "/dev/null"
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_a_machine_without_room_for_its_threads_is_no_fault_of_its_own(home: Any, threads: int) -> None:
    code = f"""
import sys, threading
start, left = threading.Thread.start, {threads}
def limited(thread):
    global left
    left -= 1
    if left < 0:
        raise RuntimeError("can't start new thread")
    start(thread)
threading.Thread.start = limited
from hooksd.cli.main import main
sys.exit(main())
"""
    refused = home.start(program=(sys.executable, "-c", code))

    assert refused.wait() == 1
    assert "TasksMax" in refused.stderr
    assert "internal error" not in refused.stderr
    assert not home.socket.exists()


def test_a_log_level_that_there_is_not(home: Any) -> None:
    assert "HOOKSD_LOG_LEVEL" in refused(home, status=2, HOOKSD_LOG_LEVEL="loud")


# ----------------------------------------------------------------------------------------------------------------------
# The end


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_hook_that_runs_is_waited_for(home: Any, until: Any, number: signal.Signals, status: int) -> None:
    started = make_slow_gate(home, 1)
    daemon = home.start()
    with daemon.client() as client:
        client.open()
        client.pre_tool_use()
        until(started.exists)
        daemon.send(number)
        home.wait_for_record("daemon.stopping")
        # It takes nothing new meanwhile, and says so.
        refusal = client.answer(
            "execution/open", execution_id="run-2", agent="bamboo", session_id="s", workspace_path="/"
        )
        answer = client.receive()

    assert daemon.wait() == status
    assert refusal["error"]["code"] == -32002
    assert answer["result"]["handlers"][0]["status"] == "ok"
    assert home.records("daemon.stopping")[0]["reason"] == number.name
    assert home.records("daemon.stopping")[0]["running"] == 1


def test_the_drain_is_bounded_and_leaves_nothing(home: Any, until: Any, is_gone: Any) -> None:
    home.write_settings("[limits]\ndrain_s = 0.3\nkill_grace_ms = 100\n")
    started = make_slow_gate(home)
    daemon = home.start()
    with daemon.client() as client:
        client.open()
        client.pre_tool_use()
        until(started.exists)
        assert daemon.stop() == 0
        answer = client.receive()
        assert client.receive() == {}

    assert answer["error"]["code"] == -32002
    assert is_gone(int(started.read_text()))
    assert home.records("daemon.stopped")


def test_a_second_signal_is_the_end_now(home: Any, until: Any, is_gone: Any) -> None:
    home.write_settings("[limits]\ndrain_s = 600\n")
    started = home.root / "started"
    home.write_hooks(
        PreToolUse=[
            f"trap '' TERM; echo $$ > {started}.new; mv {started}.new {started}; while :; do sleep 0.05; done"
        ]
    )
    daemon = home.start()
    with daemon.client() as client:
        client.open()
        client.pre_tool_use()
        until(started.exists)
        daemon.send(signal.SIGTERM)
        home.wait_for_record("daemon.stopping")
        daemon.send(signal.SIGTERM)
        answer = client.receive()

    assert daemon.wait() == 0
    assert answer["error"]["code"] == -32002
    assert is_gone(int(started.read_text()))
    assert not os.path.lexists(home.socket)


def test_shutdown_over_the_socket(home: Any, daemon: Any) -> None:
    with daemon.client() as client:
        assert client.call("daemon/shutdown", grace_ms=100) == {}
        assert client.receive() == {}

    assert daemon.wait() == 0
    assert home.records("daemon.stopping")[0]["reason"] == "daemon/shutdown"


def test_clients_that_do_nothing_do_not_delay_the_end(daemon: Any) -> None:
    clients = [daemon.client() for _ in range(20)]
    try:
        assert daemon.stop() == 0
    finally:
        for client in clients:
            client.close()


# ----------------------------------------------------------------------------------------------------------------------
# Meanwhile


def test_reload_by_signal(home: Any, daemon: Any) -> None:
    with daemon.client() as client:
        before = client.call("daemon/status")["revision"]
        home.write_hooks(PreToolUse=["exit 2"])
        daemon.send(signal.SIGHUP)
        home.wait_for_record("config.changed")
        status = client.call("daemon/status")

    assert status["revision"] > before
    assert daemon.is_alive


def test_a_broken_configuration_degrades_and_its_repair_recovers(home: Any, daemon: Any, until: Any) -> None:
    with daemon.client() as client:
        home.write_settings("[daemon\n")
        daemon.send(signal.SIGHUP)
        home.wait_for_record("daemon.degraded")
        assert client.call("daemon/status")["state"] == "degraded"
        assert client.call("daemon/status")["problems"]

        home.write_settings('[daemon]\nlog_level = "warning"\n')
        daemon.send(signal.SIGHUP)
        until(lambda: client.call("daemon/status")["state"] == "ready")

    assert daemon.stop() == 0
    # The new level holds: what is less than a warning is not in the log any more.
    assert not home.records("daemon.stopping")


def test_it_starts_with_a_broken_configuration(home: Any) -> None:
    home.write_settings("[daemon\n")

    daemon = home.start()

    assert daemon.ready
    with daemon.client() as client:
        assert client.call("daemon/status")["state"] == "degraded"
    assert home.wait_for_record("daemon.degraded")["level"] == "warning"


def test_a_crowd_of_clients_waits_to_be_accepted(home: Any, daemon: Any) -> None:
    # A daemon that is stopped accepts nobody: everything waits in the backlog.
    daemon.send(signal.SIGSTOP)
    clients = []
    try:
        for _ in range(400):
            client = socket.socket(socket.AF_UNIX)
            clients.append(client)
            client.setblocking(False)
            client.connect(str(home.socket))  # raises when the backlog is full
    finally:
        daemon.send(signal.SIGCONT)
    for client in clients:
        client.settimeout(20)
        client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"daemon/ping"}\n')
        assert b"pong" in client.recv(1_000)
        client.close()


def test_nothing_piles_up(home: Any, until: Any) -> None:
    home.write_hooks(PreToolUse=["cat >/dev/null; echo '{}'"], PostToolUse=["exit 3"])
    daemon = home.start()

    def use(rounds: int) -> None:
        for number in range(rounds):
            with daemon.client() as client:
                client.open(f"run-{number}", bound_to="connection")
                client.pre_tool_use(f"run-{number}")
                assert client.receive()["result"]["decision"] == "none"

    use(5)
    until(lambda: not daemon.children)
    before = daemon.descriptors
    use(40)
    until(lambda: not daemon.children)
    until(lambda: daemon.descriptors <= before)
    with daemon.client() as client:
        status = client.call("daemon/status")

    assert status["executions"] == 0
    assert status["hooks"]["total"] == 45
    assert status["hooks"]["running"] == 0
    assert list(status["latency_ms"]) == ["bamboo:user:bamboo:PreToolUse[0].hooks[0]"]


def test_an_idle_daemon_is_small(daemon: Any) -> None:
    status = Path(f"/proc/{daemon.pid}/status").read_text()

    resident_kib = int(status.partition("VmRSS:")[2].split()[0])

    assert resident_kib <= 60 * 1024


def test_without_uvloop_the_stock_loop_serves(home: Any) -> None:
    code = "import sys; sys.modules['uvloop'] = None; from hooksd.cli.main import main; sys.exit(main())"
    home.write_hooks(PreToolUse=["exit 2"])
    daemon = home.start(program=(sys.executable, "-c", code))

    with daemon.client() as client:
        client.open()
        client.pre_tool_use()
        assert client.receive()["result"]["decision"] == "block"

    assert daemon.stop() == 0
    assert home.records("daemon.started")[0]["loop"] == "asyncio"
