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
    """It exited with a code that is no answer: anything but 0 and, in the Bamboo contract, 2."""
    SIGNAL = "signal"
    """A signal ended it."""
    TIMEOUT = "timeout"
    """Its deadline passed; the whole tree of its processes was ended."""
    LAUNCH = "launch"
    """The process could not be started, for another reason than the next three."""
    MISSING_SCRIPT = "missing_script"
    """The script file is not there, cannot be reached or is no file."""
    MISSING_RUNTIME = "missing_runtime"
    """None of the programs that could run it is on the hook's PATH."""
    MISSING_CWD = "missing_cwd"
    """The working directory is not there."""
    MALFORMED_OUTPUT = "malformed_output"
    """What it printed is not exactly one answer of its contract."""
    TRUNCATED_OUTPUT = "truncated_output"
    """It printed more than is kept, so its answer cannot be read."""
    UNKNOWN_DECISION = "unknown_decision"
    """Its answer has a decision that its contract does not know."""
    OVERSIZE_RESULT = "oversize_result"
    """Its result file is larger than `limits.result_file_bytes`."""
    INHERITED_PIPE = "inherited_pipe"
    """It had exited, but a process it left behind held stdout or stderr open. Its answer counts."""
    SUSPICIOUS_EXIT_2 = "suspicious_exit_2"
    """It blocked by exit code 2, but stderr looks like a syntax or usage error of its interpreter."""
    IGNORED_DECISION = "ignored_decision"
    """It decided something about an event that cannot be stopped."""
    NOT_APPLICABLE = "not_applicable"
    """What it asked for cannot be carried out by this agent, or not at this event."""
    REGEX_TIMEOUT = "regex_timeout"
    """A pattern took too long; for a gate that counts as matched."""
    UNTRUSTED = "untrusted"
    """It belongs to a project that nobody has trusted."""
    CHANGED = "changed"
    """It belongs to a project that was trusted and has changed since."""
    BUSY = "busy"
    """No slot was free in time, or the queue was full."""
    TOO_DEEP = "too_deep"
    """Hooks dispatched events that ran hooks that dispatched events, deeper than `limits.max_depth`."""
    CANCELLED = "cancelled"
    """The dispatch was cut off."""
    NOT_RUN = "not_run"
    """It was not started: another hook had decided, or the budget of the dispatch was spent."""
    NOT_LOADED = "not_loaded"
    """It is written in a way that cannot work; a guard keeps it in the plan."""
    NO_SUCH_HOOK = "no_such_hook"
    """A guard's pattern fits no hook."""
    LOST_CONNECTION = "lost_connection"
    """The client that offered this hook is gone."""
    NOT_DURABLE = "not_durable"
    """It is to survive a crash and could not be kept; it ran all the same."""


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
        if self.line is not None and self.file:
            place += f":{self.line}" + (f":{self.column}" if self.column is not None else "")
        elif self.line is not None:
            place = f"line {self.line}" + (f", column {self.column}" if self.column is not None else "")
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
