"""Faults of one handler; the numbers are those of the reference's own cases (Bamboo dialect 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hooksd.dialects.bamboo_handler_reader import is_count
from hooksd.model.hooks import Script
from hooksd.model.problems import Severity
from hooksd.model.sources import Document


Read = Callable[[Any], Document]


@pytest.fixture
def one(read: Callable[[Any], Document]) -> Callable[[Any], Document]:
    """Read a document with this one handler, and another that is in order."""

    def one(handler: Any) -> Document:
        handlers = [handler, {"type": "command", "command": "true"}]
        document = read({"lifecycle_hooks": {"enabled": True, "PreToolUse": [{"hooks": handlers}]}})
        assert document.usable
        assert len(document.hooks) == 2
        assert document.hooks[1].load_problem is None
        return document

    return one


HERE = "lifecycle_hooks.PreToolUse[0].hooks[0]"


@pytest.mark.parametrize(
    ("handler", "path", "words", "hint"),
    [
        pytest.param(3, "", "must be an object, not a number", None, id="no_object"),
        pytest.param({}, ".type", "`type` is missing", "command", id="no_type"),
        pytest.param({"type": None}, ".type", "must be a string, not null", "command", id="type_null"),
        pytest.param(
            {"type": "Command", "command": "x"}, ".type", '"Command"', "did you mean command?", id="type_case"
        ),
        pytest.param(
            {"type": "http", "url": "x"}, ".type", '"http"', 'one of "command" and "script"', id="type_other"
        ),
        pytest.param(
            {"type": "javascript", "path": "a.js"}, ".type", '"javascript"', '"script"', id="type_javascript"
        ),
        pytest.param({"type": "command"}, ".command", "`command` is missing", None, id="no_command"),
        pytest.param(
            {"type": "command", "command": ["x"]}, ".command", "not an array", None, id="command_array"
        ),
        pytest.param({"type": "command", "command": None}, ".command", "not null", None, id="command_null"),
        pytest.param(
            {"type": "command", "command": " \n"}, ".command", "blank", None, id="case_56_blank_command"
        ),
        pytest.param({"type": "command", "command": "a\0b"}, ".command", "NUL", None, id="command_nul"),
        pytest.param({"type": "script"}, ".path", "`path` is missing", None, id="no_path"),
        pytest.param({"type": "script", "path": 1}, ".path", "not a number", None, id="path_number"),
        pytest.param({"type": "script", "path": "\u3000"}, ".path", "blank", None, id="case_56_blank_path"),
        pytest.param({"type": "script", "path": "a\0.py"}, ".path", "NUL", None, id="path_nul"),
        pytest.param({"type": "script", "path": "a.rb"}, ".path", "extension", ".js, .mjs", id="extension"),
        pytest.param(
            {"type": "script", "path": "a.js", "runner": None},
            ".runner",
            "not null",
            "auto",
            id="runner_null",
        ),
        pytest.param(
            {"type": "script", "path": "a.js", "runner": "deno"},
            ".runner",
            '"deno"',
            "one of auto, node",
            id="case_54_deno",
        ),
        pytest.param(
            {"type": "script", "path": "a.js", "runner": "ruby"},
            ".runner",
            '"ruby"',
            "one of auto",
            id="unknown_runner",
        ),
        pytest.param(
            {"type": "script", "path": "guard.py", "runner": "node"},
            ".runner",
            'runner node cannot execute "guard.py"',
            "for .py: auto, python",
            id="case_55_guard_py_with_node",
        ),
        pytest.param(
            {"type": "command", "command": "x", "timeout_ms": -1},
            ".timeout_ms",
            "not -1",
            "600000",
            id="case_58_negative",
        ),
        pytest.param(
            {"type": "command", "command": "x", "timeout_ms": 1.0},
            ".timeout_ms",
            "not 1.0",
            "600000",
            id="1.0",
        ),
        pytest.param(
            {"type": "command", "command": "x", "timeout_ms": "9"},
            ".timeout_ms",
            'not "9"',
            "600000",
            id="text",
        ),
        pytest.param(
            {"type": "command", "command": "x", "timeout_ms": None},
            ".timeout_ms",
            "not null",
            "600000",
            id="null",
        ),
        pytest.param(
            {"type": "command", "command": "x", "timeout_ms": True},
            ".timeout_ms",
            "not true",
            "600000",
            id="bool",
        ),
        pytest.param(
            {"type": "command", "command": "x", "timeout_ms": 1 << 64},
            ".timeout_ms",
            "184467",
            "600000",
            id="over_64_bits",
        ),
        pytest.param(
            {"type": "command", "command": "x", "timeout_ms": 0},
            ".timeout_ms",
            "0 is outside",
            "600000",
            id="case_56_zero",
        ),
    ],
)
def test_a_fault_costs_this_hook(
    one: Callable[[Any], Document], handler: Any, path: str, words: str, hint: str | None
) -> None:
    document = one(handler)
    (problem,) = [problem for problem in document.problems if problem.severity is Severity.ERROR]
    assert problem.path == HERE + path
    assert words in problem.message
    if hint is None:
        assert problem.hint is None
    else:
        assert hint in (problem.hint or "")
    assert document.hooks[0].load_problem == problem
    assert document.hooks[0].handler is None
    assert document.hooks[0].name == "bamboo:user:bamboo:PreToolUse[0].hooks[0]"


def test_every_fault_of_a_handler_is_told(one: Callable[[Any], Document]) -> None:
    document = one({"type": "script", "path": "a.rb", "runner": "deno", "timeout_ms": 0, "x": 1})
    assert [(problem.severity.value, problem.path) for problem in document.problems] == [
        ("error", f"{HERE}.path"),
        ("error", f"{HERE}.runner"),
        ("error", f"{HERE}.timeout_ms"),
        ("warning", f"{HERE}.x"),
    ]
    assert document.hooks[0].load_problem == document.problems[0]


def test_case_56_everything_at_once(read: Read) -> None:
    """One bad regex, blank command, two timeouts, a blank path, py with node: the six paths of the reference."""
    document = read(
        {
            "lifecycle_hooks": {
                "enabled": True,
                "PreToolUse": [
                    {"matcher": "[", "hooks": [{"type": "command", "command": " "}]},
                    {
                        "hooks": [
                            {"type": "command", "command": "x", "timeout_ms": 0},
                            {"type": "command", "command": "x", "timeout_ms": 600_001},
                            {"type": "script", "path": ""},
                            {"type": "script", "path": "a.py", "runner": "node"},
                        ]
                    },
                ],
            }
        }
    )
    at = "lifecycle_hooks.PreToolUse"
    assert [problem.path for problem in document.problems] == [
        f"{at}[0].matcher",
        f"{at}[0].hooks[0].command",
        f"{at}[1].hooks[0].timeout_ms",
        f"{at}[1].hooks[1].timeout_ms",
        f"{at}[1].hooks[2].path",
        f"{at}[1].hooks[3].runner",
    ]
    assert [hook.load_problem is None for hook in document.hooks] == [False, False, True, False, False]


@pytest.mark.parametrize("timeout_ms", [600_001, (1 << 64) - 1])
def test_a_timeout_above_the_range_is_honoured_with_a_warning(
    one: Callable[[Any], Document], timeout_ms: int
) -> None:
    document = one({"type": "command", "command": "x", "timeout_ms": timeout_ms})
    (problem,) = document.problems
    assert (problem.severity, problem.path) == (Severity.WARNING, f"{HERE}.timeout_ms")
    assert document.hooks[0].timeout_s == timeout_ms / 1000
    assert document.hooks[0].load_problem is None


@pytest.mark.parametrize("timeout_ms", [1, 600_000])
def test_the_ends_of_the_range(one: Callable[[Any], Document], timeout_ms: int) -> None:
    document = one({"type": "command", "command": "x", "timeout_ms": timeout_ms})
    assert document.problems == ()
    assert document.hooks[0].timeout_s == timeout_ms / 1000


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        ({"timeout": 5}, "write timeout_ms, in milliseconds"),
        ({"timeoutms": 5}, "did you mean timeout_ms?"),
        ({"zzz": 5}, None),
        ({"path": "a.py"}, "leave it out"),
        ({"runner": 7}, "leave it out"),
    ],
)
def test_keys_without_meaning_are_warnings(
    one: Callable[[Any], Document], more: dict[str, Any], hint: str | None
) -> None:
    document = one({"type": "command", "command": "x", **more})
    (problem,) = document.problems
    (key,) = more
    assert (problem.severity, problem.path, problem.hint) == (Severity.WARNING, f"{HERE}.{key}", hint)
    assert key in problem.message
    assert document.hooks[0].load_problem is None


def test_a_known_key_twice_costs_the_hook(read: Read) -> None:
    document = read(
        '{"lifecycle_hooks":{"enabled":true,"Stop":[{"hooks":[{"type":"command","command":"a","command":"b"},'
        '{"type":"command","command":"a","x":1,"x":2}]}]}}'
    )
    twice, fine = document.hooks
    assert twice.load_problem is not None
    assert "twice" in twice.load_problem.message
    assert fine.load_problem is None


def test_a_batch_file_outside_windows_is_told_but_stays(one: Callable[[Any], Document]) -> None:
    document = one({"type": "script", "path": "a.bat"})
    (problem,) = document.problems
    assert problem.severity is Severity.WARNING
    assert "require Windows" in problem.message
    handler = document.hooks[0].handler
    assert isinstance(handler, Script)
    assert handler.refusal is not None


def test_commands_are_never_repeated_in_problems(one: Callable[[Any], Document]) -> None:
    document = one({"type": "command", "command": "curl -H 'Authorization: hunter2'\0", "timeout_ms": 0})
    assert "hunter2" not in str(document.problems)


@pytest.mark.parametrize(
    ("value", "count"),
    [(0, True), ((1 << 64) - 1, True), (1 << 64, False), (-1, False), (1.0, False), (True, False)],
)
def test_counts(value: Any, count: bool) -> None:
    assert is_count(value) is count
