"""The structs of every method: what they take, what they refuse, what they are called."""

from __future__ import annotations

import json

import msgspec
import pytest

from hooksd.model.errors import ProtocolError
from hooksd.protocol.methods import METHODS
from hooksd.protocol.methods.base import MAX_MILLISECONDS, MethodKind, check_identifier, check_path
from hooksd.protocol.methods.daemon import CancelParams, InitializeParams
from hooksd.protocol.methods.executions import BoundTo, ExecutionOpenParams
from hooksd.protocol.methods.hooks import HookDispatchParams, HookTestParams
from hooksd.protocol.methods.programmatic import HookRegisterParams
from hooksd.protocol.params import decode_params


OPEN = {"execution_id": "run-42", "agent": "bamboo", "session_id": "s", "workspace_path": "/w"}
DISPATCH = {"execution_id": "run-42", "event": "PreToolUse"}
EXAMPLES = {
    "initialize": {"protocol_version": 1, "client": {"name": "n", "version": "1"}},
    "daemon/status": {},
    "daemon/ping": {},
    "daemon/shutdown": {"grace_ms": 1},
    "$/cancel": {"id": 1},
    "execution/open": {
        **OPEN,
        "model": "m",
        "profile": "p",
        "env": {"PATH": "/bin"},
        "accepts": ["allow", "ask", "arguments", "contexts", "reminders", "continuation"],
        "bound_to": "connection",
    },
    "execution/close": {"execution_id": "x", "grace_ms": 0},
    "execution/drain": {"execution_id": "x", "scope": "turn", "grace_ms": 1},
    "execution/list": {},
    "hook/dispatch": {
        **DISPATCH,
        "execution": OPEN,
        "payload": {"tool_name": "Bash"},
        "background": False,
        "timeout_ms": 30000,
        "env": {},
        "cwd": "/",
        "model": "m",
        "profile": "p",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    },
    "hook/notify": DISPATCH,
    "hook/explain": DISPATCH,
    "hook/result": {"invocation_id": "i"},
    "hook/test": {
        "event": "PreToolUse",
        "type": "command",
        "command": "true",
        "matcher": "Bash",
        "timeout_ms": 5,
        "payload": {},
        "workspace_path": "/w",
        "env": {},
        "cwd": "/",
    },
    "hook/register": {
        "events": ["PreToolUse"],
        "matcher": "Bash",
        "priority": 5,
        "name": "n",
        "mode": "observer",
        "timeout_ms": 1,
        "on_failure": "block",
        "agent": "bamboo",
    },
    "hook/unregister": {"registration_id": "r"},
    "hook/invoke": {"registration_id": "r", "envelope": {}, "deadline_ms": 1},
    "config/show": {"workspace_path": "/w"},
    "config/validate": {"dialect": "bamboo", "content": "{}"},
    "config/reload": {},
    "config/write": {"source": "bamboo", "expected_revision": 1, "content": "{}"},
    "trust/list": {},
    "trust/show": {"dir": "/w"},
    "trust/grant": {"dir": "/w", "digest": "sha256:" + "0" * 64},
    "trust/revoke": {"dir": "/w"},
    "outbox/list": {"state": "failed", "limit": 1000, "after": "job-0000000000000001"},
    "outbox/retry": {"job_id": "job-0000000000000001"},
    "outbox/discard": {"state": "pending"},
    "events/subscribe": {"kinds": ["hook.*"], "execution_id": "x", "since_seq": 0},
    "events/unsubscribe": {"subscription_id": "s"},
    "events/event": {"subscription_id": "s", "seq": 1, "ts": "t", "level": "info", "event": "hook.started"},
}


def decoded(name, params):
    struct = METHODS[name].params
    return decode_params(msgspec.json.Decoder(struct), struct, msgspec.Raw(json.dumps(params).encode()), name)


def refused(name, params):
    with pytest.raises(ProtocolError) as caught:
        decoded(name, params)
    return caught.value.message


def test_every_method_has_an_example_here():
    assert set(METHODS) == set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_method_takes_what_the_protocol_says(name):
    taken = json.loads(msgspec.json.encode(decoded(name, EXAMPLES[name])))

    assert _only(EXAMPLES[name], taken) == EXAMPLES[name]


def _only(wanted, taken):
    """Of what was taken, what was sent: the rest are defaults."""
    if not isinstance(wanted, dict):
        return taken
    return {field: _only(value, taken[field]) for field, value in wanted.items()}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_unknown_fields_of_a_request_are_an_error(name):
    if METHODS[name].kind in {MethodKind.EVENT, MethodKind.FROM_DAEMON}:
        return
    assert f"`params.{'unknown'}` is not known" in refused(name, {**EXAMPLES[name], "unknown": 1})


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_has_a_schema_and_a_description(name):
    method = METHODS[name]
    structs = [method.params, *([method.result] if method.result else [])]
    for struct in structs:
        assert msgspec.json.schema(struct)
        assert struct.__doc__
        assert struct.__struct_config__.frozen
    assert method.name == name
    assert method.summary.endswith(".")
    assert method.section[0] == "2"


def test_fields_are_snake_case():
    for method in METHODS.values():
        for struct in (method.params, method.result):
            for name in struct.__struct_fields__ if struct else ():
                assert name == name.lower()


# ----------------------------------------------------------------------------------------------------------------------


def test_defaults_of_an_opening():
    params = decoded("execution/open", OPEN)

    assert params == ExecutionOpenParams(**OPEN)
    assert (params.env, params.accepts, params.model, params.bound_to) == (None, None, None, BoundTo.DAEMON)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"execution_id": ""}, "`params.execution_id` must have at least 1"),
        ({"execution_id": "x" * 513}, "`params.execution_id` must have at most 512"),
        ({"execution_id": "a\nb"}, "`params.execution_id` must consist of printable characters"),
        ({"execution_id": "a\x7f"}, "`params.execution_id` must consist of printable characters"),
        ({"execution_id": "a\0"}, "`params.execution_id` must not contain a NUL"),
        ({"session_id": "s\0x"}, "`params.session_id` must not contain a NUL"),
        ({"workspace_path": "relative"}, "`params.workspace_path` must be an absolute path, not 'relative'"),
        ({"workspace_path": "/a\0"}, "`params.workspace_path` must not contain a NUL"),
        ({"model": "\0"}, "`params.model` must not contain a NUL"),
        ({"profile": "\0"}, "`params.profile` must not contain a NUL"),
        ({"env": {"": "x"}}, "`params.env` has the impossible variable name ''"),
        ({"env": {"A=B": "x"}}, "`params.env` has the impossible variable name 'A=B'"),
        ({"env": {"A\0": "x"}}, "`params.env` has the impossible variable name"),
        ({"env": {"A": "secret\0"}}, "`params.env` must not have a NUL character in the value of 'A'"),
        ({"accepts": ["everything"]}, "`params.accepts[0]` must be one of 'allow', 'ask', 'arguments'"),
        ({"bound_to": "me"}, "`params.bound_to` must be one of 'daemon', 'connection', not 'me'"),
    ],
)
def test_an_opening_that_cannot_be(change, words):
    message = refused("execution/open", OPEN | change)

    assert words in message
    assert "secret" not in message
    assert words.replace("params.", "params.execution.") in refused(
        "hook/dispatch", {**DISPATCH, "execution": OPEN | change}
    )


def test_an_execution_without_a_workspace():
    assert decoded("execution/open", OPEN | {"workspace_path": ""}).workspace_path == ""


def test_defaults_of_a_dispatch():
    assert decoded("hook/dispatch", DISPATCH) == HookDispatchParams(execution_id="run-42", event="PreToolUse")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"execution": OPEN | {"execution_id": "other"}}, "`params.execution.execution_id` must be the same"),
        ({"cwd": "x"}, "`params.cwd` must be an absolute path"),
        ({"env": {"=": ""}}, "`params.env` has the impossible"),
        ({"model": "\0"}, "`params.model`"),
        ({"profile": "\0"}, "`params.profile`"),
        ({"traceparent": "a\nb"}, "`params.traceparent` must consist of printable"),
        ({"timeout_ms": -1}, "`params.timeout_ms` must be at least 0"),
        ({"timeout_ms": MAX_MILLISECONDS + 1}, "`params.timeout_ms` must be at most"),
        ({"payload": []}, "`params.payload` must be an object"),
    ],
)
def test_a_dispatch_that_cannot_be(change, words):
    assert words in refused("hook/dispatch", DISPATCH | change)


def test_a_registration_has_a_matcher_of_some_length_at_most():
    assert decoded("hook/register", {"events": ["Stop"], "name": "n", "matcher": "x" * 1_024})
    refusal = refused("hook/register", {"events": ["Stop"], "name": "n", "matcher": "x" * 1_025})
    assert "`params.matcher` must have at most 1024" in refusal


@pytest.mark.parametrize("kinds", [["a"] * 65, ["*" * 257]])
def test_a_subscription_has_so_many_patterns_and_no_longer_ones(kinds):
    assert "`params.kinds" in refused("events/subscribe", {"kinds": kinds})


def test_a_dry_run_of_a_handler_gives_its_keys_as_they_were_sent():
    params = decoded("hook/test", {"event": "Stop", "type": "script", "path": "x.sh", "matcher": None})

    assert params.handler() == {"type": "script", "path": "x.sh", "matcher": None}
    assert params.dialect == "bamboo"


def test_a_dry_run_of_what_is_configured_has_no_handler():
    assert decoded("hook/test", {"event": "Stop", "hook": "a:b:c:d"}).handler() == {}
    assert HookTestParams(event="Stop").handler() == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"hook": "x", "command": "true"},
            "`params.hook` names a configured hook; `command` describes another",
        ),
        ({"workspace_path": "x"}, "`params.workspace_path`"),
        ({"cwd": "x"}, "`params.cwd`"),
        ({"env": {"": ""}}, "`params.env`"),
    ],
)
def test_a_dry_run_that_cannot_be(change, words):
    assert words in refused("hook/test", {"event": "Stop"} | change)


def test_defaults_of_a_registration():
    params = decoded("hook/register", {"events": ["PreToolUse"], "name": "n"})

    assert params == HookRegisterParams(events=("PreToolUse",), name="n")
    assert (params.priority, params.mode, params.timeout_ms, params.on_failure, params.agent) == (
        100, "control", 60_000, "warn", "bamboo"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"events": []}, "`params.events` must have at least 1 items"),
        ({"name": ""}, "`params.name`"),
        ({"name": "a\nb"}, "`params.name` must consist of printable"),
        ({"timeout_ms": 0}, "`params.timeout_ms` must be at least 1"),
        ({"mode": "x"}, "'control', 'observer'"),
        ({"on_failure": "x"}, "'warn', 'block'"),
    ],
)
def test_a_registration_that_cannot_be(change, words):
    assert words in refused("hook/register", {"events": ["PreToolUse"], "name": "n"} | change)


def test_validation_takes_a_text_or_a_file():
    for change in ({}, {"content": "{}", "path": "/x"}):
        assert "`params.content` or `path` must be given, and not both" in refused(
            "config/validate", {"dialect": "bamboo"} | change
        )
    assert "`params.path` must be an absolute" in refused(
        "config/validate", {"dialect": "bamboo", "path": "x"}
    )
    assert decoded("config/validate", {"dialect": "bamboo", "path": "/x"}).path == "/x"


def test_show_takes_a_workspace():
    assert decoded("config/show", {}).workspace_path is None
    assert "`params.workspace_path`" in refused("config/show", {"workspace_path": "x"})


def test_other_versions_of_the_protocol_are_refused():
    assert "must be one of 1, not 2" in refused("initialize", {"protocol_version": 2})
    assert decoded("initialize", {}) == InitializeParams()
    assert "`params.client.name` must consist of printable" in refused(
        "initialize", {"client": {"name": "a\n", "version": "1"}}
    )


def test_ids_to_cancel():
    assert decoded("$/cancel", {"id": "1"}) == CancelParams(id="1")
    for wrong in (None, 1.5, [], True):
        assert "`params.id`" in refused("$/cancel", {"id": wrong})


def test_checks_of_fields():
    check_identifier("a", "\n é")
    check_path("a", "/é")
    for bad in ("", "a", "./a", "~"):
        with pytest.raises(ValueError, match="must be an absolute path"):
            check_path("a", bad)


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("outbox/list", {"limit": 0}, "`params.limit`"),
        ("outbox/list", {"limit": 1001}, "`params.limit`"),
        ("outbox/list", {"state": "odd"}, "`params.state`"),
        ("outbox/retry", {}, "must be given, and not both"),
        ("outbox/retry", {"job_id": "j", "all": True}, "must be given, and not both"),
        ("outbox/discard", {}, "must be given, and not both"),
        ("outbox/discard", {"job_id": "j", "state": "failed"}, "must be given, and not both"),
        ("outbox/discard", {"state": "running"}, "must not be running"),
    ],
)
def test_jobs_are_named_or_taken_all(name, params, words):
    assert words in refused(name, params)


def test_all_jobs_that_failed_can_be_retried():
    assert decoded("outbox/retry", {"all": True}).job_id is None
