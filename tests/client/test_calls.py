from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from hooksd_client import calls
from hooksd_client.calls import Gate


def test_what_was_not_given_is_left_out() -> None:
    assert calls.given(a=1, b=None, c=False, d=[], e=MappingProxyType({"x": 1})) == {
        "a": 1,
        "c": False,
        "d": [],
        "e": {"x": 1},
    }


def test_an_execution_needs_no_workspace() -> None:
    params = calls.execution_params("run-1", agent="bamboo", session_id="s", env=None)

    assert params == {"execution_id": "run-1", "agent": "bamboo", "session_id": "s", "workspace_path": ""}


EVENT = {"execution_id": "run-1", "event": "Stop"}
REPEATABLE = [
    calls.initialize(None, None),
    calls.open_execution({}),
    calls.list_executions(),
    calls.explain(EVENT, None),
    calls.result("i"),
    calls.show_config(None),
    calls.validate_config("bamboo", None, "/f"),
    calls.reload_config(),
    calls.status(),
    calls.ping(),
    calls.raw("x", {}, repeatable=True),
]
ONCE = [
    calls.drain_execution("run-1", "turn", None),
    calls.close_execution("run-1", None),
    calls.dispatch(EVENT, None),
    calls.notify(EVENT, None),
    calls.dry_run("Stop", None, None, {}),
    calls.write_config("team", 1, ""),
    calls.shutdown(None),
    calls.raw("x", {}),
]


@pytest.mark.parametrize("call", [*REPEATABLE, *ONCE])
def test_only_what_changes_nothing_is_repeated(call: calls.Call[Any]) -> None:
    assert call.repeatable is (call in REPEATABLE)


@pytest.mark.parametrize("call", [*REPEATABLE, *ONCE])
def test_only_what_waits_for_hooks_is_patient(call: calls.Call[Any]) -> None:
    assert call.patient is (
        call.method in {"execution/drain", "execution/close", "hook/dispatch", "hook/test"}
    )


@pytest.mark.parametrize(
    ("call", "gate"),
    [
        (calls.dispatch(EVENT, None), Gate(None, "Stop")),
        (calls.dispatch(EVENT, {"agent": "bamboo"}), Gate("bamboo", "Stop")),
        (calls.raw("hook/dispatch", EVENT), Gate(None, "Stop")),
        (calls.raw("hook/dispatch", {**EVENT, "execution": {"agent": "bamboo"}}), Gate("bamboo", "Stop")),
        (calls.notify(EVENT, None), None),
        (calls.raw("hook/notify", EVENT), None),
    ],
)
def test_only_a_dispatch_can_be_guarded(call: calls.Call[Any], gate: Gate | None) -> None:
    assert call.gate == gate


def test_a_handler_s_keys_stand_beside_the_others() -> None:
    call = calls.dry_run("Stop", {"type": "command", "timeout_ms": None}, None, {"cwd": "/c"})

    assert call.params == {"event": "Stop", "cwd": "/c", "type": "command", "timeout_ms": None}


def test_a_client_s_name() -> None:
    assert calls.initialize(None, "1").params == {"protocol_version": 1}
    assert calls.initialize("n", None).params["client"] == {"name": "n", "version": ""}
