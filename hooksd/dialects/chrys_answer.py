"""What a Chrys hook said (Chrys dialect 3 and 4, changed by design.md).

A process that did not exit with 0 has failed: its answer is not looked at, and only `on_error` counts. After that the
result file decides, whatever is on stdout: blank says nothing, anything else must be one JSON object. An answer that
cannot be understood decides nothing, even with `on_error: block`, exactly as in the reference; but it is a failure, so
it is told, and a guard can make it a block.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hooksd.dialects.document_text import LineIndex
from hooksd.dialects.json_document import JsonSyntaxError, parse_json
from hooksd.dialects.process_faults import exit_code_fault, head, inherited_pipe_note, process_fault
from hooksd.model.decision import Decision
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import Hook, OnError
from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.model.reply import Reply
from hooksd.model.run import ProcessResult


__all__ = ["interpret", "interpret_object"]

MAX_REASON_STDERR = 200
"""Characters of stderr in the reason of a block by `on_error`."""

_WHERE = "the result file"
_EXAMPLE = '{"action": "block", "reason": "…"}'
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_ACTIONS = ("allow", "block", "modify")
_REMINDER_EVENTS = frozenset({EventName.PROMPT_SUBMIT})
_CONTEXT_EVENTS = frozenset({EventName.TOOL_AFTER, EventName.TOOL_ERROR})


def interpret(result: ProcessResult, event: Event, hook: Hook) -> Reply:
    """The reply of a process; never raises, whatever it wrote."""
    pipe = inherited_pipe_note(result)
    notes = () if pipe is None else (pipe,)
    fault = process_fault(result, hook.timeout_s)
    if fault is None and result.exit_code != 0:
        fault = exit_code_fault(result)
    if fault is not None:
        if hook.on_error is not OnError.BLOCK:
            return Reply(failure=fault, notes=notes)
        reason = _failure_reason(result, fault, hook)
        return Reply(decision=Decision.BLOCK, reason=reason, failure=fault, notes=notes)
    if result.answer_fault is not None:
        return Reply(failure=result.answer_fault, notes=notes)
    answer = _decoded(result.answer)
    if answer is None:
        return Reply(notes=notes)
    if isinstance(answer, HookProblem):
        return Reply(failure=answer, notes=notes)
    reply = _read(answer, event, hook, _WHERE)
    return msgspec.structs.replace(reply, notes=(*reply.notes, *notes))


def interpret_object(answer: Any, event: Event, hook: Hook) -> Reply:
    """The reply of a programmatic hook, whose result has the keys of a result file."""
    if not isinstance(answer, dict):
        return Reply(failure=_malformed("the result is not an object", f"answer {_EXAMPLE}"))
    return _read(answer, event, hook, "the result")


def _decoded(data: bytes) -> dict[str, Any] | HookProblem | None:
    """The object in a result file; None for a blank one."""
    if data.startswith(_UTF_16):
        message = f"{_WHERE} is UTF-16"
        return _malformed(message, "write it as UTF-8 (PowerShell: Out-File -Encoding utf8)", data)
    data = data.removeprefix(_BOM)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return _malformed(f"{_WHERE} is not UTF-8 (byte {error.start})", "write it as UTF-8", data)
    if not text.strip():
        return None
    try:
        answer = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _malformed(f"{_WHERE} is not JSON", _syntax_hint(text), data)
    if not isinstance(answer, dict):
        return _malformed(f"{_WHERE} is not one JSON object", f"write {_EXAMPLE}", data)
    return answer


def _syntax_hint(text: str) -> str | None:
    try:
        parse_json(text)
    except JsonSyntaxError as error:
        line, column = LineIndex(text).place(error.offset)
        return f"the JSON is broken at line {line}, column {column}" + (
            f": {error.hint}" if error.hint else ""
        )
    return "write it with a JSON library"


def _read(answer: dict[str, Any], event: Event, hook: Hook, where: str) -> Reply:
    """The reply in an answer; unknown keys are ignored, as the reference does."""
    action = str(answer.get("action") or "allow").lower()
    notes: list[HookProblem] = []
    override = answer.get("args_override")
    failure: HookProblem | None = None
    patch: dict[str, Any] | None = None
    decision = Decision.NONE
    reason: str | None = None
    if action == "block":
        decision = Decision.BLOCK
        said = answer.get("reason")
        reason = f"{hook.id}: {said}" if said is not None and str(said).strip() else f"{hook.id} blocked"
        if event.gate:
            # What else is in it is dropped, as in the reference.
            return Reply(decision=decision, reason=reason)
    elif action == "modify":
        if isinstance(override, dict):
            patch = override
        else:
            message = f"`modify` in {where} needs an object `args_override`; nothing was changed"
            failure = _malformed(message, 'write {"action": "modify", "args_override": {…}}')
    elif action not in _ACTIONS:
        failure = HookProblem(
            kind=ProblemKind.UNKNOWN_DECISION,
            message=f"`action` in {where} is no word that is known",
            hint=f"one of {', '.join(_ACTIONS)}",
            detail=head(f'action "{action}"'.encode(errors="replace")),
        )
    if override is not None and action != "modify":
        notes.append(
            HookProblem(
                kind=ProblemKind.IGNORED_DECISION,
                message=f"`args_override` in {where} counts only with `action` modify, and was ignored",
                hint='write "action": "modify" beside it',
            )
        )
    return Reply(
        decision=decision,
        reason=reason,
        contexts=_text("extra_context", answer, event, _CONTEXT_EVENTS, notes),
        reminders=_text("system_reminder", answer, event, _REMINDER_EVENTS, notes),
        arguments_patch=patch,
        failure=failure,
        notes=tuple(notes),
    )


def _text(
    key: str, answer: dict[str, Any], event: Event, events: frozenset[EventName], notes: list[HookProblem]
) -> tuple[str, ...]:
    """A text that means something at some events only; None and an empty one say nothing."""
    value = answer.get(key)
    if value is None or value == "":
        return ()
    if not isinstance(value, str):
        message, hint = f"`{key}` is not a string, and was ignored", "write a string"
    elif event.name not in events:
        message, hint = f"`{key}` means nothing at {event.native}, and was ignored", None
    else:
        return (value,)
    notes.append(HookProblem(kind=ProblemKind.NOT_APPLICABLE, message=message, hint=hint))
    return ()


def _failure_reason(result: ProcessResult, fault: HookProblem, hook: Hook) -> str:
    """Id, label of the failure, start of stderr: the reference's reason of a block by `on_error`."""
    if fault.kind is ProblemKind.TIMEOUT:
        label = "timeout"
    elif result.launch_failure is not None:
        label = f"launch_error: {fault.message}"
    else:
        label = f"exit_code={result.exit_code if result.signal is None else -result.signal}"
    stderr = result.stderr.decode(errors="replace").strip()[:MAX_REASON_STDERR]
    return f"{hook.id}: {label}" + (f": {stderr}" if stderr else "")


def _malformed(message: str, hint: str | None, data: bytes | None = None) -> HookProblem:
    detail = None if data is None else head(data)
    return HookProblem(kind=ProblemKind.MALFORMED_OUTPUT, message=message, hint=hint, detail=detail)
