"""What a Chrys hook said: the result file, `on_error`, and answers that cannot be understood."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from hooksd.dialects.base import Caller
from hooksd.dialects.chrys import CHRYS
from hooksd.model.decision import Decision
from hooksd.model.events import Event
from hooksd.model.hooks import Contract, Hook, OnError, Scope, ShellCommand
from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.model.reply import Reply
from hooksd.model.run import LaunchFailure, ProcessResult


CALLER = Caller(session_id="s", timestamp=0.0)


def event(native: str = "before_tool_call") -> Event:
    return CHRYS.event(native, CHRYS.synthetic_payload(native, 0.0), CALLER, background=False)


def hook(on_error: OnError = OnError.WARN) -> Hook:
    gate = event()
    return Hook(
        name="chrys:user:chrys:guard",
        dialect="chrys",
        contract=Contract.CHRYS,
        source="chrys",
        scope=Scope.USER,
        event=gate.name,
        native_event=gate.native,
        handler=ShellCommand(command="true", shells=("/bin/sh",)),
        timeout_s=0.3,
        on_error=on_error,
        id="guard",
    )


def says(answer: Any, native: str = "before_tool_call", on_error: OnError = OnError.WARN) -> Reply:
    data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return CHRYS.interpret(ProcessResult(exit_code=0, answer=data), event(native), hook(on_error))


def kinds(reply: Reply) -> list[ProblemKind]:
    return [note.kind for note in reply.notes]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b" \n\t",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf \n",
        {},
        {"action": "allow"},
        {"action": ""},
        {"action": None},
    ],
)
def test_nothing_to_say_grants_nothing(answer: Any) -> None:
    assert says(answer) == Reply()


def test_70_a_block_has_the_hook_and_its_reason() -> None:
    reply = says({"action": "block", "reason": "not there"})

    assert (reply.decision, reply.reason, reply.failure) == (Decision.BLOCK, "guard: not there", None)


@pytest.mark.parametrize(
    ("reason", "told"), [(5, "guard: 5"), ("  ", "guard blocked"), (None, "guard blocked")]
)
def test_a_reason_may_be_anything(reason: Any, told: str) -> None:
    assert says({"action": "BLOCK", "reason": reason}).reason == told


def test_other_fields_of_a_block_are_dropped() -> None:
    answer = {"action": "block", "args_override": {"a": 1}, "system_reminder": "x", "extra_context": "y"}

    assert says(answer, "user_prompt_submit") == Reply(decision=Decision.BLOCK, reason="guard blocked")


def test_71_72_a_block_that_cannot_act_keeps_the_context() -> None:
    reply = says({"action": "block", "reason": "r", "extra_context": "kept"}, "after_tool_call")

    assert (reply.decision, reply.contexts) == (Decision.BLOCK, ("kept",))


def test_73_a_modification_is_laid_over_the_arguments() -> None:
    assert says({"action": "modify", "args_override": {"a": None}}) == Reply(arguments_patch={"a": None})


@pytest.mark.parametrize("override", [None, [], "x", 5])
def test_a_modification_without_an_object_is_told(override: Any) -> None:
    reply = says({"action": "modify", "args_override": override})

    assert reply.arguments_patch is None
    assert reply.failure is not None
    assert reply.failure.kind is ProblemKind.MALFORMED_OUTPUT
    assert "needs an object `args_override`" in reply.failure.message


@pytest.mark.parametrize(
    "answer", [{"args_override": {"a": 1}}, {"action": "allow", "args_override": {"a": 1}}]
)
def test_an_override_without_modify_changes_nothing_and_is_told(answer: Any) -> None:
    reply = says(answer)

    assert (reply.arguments_patch, reply.failure, kinds(reply)) == (
        None,
        None,
        [ProblemKind.IGNORED_DECISION],
    )


@pytest.mark.parametrize("action", ["deny", "blok", True, 5, {"block": None}, " block "])
def test_an_unknown_action_decides_nothing_and_is_told(action: Any) -> None:
    reply = says({"action": action, "system_reminder": "kept"}, "user_prompt_submit", OnError.BLOCK)

    assert (reply.decision, reply.reminders) == (Decision.NONE, ("kept",))
    assert reply.failure is not None
    assert reply.failure.kind is ProblemKind.UNKNOWN_DECISION


@pytest.mark.parametrize("native", ["after_tool_call", "tool_error"])
def test_context_after_a_call(native: str) -> None:
    assert says({"extra_context": "c", "action": "allow"}, native) == Reply(contexts=("c",))


def test_reminders_beside_a_prompt() -> None:
    assert says({"system_reminder": "r"}, "user_prompt_submit") == Reply(reminders=("r",))


@pytest.mark.parametrize(
    ("answer", "native"),
    [({"system_reminder": "r"}, "before_tool_call"), ({"extra_context": "c"}, "session_start")],
)
def test_text_where_there_is_no_place_for_it_is_told(answer: Any, native: str) -> None:
    reply = says(answer, native)

    assert (reply.contexts, reply.reminders, kinds(reply)) == ((), (), [ProblemKind.NOT_APPLICABLE])


@pytest.mark.parametrize("value", [5, ["x"], {}, False])
def test_text_that_is_none_is_told(value: Any) -> None:
    reply = says({"extra_context": value}, "after_tool_call")

    assert (reply.contexts, kinds(reply)) == ((), [ProblemKind.NOT_APPLICABLE])
    assert says({"extra_context": ""}, "after_tool_call") == Reply()


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (json.dumps({"action": "block"}).encode("utf-16"), "the result file is UTF-16", "PowerShell"),
        (b"\xfe\xff\x00{", "the result file is UTF-16", "PowerShell"),
        (b'{"action": "\xff"}', "the result file is not UTF-8 (byte 12)", "UTF-8"),
        (b'{"action": "bl', "the result file is not JSON", "the JSON is broken at line 1, column 12"),
        (b"block", "the result file is not JSON", "the JSON is broken"),
        (b'{"action": NaN}', "the result file is not JSON", "the JSON is broken"),
        (b"[]", "the result file is not one JSON object", "write {"),
        (b'"block"', "the result file is not one JSON object", "write {"),
        (b"{} {}", "the result file is not JSON", "the JSON is broken"),
    ],
)
def test_an_answer_that_cannot_be_understood_decides_nothing(data: bytes, message: str, hint: str) -> None:
    reply = says(data, on_error=OnError.BLOCK)

    assert reply.decision is Decision.NONE
    assert reply.failure is not None
    assert (reply.failure.kind, reply.failure.message) == (ProblemKind.MALFORMED_OUTPUT, message)
    assert hint in (reply.failure.hint or "")


def test_what_only_the_other_parser_refuses_has_a_hint_too() -> None:
    reply = says(b'{"a": ' + b"[" * 100 + b"1e999999" + b"]" * 100 + b"}")

    assert reply.failure is None or reply.failure.hint


def test_a_mark_before_the_answer_is_accepted() -> None:
    assert says(b'\xef\xbb\xbf{"action": "block"}').decision is Decision.BLOCK


def test_129_130_a_file_that_was_not_read() -> None:
    fault = HookProblem(kind=ProblemKind.OVERSIZE_RESULT, message="too large")
    reply = CHRYS.interpret(ProcessResult(exit_code=0, answer_fault=fault), event(), hook(OnError.BLOCK))

    assert reply == Reply(failure=fault)


FAILURES = [
    (ProcessResult(exit_code=9, stderr=b"  went wrong\n"), ProblemKind.EXIT_CODE, "exit_code=9: went wrong"),
    (ProcessResult(signal=9), ProblemKind.SIGNAL, "exit_code=-9"),
    (ProcessResult(timed_out=True, stderr=b"slow"), ProblemKind.TIMEOUT, "timeout: slow"),
    (
        ProcessResult(launch_failure=LaunchFailure(kind=ProblemKind.MISSING_RUNTIME, message="no node")),
        ProblemKind.MISSING_RUNTIME,
        "launch_error: no node",
    ),
]


@pytest.mark.parametrize(("result", "kind", "label"), FAILURES, ids=[kind for _, kind, _ in FAILURES])
@pytest.mark.parametrize("on_error", OnError)
def test_76_to_80_a_run_that_failed(
    result: ProcessResult, kind: ProblemKind, label: str, on_error: OnError
) -> None:
    reply = CHRYS.interpret(
        msgspec.structs.replace(result, answer=b'{"action": "allow"}'), event(), hook(on_error)
    )

    assert reply.failure is not None
    assert reply.failure.kind is kind
    if on_error is OnError.BLOCK:
        assert (reply.decision, reply.reason) == (Decision.BLOCK, f"guard: {label}")
    else:
        assert (reply.decision, reply.reason) == (Decision.NONE, None)


def test_78_an_answer_of_a_run_that_failed_is_not_looked_at() -> None:
    result = ProcessResult(exit_code=9, answer=b'{"action": "block"}')

    assert CHRYS.interpret(result, event(), hook()).decision is Decision.NONE


def test_a_reason_has_the_first_200_characters_of_stderr() -> None:
    result = ProcessResult(exit_code=1, stderr=("é" * 300).encode())

    assert CHRYS.interpret(result, event(), hook(OnError.BLOCK)).reason == "guard: exit_code=1: " + "é" * 200


def test_a_pipe_that_is_held_is_noted() -> None:
    for answer in (b"", b"x", b'{"action": "modify", "args_override": {}}'):
        result = ProcessResult(exit_code=0, answer=answer, inherited_pipe=True)
        assert kinds(CHRYS.interpret(result, event(), hook())) == [ProblemKind.INHERITED_PIPE]
    failed = ProcessResult(exit_code=1, inherited_pipe=True)
    assert kinds(CHRYS.interpret(failed, event(), hook())) == [ProblemKind.INHERITED_PIPE]


def test_stdout_is_never_an_answer() -> None:
    result = ProcessResult(exit_code=0, stdout=b'{"action": "block"}')

    assert CHRYS.interpret(result, event(), hook()) == Reply()


def test_the_result_of_a_programmatic_hook_has_the_same_keys() -> None:
    assert CHRYS.interpret_object({}, event(), hook()) == Reply()
    assert CHRYS.interpret_object({"action": "block"}, event(), hook()).decision is Decision.BLOCK
    for answer in ([], None, "block"):
        wrong = CHRYS.interpret_object(answer, event(), hook()).failure
        assert wrong is not None
        assert wrong.kind is ProblemKind.MALFORMED_OUTPUT


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["block", "modify"]),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(
            st.sampled_from(["action", "reason", "args_override", "system_reminder", "extra_context", "x"]),
            children,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=100)
@given(
    _json.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=40),
    st.sampled_from(["before_tool_call", "after_tool_call"]),
)
def test_whatever_is_in_the_file_is_a_reply_that_holds_together(data: bytes, native: str) -> None:
    reply = says(data, native, OnError.BLOCK)

    assert (reply.reason is not None) is (reply.decision is Decision.BLOCK)
    assert reply.decision in (Decision.NONE, Decision.BLOCK)
    assert reply.decision is Decision.NONE or reply.failure is None
    assert all(isinstance(text, str) and text for text in (*reply.contexts, *reply.reminders))
    assert reply.arguments_patch is None or isinstance(reply.arguments_patch, dict)
    assert reply.arguments is None
