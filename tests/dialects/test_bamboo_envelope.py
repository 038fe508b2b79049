"""What hooks read from stdin; the numbers are those of the reference's own cases (Bamboo dialect 8)."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from hooksd.dialects.bamboo import BAMBOO, Bamboo
from hooksd.dialects.bamboo_envelope import EnvelopeEncoder, envelope_object
from hooksd.dialects.base import Caller, PayloadRefused
from hooksd.model.events import Event


MakeEvent = Callable[..., Event]

ORDER = {
    "SessionStart": ["prompt", "source"],
    "UserPromptSubmit": ["prompt"],
    "PreToolUse": ["tool_name", "tool_input"],
    "PostToolUse": ["tool_name", "tool_response"],
    "Stop": ["stop_hook_active"],
    "SessionEnd": ["terminal_status", "completion_reason"],
    "PreCompact": [],
    "Notification": [],
}


@pytest.mark.parametrize("native", list(BAMBOO.events))
def test_fields_and_their_order(event: MakeEvent, native: str) -> None:
    """Bamboo dialect 2.1."""
    made = event(native)
    text = EnvelopeEncoder().encode(made, "/somewhere/else")
    envelope = json.loads(text)
    assert list(envelope) == [
        "schema_version",
        "hook_event_name",
        "session_id",
        "workspace_path",
        "model",
        "payload",
        *ORDER[native],
        "timestamp",
    ]
    assert envelope["schema_version"] == 1
    assert envelope["hook_event_name"] == native
    assert envelope["session_id"] == "session-123"
    assert envelope["workspace_path"] == "/somewhere/else"
    assert envelope["model"] == ("" if native == "Notification" else "m-1")
    assert envelope["payload"] == made.payload
    assert envelope["timestamp"] == "2025-07-22T09:00:00.500000+00:00"


@pytest.mark.parametrize("native", list(BAMBOO.events))
def test_bytes_and_object_say_the_same(event: MakeEvent, native: str) -> None:
    made = event(native)
    text = EnvelopeEncoder().encode(made, "/w")
    assert text == msgspec.json.encode(envelope_object(made, "/w"))
    assert not text.endswith(b"\n")


def test_case_10_a_whole_pre_tool_use(event: MakeEvent) -> None:
    text = EnvelopeEncoder().encode(
        event("PreToolUse", tool_name="bash", parsed_args={"command": "é\n"}), "/w"
    )
    assert text.decode() == (
        '{"schema_version":1,"hook_event_name":"PreToolUse","session_id":"session-123","workspace_path":"/w",'
        '"model":"m-1","payload":{"type":"tool_execution","tool_name":"bash","tool_call_id":"hook-test-call",'
        '"parsed_args":{"command":"é\\n"}},"tool_name":"bash","tool_input":{"command":"é\\n"},'
        '"timestamp":"2025-07-22T09:00:00.500000+00:00"}'
    )


def test_post_tool_use_has_no_tool_input(event: MakeEvent) -> None:
    envelope = envelope_object(event("PostToolUse"), "/w")
    assert "tool_input" not in envelope
    assert envelope["tool_response"] == envelope["payload"]["outcome"]


def test_the_daemon_s_own_count_makes_a_stop_active(event: MakeEvent) -> None:
    quiet = event("Stop")
    counted = msgspec.structs.replace(quiet, continued=True)
    for made, active in ((quiet, False), (counted, True), (event("Stop", stop_hook_active=True), True)):
        envelope = json.loads(EnvelopeEncoder().encode(made, ""))
        assert envelope["stop_hook_active"] is active
        assert envelope["payload"]["stop_hook_active"] is active
    assert counted.payload == quiet.payload


def test_one_dispatch_is_encoded_once(event: MakeEvent, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = EnvelopeEncoder()
    made = event("UserPromptSubmit", prompt="x" * 1000)
    first = encoder.encode(made, "/a")
    monkeypatch.setattr(msgspec.json, "encode", lambda value: json.dumps(value).encode())
    second = encoder.encode(made, "/b")
    assert second == first.replace(b'"workspace_path":"/a"', b'"workspace_path":"/b"')
    other = encoder.encode(event("Stop"), "/b")
    assert json.loads(other)["hook_event_name"] == "Stop"


def test_the_text_is_forgotten_with_its_event(event: MakeEvent) -> None:
    encoder = EnvelopeEncoder()
    first, second = event("UserPromptSubmit", prompt="x" * 100_000), event("Stop")
    encoder.encode(first, "/w")
    assert encoder._last is not None
    assert len(encoder._last[2]) > 100_000
    encoder.encode(second, "/w")
    del first  # no longer the remembered one: its end changes nothing
    gc.collect()
    assert encoder._last[0]() is second
    del second
    gc.collect()
    assert encoder._last is None


def test_a_directory_that_is_not_utf_8(event: MakeEvent) -> None:
    """Python keeps such bytes as lone surrogates, which are no text."""
    made = event("Stop")
    for cwd in ("/w/dir\udce9", "/w/\ud800"):
        assert json.loads(EnvelopeEncoder().encode(made, cwd))["workspace_path"] in (
            "/w/dir\ufffd",
            "/w/\ufffd",
        )
        assert "\ufffd" in envelope_object(made, cwd)["workspace_path"]
    assert json.loads(EnvelopeEncoder().encode(made, "/w/é"))["workspace_path"] == "/w/é"


def test_a_payload_too_deep_to_encode_is_refused(event: MakeEvent) -> None:
    deep: list[Any] = []
    for _ in range(sys.getrecursionlimit() * 50):
        deep = [deep]
    made = event("PreToolUse", parsed_args=deep)
    with pytest.raises(PayloadRefused, match="nested too deeply"):
        EnvelopeEncoder().encode(made, "/w")


def test_ten_megabytes(event: MakeEvent) -> None:
    made = event("PreToolUse", parsed_args={"content": "C" * 10_000_000})
    assert len(EnvelopeEncoder().encode(made, "/w")) > 20_000_000


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON, st.text(st.characters(exclude_categories=["Cs"])))
def test_arguments_arrive_as_they_were_sent(arguments: Any, session_id: str) -> None:
    session_id = session_id.replace("\0", "")
    caller = Caller(session_id=session_id, timestamp=0)
    payload = {"tool_name": "Bash", "tool_call_id": "c", "parsed_args": arguments}
    made = Bamboo(windows=False).event("PreToolUse", payload, caller, background=False)
    envelope = json.loads(EnvelopeEncoder().encode(made, "/w"))
    assert envelope["tool_input"] == envelope["payload"]["parsed_args"] == arguments
    assert envelope["session_id"] == session_id
