"""Payloads, gates, whole envelopes; the numbers are those of the reference's own cases (Bamboo dialect 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hooksd.dialects.bamboo import BAMBOO, Bamboo
from hooksd.dialects.bamboo_events import convenience_fields, rfc3339
from hooksd.dialects.base import Caller, PayloadRefused
from hooksd.model.events import Event, EventName


MakeEvent = Callable[..., Event]


def refused(
    bamboo: Bamboo, native: str, payload: Any, caller: Caller, *, background: bool = False
) -> dict[str, str]:
    with pytest.raises(PayloadRefused) as caught:
        bamboo.event(native, payload, caller, background=background)
    return {problem.path: f"{problem.message} | {problem.hint}" for problem in caught.value.problems}


# ----------------------------------------------------------------------------------------------------------------------
# Names and gates


def test_the_eight_events(bamboo: Bamboo) -> None:
    assert list(bamboo.events) == [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "SessionEnd",
        "PreCompact",
        "Notification",
    ]


@pytest.mark.parametrize(
    ("given_name", "native"),
    [
        *((name, name) for name in BAMBOO.events),
        ("session.start", "SessionStart"),
        ("session.restored", "SessionStart"),
        ("prompt.submit", "UserPromptSubmit"),
        ("tool.before", "PreToolUse"),
        ("tool.after", "PostToolUse"),
        ("turn.finish", "Stop"),
        ("session.end", "SessionEnd"),
        ("compact.before", "PreCompact"),
        ("notification", "Notification"),
        ("preToolUse", None),
        ("tool.error", None),
        ("turn.start", None),
        ("", None),
    ],
)
def test_names(bamboo: Bamboo, given_name: str, native: str | None) -> None:
    assert bamboo.native_event(given_name) == native


@pytest.mark.parametrize(
    ("native", "gate"),
    [
        ("SessionStart", True),
        ("UserPromptSubmit", True),
        ("PreToolUse", True),
        ("PostToolUse", True),
        ("Stop", True),
        ("SessionEnd", False),
        ("PreCompact", False),
        ("Notification", False),
    ],
)
def test_gates_and_observers(bamboo: Bamboo, event: MakeEvent, native: str, gate: bool) -> None:
    made = event(native)
    assert made.gate is gate
    assert (made.name in bamboo.gates) is gate
    assert made.name is bamboo.events[native]
    assert (made.agent, made.native, made.background) == ("bamboo", native, False)


def test_a_background_completion_is_an_observer(event: MakeEvent) -> None:
    made = event("PostToolUse", background=True)
    assert (made.gate, made.background) == (False, True)


@pytest.mark.parametrize("native", [name for name in BAMBOO.events if name != "PostToolUse"])
def test_only_post_tool_use_can_be_background(bamboo: Bamboo, caller: Caller, native: str) -> None:
    payload = bamboo.synthetic_payload(native, 0)
    assert list(refused(bamboo, native, payload, caller, background=True)) == ["background"]


# ----------------------------------------------------------------------------------------------------------------------
# Payloads


def test_the_event_carries_what_the_caller_is(event: MakeEvent, caller: Caller) -> None:
    made = event("Stop")
    assert (made.session_id, made.workspace_path, made.model, made.profile, made.timestamp) == (
        caller.session_id,
        caller.workspace_path,
        caller.model,
        caller.profile,
        caller.timestamp,
    )


@pytest.mark.parametrize("native", list(BAMBOO.events))
def test_case_40_a_payload_comes_back_equal(bamboo: Bamboo, caller: Caller, native: str) -> None:
    payload = bamboo.synthetic_payload(native, 1.5)
    made = bamboo.event(native, payload, caller, background=False)
    assert made.payload == payload
    assert list(made.payload) == list(payload)
    again = bamboo.event(native, made.payload, caller, background=False)
    assert again == made


@pytest.mark.parametrize("native", list(BAMBOO.events))
def test_type_may_be_left_out_but_not_be_wrong(bamboo: Bamboo, caller: Caller, native: str) -> None:
    payload = bamboo.synthetic_payload(native, 0)
    kind = payload.pop("type")
    made = bamboo.event(native, payload, caller, background=False)
    assert made.payload["type"] == kind
    assert next(iter(made.payload)) == "type"
    assert refused(bamboo, native, {**payload, "type": "none"}, caller) == {
        "payload.type": f"must be {kind} | None"
    }


def test_tool_events_have_the_tool_s_name(event: MakeEvent) -> None:
    before = event("PreToolUse", tool_name="Read", parsed_args=[1])
    assert (before.tool_name, before.tool_arguments) == ("Read", [1])
    after = event("PostToolUse", tool_name="Read")
    assert (after.tool_name, after.tool_arguments) == ("Read", None)
    assert event("Stop").tool_name is None


@pytest.mark.parametrize("arguments", [None, 1, "x", [], {"a": None}])
def test_arguments_are_any_json(event: MakeEvent, arguments: Any) -> None:
    made = event("PreToolUse", parsed_args=arguments)
    assert made.payload["parsed_args"] == arguments
    assert made.tool_arguments == arguments


def test_tool_input_is_another_word_for_parsed_args(bamboo: Bamboo, caller: Caller) -> None:
    payload = {"tool_name": "Bash", "tool_call_id": "c", "tool_input": {"a": 1}}
    made = bamboo.event("PreToolUse", payload, caller, background=False)
    assert made.payload == {
        "type": "tool_execution",
        "tool_name": "Bash",
        "tool_call_id": "c",
        "parsed_args": {"a": 1},
    }
    same = bamboo.event("PreToolUse", {**payload, "parsed_args": {"a": 1}}, caller, background=False)
    assert same == made
    assert refused(bamboo, "PreToolUse", {**payload, "parsed_args": {}}, caller) == {
        "payload.tool_input": "differs from parsed_args | send one of them"
    }


def test_changed_arguments_make_another_event(event: MakeEvent) -> None:
    made = event("PreToolUse")
    changed = BAMBOO.with_arguments(made, {"command": "ls"})
    assert changed.payload == {**made.payload, "parsed_args": {"command": "ls"}}
    assert changed.tool_arguments == {"command": "ls"}
    assert made.tool_arguments == {"command": "echo lifecycle-hook-test"}


def test_absent_and_null_texts_are_the_same(event: MakeEvent) -> None:
    assert "completion_reason" not in event("SessionEnd", completion_reason=None).payload
    made = event("Notification", id=None, dedup_key=None, created_at=None, click_url="https://x")
    assert list(made.payload) == ["type", "category", "priority", "title", "body", "click_url"]
    outcome = {"success": False, "result": None, "error": "no", "needs_human": False, "duration_ms": 0}
    assert event("PostToolUse", outcome=outcome).payload["outcome"] == {
        "success": False,
        "error": "no",
        "needs_human": False,
        "duration_ms": 0,
    }


@pytest.mark.parametrize(
    ("native", "changes", "path"),
    [
        ("SessionStart", {"source": "restart"}, "payload.source"),
        ("SessionStart", {"initial_message": None}, "payload.initial_message"),
        ("UserPromptSubmit", {"prompt": 1}, "payload.prompt"),
        ("PreToolUse", {"tool_name": None}, "payload.tool_name"),
        ("PreToolUse", {"tool_call_id": 7}, "payload.tool_call_id"),
        ("PostToolUse", {"outcome": "ok"}, "payload.outcome"),
        (
            "PostToolUse",
            {"outcome": {"success": 1, "needs_human": False, "duration_ms": 1}},
            "payload.outcome.success",
        ),
        ("PostToolUse", {"outcome": {"success": True, "needs_human": False}}, "payload.outcome.duration_ms"),
        ("Stop", {"stop_hook_active": "no"}, "payload.stop_hook_active"),
        ("SessionEnd", {"status": "done"}, "payload.status"),
        ("PreCompact", {"estimated_tokens": -1}, "payload.estimated_tokens"),
        ("PreCompact", {"max_context_tokens": 1 << 32}, "payload.max_context_tokens"),
        ("PreCompact", {"trigger": "auto"}, "payload.trigger"),
        ("PreCompact", {"phase": "later"}, "payload.phase"),
        ("PreCompact", {"usage_percent": "50"}, "payload.usage_percent"),
        ("Notification", {"priority": "urgent"}, "payload.priority"),
        ("Notification", {"body": None}, "payload.body"),
        ("Stop", {"extra": 1}, "payload.extra"),
    ],
)
def test_a_payload_that_does_not_fit_is_refused(
    bamboo: Bamboo, caller: Caller, native: str, changes: dict[str, Any], path: str
) -> None:
    payload = {**bamboo.synthetic_payload(native, 0), **changes}
    assert list(refused(bamboo, native, payload, caller)) == [path]


@pytest.mark.parametrize("native", list(BAMBOO.events))
def test_every_missing_field_is_told(bamboo: Bamboo, caller: Caller, native: str) -> None:
    told = refused(bamboo, native, {}, caller)
    needed = set(bamboo.synthetic_payload(native, 0)) - {
        "type",
        "completion_reason",
        "id",
        "dedup_key",
        "created_at",
    }
    assert set(told) == {f"payload.{name}" for name in needed}


def test_hints_for_words_that_callers_are_known_to_use(bamboo: Bamboo, caller: Caller) -> None:
    told = refused(bamboo, "PostToolUse", {"tool_input": {}, "tool_response": {}}, caller)
    assert "tool_call_id" in told["payload.tool_input"]
    assert "outcome" in told["payload.tool_response"]
    assert "parsed_args" in refused(bamboo, "PreToolUse", {"arguments": {}}, caller)["payload.arguments"]


def test_a_nul_cannot_be_in_the_session_id(bamboo: Bamboo, caller: Caller) -> None:
    nul = Caller(session_id="s\0x", timestamp=0)
    assert list(refused(bamboo, "Stop", {"stop_hook_active": False}, nul)) == ["session_id"]


def test_a_nul_in_a_payload_is_no_matter(event: MakeEvent) -> None:
    assert event("UserPromptSubmit", prompt="a\0b").payload["prompt"] == "a\0b"


# ----------------------------------------------------------------------------------------------------------------------
# Whole envelopes


@pytest.fixture
def envelope(bamboo: Bamboo, event: MakeEvent) -> Callable[..., dict[str, Any]]:
    def envelope(native: str, **changes: Any) -> dict[str, Any]:
        return {**bamboo.envelope(event(native), "/work/project"), **changes}

    return envelope


@pytest.mark.parametrize("native", list(BAMBOO.events))
def test_a_whole_envelope_is_taken(
    bamboo: Bamboo, caller: Caller, event: MakeEvent, envelope: Callable[..., dict[str, Any]], native: str
) -> None:
    assert bamboo.event(native, envelope(native), caller, background=False) == event(native)


def test_convenience_fields_may_be_left_out(
    bamboo: Bamboo, caller: Caller, event: MakeEvent, envelope: Callable[..., dict[str, Any]]
) -> None:
    bare = envelope("PreToolUse")
    for name in ("tool_name", "tool_input", "timestamp", "model", "workspace_path", "schema_version"):
        del bare[name]
    assert bamboo.event("PreToolUse", bare, caller, background=False) == event("PreToolUse")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"hook_event_name": "PostToolUse"}, "payload.hook_event_name"),
        ({"session_id": "another"}, "payload.session_id"),
        ({"workspace_path": "/elsewhere"}, "payload.workspace_path"),
        ({"model": "m-2"}, "payload.model"),
        ({"tool_name": "Read"}, "payload.tool_name"),
        ({"tool_input": {}}, "payload.tool_input"),
        ({"prompt": "x"}, "payload.prompt"),
        ({"schema_version": 2}, "payload.schema_version"),
        ({"payload": []}, "payload.payload"),
        ({"payload": {}}, "payload.payload.tool_name"),
        ({"cwd": "/x"}, "payload.cwd"),
    ],
)
def test_an_envelope_is_checked_and_not_trusted(
    bamboo: Bamboo,
    caller: Caller,
    envelope: Callable[..., dict[str, Any]],
    changes: dict[str, Any],
    path: str,
) -> None:
    assert path in refused(bamboo, "PreToolUse", envelope("PreToolUse", **changes), caller)


def test_all_faults_of_an_envelope_are_told(
    bamboo: Bamboo, caller: Caller, envelope: Callable[..., dict[str, Any]]
) -> None:
    told = refused(bamboo, "Stop", envelope("Stop", session_id="another", payload={"x": 1}), caller)
    assert set(told) == {"payload.session_id", "payload.payload.x", "payload.payload.stop_hook_active"}


def test_blank_outer_fields_are_not_told(
    bamboo: Bamboo, event: MakeEvent, envelope: Callable[..., dict[str, Any]]
) -> None:
    someone = Caller(session_id="session-123", timestamp=0)
    made = bamboo.event("Stop", envelope("Stop"), someone, background=False)
    assert (made.workspace_path, made.model) == ("", "")


# ----------------------------------------------------------------------------------------------------------------------
# Synthetic payloads, copies, times


def test_synthetic_payloads_are_those_of_the_reference(bamboo: Bamboo) -> None:
    """Bamboo dialect 6."""
    payloads = {native: bamboo.synthetic_payload(native, 0.25) for native in bamboo.events}
    assert payloads["SessionStart"] == {
        "type": "session_setup",
        "initial_message": "Lifecycle hook test",
        "source": "startup",
    }
    assert payloads["PreToolUse"]["parsed_args"] == {"command": "echo lifecycle-hook-test"}
    assert payloads["PostToolUse"]["outcome"] == {
        "success": True,
        "result": "lifecycle-hook-test",
        "needs_human": False,
        "duration_ms": 1,
    }
    assert payloads["PreCompact"]["usage_percent"] == 50.0
    assert payloads["PreCompact"]["phase"] == "test"
    assert payloads["Notification"]["created_at"] == "1970-01-01T00:00:00.250000+00:00"
    assert payloads == {native: bamboo.synthetic_payload(native, 0.25) for native in bamboo.events}


def test_case_11_copies(event: MakeEvent) -> None:
    start = event("SessionStart", source="resume")
    assert convenience_fields("SessionStart", start.payload) == {
        "prompt": "Lifecycle hook test",
        "source": "resume",
    }
    stop = event("Stop", stop_hook_active=True)
    assert convenience_fields("Stop", stop.payload) == {"stop_hook_active": True}
    assert stop.continued
    end = event("SessionEnd", status="cancelled")
    assert convenience_fields("SessionEnd", end.payload) == {
        "terminal_status": "cancelled",
        "completion_reason": "lifecycle hook test",
    }
    silent = event("SessionEnd", completion_reason=None)
    assert convenience_fields("SessionEnd", silent.payload) == {"terminal_status": "completed"}
    for native in ("PreCompact", "Notification"):
        assert convenience_fields(native, event(native).payload) == {}


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [(0, "1970-01-01T00:00:00.000000+00:00"), (1_753_174_800.5, "2025-07-22T09:00:00.500000+00:00")],
)
def test_times(timestamp: float, text: str) -> None:
    assert rfc3339(timestamp) == text


@given(
    st.sampled_from(list(BAMBOO.events)),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    ),
)
def test_any_payload_is_taken_or_refused(native: str, payload: Any) -> None:
    if not isinstance(payload, dict):
        payload = {"payload": payload}
    caller = Caller(session_id="s", timestamp=0)
    try:
        made = BAMBOO.event(native, payload, caller, background=False)
    except PayloadRefused:
        return
    assert made.name is EventName(BAMBOO.events[native])
