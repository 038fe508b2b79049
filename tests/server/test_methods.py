"""The methods over a real socket, with the real pipeline, a real Bamboo configuration and real hooks."""

from __future__ import annotations

import json
import os

import pytest

from hooksd.config.settings import Limits


def hooks(*commands, event="PreToolUse", matcher=None):
    """A Bamboo document with these commands for one event."""
    group = {"hooks": [{"type": "command", "command": command, "timeout_ms": 10_000} for command in commands]}
    if matcher is not None:
        group["matcher"] = matcher
    return {"lifecycle_hooks": {"enabled": True, event: [group]}}


OPEN = {"execution_id": "run", "agent": "bamboo", "session_id": "session", "workspace_path": "/"}
BASH = {"tool_name": "Bash", "tool_call_id": "c", "parsed_args": {"command": "ls"}}


def dispatch(event="PreToolUse", payload=BASH, **more):
    return {"execution_id": "run", "event": event, "payload": payload, **more}


async def error_code(client, method, params):
    await client.call(method, params)
    return (await client.error())[0]


# ----------------------------------------------------------------------------------------------------------------------


async def test_initialize(start_house):
    house = await start_house({})
    client = await house.connect()

    result = (await client.ask("initialize", {"client": {"name": "me", "version": "1"}}))["result"]

    assert result["protocol_version"] == 1
    assert result["server"]["name"] == "hooksd"
    assert "bamboo" in result["dialects"]
    assert {"initialize", "hook/dispatch", "execution/open", "$/cancel", "daemon/ping"} <= set(
        result["methods"]
    )
    assert result["limits"]["max_message_bytes"] == 16 * 2**20
    assert set(result["limits"]) == set(Limits.__struct_fields__)
    assert (await client.ask("initialize"))["result"] == result


async def test_ping(start_house):
    client = await (await start_house({})).connect()

    assert (await client.ask("daemon/ping"))["result"] == {"pong": True}


@pytest.mark.parametrize(
    "method", ["outbox/forget", "hook/relay", "hook/invoke", "events/event", "Daemon/ping", ""]
)
async def test_methods_that_are_not_there(start_house, method):
    client = await (await start_house({})).connect()

    assert await error_code(client, method, {}) == -32601


async def test_open_dispatch_close(start_house):
    house = await start_house(hooks("echo no >&2; exit 2", matcher="^Bash$"))
    client = await house.connect()

    opened = (await client.ask("execution/open", OPEN))["result"]
    assert (opened["execution_id"], opened["revision"]) == ("run", 1)
    assert [(one["name"], one["state"], one["hooks"]) for one in opened["sources"] if one["hooks"]] == [
        ("bamboo", "loaded", 1)
    ]
    blocked = (await client.ask("hook/dispatch", dispatch()))["result"]
    assert (blocked["decision"], blocked["reason"]) == ("block", "no")
    assert blocked["decided_by"] == "bamboo:user:bamboo:PreToolUse[0].hooks[0]"
    assert [report["status"] for report in blocked["handlers"]] == ["blocked"]
    passed = (await client.ask("hook/dispatch", dispatch(payload=BASH | {"tool_name": "Read"})))["result"]
    assert passed == {
        "event": "PreToolUse",
        "decision": "none",
        "reason": None,
        "decided_by": None,
        "contexts": [],
        "reminders": [],
        "arguments": None,
        "continuation": None,
        "revision": 1,
        "handlers": [],
        "problems": [],
    }
    listed = (await client.ask("execution/list"))["result"]["executions"]
    assert [(one["execution_id"], one["agent"], one["running"]) for one in listed] == [("run", "bamboo", 0)]
    nothing = {"finished": [], "cancelled": [], "still_running": []}
    drained = await client.ask("execution/drain", {"execution_id": "run", "scope": "turn"})
    assert drained["result"] == nothing
    closed = await client.ask("execution/close", {"execution_id": "run"})
    assert closed["result"] == nothing
    assert await error_code(client, "hook/dispatch", dispatch()) == -32011


async def test_a_one_shot_client_needs_one_round_trip(start_house):
    house = await start_house(hooks('echo \'{"additional_context":"c"}\''))
    client = await house.connect()
    await client.call("hook/dispatch", dispatch(execution=OPEN))
    client.half_close()

    assert (await client.answer())["result"]["contexts"] == ["c"]
    assert await client.line() == b""


async def test_an_open_that_must_read_and_what_comes_after_it(start_house):
    """A changed file makes the opening wait; a dispatch behind it in the same write waits with it."""
    house = await start_house(hooks("echo old >&2; exit 2"))
    client = await house.connect()
    house.write_hooks(hooks("echo new >&2; exit 2"))
    await client.send(
        b"".join(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
            for number, (method, params) in enumerate([
                ("execution/open", OPEN),
                ("hook/dispatch", dispatch()),
                ("execution/close", {"execution_id": "run"}),
                ("hook/dispatch", dispatch()),
            ])
        )
    )  # fmt: skip

    answers = {answer["id"]: answer for answer in [await client.answer() for _ in range(4)]}

    assert answers[0]["result"]["revision"] == 2
    assert answers[1].get("result", {}).get("reason") in ("new", None)  # the close may have cut it off
    assert answers[2]["result"]["finished"] == []
    assert answers[3]["error"]["code"] == -32011


async def test_identity_of_an_execution(start_house):
    client = await (await start_house({})).connect()
    await client.ask("execution/open", OPEN)

    assert await error_code(client, "execution/open", OPEN | {"session_id": "other"}) == -32010
    assert await error_code(client, "hook/dispatch", dispatch(execution=OPEN | {"agent": "chrys"})) == -32010


async def test_unknown_words(start_house):
    client = await (await start_house({})).connect()
    await client.ask("execution/open", OPEN)

    assert (
        await error_code(client, "execution/open", OPEN | {"agent": "nobody", "execution_id": "x"}) == -32015
    )
    assert await error_code(client, "hook/dispatch", dispatch("Nonsense")) == -32015
    assert await error_code(client, "hook/dispatch", dispatch(payload={"tool_name": 1})) == -32602
    assert await error_code(client, "execution/drain", {"execution_id": "x", "scope": "turn"}) == -32011
    assert await error_code(client, "execution/close", {"execution_id": "x"}) == -32011
    assert await error_code(client, "hook/result", {"invocation_id": "x"}) == -32602
    assert await error_code(client, "hook/unregister", {"registration_id": "x"}) == -32602
    assert await error_code(client, "events/unsubscribe", {"subscription_id": "x"}) == -32602
    assert await error_code(client, "config/validate", {"dialect": "x", "content": ""}) == -32015


async def test_too_many_executions(start_house, until):
    house = await start_house(hooks("cat >/dev/null; sleep 30"), toml="[limits]\nmax_executions = 1\n")
    client = await house.connect()
    await client.call("hook/dispatch", dispatch(execution=OPEN), request_id="gate")
    await until(lambda: house.runner.running)

    await client.call("execution/open", OPEN | {"execution_id": "second"}, request_id=2)

    assert (await client.error())[::2] == (-32003, 2)
    await client.notify("$/cancel", {"id": "gate"})
    assert (await client.error())[::2] == (-32800, "gate")


# ----------------------------------------------------------------------------------------------------------------------
# What cuts a dispatch off


async def test_cancel_ends_the_hook(start_house, until):
    house = await start_house(hooks("cat >/dev/null; sleep 30"))
    client = await house.connect()
    await client.call("hook/dispatch", dispatch(execution=OPEN), request_id=5)
    await until(lambda: house.runner.running)
    await client.notify("$/cancel", {"id": 5})

    assert (await client.error())[::2] == (-32800, 5)
    await until(lambda: not house.runner.running)


async def test_close_cuts_a_gate_off(start_house, until):
    house = await start_house(hooks("cat >/dev/null; sleep 30"))
    client = await house.connect()
    await client.call("hook/dispatch", dispatch(execution=OPEN), request_id=5)
    await until(lambda: house.runner.running)
    await client.call("execution/close", {"execution_id": "run"}, request_id=6)

    answers = {answer["id"]: answer for answer in [await client.answer() for _ in range(2)]}

    assert answers[5]["error"]["code"] == -32011
    assert len(answers[6]["result"]["cancelled"]) == 1


async def test_shutdown_cuts_a_gate_off_and_nothing_new_begins(start_house, until):
    house = await start_house(hooks("cat >/dev/null; sleep 30"))
    client = await house.connect()
    await client.call("hook/dispatch", dispatch(execution=OPEN), request_id=5)
    await until(lambda: house.runner.running)

    await house.pipeline.drain(0.0)

    assert (await client.error())[::2] == (-32002, 5)
    for method, params in (
        ("hook/dispatch", dispatch()),
        ("execution/open", OPEN | {"execution_id": "new"}),
        ("hook/notify", dispatch("SessionEnd", {"status": "completed"})),
        ("hook/test", {"event": "Stop", "type": "command", "command": "true"}),
    ):
        assert await error_code(client, method, params) == -32002, method
    assert (await client.ask("daemon/ping"))["result"] == {"pong": True}


async def test_a_gone_client_cancels_its_gates_and_nothing_else(start_house, until, tmp_path):
    done = tmp_path / "done"
    document = hooks("cat >/dev/null; sleep 30")
    document["lifecycle_hooks"]["SessionEnd"] = [
        {"hooks": [{"type": "command", "command": f"cat >/dev/null; sleep 0.3; touch {done}"}]}
    ]
    house = await start_house(document)
    client = await house.connect()
    await client.ask("execution/open", OPEN)
    await client.call("hook/dispatch", dispatch(), request_id=5)
    await client.call("hook/dispatch", dispatch("SessionEnd", {"status": "completed"}), request_id=6)
    await until(lambda: house.runner.running == 2)
    client.close()

    await until(lambda: house.runner.running == 1)
    await until(done.exists)
    await until(lambda: not house.runner.running)
    assert len(house.pipeline.executions) == 1


async def test_an_execution_that_is_bound_to_its_connection(start_house, until):
    house = await start_house({})
    client, other = await house.connect(), await house.connect()
    await client.ask("execution/open", OPEN | {"bound_to": "connection"})
    assert len(house.pipeline.executions) == 1
    client.close()

    await until(lambda: len(house.pipeline.executions) == 0)
    assert await error_code(other, "hook/dispatch", dispatch()) == -32011


async def test_a_connection_that_is_lost_while_its_execution_is_opened(start_house, until):
    house = await start_house({})
    client = await house.connect()
    house.write_hooks(hooks("true"))
    await client.call("execution/open", OPEN | {"bound_to": "connection"})
    client.close()
    await until(lambda: len(house.listener) == 0)

    await until(lambda: house.recorded("execution.opened"))
    await until(lambda: len(house.pipeline.executions) == 0)


# ----------------------------------------------------------------------------------------------------------------------
# Notify, explain, result, test


async def test_notify(start_house, until, tmp_path):
    done = tmp_path / "done"
    house = await start_house(hooks(f"cat > {done}.part; mv {done}.part {done}", event="SessionEnd"))
    client = await house.connect()
    ended = dispatch("SessionEnd", {"status": "completed"}, execution=OPEN)

    result = (await client.ask("hook/notify", ended))["result"]

    assert result["accepted"] is True
    assert len(result["invocation_ids"]) == 1
    await until(done.exists)
    done.unlink()
    await client.notify("hook/notify", ended)
    await until(done.exists)
    assert await error_code(client, "hook/notify", dispatch()) == -32602


async def test_drain_waits_for_what_was_notified(start_house, tmp_path):
    house = await start_house(hooks("cat >/dev/null; sleep 0.2", event="SessionEnd"))
    client = await house.connect()
    ids = (await client.ask("hook/notify", dispatch("SessionEnd", {"status": "completed"}, execution=OPEN)))[
        "result"
    ]["invocation_ids"]

    drained = (
        await client.ask("execution/drain", {"execution_id": "run", "scope": "session", "grace_ms": 9_000})
    )["result"]

    assert drained == {"finished": ids, "cancelled": [], "still_running": []}


async def test_explain_runs_nothing(start_house, tmp_path):
    house = await start_house(hooks(f"touch {tmp_path}/ran", matcher="Bash"))
    client = await house.connect()

    result = (await client.ask("hook/explain", dispatch(execution=OPEN)))["result"]

    assert [(one["hook"], one["matched"]) for one in result["plan"]] == [
        ("bamboo:user:bamboo:PreToolUse[0].hooks[0]", True)
    ]
    assert (await client.ask("hook/explain", dispatch(payload=BASH | {"tool_name": "Read"})))["result"][
        "plan"
    ] == []
    assert not (tmp_path / "ran").exists()


async def test_result_of_an_invocation(start_house):
    house = await start_house(hooks("echo no >&2; exit 2"))
    client = await house.connect()
    outcome = (await client.ask("hook/dispatch", dispatch(execution=OPEN)))["result"]

    result = (await client.ask("hook/result", {"invocation_id": outcome["handlers"][0]["invocation_id"]}))[
        "result"
    ]

    assert (result["reason"], result["stderr"]) == ("no", "no\n")
    assert result["source"] == {"path": house.hooks_path, "line": result["source"]["line"]}
    assert "PATH" in result["environment"]


async def test_dry_run(start_house):
    house = await start_house(hooks("echo configured >&2; exit 2"))
    client = await house.connect()
    inline = {"event": "PreToolUse", "type": "command", "command": 'echo \'{"additional_context":"x"}\''}

    result = (await client.ask("hook/test", inline))["result"]
    assert (result["exit_code"], result["interpreted"]["additional_context"]) == (0, "x")
    results = (await client.ask("hook/test", {"event": "PreToolUse"}))["result"]["results"]
    assert [(one["exit_code"], one["interpreted"]["decision"]) for one in results] == [(2, "block")]
    assert await error_code(client, "hook/test", inline | {"comand": "x"}) == -32602
    assert await error_code(client, "hook/test", {"event": "PreToolUse", "hook": "x"}) == -32602


async def test_a_dry_run_ends_with_its_client(start_house, until):
    house = await start_house({})
    client = await house.connect()
    await client.call("hook/test", {"event": "Stop", "type": "command", "command": "sleep 30"})
    await until(lambda: house.runner.running)
    client.close()

    await until(lambda: not house.runner.running)


# ----------------------------------------------------------------------------------------------------------------------
# Programmatic hooks


async def test_a_programmatic_hook(start_house):
    house = await start_house({})
    hook, agent = await house.connect(), await house.connect()
    await hook.ask("initialize", {"client": {"name": "guard", "version": "1"}})
    registered = (await hook.ask("hook/register", {"events": ["PreToolUse"], "name": "g"}))["result"]
    await agent.call("hook/dispatch", dispatch(execution=OPEN))

    call = await hook.answer()
    assert call["method"] == "hook/invoke"
    assert call["params"]["registration_id"] == registered["registration_id"]
    assert call["params"]["envelope"]["tool_name"] == "Bash"
    assert 0 < call["params"]["deadline_ms"] <= 60_000
    await hook.send(
        json.dumps(
            {"jsonrpc": "2.0", "id": call["id"], "result": {"decision": "block", "reason": "never"}}
        ).encode()
        + b"\n"
    )
    outcome = (await agent.answer())["result"]

    assert (outcome["decision"], outcome["reason"]) == ("block", "never")
    assert outcome["decided_by"] == "programmatic:client:guard:g"
    assert (await hook.ask("hook/unregister", {"registration_id": registered["registration_id"]}))[
        "result"
    ] == {}
    assert (await agent.ask("hook/dispatch", dispatch()))["result"]["handlers"] == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"error": {"code": 1, "message": "no idea"}}, "malformed_output"),
        ({"error": {"code": "x"}}, "malformed_output"),
        ({"error": None}, "malformed_output"),
        ({"result": ["x"]}, "malformed_output"),
    ],
)
async def test_an_answer_that_is_none(start_house, answer, kind):
    house = await start_house({})
    hook, agent = await house.connect(), await house.connect()
    await hook.ask("hook/register", {"events": ["PreToolUse"], "name": "g"})
    await agent.call("hook/dispatch", dispatch(execution=OPEN))
    call = await hook.answer()
    await hook.send(json.dumps({"jsonrpc": "2.0", "id": call["id"], **answer}).encode() + b"\n")

    report = (await agent.answer())["result"]["handlers"][0]

    assert (report["status"], report["problem"]["kind"]) == ("failed", kind)
    assert report["hook"] == "programmatic:client:-:g"


async def test_a_number_that_cannot_be_represented_is_no_answer(start_house):
    house = await start_house({})
    hook, agent = await house.connect(), await house.connect()
    await hook.ask("hook/register", {"events": ["PreToolUse"], "name": "g"})
    await agent.call("hook/dispatch", dispatch(execution=OPEN))
    call = await hook.answer()
    await hook.send(b'{"jsonrpc":"2.0","id":"%s","result":{"x":1e999}}\n' % call["id"].encode())

    assert (await agent.answer())["result"]["handlers"][0]["problem"]["kind"] == "malformed_output"


async def test_a_client_that_does_not_answer_in_time(start_house, until):
    house = await start_house({})
    hook, agent = await house.connect(), await house.connect()
    await hook.ask("hook/register", {"events": ["PreToolUse"], "name": "g", "timeout_ms": 50})
    await agent.call("hook/dispatch", dispatch(execution=OPEN))
    call = await hook.answer()

    report = (await agent.answer())["result"]["handlers"][0]
    assert report["status"] == "timeout"
    await hook.send(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": {}}).encode() + b"\n")
    await until(lambda: house.recorded("daemon.unexpected_response"))


@pytest.mark.parametrize("how", ["close", "half_close"])
async def test_a_client_that_is_lost(start_house, until, how):
    house = await start_house({})
    hook, agent = await house.connect(), await house.connect()
    await hook.ask("hook/register", {"events": ["PreToolUse"], "name": "g"})
    await agent.call("hook/dispatch", dispatch(execution=OPEN))
    await hook.answer()
    getattr(hook, how)()

    for _ in range(2):
        report = (await agent.answer())["result"]["handlers"][0]
        assert (report["status"], report["problem"]["kind"]) == ("failed", "lost_connection")
        await agent.call("hook/dispatch", dispatch())
    await agent.answer()
    assert house.pipeline.registry.hooks == ()


async def test_only_the_client_that_registered_a_hook_takes_it_out(start_house):
    house = await start_house({})
    hook, other = await house.connect(), await house.connect()
    registered = (await hook.ask("hook/register", {"events": ["PreToolUse"], "name": "g"}))["result"]

    assert await error_code(other, "hook/unregister", registered) == -32016


async def test_a_client_that_is_its_own_hook(start_house):
    house = await start_house({})
    client = await house.connect()
    await client.ask("hook/register", {"events": ["tool.before"], "name": "g"})
    await client.call("hook/dispatch", dispatch(execution=OPEN), request_id="d")
    call = await client.answer()
    await client.send(
        json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": {"additional_context": "mine"}}).encode()
        + b"\n"
    )

    assert (await client.answer())["result"]["contexts"] == ["mine"]


# ----------------------------------------------------------------------------------------------------------------------
# Configuration


async def test_config(start_house):
    house = await start_house(hooks("true"))
    client = await house.connect()

    shown = (await client.ask("config/show"))["result"]
    document = next(one for one in shown["documents"] if one["name"] == "bamboo")
    assert json.loads(document["content"]) == hooks("true")
    broken = {"dialect": "bamboo", "content": '{"lifecycle_hooks": {"enabled": 1}}'}
    validated = (await client.ask("config/validate", broken))["result"]
    assert validated["valid"] is False
    assert validated["problems"]
    stale = {"source": "bamboo", "expected_revision": shown["revision"] + 7, "content": "{}"}
    assert await error_code(client, "config/write", stale) == -32012
    bad = {"source": "bamboo", "expected_revision": shown["revision"], "content": "{"}
    assert await error_code(client, "config/write", bad) == -32013
    good = bad | {"content": json.dumps(hooks("false"))}
    written = (await client.ask("config/write", good))["result"]
    assert written["revision"] == shown["revision"] + 1
    house.write_hooks(hooks("exit 0"))
    reloaded = (await client.ask("config/reload"))["result"]
    assert (reloaded["revision"], reloaded["changed"]) == (shown["revision"] + 2, True)


async def test_trust(start_house):
    house = await start_house(hooks("true"), toml="[projects]\nenabled = true\n")
    client = await house.connect()
    project = os.path.realpath(f"{house.root}/project")
    os.makedirs(f"{project}/.bamboo", mode=0o700)
    with open(f"{project}/.bamboo/hooks.json", "w", encoding="utf-8") as file:
        json.dump(hooks("exit 2"), file)
    place = {"dir": project}

    assert (await client.ask("trust/list"))["result"] == {"projects": []}
    shown = (await client.ask("trust/show", place))["result"]
    assert (shown["state"], shown["files"][0]["path"]) == ("untrusted", ".bamboo/hooks.json")
    assert await error_code(client, "trust/grant", {**place, "digest": "0"}) == -32012
    assert await error_code(client, "trust/grant", {"dir": "project", "digest": "0"}) == -32602
    granted = (await client.ask("trust/grant", {**place, "digest": shown["digest"]}))["result"]
    assert granted["state"] == "trusted"
    (listed,) = (await client.ask("trust/list"))["result"]["projects"]
    assert (listed["dir"], listed["state"], listed["digest"]) == (project, "trusted", shown["digest"])
    revoked = (await client.ask("trust/revoke", place))["result"]
    assert (revoked["dir"], revoked["revoked"]) == (project, True)


async def test_gates_while_no_hook_may_run(start_house):
    house = await start_house({}, toml="[nonsense]\n")
    client = await house.connect()

    opened = (await client.ask("execution/open", OPEN))["result"]
    assert opened["problems"]
    await client.call("hook/dispatch", dispatch())
    answer = await client.answer()
    assert answer["error"]["code"] == -32013
    assert answer["error"]["data"]["problems"]


# ----------------------------------------------------------------------------------------------------------------------
# The daemon


async def test_status_and_shutdown(start_house, until):
    house = await start_house({})
    client = await house.connect()

    status = (await client.ask("daemon/status"))["result"]
    assert (status["pid"], status["state"]) == (os.getpid(), "ready")
    assert (await client.ask("daemon/shutdown", {"grace_ms": 1_500}))["result"] == {}
    assert await until(lambda: house.control.shutdowns) == [1.5]
    await client.ask("daemon/shutdown")
    assert await until(lambda: house.control.shutdowns[1:]) == [None]


# ----------------------------------------------------------------------------------------------------------------------
# Depth


async def test_the_depth_of_a_client_is_that_of_its_process(start_house, tmp_path):
    """A hook that dispatches an event itself is known by its own environment, whatever its request says."""
    script = tmp_path / "nested.py"
    script.write_text(NESTED)
    document = hooks(f"cat >/dev/null; python3 {script}", matcher="^Outer$")
    document["lifecycle_hooks"]["PreToolUse"].append(
        {"matcher": "^Inner$", "hooks": [{"type": "command", "command": "echo $HOOKSD_DEPTH >&2; exit 2"}]}
    )
    house = await start_house(document)
    client = await house.connect()

    outcome = (
        await client.ask("hook/dispatch", dispatch(payload=BASH | {"tool_name": "Outer"}, execution=OPEN))
    )["result"]

    assert outcome["contexts"] == ["inner depth 2"]


NESTED = """
import json, os, socket
connection = socket.socket(socket.AF_UNIX)
connection.connect(os.environ["HOOKSD_SOCKET"])
params = {"execution_id": os.environ["HOOKSD_EXECUTION_ID"], "event": "PreToolUse", "env": {"HOOKSD_DEPTH": "0"},
          "payload": {"tool_name": "Inner", "tool_call_id": "d", "parsed_args": {}}}
connection.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hook/dispatch", "params": params}).encode() + b"\\n")
answer = json.loads(connection.makefile().readline())
print(json.dumps({"additional_context": "inner depth " + answer["result"]["reason"]}))
"""


async def test_a_dry_run_knows_its_depth_too(start_house, monkeypatch):
    monkeypatch.setattr("hooksd.server.connection.depth_of_process", lambda pid: 1)
    house = await start_house({})
    client = await house.connect()
    dry = {"event": "Stop", "type": "command", "command": "echo $HOOKSD_DEPTH", "env": {"HOOKSD_DEPTH": "0"}}

    assert (await client.ask("hook/test", dry))["result"]["stdout"] == "2\n"


async def test_else_the_depth_is_what_the_request_says(start_house, monkeypatch):
    monkeypatch.setattr("hooksd.server.connection.depth_of_process", lambda pid: None)
    house = await start_house(hooks("echo $HOOKSD_DEPTH >&2; exit 2"))
    client = await house.connect()
    env = {"PATH": os.environ["PATH"], "HOOKSD_DEPTH": "2"}

    outcome = (await client.ask("hook/dispatch", dispatch(execution=OPEN, env=env)))["result"]
    assert outcome["reason"] == "3"
    outcome = (await client.ask("hook/dispatch", dispatch(env=env | {"HOOKSD_DEPTH": "5"})))["result"]
    assert outcome["decision"] == "block"
    assert outcome["handlers"][0]["problem"]["kind"] == "too_deep"
    dry = {"event": "Stop", "type": "command", "command": "echo $HOOKSD_DEPTH", "env": env}
    assert (await client.ask("hook/test", dry))["result"]["stdout"] == "3\n"
