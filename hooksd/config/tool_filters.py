"""Whether the conditions of a Chrys hook hold for an event as it is now (Chrys dialect 1.7).

Earlier hooks may change the arguments of a call, so this is asked right before each hook would run. What cannot be
decided counts as matched on a gate, so that no call slips past a hook because nobody could tell whether it is meant;
elsewhere as not matched. Either way a problem says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from hooksd.dialects.python_patterns import compile_python_pattern
from hooksd.model.events import Event
from hooksd.model.hooks import ArgumentTest, ToolFilter
from hooksd.model.problems import HookProblem, ProblemKind


if TYPE_CHECKING:
    import regex


__all__ = ["MATCHED", "MATCH_LIMIT_S", "CompiledFilter", "MatchResult"]

MATCH_LIMIT_S: Final = 0.02
"""Longest search for one pattern: a thousand times what an ordinary one takes, and still no delay that anybody sees."""


class MatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a hook's own match rule holds for an event as it is now.

    Attributes:
        matched: Whether it does.
        why: Why not, for `hook/explain`.
        problem: Why that could not be decided; None when it could.
    """

    matched: bool
    why: str | None = None
    problem: HookProblem | None = None


MATCHED = MatchResult(matched=True)


class CompiledFilter:
    """A `ToolFilter` ready for use. Immutable; may be used in several threads.

    Patterns are those that its dialect has checked; compiling them is the dear part.
    """

    __slots__ = ("_filter", "_needs_tool", "_patterns")

    def __init__(self, rule: ToolFilter) -> None:
        self._filter = rule
        self._needs_tool = rule.tool_kind is not None or rule.tool_name is not None or bool(rule.args)
        self._patterns: dict[int, regex.Pattern[str]] = {
            at: compile_python_pattern(test.regex)
            for at, test in enumerate(rule.args)
            if test.regex is not None
        }

    def check(self, event: Event) -> MatchResult:
        """Whether every condition holds."""
        rule = self._filter
        if rule.profile is not None and event.profile != rule.profile:
            return _not(f"the agent's profile is not {rule.profile!r}")
        if rule.profiles and event.profile not in rule.profiles:
            return _not("the agent's profile is none of those in `profiles`")
        if not self._needs_tool:
            return MATCHED
        if event.tool_name is None:
            return _not(f"{event.native} is about no tool")
        if rule.tool_name is not None and event.tool_name != rule.tool_name:
            return _not(f"the tool is not {rule.tool_name!r}")
        unknown: HookProblem | None = None
        if rule.tool_kind is not None and event.tool_kind != rule.tool_kind:
            if event.tool_kind is not None:
                return _not(f"the kind of the tool is not {rule.tool_kind!r}")
            unknown = _untold(event, "the kind of this tool", "match the hook by `tool_name`")
        for at, test in enumerate(rule.args):
            result = self._check_argument(at, test, event)
            if not result.matched:
                return result
            unknown = unknown or result.problem
        return MATCHED if unknown is None else _undecided(event, unknown)

    def _check_argument(self, at: int, test: ArgumentTest, event: Event) -> MatchResult:
        """As `check` for one argument; one that cannot be decided is `matched` with a problem."""
        arguments = event.tool_arguments
        if arguments is None:
            hint = "leave `args` out, and let the hook look at what it is given"
            return MatchResult(matched=True, problem=_untold(event, "the arguments of the call", hint))
        value = arguments.get(test.name) if isinstance(arguments, dict) else None
        if value is None:
            return _not(f"the call has no argument {test.name!r}")
        try:
            text = as_text(value)
        except RecursionError:
            problem = HookProblem(
                kind=ProblemKind.NOT_APPLICABLE,
                message=f"the argument {test.name!r} is nested too deeply to be tested",
            )
            return MatchResult(matched=True, problem=problem)
        if test.equals is not None and text != test.equals:
            return _not(f"the argument {test.name!r} is not what `equals` says")
        if test.contains is not None and test.contains not in text:
            return _not(f"the argument {test.name!r} does not contain what `contains` says")
        pattern = self._patterns.get(at)
        if pattern is None:
            return MATCHED
        try:
            found = pattern.search(text, timeout=MATCH_LIMIT_S)
        except TimeoutError:
            problem = HookProblem(
                kind=ProblemKind.REGEX_TIMEOUT,
                message=f"the pattern for the argument {test.name!r} took longer than {MATCH_LIMIT_S * 1000:g} ms",
                hint="simplify it: no repetition inside a repetition, no `.*` at both ends",
            )
            return MatchResult(matched=True, problem=problem)
        return MATCHED if found else _not(f"the pattern for the argument {test.name!r} is not found")


def as_text(value: Any) -> str:
    """An argument as the text that is tested: a string as it is, anything else the way Python writes it.

    Raises:
        RecursionError: It is nested too deeply.
    """
    return value if isinstance(value, str) else str(value)


def _not(why: str) -> MatchResult:
    return MatchResult(matched=False, why=why)


def _untold(event: Event, what: str, hint: str) -> HookProblem:
    return HookProblem(
        kind=ProblemKind.NOT_APPLICABLE,
        message=f"{event.agent} does not tell {what} at {event.native}",
        hint=hint,
    )


def _undecided(event: Event, problem: HookProblem) -> MatchResult:
    if event.gate:
        message = f"{problem.message}, so it counts as matched"
        return MatchResult(matched=True, problem=msgspec.structs.replace(problem, message=message))
    message = f"{problem.message}, so it counts as not matched"
    return MatchResult(
        matched=False, why=problem.message, problem=msgspec.structs.replace(problem, message=message)
    )
