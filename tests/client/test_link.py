"""Lost connections: what both clients do about them."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hooksd_client import ConnectionLost, DaemonNotReachable, ProtocolViolation, RequestFailed, RequestTimeout
from hooksd_client.connecting import Connecting
from hooksd_client.deadline import Deadline
from hooksd_client.errors import Draining


OPEN = {"agent": "bamboo", "session_id": "s-1"}


def lose_then_answer(daemon: Any, method: str) -> None:
    """The first time a method is asked for, the connection breaks instead of an answer."""
    lost = threading.Event()
    usual = daemon.answer_of(method)

    def answer(peer: Any, asked: Any) -> None:
        if lost.is_set():
            peer.send({"id": asked["id"], "result": usual})
        else:
            lost.set()
            peer.hang_up()

    daemon.on(method, answer)


@pytest.mark.parametrize(
    ("verb", "args", "method"),
    [
        ("initialize", (), "initialize"),
        ("ping", (), "daemon/ping"),
        ("status", (), "daemon/status"),
        ("executions", (), "execution/list"),
        ("explain", ("run-1", "Stop"), "hook/explain"),
        ("result", ("inv-1",), "hook/result"),
        ("show_config", (), "config/show"),
        ("validate_config", ("bamboo",), "config/validate"),
        ("reload_config", (), "config/reload"),
    ],
)
def test_what_changes_nothing_is_asked_again(
    client: Any, daemon: Any, verb: str, args: tuple[Any, ...], method: str
) -> None:
    lose_then_answer(daemon, method)

    getattr(client, verb)(*args)

    assert daemon.methods() == [method, method]
    assert len(daemon.peers) == 2


@pytest.mark.parametrize(
    ("verb", "args", "method"),
    [
        ("dispatch", ("run-1", "Stop"), "hook/dispatch"),
        ("notify", ("run-1", "Notification"), "hook/notify"),
        ("test", ("Stop",), "hook/test"),
        ("close_execution", ("run-1",), "execution/close"),
        ("drain_execution", ("run-1",), "execution/drain"),
        ("write_config", ("team", 1, "{}"), "config/write"),
        ("shutdown", (), "daemon/shutdown"),
    ],
)
def test_what_may_have_run_is_not_asked_again(
    client: Any, daemon: Any, verb: str, args: tuple[Any, ...], method: str
) -> None:
    lose_then_answer(daemon, method)

    with pytest.raises(ConnectionLost, match="the request may have been run") as caught:
        getattr(client, verb)(*args)

    assert caught.value.may_have_run
    assert daemon.methods() == [method]
    client.ping()
    assert len(daemon.peers) == 2


def test_a_raw_call_says_whether_it_may_be_repeated(client: Any, daemon: Any) -> None:
    lose_then_answer(daemon, "daemon/status")
    assert client.call("daemon/status", repeatable=True)["pid"] == 7

    lose_then_answer(daemon, "config/show")
    with pytest.raises(ConnectionLost):
        client.call("config/show")


def test_a_second_loss_is_told(client: Any, daemon: Any) -> None:
    daemon.on("daemon/ping", lambda peer, asked: peer.hang_up())

    with pytest.raises(ConnectionLost):
        client.ping()

    assert daemon.methods() == ["daemon/ping"] * 2


def test_a_dispatch_after_the_daemon_was_restarted_in_between(client: Any, daemon: Any) -> None:
    """The old connection is noticed to be dead before anything is sent, so nothing is in doubt."""
    client.ping()
    daemon.stop()
    daemon.start()

    assert client.dispatch("run-1", "Stop").blocked
    assert daemon.methods() == ["daemon/ping", "hook/dispatch"]


def test_no_daemon(make_client: Any, tmp_path: Path) -> None:
    client = make_client(str(tmp_path / "none.sock"))

    with pytest.raises(DaemonNotReachable, match="no socket is there; start the daemon") as caught:
        client.ping()

    assert caught.value.path == str(tmp_path / "none.sock")
    assert caught.value.guarded is False


def test_a_daemon_that_comes_later(client: Any, daemon: Any) -> None:
    daemon.stop()
    with pytest.raises(DaemonNotReachable):
        client.ping()

    daemon.start()

    client.ping()


class TestExecutions:
    def test_opened_and_closed(self, client: Any, daemon: Any) -> None:
        with client.execution("run-1", **OPEN) as run:
            assert run.execution_id == "run-1"
            assert run.opened.revision == 3
            assert run.dispatch("Stop", {"stop_hook_active": False}).blocked
            assert run.notify("Notification").accepted
            assert run.explain("Stop").revision == 3
            assert run.drain("session", grace_ms=3).cancelled == ("inv-2",)

        assert daemon.methods() == [
            "execution/open",
            "hook/dispatch",
            "hook/notify",
            "hook/explain",
            "execution/drain",
            "execution/close",
        ]
        assert all("execution" not in asked["params"] for asked in daemon.requests)

    def test_the_next_event_opens_it_again_on_a_new_connection(self, client: Any, daemon: Any) -> None:
        with client.execution("run-1", **OPEN) as run:
            run.dispatch("Stop")
            daemon.stop()
            daemon.start()
            run.dispatch("Stop")
            run.dispatch("Stop")

        dispatched = [asked["params"].get("execution") for asked in daemon.asked("hook/dispatch", 3)]
        assert dispatched == [None, {"execution_id": "run-1", "workspace_path": "", **OPEN}, None]

    def test_a_dispatch_opens_on_first_use(self, client: Any, daemon: Any) -> None:
        from hooksd_client import execution_params

        first, second = execution_params("run-1", **OPEN), execution_params("run-1", **OPEN, model="m")
        daemon.fail("hook/dispatch", -32002)
        with pytest.raises(Draining):
            client.dispatch("run-1", "Stop", execution=first)
        daemon.on("hook/dispatch", {"event": "Stop", "decision": "none"})
        for execution in (first, dict(first), second, second):
            client.dispatch("run-1", "Stop", execution=execution)
        client.close_execution("run-1")
        client.dispatch("run-1", "Stop", execution=second)

        sent = [asked["params"].get("execution") for asked in daemon.asked("hook/dispatch", 6)]
        assert sent == [first, first, None, second, None, second]

    def test_one_that_is_gone_is_closed(self, client: Any, daemon: Any) -> None:
        daemon.fail("execution/close", -32011)

        with client.execution("run-1", **OPEN):
            pass

    def test_a_failure_to_close_is_told(self, client: Any, daemon: Any) -> None:
        daemon.fail("execution/close", -32603)

        with pytest.raises(RequestFailed), client.execution("run-1", **OPEN):
            pass

    def test_and_hides_no_other_error(
        self, client: Any, daemon: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        daemon.fail("execution/close", -32603, "broken")

        with pytest.raises(ZeroDivisionError), client.execution("run-1", **OPEN):
            raise ZeroDivisionError

        assert "run-1 could not be closed: broken" in caplog.text


class TestRenewal:
    def test_hooks_are_registered_again_without_a_call(self, make_client: Any, daemon: Any) -> None:
        client = make_client(name="agent")
        client.register_hook(lambda call: {"reason": "still here"}, events=["Stop"], name="mine")
        daemon.on("hook/register", {"registration_id": "reg-2"})

        daemon.peer().hang_up()
        daemon.asked("hook/register", 2)
        client.ping()

        assert daemon.peer(2).invoke("reg-2")["result"] == {"reason": "still here"}
        assert daemon.methods() == [*["initialize", "hook/register"] * 2, "daemon/ping"]

    def test_a_daemon_that_is_away_for_a_while(
        self, client: Any, daemon: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The client tries again and again, and says so once."""
        tried = threading.Semaphore(0)

        class Counted(Connecting):
            def __init__(self, path: str, deadline: Deadline) -> None:
                super().__init__(path, deadline)
                tried.release()

        for module in ("link", "aio_link"):
            monkeypatch.setattr(f"hooksd_client.{module}.Connecting", Counted)
            monkeypatch.setattr(f"hooksd_client.{module}.RECONNECT_MIN_S", 0.01)
        client.register_hook(lambda call: None, events=["Stop"], name="mine")
        daemon.stop()
        # One made the connection that is lost now; two more fail, and the last one is there when it is counted.
        assert all(tried.acquire(timeout=10) for _ in range(4))

        daemon.start()

        daemon.asked("hook/register", 2)
        assert caplog.text.count("cannot be reached") == 1

    def test_a_hook_that_was_taken_out_is_not_registered_again(self, client: Any, daemon: Any) -> None:
        client.register_hook(lambda call: None, events=["Stop"], name="mine").unregister()
        client.events().close()

        daemon.peer().hang_up()
        daemon.peer(2)
        client.ping()

        assert daemon.methods().count("hook/register") == 1
        assert daemon.methods().count("events/subscribe") == 1

    def test_two_hooks_of_one_client(self, client: Any, daemon: Any) -> None:
        client.register_hook(lambda call: {"reason": "one"}, events=["Stop"], name="one")
        daemon.on("hook/register", {"registration_id": "reg-2"})
        client.register_hook(lambda call: {"reason": "two"}, events=["Stop"], name="two")

        assert daemon.peer().invoke("reg-1")["result"] == {"reason": "one"}
        assert daemon.peer().invoke("reg-2")["result"] == {"reason": "two"}

    def test_taking_out_what_went_with_the_connection(self, client: Any, daemon: Any) -> None:
        registration = client.register_hook(lambda call: None, events=["Stop"], name="mine")
        daemon.stop()
        with pytest.raises(DaemonNotReachable):
            client.ping()

        registration.unregister()

        daemon.start()
        client.ping()
        assert daemon.methods().count("hook/register") == 1

    def test_a_hook_that_is_refused_then_is_told(
        self, client: Any, daemon: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        client.register_hook(lambda call: None, events=["Stop"], name="mine")
        daemon.fail("hook/register", -32003, "too many")

        daemon.peer().hang_up()
        daemon.asked("hook/register", 2)
        client.ping()

        assert "refuses hook/register on a new connection: too many" in caplog.text

    def test_an_event_stream_goes_on_where_it_was(self, client: Any, daemon: Any, background: Any) -> None:
        stream = client.events(kinds=["hook.*"])
        daemon.peer().record(11)
        assert stream.get().seq == 11

        daemon.peer().hang_up()
        waiting = background(stream.get)
        daemon.asked("events/subscribe", 2)
        client.ping()
        daemon.peer(2).record(12)
        assert waiting().seq == 12

        asked = [message["params"] for message in daemon.asked("events/subscribe", 2)]
        assert asked == [{"kinds": ["hook.*"]}, {"kinds": ["hook.*"], "since_seq": 11}]

    def test_a_stream_without_a_record_goes_on_from_its_start(self, client: Any, daemon: Any) -> None:
        client.events()
        client.ping()
        daemon.peer().hang_up()

        client.ping()

        assert daemon.asked("events/subscribe", 2)[1]["params"] == {"since_seq": 10}

    def test_a_stream_that_is_refused_then_ends(self, client: Any, daemon: Any) -> None:
        stream = client.events()
        daemon.fail("events/subscribe", -32003, "too many")
        daemon.peer().hang_up()

        with pytest.raises(RequestFailed, match="too many"):
            stream.get(timeout=5)

    def test_a_stream_while_the_daemon_is_away(self, client: Any, daemon: Any, background: Any) -> None:
        stream = client.events()
        daemon.stop()
        with pytest.raises(DaemonNotReachable):
            next(stream)

        daemon.start()
        waiting = background(next, stream)
        daemon.asked("events/subscribe", 2)
        client.ping()
        daemon.peer(2).record(12)

        assert waiting().seq == 12

    def test_a_connection_that_cannot_be_set_up_is_not_kept(self, make_client: Any, daemon: Any) -> None:
        client = make_client(name="agent")
        daemon.fail("initialize", -32602, "another version")
        with pytest.raises(RequestFailed, match="another version"):
            client.ping()

        daemon.on("initialize", {"protocol_version": 1, "server": {"name": "hooksd"}})
        client.ping()

        assert daemon.methods() == ["initialize", "initialize", "daemon/ping"]


class TestBadDaemon:
    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"no json\n", "a line that is no JSON"),
            (b"[1]\n", "no JSON-RPC message"),
            (
                b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad"}}\n',
                "could not read a request: bad",
            ),
            (b'{"jsonrpc":"2.0","id":null,"result":1}\n', "an error without a code and a message"),
            (b"[" * 100_000 + b"\n", "a line that is no JSON"),
        ],
    )
    def test_a_line_that_breaks_the_protocol_ends_the_connection(
        self, client: Any, daemon: Any, data: bytes, message: str
    ) -> None:
        daemon.on("daemon/ping", lambda peer, asked: peer.send_bytes(data))
        with pytest.raises(ProtocolViolation, match=message):
            client.ping()

        daemon.on("daemon/ping", {"pong": True})
        client.ping()
        assert len(daemon.peers) == 2

    def test_a_result_that_is_none_fails_only_its_call(self, client: Any, daemon: Any) -> None:
        daemon.on("daemon/status", {"pid": 7})
        daemon.on("hook/register", {})
        daemon.on("execution/list", {})

        with pytest.raises(ProtocolViolation, match="Status without the field `version`"):
            client.status()
        with pytest.raises(ProtocolViolation, match="without `registration_id`"):
            client.register_hook(lambda call: None, events=["Stop"], name="mine")
        with pytest.raises(ProtocolViolation, match="without the list `executions`"):
            client.executions()

        client.ping()
        assert len(daemon.peers) == 1

    def test_notifications_and_answers_that_nobody_knows_are_left_alone(
        self, client: Any, daemon: Any
    ) -> None:
        def answer(peer: Any, asked: Any) -> None:
            peer.send({"method": "events/event", "params": {"subscription_id": "sub-99"}})
            peer.send({"method": "something/new", "params": [1]})
            peer.send({"id": 99, "result": {}})
            peer.send({"id": {"odd": 1}, "result": {}})
            peer.send({"id": asked["id"], "result": {}})

        daemon.on("daemon/ping", answer)

        client.ping()
        assert len(daemon.peers) == 1


def test_a_full_queue_of_connections_is_waited_for(make_client: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "full.sock")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(path)
        listener.listen(0)
        first.connect(path)
        with pytest.raises(RequestTimeout):
            make_client(path).ping(timeout=0.05)

        def serve() -> None:
            time_out = time.monotonic() + 10
            listener.settimeout(10)
            while time.monotonic() < time_out:
                sock, _ = listener.accept()
                with sock, sock.makefile("rwb") as lines:
                    if lines.readline():
                        lines.write(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
                        return

        thread = threading.Thread(target=serve)
        client = make_client(path)
        thread.start()
        first.shutdown(socket.SHUT_RDWR)
        client.ping(timeout=10)
        thread.join()


def test_a_queue_that_stays_full(make_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hooksd_client.connecting.CONNECT_TIMEOUT_S", 0.05)
    path = str(tmp_path / "full.sock")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(path)
        listener.listen(0)
        first.connect(path)

        with pytest.raises(DaemonNotReachable, match=r"it took no connection for 0\.05 s"):
            make_client(path).ping()


def test_serve_ends_with_the_client(make_client: Any, daemon: Any, background: Any) -> None:
    client = make_client(name="agent")
    serving = background(client.serve)
    daemon.asked("initialize")
    daemon.peer().hang_up()
    daemon.asked("initialize", 2)

    client.close()

    assert serving() is None
    assert client.serve() is None
