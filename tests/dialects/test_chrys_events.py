"""Chrys' events: payloads, base fields, gates, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from hooksd.dialects.base import Caller, PayloadRefused
from hooksd.dialects.chrys import CHRYS
from hooksd.dialects.chrys_schema import EVENTS, TOOL_EVENTS
from hooksd.model.events import Event, EventName


CALLER = Caller(
    session_id="s-1", workspace_path="/work", model="m", profile="Code", timestamp=1_800_000_000.9
)
TOOL = {"name": "edit_file", "kind": "filesystem.write", "call_id": "c", "args": {"path": "x"}}


def make(native: str, payload: dict[str, Any] | None = None, *, background: bool = False) -> Event:
    payload = CHRYS.synthetic_payload(native, 0.0) if payload is None else payload
    return CHRYS.event(native, payload, CALLER, background=background)


def refused(native: str, payload: dict[str, Any], *, background: bool = False) -> list[tuple[str, str]]:
    with pytest.raises(PayloadRefused) as caught:
        make(native, payload, background=background)
    return [(problem.path, problem.message) for problem in caught.value.problems]


@pytest.mark.parametrize("native", EVENTS)
def test_every_event_with_its_synthetic_payload(native: str) -> None:
    event = make(native)

    assert (event.name, event.native, event.agent) == (EVENTS[native], native, "chrys")
    assert event.gate is (native in ("before_tool_call", "user_prompt_submit"))
    assert (event.session_id, event.workspace_path, event.profile) == ("s-1", "/work", "Code")
    assert (event.tool_name is not None) is (native in TOOL_EVENTS)
    assert event.payload.items() >= CHRYS.synthetic_payload(native, 1.0).items()


@pytest.mark.parametrize("native", EVENTS)
def test_native_and_dotted_names(native: str) -> None:
    assert CHRYS.native_event(native) == native
    assert CHRYS.native_event(EVENTS[native].value) == native
    assert len(set(EVENTS.values())) == 17


@pytest.mark.parametrize("name", ["PreToolUse", "turn.finish", "notification", ""])
def test_names_that_it_has_not(name: str) -> None:
    assert CHRYS.native_event(name) is None


def test_a_tool_event_has_name_kind_and_arguments() -> None:
    event = make("before_tool_call", {"tool": TOOL})

    assert (event.tool_name, event.tool_kind, event.tool_arguments) == (
        "edit_file",
        "filesystem.write",
        {"path": "x"},
    )


def test_changed_arguments_are_everywhere() -> None:
    before = make("before_tool_call", {"tool": TOOL})
    after = CHRYS.with_arguments(before, {"path": "y"})

    assert after.tool_arguments == after.payload["tool"]["args"] == {"path": "y"}
    assert after.payload["tool"]["call_id"] == "c"
    assert before.tool_arguments == before.payload["tool"]["args"] == {"path": "x"}


def test_base_fields_may_be_there() -> None:
    base = {
        "schema": 1,
        "event": "session_end",
        "timestamp": "long ago",
        "session_id": "s-1",
        "profile": "Plan",
    }
    event = make("session_end", {**base, "cwd": "/elsewhere", "session_kind": "workflow", "workflow_id": "w"})

    assert event.profile == "Plan"
    assert event.payload["cwd"] == "/elsewhere"


def test_an_early_event_may_have_no_session() -> None:
    assert make("session_start", {"session_id": None}).payload == {"session_id": None}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"schema": 2}, "schema"),
        ({"schema": True}, "schema"),
        ({"event": "session_start"}, "event"),
        ({"session_id": "other"}, "session_id"),
        ({"session_id": 5}, "session_id"),
        ({"profile": None}, "profile"),
        ({"cwd": "relative"}, "cwd"),
        ({"extra": 1}, "extra"),
    ],
)
def test_base_fields_that_do_not_fit(fields: dict[str, Any], path: str) -> None:
    assert [where for where, _ in refused("session_end", fields)] == [f"payload.{path}"]


@pytest.mark.parametrize(
    ("native", "payload", "paths"),
    [
        ("session_restored", {}, ["restored_session_id"]),
        ("before_turn", {}, ["turn", "user_text"]),
        ("before_turn", {"turn": -1, "user_text": "x"}, ["turn"]),
        ("after_turn", {"turn": 1, "status": "fine", "failed": False}, ["status"]),
        ("user_prompt_submit", {"prompt": "x"}, ["prompt", "text"]),
        ("before_tool_call", {}, ["tool"]),
        ("before_tool_call", {"tool": {}}, ["tool.name", "tool.kind", "tool.args"]),
        ("before_tool_call", {"tool": {**TOOL, "args": []}}, ["tool.args"]),
        ("after_tool_call", {"tool": TOOL}, ["result"]),
        ("approval_resolved", {"tool": TOOL, "request_id": "r"}, ["approved"]),
        ("sub_agent_end", {"sub_agent": {"name": "x"}, "status": "dead"}, ["status"]),
        ("pre_compact", {"trigger": "phase1", "usage_pct": -1, "tokens_before": 1}, ["usage_pct"]),
        ("workflow_run_end", {"run_id": "x"}, ["outcome"]),
    ],
)
def test_fields_of_an_event_that_do_not_fit(native: str, payload: dict[str, Any], paths: list[str]) -> None:
    assert [path for path, _ in refused(native, payload)] == [f"payload.{path}" for path in paths]


def test_only_a_completed_tool_call_can_be_in_the_background() -> None:
    event = make("after_tool_call", background=True)

    assert (event.background, event.gate) == (True, False)
    assert refused("before_tool_call", {"tool": TOOL}, background=True)[0][0] == "background"


def test_optional_fields_are_kept_when_they_are_there() -> None:
    result = {
        "text": "",
        "duration_ms": 0.5,
        "error": False,
        "failed": True,
        "rejection_source": "hook",
        "hook_denied": True,
    }
    event = make("after_tool_call", {"tool": TOOL, "result": result})

    assert event.payload["result"] == {**result, "approval_rejected": False}


def test_the_sub_agent_is_known() -> None:
    assert make("sub_agent_start").subagent == "hook-test-invocation"
    assert make("session_start").subagent == ""


def test_a_restored_session_is_a_start_to_dialects_without_that_word() -> None:
    assert make("session_restored").also == (EventName.SESSION_START,)
    assert make("session_start").also == ()
