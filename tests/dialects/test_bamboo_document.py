"""Reading `hooks.json`; the numbers are those of the reference's own cases (Bamboo dialect 8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hooksd.dialects import bamboo_document
from hooksd.dialects.bamboo import BAMBOO, Bamboo
from hooksd.dialects.bamboo_schema import EVENTS
from hooksd.model.events import EventName
from hooksd.model.hooks import Contract, Hook, Mode, NamePattern, OnError, Scope, Script, ShellCommand
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import Document, Origin


Read = Callable[[Any], Document]

COMMAND = {"type": "command", "command": "true"}


def section(**events: Any) -> dict[str, Any]:
    return {"lifecycle_hooks": {"enabled": True, **events}}


def group(*handlers: Any, **more: Any) -> dict[str, Any]:
    return {**more, "hooks": list(handlers)}


def told(document: Document) -> list[tuple[str, str]]:
    return [(problem.severity.value, problem.path) for problem in document.problems]


def only_problem(document: Document) -> ConfigProblem:
    (problem,) = document.problems
    return problem


def names(document: Document) -> list[str]:
    return [hook.name for hook in document.hooks]


# ----------------------------------------------------------------------------------------------------------------------
# What is in order


def test_the_guide_s_own_example(read: Read) -> None:
    document = read(
        section(
            PreToolUse=[
                {
                    "matcher": "^Bash$",
                    "hooks": [
                        {"type": "command", "command": ".bamboo/hooks/audit-bash.sh", "timeout_ms": 5000},
                        {
                            "type": "script",
                            "path": ".bamboo/hooks/check-command.js",
                            "runner": "bun",
                            "timeout_ms": 5000,
                        },
                    ],
                }
            ]
        )
    )
    assert (document.usable, document.problems, document.revision) == (True, (), 0)
    command, script = document.hooks
    assert command == Hook(
        name="bamboo:user:bamboo:PreToolUse[0].hooks[0]",
        dialect="bamboo",
        contract=Contract.BAMBOO,
        source="bamboo",
        scope=Scope.USER,
        event=EventName.TOOL_BEFORE,
        native_event="PreToolUse",
        handler=ShellCommand(command=".bamboo/hooks/audit-bash.sh", shells=("bash", "sh")),
        match=NamePattern(pattern="^Bash$"),
        mode=Mode.BLOCKING,
        timeout_s=5.0,
        on_error=OnError.WARN,
        path="lifecycle_hooks.PreToolUse[0].hooks[0]",
        file="/home/u/.bamboo/hooks.json",
        line=8,
    )
    assert script.name == "bamboo:user:bamboo:PreToolUse[0].hooks[1]"
    assert script.handler == Script(path=".bamboo/hooks/check-command.js", runtimes=(("bun", "run"),))


def test_defaults(read: Read) -> None:
    document = read(section(Stop=[{"hooks": [COMMAND, {"type": "script", "path": " a.py\n"}]}]))
    assert document.problems == ()
    assert [hook.timeout_s for hook in document.hooks] == [60.0, 60.0]
    assert [hook.match for hook in document.hooks] == [None, None]
    assert document.hooks[1].handler == Script(path="a.py", runtimes=(("python3",), ("python",)))


@pytest.mark.parametrize("matcher", [None, ""])
def test_a_matcher_that_is_null_or_empty_matches_everything(read: Read, matcher: str | None) -> None:
    document = read(section(PreToolUse=[group(COMMAND, matcher=matcher)]))
    assert (document.problems, document.hooks[0].match) == ((), None)


def test_case_12_five_events_with_a_handler_each(read: Read) -> None:
    events = ("SessionStart", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    document = read(section(**{name: [group(COMMAND)] for name in events}))
    assert [hook.native_event for hook in document.hooks] == list(events)
    assert [hook.event for hook in document.hooks] == [EVENTS[name] for name in events]
    assert all(hook.inactive is None and hook.load_problem is None for hook in document.hooks)


def test_hooks_come_in_file_order(read: Read) -> None:
    document = read(section(Stop=[group(COMMAND, COMMAND), group(COMMAND)], PreToolUse=[group(COMMAND)]))
    assert [name.removeprefix("bamboo:user:bamboo:") for name in names(document)] == [
        "Stop[0].hooks[0]",
        "Stop[0].hooks[1]",
        "Stop[1].hooks[0]",
        "PreToolUse[0].hooks[0]",
    ]


def test_case_53_the_six_documented_runner_pairs(read: Read) -> None:
    pairs = [
        ("a.js", "node"),
        ("a.js", "bun"),
        ("a.py", "python"),
        ("a.sh", "bash"),
        ("a.ps1", "powershell"),
        ("a.bat", "cmd"),
    ]
    handlers = [{"type": "script", "path": path, "runner": runner} for path, runner in pairs]
    document = read(section(PreToolUse=[group(*handlers)]))
    assert [problem for problem in document.problems if problem.severity is Severity.ERROR] == []
    assert all(hook.load_problem is None for hook in document.hooks)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"lifecycle_hooks":{}}',
        '{"lifecycle_hooks":{"enabled":true}}',
        '{"lifecycle_hooks":{"enabled":true,"Stop":[]}}',
        '{"lifecycle_hooks":{"enabled":true,"Stop":[{}]}}',
        '{"lifecycle_hooks":{"Stop":[{"hooks":[]}]}}',
        '{"image_fallback":{"enabled":true,"mode":"nonsense"},"hooks":{"image":1},"$schema":"x"}',
        '{"schema_version":1,"revision":0,"data":{},"$schema":"x"}',
    ],
)
def test_nothing_to_run_and_nothing_to_say(read: Read, text: str) -> None:
    assert read(text) == Document(hooks=(), problems=())


def test_a_byte_order_mark_is_accepted(read: Read) -> None:
    document = read(b"\xef\xbb\xbf" + json.dumps(section(Stop=[group(COMMAND)])).encode())
    assert (len(document.hooks), document.problems) == (1, ())


def test_lines_are_those_of_the_handlers(read: Read) -> None:
    text = '{"lifecycle_hooks": {"enabled": true,\r\n"Stop": [{"hooks": [\n\n  {"type": "command", "command": "a"},\n {"type": "command", "command": "b"}]}]}}'
    assert [hook.line for hook in read(text).hooks] == [4, 5]


# ----------------------------------------------------------------------------------------------------------------------
# The revision envelope


def test_envelope(read: Read) -> None:
    document = read({"schema_version": 1, "revision": 12, "data": section(Stop=[group(COMMAND)])})
    assert (document.revision, len(document.hooks), document.problems) == (12, 1, ())
    assert document.hooks[0].path == "lifecycle_hooks.Stop[0].hooks[0]"


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"schema_version": 2}, "schema_version", "newer"),
        ({"schema_version": -1}, "schema_version", "not -1"),
        ({"schema_version": 1.0}, "schema_version", "not 1.0"),
        ({"schema_version": "1"}, "schema_version", 'not "1"'),
        ({"schema_version": True}, "schema_version", "not true"),
        ({"revision": -1}, "revision", "non-negative"),
        ({"revision": None}, "revision", "not null"),
        ({"data": []}, "data", "not an array"),
    ],
)
def test_an_envelope_that_is_refused_costs_the_document(
    read: Read, changes: dict[str, Any], path: str, words: str
) -> None:
    document = read({"schema_version": 1, "revision": 3, "data": section(Stop=[group(COMMAND)]), **changes})
    assert (document.usable, document.hooks) == (False, ())
    assert only_problem(document).path == path
    assert words in only_problem(document).message


def test_version_0_is_accepted(read: Read) -> None:
    assert read({"schema_version": 0, "revision": 3, "data": {}}).usable


def test_keys_beside_an_envelope_are_told(read: Read) -> None:
    document = read({"schema_version": 1, "revision": 3, "data": {}, **section(Stop=[group(COMMAND)])})
    assert document.hooks == ()
    assert told(document) == [("warning", "lifecycle_hooks")]


def test_two_thirds_of_an_envelope_are_a_body(read: Read) -> None:
    document = read({"revision": 3, "data": section(Stop=[group(COMMAND)])})
    assert (document.revision, document.hooks) == (0, ())
    assert told(document) == [("warning", "revision"), ("warning", "data")]
    assert {problem.hint for problem in document.problems} == {
        "a revision envelope needs `schema_version` too"
    }


# ----------------------------------------------------------------------------------------------------------------------
# What costs the document


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        (b"", 1, 1, "nothing in it"),
        (b" \n", 1, 1, "nothing in it"),
        (b'{\n "lifecycle_hooks": {,}}', 2, 22, "not JSON"),
        (b'{"lifecycle_hooks": {}', 1, 23, "ends where"),
        (b"[1]", 1, 1, "must be an object, not an array"),
        (b"null", 1, 1, "not null"),
        (b'{"lifecycle_hooks":\n []}', 2, 2, "must be an object, not an array"),
        (b'{"lifecycle_hooks": null}', 1, 21, "not null"),
        (b'{"lifecycle_hooks": {"enabled": "yes"}}', 1, 33, 'true or false, not "yes"'),
        (b'{"lifecycle_hooks": {"enabled": null}}', 1, 33, "not null"),
        (b'{"lifecycle_hooks": {},\n"lifecycle_hooks": {}}', 2, 1, "twice, first in line 1"),
        (b'{"lifecycle_hooks": {"Stop": [],\n"Stop": []}}', 2, 1, "twice, first in line 1"),
        (b'{"lifecycle_hooks": {"enabled": true, "enabled": true}}', 1, 39, "twice"),
        (b'{"schema_version":1,"revision":1,"revision":2,"data":{}}', 1, 34, "twice"),
        (b'{"a": "\xff"}', 1, None, "not UTF-8"),
        ("{}".encode("utf-16"), 1, None, "UTF-16"),
        (b"[" * 200, 1, 129, "nested deeper"),
    ],
)
def test_unusable(read: Read, text: bytes, line: int, column: int | None, words: str) -> None:
    document = read(text)
    assert (document.usable, document.hooks) == (False, ())
    problem = only_problem(document)
    assert problem.severity is Severity.ERROR
    assert (problem.line, problem.column) == (line, column)
    assert words in problem.message


def test_other_faults_of_an_unusable_document_are_told_too(read: Read) -> None:
    document = read({"lifecycle_hooks": {"enabled": 1, "stop": [], "Stop": [group({"type": "x"})]}})
    assert not document.usable
    assert told(document) == [
        ("error", "lifecycle_hooks.enabled"),
        ("error", "lifecycle_hooks.stop"),
        ("error", "lifecycle_hooks.Stop[0].hooks[0].type"),
    ]


def test_a_duplicate_unknown_key_costs_nothing(read: Read) -> None:
    document = read('{"lifecycle_hooks":{"enabled":true},"x":1,"x":2}')
    assert document.usable
    assert told(document) == [("warning", "x")]


# ----------------------------------------------------------------------------------------------------------------------
# Events


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("preToolUse", "did you mean PreToolUse?"),
        ("PreToolUze", "did you mean PreToolUse?"),
        ("Xyz", "one of SessionStart"),
    ],
)
def test_case_57_an_unknown_event_is_named(read: Read, key: str, hint: str) -> None:
    document = read(section(**{key: [group(COMMAND)], "Stop": [group(COMMAND)]}))
    problem = only_problem(document)
    assert problem.severity is Severity.ERROR
    assert problem.path == f"lifecycle_hooks.{key}"
    assert key in problem.message
    assert (problem.hint or "").startswith(hint)
    assert names(document) == ["bamboo:user:bamboo:Stop[0].hooks[0]"]


@pytest.mark.parametrize("value", [None, {}, "x", 3])
def test_an_event_that_is_no_array_keeps_its_name(read: Read, value: Any) -> None:
    document = read(section(PreToolUse=value, Stop=[group(COMMAND)]))
    assert document.usable
    lost, kept = document.hooks
    assert (lost.name, lost.path) == ("bamboo:user:bamboo:PreToolUse", "lifecycle_hooks.PreToolUse")
    assert lost.event is EventName.TOOL_BEFORE
    assert (lost.handler, lost.load_problem) == (None, only_problem(document))
    assert kept.load_problem is None


# ----------------------------------------------------------------------------------------------------------------------
# Groups


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_a_group_that_is_no_object_keeps_its_name(read: Read, value: Any) -> None:
    document = read(section(PreToolUse=[group(COMMAND), value]))
    kept, lost = document.hooks
    assert kept.load_problem is None
    assert lost.name == "bamboo:user:bamboo:PreToolUse[1]"
    assert lost.load_problem == only_problem(document)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"enabled": "no"}, "enabled"),
        ({"enabled": None}, "enabled"),
        ({"matcher": 1}, "matcher"),
        ({"matcher": ["Bash"]}, "matcher"),
        ({"matcher": "["}, "matcher"),
        ({"matcher": "*"}, "matcher"),
    ],
)
def test_case_16_a_fault_of_a_group_costs_its_hooks_only(read: Read, more: dict[str, Any], path: str) -> None:
    document = read(section(PreToolUse=[group(COMMAND, COMMAND, **more), group(COMMAND, matcher="^Bash$")]))
    assert document.usable
    problem = only_problem(document)
    assert (problem.severity, problem.path) == (Severity.ERROR, f"lifecycle_hooks.PreToolUse[0].{path}")
    first, second, other = document.hooks
    assert first.load_problem == second.load_problem == problem
    assert first.handler is second.handler is first.match is None
    assert (other.load_problem, other.match) == (None, NamePattern(pattern="^Bash$"))


def test_hooks_that_are_no_array_keep_the_group_s_name(read: Read) -> None:
    document = read(section(PreToolUse=[{"hooks": {}, "enabled": False}]))
    (lost,) = document.hooks
    assert lost.name == "bamboo:user:bamboo:PreToolUse[0]"
    assert lost.load_problem == only_problem(document)
    assert lost.inactive is not None


def test_a_key_of_a_group_twice(read: Read) -> None:
    document = read(
        '{"lifecycle_hooks":{"enabled":true,"PreToolUse":[{"matcher":"a","matcher":"b","x":1,"x":2,"hooks":[{"type":"command","command":"c"}]}]}}'
    )
    assert told(document) == [
        ("error", "lifecycle_hooks.PreToolUse[0].matcher"),
        ("warning", "lifecycle_hooks.PreToolUse[0].x"),
    ]
    assert document.hooks[0].load_problem == document.problems[0]


def test_case_13_a_disabled_group_is_kept_but_inactive(read: Read) -> None:
    document = read(section(Stop=[group(COMMAND, enabled=False), group(COMMAND, enabled=True)]))
    assert document.problems == ()
    off, on = document.hooks
    assert off.inactive == "its group has `enabled` false"
    assert off.load_problem is None
    assert on.inactive is None


def test_disabled_groups_are_checked_too(read: Read) -> None:
    document = read(section(PreToolUse=[group({"type": "x"}, enabled=False, matcher="[")]))
    assert told(document) == [
        ("error", "lifecycle_hooks.PreToolUse[0].matcher"),
        ("error", "lifecycle_hooks.PreToolUse[0].hooks[0].type"),
    ]


def test_where_in_a_pattern_the_fault_is(read: Read) -> None:
    document = read(
        section(PreToolUse=[group(COMMAND, matcher="a[b&&c]"), group(COMMAND, matcher=r"(?=a)\<")])
    )
    assert [problem.message.rpartition(" (")[2] for problem in document.problems] == [
        "at character 4)",
        "at character 6)",
    ]


@pytest.mark.parametrize("native", [name for name in EVENTS if name not in ("PreToolUse", "PostToolUse")])
@pytest.mark.parametrize("matcher", ["^Bash$", "["])
def test_a_matcher_without_a_tool_is_ignored(read: Read, native: str, matcher: str) -> None:
    document = read(section(**{native: [group(COMMAND, matcher=matcher)]}))
    assert {severity for severity, _ in told(document)} == {"warning"}
    assert native in document.problems[0].message
    assert len(document.problems) == (2 if matcher == "[" else 1)
    (hook,) = document.hooks
    assert (hook.match, hook.load_problem) == (None, None)


@pytest.mark.parametrize(
    ("key", "hint"),
    [("matchr", "did you mean matcher?"), ("command", "handlers belong into `hooks`"), ("zzz", None)],
)
def test_unknown_keys_of_a_group(read: Read, key: str, hint: str | None) -> None:
    document = read(section(PreToolUse=[group(COMMAND, **{key: 1})]))
    problem = only_problem(document)
    assert (problem.severity, problem.path) == (Severity.WARNING, f"lifecycle_hooks.PreToolUse[0].{key}")
    assert problem.hint == hint
    assert document.hooks[0].load_problem is None


# ----------------------------------------------------------------------------------------------------------------------
# The section as a whole, and the root


@pytest.mark.parametrize(
    ("enabled", "line", "words"), [({}, 2, "is not there"), ({"enabled": False}, 3, "is false")]
)
def test_a_section_that_is_not_enabled_says_so(
    read: Read, enabled: dict[str, Any], line: int, words: str
) -> None:
    document = read({"lifecycle_hooks": {**enabled, "Stop": [group(COMMAND, COMMAND, enabled=False)]}})
    problem = only_problem(document)
    assert (problem.severity, problem.path, problem.line) == (
        Severity.WARNING,
        "lifecycle_hooks.enabled",
        line,
    )
    assert "none of the 2 hooks runs" in problem.message
    assert words in problem.message
    assert problem.hint == 'write "enabled": true into `lifecycle_hooks` to run them'
    assert all(words in str(hook.inactive) for hook in document.hooks)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("lifecycle_hook", "did you mean lifecycle_hooks?"),
        ("PreToolUse", "events belong into `lifecycle_hooks`"),
        ("zzz", None),
    ],
)
def test_unknown_keys_of_the_root(read: Read, key: str, hint: str | None) -> None:
    problem = only_problem(read({key: []}))
    assert (problem.severity, problem.path, problem.hint) == (Severity.WARNING, key, hint)


def test_lifecycle_events_among_the_request_hooks(read: Read) -> None:
    """The layout of other agents, which would be silently nothing."""
    problem = only_problem(read({"hooks": {"x": 1, "PreToolUse": [group(COMMAND)]}}))
    assert (problem.severity, problem.path) == (Severity.WARNING, "hooks")
    assert "PreToolUse" in problem.message
    assert problem.hint == "move it into `lifecycle_hooks`"


def test_long_or_hostile_keys_are_shown_short(read: Read) -> None:
    document = read({"lifecycle_hooks": {"enabled": True, "x" * 10_000: [], "a\nb\x1b": []}})
    assert all(len(problem.path) + len(problem.message) < 300 for problem in document.problems)
    assert "\n" not in document.problems[1].message


def test_the_number_of_hooks_is_bounded(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bamboo_document, "MAX_HOOKS", 3)
    assert read(section(Stop=[group(COMMAND, COMMAND, COMMAND)])).usable
    document = read(section(Stop=[group(COMMAND, COMMAND, COMMAND, COMMAND)]))
    assert (document.usable, document.hooks) == (False, ())
    assert "more than 3 hooks" in only_problem(document).message


def test_ten_thousand_groups(read: Read) -> None:
    groups = [
        group({"type": "command", "command": f"echo {n}"}, matcher=f"^mcp__s{n}__.*$") for n in range(10_000)
    ]
    document = read(section(PreToolUse=groups))
    assert (len(document.hooks), document.problems) == (10_000, ())
    assert document.hooks[-1].name == "bamboo:user:bamboo:PreToolUse[9999].hooks[0]"


# ----------------------------------------------------------------------------------------------------------------------
# Anything at all

ORIGIN = Origin(source="s", scope=Scope.PROJECT, file="/p/.bamboo/hooks.json")
KEYS = (
    "lifecycle_hooks enabled hooks matcher type command path runner timeout_ms schema_version revision data"
)
VALUES = "command script a.py a.sh bash auto Stop PreToolUse Notification ["
WORDS = st.sampled_from(f"{KEYS} {VALUES}".split()) | st.text(max_size=4)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=25,
)


def check_document(document: Document) -> None:
    assert all(problem.line is not None and problem.line >= 1 for problem in document.problems)
    assert all(problem.message for problem in document.problems)
    lines = [problem.line for problem in document.problems]
    assert lines == sorted(lines, key=lambda line: line or 0)
    if not document.usable:
        assert document.hooks == ()
        assert any(problem.severity is Severity.ERROR for problem in document.problems)
    for hook in document.hooks:
        assert (hook.handler is None) == (hook.load_problem is not None)
        assert hook.load_problem is None or hook.load_problem in document.problems
        assert hook.line
    assert len(set(names(document))) == len(document.hooks)


@given(DOCUMENTS, st.dictionaries(st.sampled_from(list(EVENTS)), DOCUMENTS, max_size=2))
def test_any_json(body: Any, events: dict[str, Any]) -> None:
    for document in (body, {"lifecycle_hooks": body}, {"lifecycle_hooks": {"enabled": True, **events}}):
        check_document(BAMBOO.read(json.dumps(document, indent=1).encode("utf-8", "replace"), ORIGIN))


@given(st.lists(st.lists(DOCUMENTS, max_size=2), max_size=2), DOCUMENTS)
def test_any_handlers(groups: list[Any], matcher: Any) -> None:
    events = [{"matcher": matcher, "hooks": handlers} for handlers in groups]
    document = BAMBOO.read(json.dumps(section(PreToolUse=events)).encode("utf-8", "replace"), ORIGIN)
    check_document(document)
    assert len(document.hooks) == sum(map(len, groups))


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,lifecyhoks_ \n\ufeff').map(str.encode))
def test_any_bytes(text: bytes) -> None:
    check_document(BAMBOO.read(text, ORIGIN))


def test_windows_has_its_own_runtimes(origin: Origin) -> None:
    text = json.dumps(section(Stop=[group({"type": "script", "path": "a.bat"})])).encode()
    assert Bamboo(windows=True).read(text, origin).problems == ()
