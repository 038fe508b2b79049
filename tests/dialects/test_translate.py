"""Between dialects: every field that has a place, what is filled in where there is none, and what is told as lost."""

from __future__ import annotations

import gc
import json
from typing import Any

import msgspec
import pytest

from hooksd.dialects import bamboo_translation, chrys_translation
from hooksd.dialects.bamboo import BAMBOO
from hooksd.dialects.base import Caller, Dialect, Places
from hooksd.dialects.chrys import CHRYS
from hooksd.dialects.normalised import Normalised
from hooksd.dialects.translate import Translator, translated_reply
from hooksd.model.decision import Capability
from hooksd.model.events import ALSO, Event, EventName
from hooksd.model.hooks import Hook, Scope, ShellCommand
from hooksd.model.problems import ProblemKind
from hooksd.model.reply import Reply


CALLER = Caller(
    session_id="s-1", workspace_path="/work", model="m", profile="Code", timestamp=1_800_000_000.0
)


def event(dialect: Dialect, native: str, **fields: Any) -> Event:
    payload = {**dialect.synthetic_payload(native, 0.0), **fields}
    return dialect.event(native, payload, CALLER, background=False)


def hook(dialect: Dialect, native: str) -> Hook:
    return Hook(
        name=f"{dialect.name}:user:shared:h",
        dialect=dialect.name,
        contract=dialect.contract,
        source="shared",
        scope=Scope.USER,
        event=dialect.events[native],
        native_event=native,
        handler=ShellCommand(command="true", shells=("sh",)),
        timeout_s=1.0,
        id="h",
    )


def for_bamboo(given: Event, native: str) -> dict[str, Any]:
    """What a Bamboo hook reads."""
    stdin = BAMBOO.input(given, hook(BAMBOO, native), "/work", script_path=None).stdin
    assert stdin is not None
    return json.loads(stdin)


def for_chrys(given: Event, native: str) -> dict[str, Any]:
    """What a Chrys hook reads."""
    files = CHRYS.input(given, hook(CHRYS, native), "/work", script_path=None).files
    assert files is not None
    return json.loads(files.payload)


TOOL = {"name": "edit_file", "kind": "filesystem.write", "call_id": "c", "args": {"path": "x"}}
RESULT = {"text": "done", "duration_ms": 1.6, "error": False, "failed": False}


@pytest.mark.parametrize(
    ("given", "native", "payload"),
    [
        (
            event(CHRYS, "session_start"),
            "SessionStart",
            {"type": "session_setup", "initial_message": "", "source": "startup"},
        ),
        (
            event(CHRYS, "session_restored"),
            "SessionStart",
            {"type": "session_setup", "initial_message": "", "source": "resume"},
        ),
        (
            event(CHRYS, "user_prompt_submit", text="hi"),
            "UserPromptSubmit",
            {"type": "prompt", "prompt": "hi"},
        ),
        (
            event(CHRYS, "before_tool_call", tool=TOOL),
            "PreToolUse",
            {
                "type": "tool_execution",
                "tool_name": "edit_file",
                "tool_call_id": "c",
                "parsed_args": {"path": "x"},
            },
        ),
        (
            event(CHRYS, "after_tool_call", tool=TOOL, result=RESULT),
            "PostToolUse",
            {
                "type": "tool_result",
                "tool_name": "edit_file",
                "tool_call_id": "c",
                "outcome": {"success": True, "result": "done", "needs_human": False, "duration_ms": 2},
            },
        ),
        (
            event(CHRYS, "after_tool_call", tool=TOOL, result={**RESULT, "failed": True}),
            "PostToolUse",
            {
                "type": "tool_result",
                "tool_name": "edit_file",
                "tool_call_id": "c",
                "outcome": {"success": False, "error": "done", "needs_human": False, "duration_ms": 2},
            },
        ),
        (event(CHRYS, "session_end"), "SessionEnd", {"type": "session_end", "status": "completed"}),
        (
            event(CHRYS, "pre_compact", usage_pct=0.8, tokens_before=800),
            "PreCompact",
            {
                "type": "compression",
                "estimated_tokens": 800,
                "usage_percent": 80.0,
                "max_context_tokens": 1000,
                "trigger_context_tokens": 800,
                "trigger": "threshold",
                "phase": "mid-turn",
            },
        ),
        (
            event(CHRYS, "pre_compact", usage_pct=0, tokens_before=800, trigger="force"),
            "PreCompact",
            {
                "type": "compression",
                "estimated_tokens": 800,
                "usage_percent": 0.0,
                "max_context_tokens": 800,
                "trigger_context_tokens": 800,
                "trigger": "forced_overflow_recovery",
                "phase": "overflow-recovery",
            },
        ),
    ],
)
def test_an_event_of_chrys_for_a_hook_of_bamboo(given: Event, native: str, payload: dict[str, Any]) -> None:
    envelope = for_bamboo(given, native)

    assert envelope["payload"] == payload
    assert envelope["hook_event_name"] == native
    # It is one that a Bamboo agent could have sent.
    assert BAMBOO.event(native, payload, CALLER, background=False).payload == payload


@pytest.mark.parametrize(
    ("given", "native", "fields"),
    [
        (event(BAMBOO, "SessionStart"), "session_start", {}),
        (event(BAMBOO, "SessionStart", source="resume"), "session_restored", {"restored_session_id": "s-1"}),
        (
            event(BAMBOO, "UserPromptSubmit", prompt="hi"),
            "user_prompt_submit",
            {"text": "hi", "injected": False},
        ),
        (
            event(BAMBOO, "PreToolUse", tool_call_id="c"),
            "before_tool_call",
            {
                "tool": {
                    "name": "Bash",
                    "kind": "shell",
                    "call_id": "c",
                    "args": {"command": "echo lifecycle-hook-test"},
                }
            },
        ),
        (
            event(BAMBOO, "PreToolUse", tool_name="Odd", parsed_args=[1]),
            "before_tool_call",
            {"tool": {"name": "Odd", "kind": "", "call_id": "hook-test-call", "args": {"value": [1]}}},
        ),
        (
            event(BAMBOO, "PostToolUse"),
            "after_tool_call",
            {
                "tool": {"name": "Bash", "kind": "shell", "call_id": "hook-test-call", "args": {}},
                "result": {
                    "text": "lifecycle-hook-test",
                    "duration_ms": 1,
                    "error": False,
                    "failed": False,
                    "approval_rejected": False,
                },
            },
        ),
        (
            event(
                BAMBOO,
                "PostToolUse",
                outcome={"success": False, "error": "no", "needs_human": False, "duration_ms": 0},
            ),
            "tool_error",
            {
                "tool": {"name": "Bash", "kind": "shell", "call_id": "hook-test-call", "args": {}},
                "result": {
                    "text": "no",
                    "duration_ms": 0,
                    "error": True,
                    "failed": True,
                    "approval_rejected": False,
                },
            },
        ),
        (event(BAMBOO, "SessionEnd"), "session_end", {}),
        (
            event(BAMBOO, "PreCompact"),
            "pre_compact",
            {"trigger": "phase1", "usage_pct": 0.5, "tokens_before": 1000},
        ),
        (
            event(BAMBOO, "PreCompact", trigger="manual"),
            "pre_compact",
            {"trigger": "force", "usage_pct": 0.5, "tokens_before": 1000},
        ),
    ],
)
def test_an_event_of_bamboo_for_a_hook_of_chrys(given: Event, native: str, fields: dict[str, Any]) -> None:
    payload = for_chrys(given, native)

    base = {"schema": 1, "event": native, "timestamp": "2027-01-15T08:00:00Z", "session_id": "s-1"}
    assert payload == {**base, "profile": "Code", "cwd": "/work", **fields}
    # It is one that a Chrys agent could have sent.
    assert CHRYS.event(native, fields, CALLER, background=False).native == native


@pytest.mark.parametrize("dialect", [BAMBOO, CHRYS], ids=["bamboo", "chrys"])
def test_every_event_has_a_normalised_form(dialect: Dialect) -> None:
    normalise = {"bamboo": bamboo_translation.normalised, "chrys": chrys_translation.normalised}[dialect.name]

    for native in dialect.events:
        assert isinstance(normalise(event(dialect, native)), Normalised)


def test_every_event_that_both_have_can_be_translated() -> None:
    for one, other in ((BAMBOO, CHRYS), (CHRYS, BAMBOO)):
        for native, name in one.events.items():
            for heard in (name, *ALSO.get(name, ())):
                for target in (key for key, value in other.events.items() if value is heard):
                    given = event(one, native)
                    read = for_bamboo(given, target) if other is BAMBOO else for_chrys(given, target)
                    assert read


@pytest.mark.parametrize(
    ("module", "native"), [(bamboo_translation, "Stop"), (chrys_translation, "before_turn")]
)
def test_an_event_that_nobody_else_has_cannot_be_made(module: Any, native: str) -> None:
    with pytest.raises(ValueError, match=native):
        module.from_normalised(native, event(CHRYS, "session_start"), Normalised())


def test_what_the_agent_did_not_tell_is_filled_with_what_claims_the_least() -> None:
    given = event(CHRYS, "session_start")
    nothing = Normalised()

    assert bamboo_translation.from_normalised("PostToolUse", given, nothing)["outcome"] == {
        "success": True,
        "needs_human": False,
        "duration_ms": 0,
    }
    assert bamboo_translation.from_normalised("PreCompact", given, nothing)["max_context_tokens"] == 0
    full = Normalised(status="failed", reason="why", max_tokens=9, trigger_tokens=8, tokens=7, usage=0.5)
    assert bamboo_translation.from_normalised("SessionEnd", given, full)["completion_reason"] == "why"
    compaction = bamboo_translation.from_normalised("PreCompact", given, full)
    assert (compaction["max_context_tokens"], compaction["trigger_context_tokens"]) == (9, 8)


def test_the_envelope_of_a_programmatic_hook_is_translated_too() -> None:
    assert BAMBOO.envelope(event(CHRYS, "before_tool_call", tool=TOOL), "/")["tool_input"] == {"path": "x"}
    assert CHRYS.envelope(event(BAMBOO, "PreToolUse"), "/")["tool"]["name"] == "Bash"


def test_changed_arguments_reach_the_next_hook_of_the_other_dialect() -> None:
    given = CHRYS.with_arguments(event(CHRYS, "before_tool_call", tool=TOOL), {"path": "y"})

    assert for_bamboo(given, "PreToolUse")["tool_input"] == {"path": "y"}


def test_an_event_is_translated_once_and_forgotten_with_it() -> None:
    translator = Translator("chrys", chrys_translation.from_normalised)
    given = event(BAMBOO, "SessionStart")

    first = translator.event(given, "session_start")

    assert translator.event(given, "session_start") is first
    assert translator.event(given, "session_restored") is not first
    own = event(CHRYS, "session_start")
    assert translator.event(own, "session_start") is own
    del given, first
    gc.collect()
    assert translator._last is None


def test_what_an_event_is_besides() -> None:
    outcome = {"success": False, "needs_human": False, "duration_ms": 0}

    assert event(BAMBOO, "SessionStart", source="resume").also == (EventName.SESSION_RESTORED,)
    assert event(BAMBOO, "SessionStart").also == ()
    assert event(BAMBOO, "PostToolUse", outcome={**outcome, "error": "x"}).also == (EventName.TOOL_ERROR,)
    assert event(BAMBOO, "PostToolUse", outcome=outcome).also == ()
    assert event(BAMBOO, "PostToolUse").also == ()


# ----------------------------------------------------------------------------------------------------------------------
# Replies


def reply_for(agent: Dialect, native: str, reply: Reply, of: Dialect) -> Reply:
    given = event(agent, native)
    other = next(key for key, name in of.events.items() if name is given.name)
    return translated_reply(reply, given, hook(of, other), agent.channel(given))


def test_a_context_beside_a_prompt_is_a_reminder_to_chrys() -> None:
    reply = reply_for(CHRYS, "user_prompt_submit", Reply(contexts=("c",)), BAMBOO)

    assert reply == Reply(reminders=("c",))


def test_a_context_after_a_call_is_one_to_chrys() -> None:
    assert reply_for(CHRYS, "after_tool_call", Reply(contexts=("c",)), BAMBOO) == Reply(contexts=("c",))


@pytest.mark.parametrize("native", ["session_start", "before_tool_call", "pre_compact"])
def test_text_that_chrys_cannot_take_is_dropped_and_told(native: str) -> None:
    reply = reply_for(CHRYS, native, Reply(contexts=("a", "b")), BAMBOO)

    assert (reply.contexts, reply.reminders) == ((), ())
    (note,) = reply.notes
    assert note.kind is ProblemKind.NOT_APPLICABLE
    assert note.message == f"chrys takes no text from hooks at {native}; 2 dropped"


def test_a_reminder_is_a_context_to_bamboo() -> None:
    reply = reply_for(BAMBOO, "UserPromptSubmit", Reply(reminders=("r",), contexts=("c",)), CHRYS)

    assert reply == Reply(contexts=("c", "r"))


def test_replies_of_the_agents_own_dialect_and_without_text_stay_as_they_are() -> None:
    own = Reply(contexts=("c",))
    silent = Reply(arguments_patch={"a": 1})

    assert reply_for(CHRYS, "before_tool_call", own, CHRYS) is own
    assert reply_for(BAMBOO, "PreToolUse", silent, CHRYS) is silent


def test_the_hooks_own_name_of_the_event_is_in_its_variables() -> None:
    given = event(CHRYS, "before_tool_call", tool=TOOL)

    assert dict(BAMBOO.input(given, hook(BAMBOO, "PreToolUse"), "/", script_path=None).env) == {
        "BAMBOO_SESSION_ID": "s-1",
        "BAMBOO_HOOK_EVENT": "PreToolUse",
    }


def test_bamboo_takes_contexts_everywhere_and_leaves_variables_alone() -> None:
    given = event(BAMBOO, "Stop")
    own = msgspec.structs.replace(hook(BAMBOO, "Stop"), env=(("A", "${profile}"),))

    assert BAMBOO.channel(given) is Capability.CONTEXTS
    assert BAMBOO.own_environment(given, own, Places(workspace="", work_area="", daemon_cwd="/")) == own.env
