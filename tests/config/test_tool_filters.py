"""Conditions of Chrys hooks: cases 48 to 60 of the Chrys dialect, what nobody can decide, and the limit on time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hooksd.config.tool_filters import CompiledFilter, MatchResult, as_text
from hooksd.dialects.bamboo import BAMBOO
from hooksd.dialects.base import Caller
from hooksd.dialects.chrys import CHRYS
from hooksd.model.events import Event
from hooksd.model.hooks import ArgumentTest, ToolFilter
from hooksd.model.problems import ProblemKind


CALLER = Caller(session_id="s", profile="Code", timestamp=0.0)


def event(
    native: str = "before_tool_call", *, name: str = "edit_file", kind: str = "filesystem.write", **args: Any
) -> Event:
    payload = CHRYS.synthetic_payload(native, 0.0)
    if "tool" in payload:
        payload = {**payload, "tool": {"name": name, "kind": kind, "args": args}}
    return CHRYS.event(native, payload, CALLER, background=False)


def check(given: Event, **rule: Any) -> MatchResult:
    return CompiledFilter(ToolFilter(**rule)).check(given)


def on(name: str, **operators: str) -> tuple[ArgumentTest, ...]:
    return (ArgumentTest(name=name, **operators),)


def matches(given: Event, **rule: Any) -> bool:
    return check(given, **rule).matched


def test_48_no_condition_holds_always() -> None:
    assert matches(event("session_start"))


def test_50_51_profiles_are_exact() -> None:
    call = event()

    assert matches(call, profile="Code")
    assert not matches(call, profile="code")
    assert not matches(call, profile="")
    assert matches(call, profiles=("Plan", "Code"))
    assert not matches(call, profiles=("Plan",))
    assert not matches(call, profile="Code", profiles=("Plan",))


def test_52_kind_and_name_are_both_needed() -> None:
    call = event()

    assert matches(call, tool_kind="filesystem.write", tool_name="edit_file")
    assert not matches(call, tool_kind="filesystem.write", tool_name="write_file")
    assert not matches(call, tool_kind="shell", tool_name="edit_file")


@pytest.mark.parametrize("name", ["pwsh", "powershell"])
def test_53_a_kind_has_many_tools(name: str) -> None:
    assert matches(event(name=name, kind="shell"), tool_kind="shell")


@pytest.mark.parametrize(
    "rule", [{"tool_kind": "shell"}, {"tool_name": ""}, {"args": on("path")}], ids=["kind", "name", "args"]
)
def test_54_a_condition_on_the_tool_never_holds_without_one(rule: dict[str, Any]) -> None:
    result = check(event("before_turn"), **rule)

    assert (result.matched, result.problem) == (False, None)
    assert result.why == "before_turn is about no tool"


def test_55_to_58_operators_on_the_text_of_an_argument() -> None:
    call = event(path="/etc/passwd.bak")

    assert matches(call, args=on("path", regex="^/etc/"))
    assert matches(call, args=on("path", regex="passwd"))
    assert not matches(call, args=on("path", regex="^passwd"))
    assert matches(call, args=on("path", contains="passwd"))
    assert not matches(call, args=on("path", equals="/etc/passwd"))
    assert matches(call, args=on("path", equals="/etc/passwd.bak"))
    assert matches(call, args=on("path", regex="^/etc", contains="bak"))
    assert not matches(call, args=on("path", regex="^/etc", contains="txt"))
    assert not matches(call, args=(*on("path"), *on("other")))


def test_59_an_argument_that_is_missing_or_null_never_fits() -> None:
    assert matches(event(path=""), args=on("path"))
    assert not matches(event(path=None), args=on("path"))
    assert not matches(event(), args=on("path", contains=""))
    assert check(event(), args=on("path")).why == "the call has no argument 'path'"


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", "x"), (True, "True"), (10, "10"), (1.0, "1.0"), (["a", 1], "['a', 1]"), ({"k": 1}, "{'k': 1}")],
)
def test_other_values_are_text_the_way_python_writes_them(value: Any, text: str) -> None:
    assert as_text(value) == text
    assert matches(event(x=value), args=on("x", equals=text))


@pytest.mark.parametrize(("native", "matched"), [("before_tool_call", True), ("after_tool_call", False)])
def test_a_pattern_that_runs_over_its_time_counts_as_matched_on_a_gate(native: str, matched: bool) -> None:
    result = check(event(native, x="a" * 5000 + "!"), args=on("x", regex="(a|a|aa)+$"))

    assert result.matched is matched
    assert result.problem is not None
    assert result.problem.kind is ProblemKind.REGEX_TIMEOUT
    assert result.problem.message.endswith("counts as matched" if matched else "counts as not matched")


def test_what_comes_after_it_can_still_say_no() -> None:
    slow = on("x", regex="(a|a|aa)+$")

    assert not matches(event(x="a" * 5000 + "!", y="b"), args=(*slow, *on("y", equals="c")))


@pytest.mark.parametrize(("native", "matched"), [("before_tool_call", True), ("after_tool_call", False)])
def test_what_is_too_deep_to_be_text_is_told(native: str, matched: bool) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    result = check(with_argument(event(native), deep), args=on("x", contains="y"))

    assert result.matched is matched
    assert result.problem is not None
    assert "nested too deeply" in result.problem.message


def with_argument(given: Event, value: Any) -> Event:
    return msgspec.structs.replace(given, tool_arguments={"x": value})


def bamboo(native: str, **fields: Any) -> Event:
    payload = {**BAMBOO.synthetic_payload(native, 0.0), **fields}
    return BAMBOO.event(native, payload, CALLER, background=False)


def test_a_kind_that_the_agent_does_not_tell_is_taken_from_the_name_where_that_says_it() -> None:
    assert matches(bamboo("PreToolUse", tool_name="Bash"), tool_kind="shell")
    assert matches(bamboo("PreToolUse", tool_name="mcp__files__read"), tool_kind="mcp")
    assert not matches(bamboo("PreToolUse", tool_name="Bash"), tool_kind="search")


def test_else_a_gate_runs_the_hook_and_says_why() -> None:
    result = check(bamboo("PreToolUse", tool_name="Frobnicate"), tool_kind="shell")

    assert result.matched
    assert result.problem is not None
    assert result.problem.kind is ProblemKind.NOT_APPLICABLE
    assert result.problem.message == (
        "bamboo does not tell the kind of this tool at PreToolUse, so it counts as matched"
    )


def test_arguments_that_the_agent_does_not_tell() -> None:
    result = check(bamboo("PostToolUse"), args=on("command", contains="x"))

    assert result.matched
    assert result.problem is not None
    assert "does not tell the arguments of the call" in result.problem.message


def test_arguments_that_are_no_object_have_no_names() -> None:
    assert not matches(bamboo("PreToolUse", parsed_args=["a"]), args=on("0"))
