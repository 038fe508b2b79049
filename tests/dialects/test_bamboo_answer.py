"""What hooks said; the numbers are those of the reference's own cases (Bamboo dialect 8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from hooksd.dialects.bamboo_answer import (
    _KEYS,
    BLOCK_WITHOUT_REASON,
    BLOCK_WITHOUT_STDERR,
    MAX_ANSWER_VALUES,
    _read_quickly,
    interpret,
    interpret_object,
)
from hooksd.dialects.bamboo_handlers import trim
from hooksd.dialects.json_document import parse_json
from hooksd.model.decision import Decision
from hooksd.model.events import Event
from hooksd.model.hooks import Contract, Hook, Scope
from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.model.reply import MAX_DETAIL_BYTES, Reply
from hooksd.model.run import LaunchFailure, ProcessResult


@pytest.fixture
def said(hook: Hook) -> Callable[..., Reply]:
    """The reply of a process that exited, by default with 0."""

    def said(stdout: bytes | str = b"", *, exit_code: int = 0, **more: Any) -> Reply:
        data = stdout.encode() if isinstance(stdout, str) else stdout
        return interpret(ProcessResult(exit_code=exit_code, stdout=data, **more), hook)

    return said


Said = Callable[..., Reply]


def failed(reply: Reply) -> HookProblem:
    assert reply.failure is not None
    assert (reply.decision, reply.reason, reply.contexts) == (Decision.NONE, None, ())
    return reply.failure


# ----------------------------------------------------------------------------------------------------------------------
# Valid answers


@pytest.mark.parametrize("stdout", ["", " \n\t", "\ufeff", "\ufeff\r\n", "\u2003\u3000"])
def test_case_01_nothing_is_said(said: Said, stdout: str) -> None:
    assert said(stdout) == Reply()


@pytest.mark.parametrize(
    ("stdout", "reply"),
    [
        pytest.param('{"decision":"allow"}', Reply(decision=Decision.ALLOW), id="case_04_allow"),
        pytest.param('{"decision":"ask"}', Reply(decision=Decision.ASK), id="case_04_ask"),
        pytest.param(
            '{"decision":"block","reason":"no"}',
            Reply(decision=Decision.BLOCK, reason="no"),
            id="case_04_block",
        ),
        pytest.param('{"additional_context":"c"}', Reply(contexts=("c",)), id="case_04_context"),
        pytest.param(
            '{"decision":"allow","additional_context":"c"}',
            Reply(decision=Decision.ALLOW, contexts=("c",)),
            id="case_04_allow_with_context",
        ),
        pytest.param(
            '{"decision":"block","reason":" r ","additional_context":" c "}',
            Reply(decision=Decision.BLOCK, reason=" r ", contexts=(" c ",)),
            id="kept_verbatim",
        ),
        pytest.param(
            '{"decision":"block"}',
            Reply(decision=Decision.BLOCK, reason=BLOCK_WITHOUT_REASON),
            id="no_reason",
        ),
        pytest.param(
            '{"decision":"block","reason":" \\n"}',
            Reply(decision=Decision.BLOCK, reason=BLOCK_WITHOUT_REASON),
            id="blank_reason",
        ),
        pytest.param(
            '{"decision":"allow","reason":"r"}', Reply(decision=Decision.ALLOW), id="reason_only_of_a_block"
        ),
        pytest.param(
            '{"decision":"ask","reason":"r"}', Reply(decision=Decision.ASK), id="no_reason_with_ask"
        ),
        pytest.param('{"reason":"r"}', Reply(), id="reason_alone"),
        pytest.param('{"additional_context":" \\t"}', Reply(), id="blank_context"),
        pytest.param("{}", Reply(), id="empty_object"),
        pytest.param(
            '{"decision":null,"reason":null,"additional_context":null,"suppress_output":false}',
            Reply(),
            id="all_null",
        ),
        pytest.param('{"suppress_output":true}', Reply(), id="suppress_output_does_nothing"),
        pytest.param(
            '{"x":1e999,"x":[1],"y":-99999999999999999999999}', Reply(), id="unknown_keys_may_be_anything"
        ),
        pytest.param('\ufeff{"decision":"allow"}\r\n', Reply(decision=Decision.ALLOW), id="bom_and_crlf"),
        pytest.param(
            '\u3000 {\r\n"decision"\r\n:"allow"}\u2003\n', Reply(decision=Decision.ALLOW), id="white_space"
        ),
        pytest.param('{"additional_context":"\\ud83d\\ude00"}', Reply(contexts=("😀",)), id="surrogate_pair"),
    ],
)
def test_valid(said: Said, stdout: str, reply: Reply) -> None:
    assert said(stdout) == reply


def test_case_05_context_beside_a_decision(said: Said) -> None:
    assert said('{"decision":"allow","additional_context":"hello"}').contexts == ("hello",)


def test_bytes_that_are_not_utf_8_are_replaced(said: Said) -> None:
    assert said(b'{"additional_context":"a\xffb"}').contexts == ("a\ufffdb",)


# ----------------------------------------------------------------------------------------------------------------------
# Answers that are none


@pytest.mark.parametrize(
    ("stdout", "hint"),
    [
        pytest.param("not-json", "plain text", id="case_06"),
        pytest.param("OK\n", "plain text", id="plain_text"),
        pytest.param("null", "bare value", id="null"),
        pytest.param("1", "bare value", id="number"),
        pytest.param("true", "bare value", id="bool"),
        pytest.param('"block"', "bare value", id="string"),
        pytest.param("NaN", "plain text", id="nan"),
        pytest.param('["block","x"]', "an array", id="array"),
        pytest.param("[]", "an array", id="empty_array"),
        pytest.param("[{}", "broken", id="broken_array"),
        pytest.param('{"decision":{"block":null}}', "decision is", id="enum_object"),
        pytest.param('{"decision":"allow"}{}', "more than one JSON value", id="two_objects"),
        pytest.param('{"decision":"allow"}\n{"decision":"block"}', "more than one JSON value", id="ndjson"),
        pytest.param('{"decision":"allow"}\ndone', "text after", id="trailing_text"),
        pytest.param('Welcome\n{"decision":"block"}', "banner", id="banner"),
        pytest.param('[info] starting {"a":1}', "broken", id="log_line_with_bracket"),
        pytest.param('{"decision":"allow",}', "remove the comma", id="trailing_comma"),
        pytest.param("{'decision':'allow'}", "double quotes", id="single_quotes"),
        pytest.param('{"x":NaN}', "true, false and null", id="nan_inside"),
        pytest.param('{"x":Infinity}', "true, false and null", id="infinity_inside"),
        pytest.param('{"additional_context":"\\ud800"}', "broken", id="lone_surrogate"),
        pytest.param('{"x":"\\udfff"}', "broken", id="lone_surrogate_in_unknown_key"),
        pytest.param('{"decision":"allow"', "broken", id="cut_off"),
        pytest.param('{"x":' + "[" * 1000, "nested too deeply", id="too_deep"),
        pytest.param('{"x":[' + "1," * 10_000 + "1]}", "more than 10000 values", id="too_many_values"),
        pytest.param('{"decision":"allow","decision":"allow"}', "write it once", id="duplicate_decision"),
        pytest.param(
            '{"suppress_output":true,"suppress_output":true}', "write it once", id="duplicate_suppress"
        ),
        pytest.param('{"decision":1}', "decision is", id="decision_number"),
        pytest.param('{"decision":"block","reason":1}', "string", id="reason_number"),
        pytest.param('{"decision":"block","additional_context":["c"]}', "string", id="context_array"),
        pytest.param('{"suppress_output":null}', "leave it out", id="suppress_null"),
        pytest.param('{"suppress_output":1}', "leave it out", id="suppress_number"),
    ],
)
def test_malformed(said: Said, stdout: str, hint: str) -> None:
    failure = failed(said(stdout))
    assert failure.kind is ProblemKind.MALFORMED_OUTPUT
    assert "stdout" in failure.message
    assert failure.hint is not None
    assert hint in failure.hint
    assert failure.detail is not None
    assert stdout.strip()[:MAX_DETAIL_BYTES] == failure.detail


@pytest.mark.parametrize("word", ["deny", "Block", "approve", "", "continue", "BLOCK "])
def test_an_unknown_decision_is_named_in_the_detail_only(said: Said, word: str) -> None:
    failure = failed(said(json.dumps({"decision": word, "reason": "other words", "additional_context": "c"})))
    assert failure.kind is ProblemKind.UNKNOWN_DECISION
    assert failure.detail == f'decision "{word}"'


def test_case_07_a_truncated_answer_is_none(said: Said) -> None:
    failure = failed(said('{"decision":"block"}', stdout_truncated=True, stdout_bytes=131072))
    assert failure.kind is ProblemKind.TRUNCATED_OUTPUT
    assert "truncated" in failure.message
    assert failure.detail == '{"decision":"block"}'


def test_case_31_a_truncated_object_of_64_kib(said: Said) -> None:
    kept = ('{"additional_context":"' + "x" * 131072)[:65536]
    assert failed(said(kept, stdout_truncated=True)).kind is ProblemKind.TRUNCATED_OUTPUT


def test_hook_output_is_never_in_message_or_hint(said: Said) -> None:
    for stdout in (
        "hunter2",
        '{"hunter2',
        '{"decision":"hunter2"}',
        '{"decision":"allow"} hunter2',
        "[hunter2]",
        "hunter2 {}",
    ):
        failure = failed(said(stdout))
        assert "hunter2" not in failure.message + str(failure.hint)
        assert "hunter2" in str(failure.detail)


# ----------------------------------------------------------------------------------------------------------------------
# Exit codes


def test_case_02_exit_2_blocks_with_stderr(said: Said) -> None:
    assert said(exit_code=2, stderr=b" blocked by policy\n") == Reply(
        decision=Decision.BLOCK, reason="blocked by policy"
    )


@pytest.mark.parametrize("stdout", ["", '{"decision":"allow"}', "not-json"])
def test_exit_2_does_not_look_at_stdout(said: Said, stdout: str) -> None:
    reply = said(stdout, exit_code=2, stderr=b"no", stdout_truncated=True)
    assert reply == Reply(decision=Decision.BLOCK, reason="no")


@pytest.mark.parametrize("stderr", [b"", b" \n", b"\xef\xbb\xbf\r\n"])
def test_exit_2_without_a_word(said: Said, stderr: bytes) -> None:
    reply = said(exit_code=2, stderr=stderr)
    assert reply.reason == BLOCK_WITHOUT_STDERR
    assert "blocking status 2" in BLOCK_WITHOUT_STDERR


def test_exit_2_with_truncated_stderr_keeps_what_there_is(said: Said) -> None:
    assert said(exit_code=2, stderr=b"x" * 65536, stderr_truncated=True).reason == "x" * 65536


# What the programs of Bamboo dialect 9 (9a) really write when they exit with 2 for reasons of their own.
INTERPRETER_ERRORS = [
    b'a.sh: 3: Syntax error: "fi" unexpected',
    b"a.sh: line 3: syntax error near unexpected token `fi'",
    b"bash: -c: line 2: syntax error: unexpected end of file",
    b"bash: -c: line 1: unexpected EOF while looking for matching `\"'",
    b"a.sh: 2: set: Illegal option -o pipefail",
    b"bash: line 1: set: -Z: invalid option",
    b"sh: 0: cannot open missing.sh: No such file",
    b"python3: can't open file '/w/missing.py': [Errno 2] No such file or directory",
    b"usage: guard.py [-h] command\nguard.py: error: unrecognized arguments: --x",
    b"grep: policy.txt: No such file or directory",
    b"ls: cannot access 'x': No such file or directory",
    b"sh: 1: x: parameter not set",
    b"sh: 1: x: parameter null or not set",
    b"bash: line 1: test: x: integer expression expected",
    b"bash: line 1: [: missing `]'",
    b"dash: 1: exit: Illegal number: abc",
    b"grep: /root/x: Permission denied",
    b"diff: missing operand after 'a'",
    b"curl: option --bogus: is unknown\ncurl: try 'curl --help' or 'curl --manual' for more information",
    b"awk: line 2: missing } near end of file",
    b"getopts: usage: getopts optstring name [arg ...]",
    b"error: unexpected argument '--x' found\n\nUsage: tool [OPTIONS]",
]


@pytest.mark.parametrize("stderr", INTERPRETER_ERRORS, ids=lambda text: text[:24].decode())
def test_an_interpreter_s_exit_2_still_blocks_and_is_suspicious(said: Said, stderr: bytes) -> None:
    reply = said(exit_code=2, stderr=stderr)
    assert (reply.decision, reply.failure) == (Decision.BLOCK, None)
    assert reply.reason == stderr.decode()
    assert [note.kind for note in reply.notes] == [ProblemKind.SUSPICIOUS_EXIT_2]


@pytest.mark.parametrize(
    "stderr",
    [
        b"blocked by policy",
        b"use of rm -rf is forbidden",
        b"see the usage: section",
        b"permission denied by policy",
        b"production: permission denied",
        b"",
    ],
)
def test_a_hook_s_own_words_are_not_suspicious(said: Said, stderr: bytes) -> None:
    assert said(exit_code=2, stderr=stderr).notes == ()


@pytest.mark.parametrize("exit_code", [1, 3, 126, 127, 255])
def test_other_codes_are_failures_whatever_stdout_says(said: Said, exit_code: int) -> None:
    failure = failed(said('{"decision":"block"}', exit_code=exit_code, stderr=b"problem"))
    assert failure.kind is ProblemKind.EXIT_CODE
    assert failure.detail == "problem"


def test_case_08_a_timeout_is_a_failure_whatever_was_printed(hook: Hook) -> None:
    result = ProcessResult(timed_out=True, stdout=b'{"decision":"block"}')
    assert failed(interpret(result, hook)).kind is ProblemKind.TIMEOUT


def test_a_signal_is_a_failure(hook: Hook) -> None:
    result = ProcessResult(signal=9, stdout=b'{"decision":"block"}')
    assert failed(interpret(result, hook)).kind is ProblemKind.SIGNAL


def test_case_32_a_missing_script_is_a_failure(hook: Hook) -> None:
    failure = LaunchFailure(kind=ProblemKind.MISSING_SCRIPT, message="missing.js is not accessible")
    assert failed(interpret(ProcessResult(launch_failure=failure), hook)) == HookProblem(
        kind=ProblemKind.MISSING_SCRIPT, message="missing.js is not accessible"
    )


@pytest.mark.parametrize(
    "result",
    [
        ProcessResult(exit_code=0, inherited_pipe=True),
        ProcessResult(exit_code=0, inherited_pipe=True, stdout=b'{"decision":"allow"}'),
        ProcessResult(exit_code=0, inherited_pipe=True, stdout=b"x"),
        ProcessResult(exit_code=0, inherited_pipe=True, stdout=b"{", stdout_truncated=True),
        ProcessResult(exit_code=1, inherited_pipe=True),
        ProcessResult(exit_code=2, inherited_pipe=True),
        ProcessResult(signal=15, inherited_pipe=True),
    ],
)
def test_an_inherited_pipe_is_noted_whatever_else_happened(hook: Hook, result: ProcessResult) -> None:
    assert [note.kind for note in interpret(result, hook).notes] == [ProblemKind.INHERITED_PIPE]


def test_the_most_important_note_comes_first(said: Said) -> None:
    reply = said(exit_code=2, stderr=b"usage: x", inherited_pipe=True)
    assert [note.kind for note in reply.notes] == [ProblemKind.SUSPICIOUS_EXIT_2, ProblemKind.INHERITED_PIPE]


# ----------------------------------------------------------------------------------------------------------------------
# Programmatic hooks


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ({}, Reply()),
        ({"decision": "block", "reason": "no"}, Reply(decision=Decision.BLOCK, reason="no")),
        (
            {"decision": "allow", "additional_context": "c", "x": 1},
            Reply(decision=Decision.ALLOW, contexts=("c",)),
        ),
        ({"arguments": {"a": 1}}, Reply(arguments={"a": 1})),
        ({"arguments": {}}, Reply(arguments={})),
        ({"arguments": None}, Reply()),
    ],
)
def test_objects(event: Callable[..., Event], answer: Any, reply: Reply) -> None:
    assert interpret_object(answer, event("PreToolUse")) == reply


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, ProblemKind.MALFORMED_OUTPUT),
        ([], ProblemKind.MALFORMED_OUTPUT),
        ("block", ProblemKind.MALFORMED_OUTPUT),
        ({"reason": 1}, ProblemKind.MALFORMED_OUTPUT),
        ({"decision": []}, ProblemKind.MALFORMED_OUTPUT),
        ({"arguments": []}, ProblemKind.MALFORMED_OUTPUT),
        ({"decision": "deny"}, ProblemKind.UNKNOWN_DECISION),
    ],
)
def test_odd_objects(event: Callable[..., Event], answer: Any, kind: ProblemKind) -> None:
    failure = failed(interpret_object(answer, event("PreToolUse")))
    assert failure.kind is kind
    assert "the result" in failure.message


def test_arguments_where_there_is_no_call_to_come(event: Callable[..., Event]) -> None:
    reply = interpret_object({"arguments": {"a": 1}, "decision": "allow"}, event("PostToolUse"))
    assert (reply.arguments, reply.decision) == (None, Decision.ALLOW)
    assert [note.kind for note in reply.notes] == [ProblemKind.NOT_APPLICABLE]


# ----------------------------------------------------------------------------------------------------------------------
# Anything at all

HOOK = Hook(
    name="n",
    dialect="bamboo",
    contract=Contract.BAMBOO,
    source="s",
    scope=Scope.USER,
    event="tool.before",  # type: ignore[arg-type]
    native_event="PreToolUse",
    handler=None,
    timeout_s=1.0,
)
ODD_BYTES = st.binary(max_size=200) | st.text(alphabet='{}[]":,\\ud8deciosnblkarw \n\ufeff').map(str.encode)


@given(ODD_BYTES, ODD_BYTES, st.integers(0, 255), st.booleans())
@example(b'{"decision":"\\ud800"}', b"", 0, False)
def test_never_raises(stdout: bytes, stderr: bytes, exit_code: int, truncated: bool) -> None:
    result = ProcessResult(exit_code=exit_code, stdout=stdout, stderr=stderr, stdout_truncated=truncated)
    reply = interpret(result, HOOK)
    if reply.failure is not None:
        assert reply.decision is Decision.NONE
        assert len((reply.failure.detail or "").encode()) <= MAX_DETAIL_BYTES
    if reply.decision is Decision.BLOCK:
        assert reply.reason
        assert trim(reply.reason)
    assert all(trim(context) for context in reply.contexts)


# ----------------------------------------------------------------------------------------------------------------------
# The short way for ordinary answers


_PIECES = st.sampled_from(
    [
        '"decision"',
        '"reason"',
        '"additional_context"',
        '"x"',
        '"block"',
        ":",
        ",",
        "{",
        "}",
        "[",
        "]",
        "null",
        "true",
        "1",
        "-0",
        "01",
        "1e999",
        "1.5",
        "NaN",
        "Infinity",
        '"\\ud800"',
        '"\\n"',
        '"\x01"',
        '"\t"',
        '"é\ud83d"',
        " ",
        "\n",
        "'",
        '"',
    ]
)


_OBJECTS = st.dictionaries(
    st.sampled_from([*_KEYS, "x"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    ),
).map(lambda value: json.dumps(value, ensure_ascii=False))


@given(text=st.one_of(st.lists(_PIECES, max_size=14).map("".join), _OBJECTS, st.text(max_size=30)))
@example(text='{"decision":"block","decision":"allow"}')
@example(text='{"x":{"decision":1},"decision":"allow"}')
@example(text='{"x":' + "[" * 3000 + "]" * 3000 + "}")
@example(text='{"decision":"block"}{"decision":"allow"}')
def test_the_short_way_reads_what_the_located_reader_reads(text: str) -> None:
    quick = _read_quickly(text)
    if quick is None:
        return
    node = parse_json(text, MAX_ANSWER_VALUES)

    assert type(node.value) is dict
    assert not [key for key, _ in node.duplicates or () if key in _KEYS]
    for key in _KEYS:
        assert repr(quick.get(key)) == repr(
            node.value[key].value if key in node.value else None
        ) or isinstance(quick.get(key), (dict, list))


@pytest.mark.parametrize(
    "text",
    [
        '{"decision": "block", "reason": "no\\nway"}',
        "{}",
        '{"additional_context": "ü"}',
        '{"hook_event_name": "Stop", "n": [1, {}]}',
    ],
)
def test_ordinary_answers_go_the_short_way(text: str) -> None:
    assert _read_quickly(text) == json.loads(text)
