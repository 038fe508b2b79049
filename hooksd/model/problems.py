"""Problems: what is wrong with a configuration, with one run of a hook, or with a dispatch as a whole."""

from __future__ import annotations

from enum import StrEnum

import msgspec


__all__ = ["ConfigProblem", "DispatchProblem", "HookProblem", "ProblemKind", "Severity"]


class Severity(StrEnum):
    """`error`: something does not work. `warning`: it works, but probably not as meant."""

    ERROR = "error"
    WARNING = "warning"


class ProblemKind(StrEnum):
    """Every way in which a hook or a dispatch can go wrong (protocol section 2.3)."""

    EXIT_CODE = "exit_code"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    LAUNCH = "launch"
    MISSING_SCRIPT = "missing_script"
    MISSING_RUNTIME = "missing_runtime"
    MISSING_CWD = "missing_cwd"
    MALFORMED_OUTPUT = "malformed_output"
    TRUNCATED_OUTPUT = "truncated_output"
    UNKNOWN_DECISION = "unknown_decision"
    OVERSIZE_RESULT = "oversize_result"
    INHERITED_PIPE = "inherited_pipe"
    SUSPICIOUS_EXIT_2 = "suspicious_exit_2"
    IGNORED_DECISION = "ignored_decision"
    NOT_APPLICABLE = "not_applicable"
    REGEX_TIMEOUT = "regex_timeout"
    UNTRUSTED = "untrusted"
    CHANGED = "changed"
    BUSY = "busy"
    TOO_DEEP = "too_deep"
    CANCELLED = "cancelled"
    NOT_RUN = "not_run"
    NOT_LOADED = "not_loaded"
    NO_SUCH_HOOK = "no_such_hook"
    LOST_CONNECTION = "lost_connection"


class ConfigProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """One located problem of a configuration (`Problem` of protocol section 2.2).

    Attributes:
        severity: Whether something does not work, or only looks wrong.
        path: Where in the document, such as `lifecycle_hooks.PreToolUse[0].matcher`; empty for the whole document.
        message: What is wrong, with the offending value where that is short.
        line: 1-based line in the file, where known.
        column: 1-based column in characters, where known.
        hint: What to do about it.
        file: The file it is in, where it is not told by the surrounding answer.
    """

    severity: Severity
    path: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    file: str | None = None

    def describe(self) -> str:
        """One line for a person: place, message, hint."""
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}" + (f":{self.column}" if self.column is not None else "")
        parts = [part for part in (place, self.path, self.message) if part]
        text = ": ".join(parts)
        return f"{text} ({self.hint})" if self.hint else text


class HookProblem(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong in one run of a hook.

    `message` and `hint` are hooksd's own words and may be logged. `detail` holds the hook's own words (tail of stderr,
    start of an odd answer), at most `MAX_DETAIL_BYTES`, and leaves only in the answer, never in a log (design rule 8).
    """

    kind: ProblemKind
    message: str
    hint: str | None = None
    detail: str | None = None


class DispatchProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of a dispatch that belongs to no hook that ran; `hook` names one that did not."""

    kind: ProblemKind
    message: str
    hint: str | None = None
    hook: str | None = None
