"""What went wrong with a hook's process, in words: the part that is the same in every dialect.

A dialect asks `process_fault` first and reads the output only if that has nothing to say. `message` and `hint` are
hooksd's own words and may be logged; what the hook wrote goes into `detail`, bounded (design rule 8).
"""

from __future__ import annotations

import re
import signal

from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.model.reply import MAX_DETAIL_BYTES
from hooksd.model.run import LaunchFailure, ProcessResult


__all__ = ["exit_code_fault", "head", "inherited_pipe_note", "process_fault", "tail"]

COMMAND_NOT_FOUND = 127
NOT_EXECUTABLE = 126

_SIGNAL_HINTS = {
    "SIGKILL": "something else killed it; the system does so when memory runs out",
    "SIGSEGV": "the program crashed",
    "SIGABRT": "the program gave up by itself, often after an internal error",
    "SIGPIPE": "it wrote to a pipe whose reader was gone",
}

# What shells and the kernel say of a first line such as `#!/bin/sh\r`.
_CARRIAGE_RETURN = re.compile(rb"\^M|\\r\b|\r['\"]?: |\$'\\r'|bad interpreter|required file not found")


def process_fault(result: ProcessResult, timeout_s: float | None) -> HookProblem | None:
    """Why the process gave no exit code to go by; None if it did.

    Args:
        result: What the process did.
        timeout_s: The hook's own timeout, for the message.
    """
    if result.launch_failure is not None:
        return _launch_fault(result.launch_failure)
    if result.timed_out:
        limit = "its deadline" if timeout_s is None else f"{timeout_s:g} s"
        return HookProblem(
            kind=ProblemKind.TIMEOUT,
            message=f"did not finish within {limit}, and was ended",
            hint="make it faster or raise its timeout",
            detail=tail(result.stderr),
        )
    if result.signal is not None:
        name = _signal_name(result.signal)
        return HookProblem(
            kind=ProblemKind.SIGNAL,
            message=f"was ended by {name}",
            hint=_SIGNAL_HINTS.get(name),
            detail=tail(result.stderr),
        )
    return None


def exit_code_fault(result: ProcessResult) -> HookProblem:
    """A process whose exit code says that it failed."""
    code = result.exit_code
    message, hint = f"exited with code {code}", None
    detail = tail(result.stderr)
    if code == COMMAND_NOT_FOUND:
        message += ": a command was not found"
        hint = "check its name and the PATH that the hook got; under a service manager PATH is short"
        if result.search_path is not None:
            detail = tail(f"PATH={result.search_path}\n".encode(errors="replace") + result.stderr)
    elif code == NOT_EXECUTABLE:
        message += ": a command could not be executed"
        hint = "check its mode (chmod +x) and the interpreter that its first line names"
    if code in (COMMAND_NOT_FOUND, NOT_EXECUTABLE) and _CARRIAGE_RETURN.search(result.stderr):
        hint = (
            "the interpreter that the script's first line names is not there; if the file has CRLF line ends, the "
            "carriage return counts as part of that name: save it with LF"
        )
    return HookProblem(kind=ProblemKind.EXIT_CODE, message=message, hint=hint, detail=detail)


def inherited_pipe_note(result: ProcessResult) -> HookProblem | None:
    """A note that a descendant still held the pipes when the hook had exited; None if none did."""
    if not result.inherited_pipe:
        return None
    return HookProblem(
        kind=ProblemKind.INHERITED_PIPE,
        message="a process that it started still holds its stdout or stderr",
        hint="redirect the output of background processes, as in `command >/dev/null 2>&1 &`",
    )


def head(data: bytes) -> str | None:
    """The start of what a hook wrote, at most `MAX_DETAIL_BYTES`; None if it is blank."""
    return _shortened(data[: 2 * MAX_DETAIL_BYTES], from_end=False)


def tail(data: bytes) -> str | None:
    """The end of what a hook wrote, at most `MAX_DETAIL_BYTES`; None if it is blank."""
    return _shortened(data[-2 * MAX_DETAIL_BYTES :], from_end=True)


def _shortened(data: bytes, *, from_end: bool) -> str | None:
    # Replacement characters take three bytes for one, so the limit is applied to the text's own encoding.
    encoded = data.decode("utf-8", "replace").strip().encode()
    kept = encoded[-MAX_DETAIL_BYTES:] if from_end else encoded[:MAX_DETAIL_BYTES]
    return kept.decode("utf-8", "ignore") or None


def _launch_fault(failure: LaunchFailure) -> HookProblem:
    detail = None if failure.detail is None else tail(failure.detail.encode(errors="replace"))
    return HookProblem(kind=failure.kind, message=failure.message, hint=failure.hint, detail=detail)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
