"""Every verb of both clients, against a real socket: what goes over the wire, and what comes back."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hooksd_client import (
    ClientClosed,
    InvalidParams,
    MessageTooLarge,
    MethodNotFound,
    RequestCancelled,
    RequestFailed,
    RequestTimeout,
    SocketPathError,
    results,
)


OPEN = {"agent": "bamboo", "session_id": "s-1", "workspace_path": "/w"}
OPENED = {"execution_id": "run-1", **OPEN}


def verb(name: str, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    return lambda client: getattr(client, name)(*args, **kwargs)


VERBS = [
    (
        verb("initialize"),
        "initialize",
        {"protocol_version": 1},
        results.Welcome(1, results.ServerInfo("hooksd", "9"), limits={"max_depth": 4}),
    ),
    (verb("ping"), "daemon/ping", {}, None),
    (verb("shutdown"), "daemon/shutdown", {}, None),
    (verb("shutdown", grace_ms=5), "daemon/shutdown", {"grace_ms": 5}, None),
    (verb("status"), "daemon/status", {}, results.Status(7, "9", "ready")),
    (verb("open_execution", "run-1", **OPEN), "execution/open", OPENED, results.OpenedExecution("run-1", 3)),
    (
        verb(
            "open_execution",
            "run-1",
            **OPEN,
            env={"A": "b"},
            accepts=["ask"],
            bound_to="connection",
            model="m",
            profile=None,
        ),
        "execution/open",
        {**OPENED, "env": {"A": "b"}, "accepts": ["ask"], "bound_to": "connection", "model": "m"},
        results.OpenedExecution("run-1", 3),
    ),
    (
        verb("close_execution", "run-1", grace_ms=0),
        "execution/close",
        {"execution_id": "run-1", "grace_ms": 0},
        results.Drained(finished=("inv-1",)),
    ),
    (
        verb("drain_execution", "run-1", "session"),
        "execution/drain",
        {"execution_id": "run-1", "scope": "session"},
        results.Drained(cancelled=("inv-2",)),
    ),
    (verb("executions"), "execution/list", {}, (results.ExecutionInfo("run-1", "bamboo"),)),
    (
        verb("dispatch", "run-1", "PreToolUse", {"tool_name": "Bash"}),
        "hook/dispatch",
        {"execution_id": "run-1", "event": "PreToolUse", "payload": {"tool_name": "Bash"}},
        results.Outcome("PreToolUse", "block", reason="no", revision=3),
    ),
    (
        verb(
            "dispatch",
            "run-1",
            "Stop",
            execution=OPENED,
            background=True,
            timeout_ms=9,
            cwd="/c",
            env={"A": "b"},
        ),
        "hook/dispatch",
        {
            "execution_id": "run-1",
            "event": "Stop",
            "execution": OPENED,
            "background": True,
            "timeout_ms": 9,
            "cwd": "/c",
            "env": {"A": "b"},
        },
        results.Outcome("PreToolUse", "block", reason="no", revision=3),
    ),
    (
        verb("notify", "run-1", "Notification", {"title": "t"}, traceparent="00-1"),
        "hook/notify",
        {"execution_id": "run-1", "event": "Notification", "payload": {"title": "t"}, "traceparent": "00-1"},
        results.Accepted(True, ("inv-3",)),
    ),
    (
        verb("explain", "run-1", "PreToolUse", model="m", profile="p"),
        "hook/explain",
        {"execution_id": "run-1", "event": "PreToolUse", "model": "m", "profile": "p"},
        results.Explanation(not_matched=(results.NotMatched("h", "other tool"),), revision=3),
    ),
    (
        verb("result", "inv-1"),
        "hook/result",
        {"invocation_id": "inv-1"},
        results.InvocationResult(results.HandlerReport("h", "ok"), stdout="out"),
    ),
    (
        verb("test", "Stop", handler={"type": "command", "command": "exit 2"}, payload={"a": 1}),
        "hook/test",
        {"event": "Stop", "type": "command", "command": "exit 2", "payload": {"a": 1}},
        (results.DryRun(exit_code=2, stderr="no"),),
    ),
    (
        verb("test", "Stop", hook="bamboo:user:bamboo:x", dialect="bamboo", workspace_path="/w"),
        "hook/test",
        {"event": "Stop", "hook": "bamboo:user:bamboo:x", "dialect": "bamboo", "workspace_path": "/w"},
        (results.DryRun(exit_code=2, stderr="no"),),
    ),
    (verb("show_config"), "config/show", {}, results.Configuration(revision=3, digest="d")),
    (
        verb("show_config", workspace_path="/w"),
        "config/show",
        {"workspace_path": "/w"},
        results.Configuration(revision=3, digest="d"),
    ),
    (
        verb("validate_config", "bamboo", content="{}"),
        "config/validate",
        {"dialect": "bamboo", "content": "{}"},
        results.Validation(True),
    ),
    (verb("reload_config"), "config/reload", {}, results.Reloaded(4, changed=True)),
    (
        verb("write_config", "team", 3, "{}"),
        "config/write",
        {"source": "team", "expected_revision": 3, "content": "{}"},
        results.Written(5),
    ),
    (verb("list_trust"), "trust/list", {}, (results.TrustedProject("/p", "trusted", "d", 1.5),)),
    (
        verb("show_trust", "/p"),
        "trust/show",
        {"dir": "/p"},
        results.TrustReview(
            "/p",
            "changed",
            "d",
            files=(results.TrustFile("a.sh", "script", "changed"),),
            diff="-a\n",
            diff_is_whole=False,
            not_covered=("imports",),
        ),
    ),
    (
        verb("grant_trust", "/p", "d"),
        "trust/grant",
        {"dir": "/p", "digest": "d"},
        results.TrustGranted("/p", "trusted", revision=6),
    ),
    (verb("revoke_trust", "/p"), "trust/revoke", {"dir": "/p"}, results.TrustRevoked("/p", True, 7)),
    (
        verb("list_jobs", state="failed", limit=5, after="job-0"),
        "outbox/list",
        {"state": "failed", "limit": 5, "after": "job-0"},
        (results.DurableJob("job-1", "h", "e", "failed", attempts=3),),
    ),
    (verb("retry_jobs"), "outbox/retry", {"all": True}, 2),
    (verb("retry_jobs", "job-1"), "outbox/retry", {"job_id": "job-1"}, 2),
    (verb("discard_jobs", "job-1"), "outbox/discard", {"job_id": "job-1"}, 3),
    (verb("discard_jobs", state="failed"), "outbox/discard", {"state": "failed"}, 3),
    (verb("call", "daemon/status"), "daemon/status", {}, {"pid": 7, "version": "9", "state": "ready"}),
    (verb("call", "daemon/ping", {"odd": 1}), "daemon/ping", {"odd": 1}, {"pong": True}),
]


@pytest.mark.parametrize(("run", "method", "params", "expected"), VERBS)
def test_verbs(
    client: Any, daemon: Any, run: Callable[[Any], Any], method: str, params: dict[str, Any], expected: Any
) -> None:
    result = run(client)

    assert result == expected
    assert daemon.requests == [{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}]


def test_any_mapping_is_an_environment(client: Any, daemon: Any) -> None:
    client.open_execution("run-1", **OPEN, env=os.environ)

    assert daemon.requests[0]["params"]["env"] == dict(os.environ)


def test_a_named_client_says_so_first(make_client: Any, daemon: Any) -> None:
    client = make_client(name="my-agent", version="1.2")
    client.ping()
    client.ping()

    assert daemon.methods() == ["initialize", "daemon/ping", "daemon/ping"]
    assert daemon.requests[0]["params"]["client"] == {"name": "my-agent", "version": "1.2"}


@pytest.mark.parametrize(
    ("code", "kind"), [(-32602, InvalidParams), (-32601, MethodNotFound), (-32099, RequestFailed)]
)
def test_errors(client: Any, daemon: Any, code: int, kind: type[RequestFailed]) -> None:
    daemon.fail("daemon/status", code, "what is wrong", detail="more")

    with pytest.raises(kind, match=r"what is wrong \(more\)") as caught:
        client.status()

    assert (type(caught.value), caught.value.code, caught.value.kind) == (kind, code, "some_kind")
    client.ping()


def test_many_calls_on_one_connection_answered_in_any_order(
    client: Any, daemon: Any, background: Any
) -> None:
    held: list[Any] = []
    daemon.on("hook/dispatch", lambda peer, asked: held.append(asked))
    calls = [background(client.dispatch, f"run-{number}", "Stop") for number in range(5)]
    daemon.asked("hook/dispatch", 5)

    client.ping()
    for asked in reversed(held):
        told = {"event": asked["params"]["execution_id"], "decision": "none"}
        daemon.peer().send({"id": asked["id"], "result": told})

    assert [call().event for call in calls] == [f"run-{number}" for number in range(5)]
    assert len(daemon.peers) == 1


def test_a_call_that_runs_out_of_time_is_cancelled(client: Any, daemon: Any) -> None:
    daemon.hold("daemon/status")

    with pytest.raises(
        RequestTimeout, match=r"the answer to daemon/status did not come within 0\.05 s"
    ) as caught:
        client.status(timeout=0.05)

    assert isinstance(caught.value, TimeoutError)
    assert daemon.asked("$/cancel")[0]["params"] == {"id": daemon.requests[0]["id"]}
    daemon.peer().send({"id": daemon.requests[0]["id"], "error": {"code": -32800, "message": "too late"}})
    client.ping()


def test_the_default_time_limit_is_the_client_s(make_client: Any, daemon: Any) -> None:
    daemon.hold("daemon/ping")
    with pytest.raises(RequestTimeout):
        make_client(timeout=0.05).ping()


@pytest.mark.parametrize(
    "run",
    [
        verb("dispatch", "run-1", "Stop"),
        verb("call", "hook/dispatch", {"execution_id": "run-1", "event": "Stop"}),
        verb("test", "Stop"),
        verb("drain_execution", "run-1"),
        verb("close_execution", "run-1"),
    ],
)
def test_calls_that_wait_for_hooks_have_no_limit_of_their_own(
    make_client: Any, daemon: Any, background: Any, run: Callable[[Any], Any]
) -> None:
    """They outlive the default limit, which another call shows to have passed."""
    for method in ("hook/dispatch", "hook/test", "execution/drain", "execution/close", "daemon/ping"):
        daemon.hold(method)
    client = make_client(timeout=0.05)
    call = background(run, client)
    daemon.peer()
    with pytest.raises(RequestTimeout):
        client.ping()
    daemon.peer().hang_up()

    with pytest.raises(ConnectionError):
        call()


def test_cancel_from_elsewhere(client: Any, daemon: Any, background: Any) -> None:
    daemon.hold("hook/dispatch")
    cancelled = {"code": -32800, "message": "cancelled"}
    daemon.on("$/cancel", lambda peer, asked: peer.send({"id": asked["params"]["id"], "error": cancelled}))
    call = background(client.dispatch, "run-1", "Stop", request_id="mine")
    daemon.asked("hook/dispatch")

    client.cancel("mine")

    with pytest.raises(RequestCancelled):
        call()


def test_cancel_without_a_connection_is_nothing(client: Any, daemon: Any) -> None:
    client.cancel("mine")

    assert daemon.peers == []


def test_an_id_is_taken_once_at_a_time(client: Any, daemon: Any, background: Any) -> None:
    daemon.hold("hook/test")
    first = background(client.test, "Stop", request_id="mine", timeout=5)
    daemon.asked("hook/test")

    with pytest.raises(ValueError, match="'mine' is already under way"):
        client.test("Stop", request_id="mine")

    daemon.peer().send({"id": "mine", "result": {"exit_code": 0}})
    assert first()[0].exit_code == 0
    daemon.on("hook/test", {"results": []})
    assert client.test("Stop", request_id="mine") == ()


def test_what_has_no_json_form_is_the_caller_s_fault(client: Any, daemon: Any) -> None:
    with pytest.raises(TypeError):
        client.dispatch("run-1", "Stop", {"a": object()})
    with pytest.raises(ValueError, match="JSON"):
        client.dispatch("run-1", "Stop", {"a": float("nan")})

    client.ping()
    assert daemon.methods() == ["daemon/ping"]


def test_a_big_request_and_a_big_answer(client: Any, daemon: Any) -> None:
    """More than any socket buffer holds, both ways at once."""
    daemon.on(
        "hook/dispatch",
        lambda peer, asked: peer.send(
            {
                "id": asked["id"],
                "result": {"event": "e", "decision": "none", "arguments": asked["params"]["payload"]},
            }
        ),
    )
    payload = {"text": "é" * 5_000_000}

    assert client.dispatch("run-1", "Stop", payload).arguments == payload


def test_a_request_that_the_daemon_will_not_take(client: Any, daemon: Any, background: Any) -> None:
    """The error names no id, so it goes to the longest request under way; the others go on."""
    error = {"code": -32001, "message": "longer than limits.max_message_bytes"}
    daemon.on("hook/test", lambda peer, asked: peer.send({"id": None, "error": error}))
    daemon.hold("hook/dispatch")
    other = background(client.dispatch, "run-1", "Stop")
    daemon.asked("hook/dispatch")

    with pytest.raises(MessageTooLarge):
        client.test("Stop", payload={"text": "x" * 1000})

    daemon.peer().send({"id": daemon.requests[0]["id"], "result": {"event": "e", "decision": "none"}})
    assert other().decision == "none"


def test_a_closed_client_says_so(make_client: Any, daemon: Any, background: Any) -> None:
    client = make_client()
    daemon.hold("hook/dispatch")
    call = background(client.dispatch, "run-1", "Stop")
    daemon.asked("hook/dispatch")

    client.close()
    client.close()

    with pytest.raises(ClientClosed):
        call()
    with pytest.raises(ClientClosed, match="make a new one"):
        client.ping()


def test_as_a_context_manager(make_client: Any) -> None:
    with make_client() as client:
        client.ping()

    with pytest.raises(ClientClosed):
        client.ping()


def test_the_address_comes_from_the_environment(
    make_client: Any, daemon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKSD_SOCKET", daemon.path)
    client = make_client(path="")  # replaced by the factory
    assert client.socket_path == daemon.path

    with pytest.raises(SocketPathError, match="at most 107"):
        make_client("/" + "x" * 200)


def test_verbs_of_both_clients_are_the_same() -> None:
    from inspect import signature

    from hooksd_client import AsyncClient, Client

    def verbs(kind: type) -> dict[str, Any]:
        return {name: signature(value) for name, value in vars(kind).items() if not name.startswith("_")}

    mine, theirs = verbs(Client), verbs(AsyncClient)
    assert list(mine) == list(theirs)
    for name, found in mine.items():
        assert found.parameters == theirs[name].parameters, name


class TestProgrammaticHooks:
    def test_a_hook_answers_while_the_program_does_something_else(self, client: Any, daemon: Any) -> None:
        client.register_hook(
            lambda call: {"decision": "block", "reason": call.envelope["tool_name"]},
            events=["tool.before"],
            name="mine",
            priority=5,
            matcher="Bash",
        )

        answer = daemon.peer().invoke(envelope={"tool_name": "Bash"})

        assert daemon.requests[0]["params"] == {
            "events": ["tool.before"],
            "name": "mine",
            "priority": 5,
            "matcher": "Bash",
        }
        assert answer == {"jsonrpc": "2.0", "id": "d-1", "result": {"decision": "block", "reason": "Bash"}}

    def test_a_hook_answers_during_a_dispatch_of_the_same_client(self, client: Any, daemon: Any) -> None:
        def dispatch(peer: Any, asked: Any) -> None:
            threading.Thread(target=lambda: ask_back(peer, asked), daemon=True).start()

        def ask_back(peer: Any, asked: Any) -> None:
            told = peer.invoke()["result"]
            peer.send({"id": asked["id"], "result": {"event": "Stop", "decision": told["decision"]}})

        daemon.on("hook/dispatch", dispatch)
        client.register_hook(lambda call: {"decision": "ask"}, events=["Stop"], name="mine")

        assert client.dispatch("run-1", "Stop").asks

    def test_a_failing_hook_says_why(
        self, client: Any, daemon: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        def broken(call: Any) -> None:
            raise KeyError("secret of the payload")

        client.register_hook(broken, events=["Stop"], name="mine")

        answer = daemon.peer().invoke()

        assert answer["error"] == {"code": -32603, "message": "KeyError: 'secret of the payload'"}
        assert "'mine' raised KeyError" in caplog.text
        assert "secret" not in caplog.text

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (3, "TypeError: a hook answers a HookReply, a mapping or None, not int"),
            ({"verdict": "block"}, "ValueError: a hook's answer has no verdict"),
            ({"reason": object()}, "TypeError: Object of type object is not JSON serializable"),
        ],
    )
    def test_an_answer_that_is_none(self, client: Any, daemon: Any, answer: Any, message: str) -> None:
        client.register_hook(lambda call: answer, events=["Stop"], name="mine")

        assert message in daemon.peer().invoke()["error"]["message"]

    def test_an_unknown_registration_and_an_unknown_method_are_refused(
        self, client: Any, daemon: Any
    ) -> None:
        client.register_hook(lambda call: None, events=["Stop"], name="mine")

        assert daemon.peer().invoke("reg-99")["error"]["code"] == -32602
        daemon.peer().send({"id": 1, "method": "hook/dance", "params": {}})
        assert daemon.peer().answers.get(timeout=5)["error"]["code"] == -32601
        assert daemon.peer().invoke() == {"jsonrpc": "2.0", "id": "d-1", "result": {}}

    def test_unregister(self, client: Any, daemon: Any) -> None:
        with client.register_hook(lambda call: None, events=["Stop"], name="mine") as registration:
            assert registration.name == "mine"
        registration.unregister()

        assert daemon.methods() == ["hook/register", "hook/unregister"]
        assert daemon.requests[1]["params"] == {"registration_id": "reg-1"}
        assert daemon.peer().invoke()["error"]["code"] == -32602

    def test_a_refused_registration(self, client: Any, daemon: Any) -> None:
        daemon.fail("hook/register", -32602)

        with pytest.raises(InvalidParams):
            client.register_hook(lambda call: None, events=[], name="mine")

    def test_too_many_at_once_are_refused(
        self, client: Any, daemon: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("hooksd_client.connection.MAX_CALLBACKS", 0)
        monkeypatch.setattr("hooksd_client.aio_connection.MAX_CALLBACKS", 0)
        client.register_hook(lambda call: None, events=["Stop"], name="mine")

        assert "hooks already" in daemon.peer().invoke()["error"]["message"]


class TestEvents:
    def test_records_in_order(self, client: Any, daemon: Any) -> None:
        stream = client.events(kinds=["hook.*"], execution_id="run-1", since_seq=4)
        for seq in (11, 12, 13):
            daemon.peer().record(seq, hook="h")

        records = [next(stream), next(stream), stream.get()]

        assert daemon.requests[0]["params"] == {"kinds": ["hook.*"], "execution_id": "run-1", "since_seq": 4}
        assert [record.seq for record in records] == [11, 12, 13]
        assert (records[0].event, records[0].level, records[0].data["hook"]) == ("hook.finished", "info", "h")

    def test_records_that_come_with_the_answer(self, client: Any, daemon: Any) -> None:
        def subscribe(peer: Any, asked: Any) -> None:
            lines = [
                {"id": asked["id"], "result": {"subscription_id": "sub-1", "seq": 1}},
                {
                    "method": "events/event",
                    "params": {
                        "subscription_id": "sub-1",
                        "seq": 2,
                        "ts": "t",
                        "level": "info",
                        "event": "x",
                    },
                },
            ]
            peer.send_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))

        daemon.on("events/subscribe", subscribe)

        assert next(iter(client.events())).seq == 2

    def test_waiting_for_a_record(self, client: Any, daemon: Any, background: Any) -> None:
        stream = client.events()
        with pytest.raises(RequestTimeout, match="a record of the event stream did not come"):
            stream.get(timeout=0.01)
        waiting = background(stream.get, timeout=8)
        client.ping()

        daemon.peer().record(11)

        assert waiting().seq == 11

    def test_two_records_at_once_for_one_that_waits(self, client: Any, daemon: Any, background: Any) -> None:
        stream = client.events()
        waiting = background(stream.get, timeout=8)
        client.ping()
        params = {"subscription_id": "sub-1", "ts": "t", "level": "info", "event": "x"}
        lines = [{"method": "events/event", "params": {**params, "seq": seq}} for seq in (11, 12)]

        daemon.peer().send_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))

        assert waiting().seq == 11
        assert stream.get(timeout=8).seq == 12

    def test_the_end(self, client: Any, daemon: Any) -> None:
        with client.events() as stream:
            daemon.peer().record(11)
            assert stream.get().seq == 11
        stream.close()

        assert list(stream) == []
        assert daemon.methods() == ["events/subscribe", "events/unsubscribe"]
        daemon.peer().record(12)
        client.ping()


class TestGuards:
    GUARDS = '{"version": 1, "agents": {"bamboo": {"PreToolUse": [{"hooks": "*"}], "tool.before": [{"hooks": "*"}]}}}'

    @pytest.fixture
    def guarded(self, tmp_path: Path) -> None:
        (tmp_path / "guards.json").write_text(self.GUARDS)

    @pytest.mark.usefixtures("guarded")
    @pytest.mark.parametrize(
        ("event", "execution", "expected"),
        [
            ("PreToolUse", OPENED, True),
            ("tool.before", OPENED, True),
            ("PreToolUse", None, True),
            ("Stop", OPENED, False),
            ("PreToolUse", {**OPENED, "agent": "chrys"}, False),
        ],
    )
    def test_a_daemon_that_is_not_there(
        self, client: Any, daemon: Any, event: str, execution: Any, expected: bool
    ) -> None:
        daemon.stop()

        with pytest.raises(ConnectionError) as caught:
            client.dispatch("run-1", event, execution=execution)

        assert caught.value.guarded is expected

    @pytest.mark.usefixtures("guarded")
    def test_a_daemon_that_dies_or_hangs(self, client: Any, daemon: Any) -> None:
        daemon.hold("hook/dispatch")
        with pytest.raises(RequestTimeout) as hung:
            client.dispatch("run-1", "PreToolUse", timeout=0.05)
        daemon.on("hook/dispatch", lambda peer, asked: peer.hang_up())
        with pytest.raises(ConnectionError) as died:
            client.call(
                "hook/dispatch", {"execution_id": "run-1", "event": "PreToolUse", "execution": OPENED}
            )

        assert hung.value.guarded
        assert died.value.guarded

    @pytest.mark.usefixtures("guarded")
    def test_a_daemon_that_refuses(self, client: Any, daemon: Any) -> None:
        daemon.fail("hook/dispatch", -32003, "too much to do")

        with pytest.raises(RequestFailed, match="too much to do") as caught:
            client.dispatch("run-1", "PreToolUse")

        assert caught.value.guarded

    @pytest.mark.usefixtures("guarded")
    def test_other_calls_are_no_events(self, client: Any, daemon: Any) -> None:
        daemon.stop()

        with pytest.raises(ConnectionError) as caught:
            client.explain("run-1", "PreToolUse")

        assert caught.value.guarded is False
