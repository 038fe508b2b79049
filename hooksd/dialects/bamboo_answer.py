"""What a Bamboo hook said (Bamboo dialect 3.6, to the letter, changed by design.md).

In this order: a process that did not exit by itself has failed; exit 0 with blank stdout says nothing, with exactly
one JSON object says that; exit 2 blocks with stderr as the reason, whatever is on stdout; any other code is a failure.
A failure is no decision: Bamboo itself fails open, guards are applied by the pipeline.

The reference's parser takes an array or `{"decision": {"block": null}}` by accident; both are malformed here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import structs

from hooksd.dialects.bamboo_handlers import trim
from hooksd.dialects.document_text import LineIndex
from hooksd.dialects.json_document import JsonFault, JsonSyntaxError, parse_json
from hooksd.dialects.process_faults import exit_code_fault, head, inherited_pipe_note, process_fault
from hooksd.model.decision import Decision
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import Hook
from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.model.reply import Reply
from hooksd.model.run import ProcessResult


__all__ = ["interpret", "interpret_object"]

BLOCKING_STATUS = 2
MAX_ANSWER_VALUES = 10_000
"""Most values in an answer. Four matter; the rest is in unknown keys, and reading it must not hold up other dispatches."""
BLOCK_WITHOUT_STDERR = "The hook exited with blocking status 2 and gave no reason."
BLOCK_WITHOUT_REASON = "The hook blocked and gave no reason."

_KEYS = frozenset({"decision", "reason", "additional_context", "suppress_output"})
_NOT_ONE_OBJECT = "stdout is neither empty nor exactly one JSON object"
_EXAMPLE = '{"decision": "block", "reason": "…"}'

_DECISIONS = {"allow": Decision.ALLOW, "block": Decision.BLOCK, "ask": Decision.ASK}
_DECISION_HINT = (
    'decision is "allow", "block" or "ask"; words of other agents such as deny or approve are not known'
)

# Exit code 2 is also what interpreters and tools give for errors of their own (Bamboo dialect 9, 9a). This is what the
# usual ones say then: dash, bash, their `test`, python, argparse, clap, getopt, grep, ls, awk, and whatever tells its usage.
_INTERPRETER_ERROR = re.compile(
    rb"syntax error|unexpected (?:eof|end of file)|(?:illegal|invalid) (?:option|number)|can(?:not|'t) (?:open|access)"
    rb"|no such file or directory|^[\w./-]+: [^:\n]+: permission denied$|parameter (?:null or )?not set"
    rb"|un(?:recognized|expected) (?:option|argument)|missing (?:operand|argument|\S*\])|(?:^|: )usage:|try '[^'\n]*--help'"
    rb"|(?:integer expression|numeric argument|argument) (?:expected|required)|near end of file",
    re.IGNORECASE | re.MULTILINE,
)

_LAST_WORDS = 4096
"""How much of stderr's end is searched for such an error: it is what a process writes last."""

_SUSPICIOUS = HookProblem(
    kind=ProblemKind.SUSPICIOUS_EXIT_2,
    message="exit code 2 blocks, but stderr looks like an error of the interpreter or a wrong use of a command",
    hint="if it was not meant to block, repair the hook; let a hook that means it say so in its own words",
)
_TRUNCATED = HookProblem(
    kind=ProblemKind.TRUNCATED_OUTPUT,
    message="stdout was truncated, so the answer in it cannot be read",
    hint="write one short JSON object to stdout and everything else to stderr",
)


def interpret(result: ProcessResult, hook: Hook) -> Reply:
    """The reply of a process; never raises, whatever it wrote."""
    pipe = inherited_pipe_note(result)
    notes = () if pipe is None else (pipe,)
    fault = process_fault(result, hook.timeout_s)
    if fault is not None:
        return Reply(failure=fault, notes=notes)
    if result.exit_code == BLOCKING_STATUS:
        if _INTERPRETER_ERROR.search(result.stderr[-_LAST_WORDS:]):
            notes = (_SUSPICIOUS, *notes)
        reason = trim(decoded(result.stderr)) or BLOCK_WITHOUT_STDERR
        return Reply(decision=Decision.BLOCK, reason=reason, notes=notes)
    if result.exit_code != 0:
        return Reply(failure=exit_code_fault(result), notes=notes)
    if result.stdout_truncated:
        return Reply(failure=structs.replace(_TRUNCATED, detail=head(result.stdout)), notes=notes)
    text = trim(decoded(result.stdout))
    if not text:
        return Reply(notes=notes)
    answer = _read_answer(text)
    if isinstance(answer, HookProblem):
        return Reply(failure=answer, notes=notes)
    return structs.replace(answer, notes=notes)


def interpret_object(answer: Any, event: Event) -> Reply:
    """The reply of a programmatic hook: the same keys, and `arguments`, which replace the tool's arguments."""
    if not isinstance(answer, dict):
        return Reply(failure=_malformed("the result is not an object", None, None))
    reply = _read_fields(answer, "the result")
    if isinstance(reply, HookProblem):
        return Reply(failure=reply)
    arguments = answer.get("arguments")
    if arguments is None:
        return reply
    if not isinstance(arguments, dict):
        return Reply(failure=_malformed("`arguments` of the result is not an object", None, None))
    if event.name is not EventName.TOOL_BEFORE:
        note = HookProblem(
            kind=ProblemKind.NOT_APPLICABLE,
            message=f"`arguments` mean nothing at {event.native}, and were ignored",
            hint="only a tool call that is still to come has arguments to change",
        )
        return structs.replace(reply, notes=(note,))
    return structs.replace(reply, arguments=arguments)


_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def _read_quickly(text: str) -> dict[str, Any] | None:
    r"""The object in an ordinary answer; None where only the located reader can tell what it is, or what is wrong.

    That one is written in Python and takes twenty times as long. Where this one takes a text, both read the same: it is
    short enough for `MAX_ANSWER_VALUES`, not nested deeply, no known key can stand in it twice, and nothing is spelt with a `\u` escape.
    """
    brackets = text.count("{") + text.count("[")
    if (
        brackets > 100
        or len(text) > MAX_ANSWER_VALUES
        or "\\u" in text
        or any(text.count(f'"{key}"') > 1 for key in _KEYS)
    ):
        return None
    try:
        return _decode_object(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _read_answer(text: str) -> Reply | HookProblem:
    """The reply in a trimmed stdout that is not blank."""
    quick = _read_quickly(text)
    if quick is not None:
        return _read_fields(quick, "stdout", text)
    try:
        node = parse_json(text, MAX_ANSWER_VALUES)
    except JsonSyntaxError as error:
        return _malformed(_NOT_ONE_OBJECT, _syntax_hint(text, error), text)
    if type(node.value) is not dict:
        kind = "an array" if type(node.value) is list else "a bare value"
        return _malformed(_NOT_ONE_OBJECT, f"it is {kind}; write an object such as {_EXAMPLE}", text)
    for key, _ in node.duplicates or ():
        if key in _KEYS:
            return _malformed(f"stdout has the key `{key}` twice", "write it once", text)
    return _read_fields(
        {key: member.value for key, member in node.value.items() if key in _KEYS}, "stdout", text
    )


def _read_fields(fields: Mapping[str, Any], where: str, text: str | None = None) -> Reply | HookProblem:
    """The reply in the known keys of an answer; unknown ones are ignored, as the reference does."""
    reason, context = fields.get("reason"), fields.get("additional_context")
    for key, value in (("reason", reason), ("additional_context", context)):
        if value is not None and not isinstance(value, str):
            return _malformed(f"`{key}` in {where} is not a string", "write a string, or leave it out", text)
    # Accepted, checked and without effect, as in the reference.
    if type(fields.get("suppress_output", False)) is not bool:
        return _malformed(f"`suppress_output` in {where} is not a boolean", "leave it out", text)
    word = fields.get("decision")
    if word is not None and not isinstance(word, str):
        return _malformed(f"`decision` in {where} is not a string", _DECISION_HINT, text)
    if word is not None and word not in _DECISIONS:
        return HookProblem(
            kind=ProblemKind.UNKNOWN_DECISION,
            message=f"`decision` in {where} is no word that is known",
            hint=_DECISION_HINT,
            detail=head(f'decision "{word}"'.encode()),
        )
    decision = Decision.NONE if word is None else _DECISIONS[word]
    return Reply(
        decision=decision,
        reason=(reason if reason and trim(reason) else BLOCK_WITHOUT_REASON)
        if decision is Decision.BLOCK
        else None,
        contexts=(context,) if context and trim(context) else (),
    )


def _malformed(message: str, hint: str | None, text: str | None) -> HookProblem:
    detail = None if text is None else head(text.encode())
    return HookProblem(kind=ProblemKind.MALFORMED_OUTPUT, message=message, hint=hint, detail=detail)


def _syntax_hint(text: str, error: JsonSyntaxError) -> str:
    """What is odd about a stdout that is no JSON, without repeating any of it."""
    line, column = LineIndex(text).place(error.offset)
    place = f"line {line}, column {column}"
    if error.fault is JsonFault.LIMIT:
        return f"it is nested too deeply or has more than {MAX_ANSWER_VALUES} values; write a small object"
    if error.fault is JsonFault.TRAILING:
        if text.startswith(("{", "["), error.offset):
            return f"there is more than one JSON value (the second at {place}); write exactly one object"
        return f"there is text after the JSON value ({place}); write it to stderr"
    start = text.find("{")
    if start > 0 and not text.startswith("["):
        return "there is text before the first `{`, such as a banner or a log line; write it to stderr"
    if start < 0:
        return "it is plain text; write text to stderr and nothing, or one JSON object, to stdout"
    return f"the JSON is broken at {place}" + (f": {error.hint}" if error.hint else "")


def decoded(data: bytes) -> str:
    """What a hook wrote as text, without a byte order mark, which Windows programs write."""
    return data.decode("utf-8", "replace").removeprefix("\ufeff")
