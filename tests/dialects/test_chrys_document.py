"""Reading hooks.yaml: the loader cases of the Chrys dialect by number, every key and limit, every problem located."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from hooksd.dialects.chrys import CHRYS
from hooksd.dialects.chrys_schema import EVENTS, KNOWN_KINDS
from hooksd.dialects.chrys_values import MAX_COUNT, MAX_SECONDS
from hooksd.dialects.json_document import MAX_DEPTH
from hooksd.model.hooks import (
    ArgumentTest,
    Argv,
    Contract,
    Hook,
    Mode,
    OnError,
    Scope,
    Script,
    ShellCommand,
    ToolFilter,
)
from hooksd.model.problems import Severity
from hooksd.model.sources import Document, DocumentSettings, Origin


DIRECTORY = "/home/u/.chrys/hooks"
YAML = Origin(source="chrys", scope=Scope.USER, file=f"{DIRECTORY}/hooks.yaml")
JSON = Origin(source="chrys", scope=Scope.USER, file=f"{DIRECTORY}/hooks.json")


def read(text: str | bytes, origin: Origin = YAML) -> Document:
    return CHRYS.read(text.encode() if isinstance(text, str) else text, origin)


def entry(event: str = "before_turn", run: str = "{type: shell, shell: 'true'}", **more: str) -> str:
    lines = [f"- id: {more.pop('id', 'a')}", f"  event: {event}", f"  run: {run}"]
    return "\n".join([*lines, *(f"  {key}: {value}" for key, value in more.items())]) + "\n"


def hooks_of(*entries: str) -> Document:
    return read("hooks:\n" + "".join(entries))


def hook_of(*args: str, **more: str) -> Hook:
    document = hooks_of(entry(*args, **more))
    assert document.usable, document.problems
    (hook,) = document.hooks
    return hook


def told(document: Document) -> list[tuple[str, str]]:
    return [(problem.path, problem.message) for problem in document.problems]


def errors(document: Document) -> list[str]:
    return [problem.path for problem in document.problems if problem.severity is Severity.ERROR]


def warnings(document: Document) -> list[str]:
    return [problem.message for problem in document.problems if problem.severity is Severity.WARNING]


# ----------------------------------------------------------------------------------------------------------------------
# The document


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "{}", "[]", "false", "0", "''", "~", "--- \n"])
def test_1_a_file_with_nothing_in_it_is_an_empty_configuration(text: str) -> None:
    assert read(text) == Document(hooks=(), problems=())


@pytest.mark.parametrize("text", ["", "  \n", "null", "{}"])
def test_a_json_file_with_nothing_in_it_too(text: str) -> None:
    assert read(text, JSON) == Document(hooks=(), problems=())


@pytest.mark.parametrize(
    ("text", "origin"), [("[1]", YAML), ("x", YAML), ("5", YAML), ("[]", JSON), ("0", JSON)]
)
def test_any_other_root_is_an_error(text: str, origin: Origin) -> None:
    document = read(text, origin)

    assert not document.usable
    assert document.problems[0].message.startswith("must be a mapping, not ")


def test_2_a_minimal_hook_has_the_defaults() -> None:
    hook = hook_of(run="{type: command, argv: [echo]}")

    assert hook == Hook(
        name="chrys:user:chrys:a",
        dialect="chrys",
        contract=Contract.CHRYS,
        source="chrys",
        scope=Scope.USER,
        event=EVENTS["before_turn"],
        native_event="before_turn",
        handler=Argv(argv=("echo",)),
        mode=Mode.FIRE_AND_FORGET,
        timeout_s=30.0,
        on_error=OnError.WARN,
        path="hooks[0]",
        file=YAML.file,
        line=2,
        id="a",
    )


def test_3_every_field_is_kept() -> None:
    document = read("""\
version: 1
settings: {shutdown_grace_seconds: 9, max_parallel_hooks: 2, outbox_retry_age_seconds: 0.5, outbox_max_retries: 0}
hooks:
  - id: " every field "
    event: before_tool_call
    description: what it is for
    enabled: true
    match:
      profile: Code
      profiles: [Code, Plan]
      tool_kind: shell
      tool_name: bash
      args:
        command: {equals: a, contains: b, regex: c}
        other: {}
    run:
      type: script
      path: scripts/x.rb
      args: [-v, "1"]
      env: {A: "1", B: "${profile}"}
      cwd: sub
    execution: {mode: blocking, detach: false, delivery: best_effort, timeout_seconds: 1.5, on_error: block}
""")

    assert document.problems == ()
    assert document.settings == DocumentSettings(
        shutdown_grace_s=9.0, max_parallel_hooks=2, outbox_retry_age_s=0.5, outbox_max_retries=0
    )
    (hook,) = document.hooks
    assert hook.id == "every field"
    assert hook.name == "chrys:user:chrys:every field"
    assert hook.match == ToolFilter(
        profile="Code",
        profiles=("Code", "Plan"),
        tool_kind="shell",
        tool_name="bash",
        args=(ArgumentTest(name="command", equals="a", contains="b", regex="c"), ArgumentTest(name="other")),
    )
    assert hook.handler == Script(
        path="scripts/x.rb", base=DIRECTORY, runtimes=(("ruby",),), arguments=("-v", "1")
    )
    assert (hook.env, hook.cwd) == ((("A", "1"), ("B", "${profile}")), "sub")
    assert (hook.mode, hook.durable, hook.timeout_s, hook.on_error) == (
        Mode.BLOCKING,
        False,
        1.5,
        OnError.BLOCK,
    )


def test_7_json_has_the_same_hooks() -> None:
    document = read(
        '{"hooks": [{"id": "a", "event": "before_turn", "run": {"type": "shell", "shell": "x"}}]}', JSON
    )

    assert [hook.id for hook in document.hooks] == ["a"]
    assert document.problems == ()


def test_anything_that_is_not_called_json_is_yaml() -> None:
    assert [
        hook.id for hook in read("hooks:\n" + entry(), Origin(source="s", scope=Scope.USER, file="/x")).hooks
    ] == ["a"]


def test_15_24_unknown_keys_are_errors_with_the_nearest_known_one() -> None:
    document = read("version: 1\nsetings: {}\nhooks:\n" + entry(excution="{mode: blocking}"))

    assert not document.usable
    assert document.hooks == ()
    assert [(p.path, p.message, p.line, p.column, p.hint) for p in document.problems] == [
        ("setings", "unknown key `setings`", 2, 1, "did you mean settings?"),
        ("hooks[0].excution", "unknown key `excution`", 7, 3, "did you mean execution?"),
    ]


@pytest.mark.parametrize("version", ["1", "true", "1.0", "0x1"])
def test_a_version_that_equals_one(version: str) -> None:
    assert read(f"version: {version}").usable


@pytest.mark.parametrize("version", ["2", "~", "'1'", "[]", "0"])
def test_16_any_other_version_is_an_error(version: str) -> None:
    assert errors(read(f"version: {version}")) == ["version"]


def test_17_the_same_id_twice_names_both() -> None:
    document = hooks_of(entry(id="same"), entry(id="b"), entry("after_turn", id="' same '", enabled="false"))

    assert not document.usable
    (problem,) = document.problems
    assert problem.path == "hooks[2].id"
    assert problem.message == "hooks[0] and hooks[2] have the same id 'same' (lines 2 and 8)"
    assert problem.line == 8


def test_a_skipped_hook_counts_for_the_ids_too() -> None:
    bad = entry("before_tool_call", id="x", match="{args: {a: {regex: '('}}}")

    assert "hooks[1].id" in errors(hooks_of(bad, entry(id="x")))


@pytest.mark.parametrize("text", ["hooks:", "hooks: {}", "hooks: x"])
def test_hooks_must_be_a_list(text: str) -> None:
    assert errors(read(text)) == ["hooks"]


def test_an_entry_must_be_a_mapping() -> None:
    assert told(read("hooks: [x, 5]")) == [
        ("hooks[0]", "must be a mapping, not a string"),
        ("hooks[1]", "must be a mapping, not a number"),
    ]


@pytest.mark.parametrize(
    ("text", "origin", "lines"),
    [
        ("hooks: []\nversion: 1\nhooks: []\n", YAML, (1, 3)),
        ('{"hooks": [],\n"version": 1,\n"hooks": []}', JSON, (1, 3)),
    ],
)
def test_a_key_that_is_there_twice_is_an_error_with_both_lines(
    text: str, origin: Origin, lines: tuple[int, int]
) -> None:
    document = read(text, origin)

    assert not document.usable
    (problem,) = document.problems
    assert (problem.path, problem.line) == ("hooks", lines[1])
    assert problem.message == f"`hooks` is there twice, first in line {lines[0]}"


def test_wherever_it_is_and_once_however_often_an_alias_repeats_it() -> None:
    text = "hooks:\n" + entry(run="&r {type: shell, shell: x, env: {A: a, A: b}}") + entry(id="b", run="*r")

    assert told(read(text)) == [("hooks[0].run.env.A", "`A` is there twice, first in line 4")]


def test_anchors_and_merges_work() -> None:
    document = read("""\
hooks:
  - id: a
    event: before_turn
    run: &run {type: shell, shell: "true"}
    execution: &fast {mode: async, timeout_seconds: 1}
  - id: b
    event: after_turn
    run: *run
    execution: {<<: *fast, timeout_seconds: 2}
""")

    assert document.problems == ()
    assert [(hook.mode, hook.timeout_s) for hook in document.hooks] == [(Mode.ASYNC, 1.0), (Mode.ASYNC, 2.0)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("version: 1".encode("utf-16"), "the document is UTF-16"),
        (b"a: \xff", "the document is not UTF-8 (byte 3)"),
        (
            b"a: [",
            "not YAML: did not find expected node content (while parsing a flow node, which began in line 1)",
        ),
        (b"a: 1\n---\nb: 2", "a second document begins here"),
        (("[" * (MAX_DEPTH + 1)).encode(), f"nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_what_is_no_document(data: bytes, message: str) -> None:
    document = read(data)

    assert not document.usable
    assert document.problems[0].message == message


def test_what_is_no_json() -> None:
    document = read("hooks: []", JSON)

    assert not document.usable
    assert document.problems[0].message.startswith("not JSON: ")


def test_a_byte_order_mark_is_accepted() -> None:
    assert read(b"\xef\xbb\xbfhooks:\n" + entry().encode()).usable


def test_every_problem_is_told_in_the_order_of_the_file() -> None:
    document = read(
        "settings: {max_parallel_hooks: many}\nhooks:\n" + entry("befor_turn", id="5", run="{type: shel}")
    )

    assert [(p.path, p.line) for p in document.problems] == [
        ("settings.max_parallel_hooks", 1),
        ("hooks[0].id", 3),
        ("hooks[0].event", 4),
        ("hooks[0].run.type", 5),
    ]


# ----------------------------------------------------------------------------------------------------------------------
# Settings


def test_settings_that_are_not_written_are_not_said() -> None:
    assert read("settings: {max_parallel_hooks: 4}").settings == DocumentSettings(max_parallel_hooks=4)
    assert read("settings:").settings == DocumentSettings()


@pytest.mark.parametrize(
    "text",
    [
        "shutdown_grace_seconds: -1",
        "shutdown_grace_seconds: true",
        "shutdown_grace_seconds: .nan",
        "shutdown_grace_seconds: ~",
        "max_parallel_hooks: 0",
        "max_parallel_hooks: many",
        "max_parallel_hooks: 2.0",
        "max_parallel_hooks: true",
        "outbox_retry_age_seconds: '60'",
        "outbox_max_retries: -1",
        "retries: 3",
    ],
)
def test_28_a_bad_setting_is_named_by_its_path(text: str) -> None:
    assert errors(read(f"settings: {{{text}}}")) == [f"settings.{text.partition(':')[0]}"]


def test_numbers_that_yaml_reads_as_texts_have_a_hint() -> None:
    (problem,) = read("settings: {shutdown_grace_seconds: 1e3}").problems

    assert problem.hint == "YAML reads 1e3 as a text; write 1000, and no quotes"
    assert read("settings: {max_parallel_hooks: x}").problems[0].hint is None


def test_what_is_as_good_as_for_ever_is_bounded() -> None:
    huge = "9" * 400
    document = read(
        f"settings: {{shutdown_grace_seconds: .inf, outbox_retry_age_seconds: {huge}, max_parallel_hooks: {huge}}}"
    )

    assert document.settings == DocumentSettings(
        shutdown_grace_s=MAX_SECONDS, outbox_retry_age_s=MAX_SECONDS, max_parallel_hooks=MAX_COUNT
    )


# ----------------------------------------------------------------------------------------------------------------------
# id, event, enabled, description


@pytest.mark.parametrize("written", ["'plain id'", "日本語", "'🙂'", "x:1", "'" + "x" * 512 + "'"])
def test_ids_that_are_taken(written: str) -> None:
    assert hook_of(id=written).id == written.strip("'")


@pytest.mark.parametrize(
    "written",
    [
        "''",
        "'  '",
        "'" + "x" * 513 + "'",
        r'"a\tb"',
        r'"a\nb"',
        r'"a\_b"',
        r'"a\u3000b"',
        r'"a\u200bb"',
        "5",
        "~",
        '"a\\0"',
    ],
)
def test_18_19_ids_that_are_not(written: str) -> None:
    assert errors(hooks_of(entry(id=written))) == ["hooks[0].id"]


@pytest.mark.parametrize("key", ["id", "event", "run"])
def test_what_an_entry_must_have(key: str) -> None:
    lines = {"id": "a", "event": "before_turn", "run": "{type: shell, shell: x}"}
    del lines[key]
    text = "hooks:\n- " + "\n  ".join(f"{name}: {value}" for name, value in lines.items())

    assert told(read(text)) == [(f"hooks[0].{key}", f"`{key}` is missing")]


@pytest.mark.parametrize("event", EVENTS)
def test_all_seventeen_events(event: str) -> None:
    assert hook_of(event).event is EVENTS[event]


@pytest.mark.parametrize("event", ["Before_turn", "PreToolUse", "tool.before", "~", "[]"])
def test_9_any_other_event_is_an_error(event: str) -> None:
    assert errors(hooks_of(entry(event))) == ["hooks[0].event"]


def test_an_event_that_is_near_no_other_is_answered_with_all_of_them() -> None:
    (problem,) = hooks_of(entry("zzz")).problems

    assert problem.hint == f"one of {', '.join(EVENTS)}"


@pytest.mark.parametrize("written", ["'false'", "~", "0", "[]"])
def test_26_enabled_must_be_a_boolean(written: str) -> None:
    assert errors(hooks_of(entry(enabled=written))) == ["hooks[0].enabled"]


def test_a_hook_that_is_switched_off_stays_and_says_so() -> None:
    assert hook_of(enabled="false").inactive == "`enabled` is false"


def test_a_description_is_a_text_or_nothing() -> None:
    assert hook_of(description="~").id == "a"
    assert errors(hooks_of(entry(description="5"))) == ["hooks[0].description"]


# ----------------------------------------------------------------------------------------------------------------------
# run


def test_the_three_types() -> None:
    assert hook_of(run="{type: shell, shell: 'a | b'}").handler == ShellCommand(
        command="a | b", shells=("$SHELL", "/bin/sh")
    )
    assert hook_of(run="{type: command, argv: [a, ''], args: [c]}").handler == Argv(argv=("a", "", "c"))
    script = hook_of(run="{type: script, path: ../x.py, args: [c]}").handler
    assert isinstance(script, Script)
    assert (script.path, script.base, script.arguments) == ("../x.py", DIRECTORY, ("c",))


def test_null_means_the_default_for_all_but_the_type() -> None:
    hook = hook_of(run="{type: shell, shell: x, path: ~, argv: ~, args: ~, env: ~, cwd: ~}")

    assert (hook.env, hook.cwd) == ((), None)
    assert hook_of(run="{type: shell, shell: x, cwd: ''}").cwd is None


@pytest.mark.parametrize(
    ("run", "path", "message"),
    [
        ("~", "run", "`run` is missing"),
        ("x", "run", "must be a mapping, not a string"),
        ("{}", "run.type", "`type` is missing"),
        ("{type: ~}", "run.type", "must be a string, not null"),
        ("{type: bash}", "run.type", 'unknown type "bash"'),
        ("{type: script}", "run.path", "a script needs `path`"),
        ("{type: script, path: ~}", "run.path", "a script needs `path`"),
        ("{type: script, path: ''}", "run.path", "must not be empty"),
        ('{type: script, path: "a\\0"}', "run.path", "must not contain a NUL character"),
        ("{type: command}", "run.argv", "a command needs `argv`"),
        ("{type: command, argv: []}", "run.argv", "must name a program"),
        ("{type: command, argv: x}", "run.argv", "must be a list of strings, not a string"),
        ("{type: command, argv: [5]}", "run.argv[0]", "must be a string, not 5"),
        ("{type: shell}", "run.shell", "a shell needs `shell`"),
        ("{type: shell, shell: 5}", "run.shell", "must be a string, not 5"),
        ("{type: shell, shell: x, args: x}", "run.args", "must be a list of strings, not a string"),
        ("{type: shell, shell: x, env: []}", "run.env", "must be a mapping, not a list"),
        ("{type: shell, shell: x, env: {A: 1}}", "run.env.A", "must be a string, not 1"),
        ("{type: shell, shell: x, env: {A: yes}}", "run.env.A", "must be a string, not true"),
        ("{type: shell, shell: x, cwd: 1}", "run.cwd", "must be a string, not 1"),
        ("{type: shell, shell: x, command: y}", "run.command", "unknown key `command`"),
    ],
)
def test_20_to_23_what_is_wrong_with_a_run(run: str, path: str, message: str) -> None:
    found = [row for row in told(hooks_of(entry(run=run))) if "no meaning" not in row[1]]

    assert found == [(f"hooks[0].{path}", message)]


def test_keys_of_the_other_types_are_allowed_and_warned_of() -> None:
    document = hooks_of(
        entry(run="{type: script, path: x.py, argv: 5, shell: y}"),
        entry(id="b", run="{type: shell, shell: x, args: [a]}"),
    )

    assert document.usable
    assert warnings(document) == [
        "`argv` has no meaning for a script",
        "`shell` has no meaning for a script",
        "`args` has no meaning for a shell",
    ]


def test_a_variable_that_no_environment_can_hold_is_warned_of() -> None:
    document = hooks_of(entry(run="{type: shell, shell: x, env: {'': a, 'A=B': b, OK: c}}"))

    assert document.usable
    assert len(warnings(document)) == 2


# ----------------------------------------------------------------------------------------------------------------------
# execution


@pytest.mark.parametrize("key", ["mode", "detach", "delivery", "timeout_seconds", "on_error"])
def test_null_is_no_default_here(key: str) -> None:
    assert errors(hooks_of(entry(execution=f"{{{key}: ~}}"))) == [f"hooks[0].execution.{key}"]


def test_no_execution_is_the_default() -> None:
    assert hook_of(execution="~") == hook_of()


@pytest.mark.parametrize("mode", ["blocking", "async"])
def test_20_only_what_is_forgotten_can_be_detached(mode: str) -> None:
    assert errors(hooks_of(entry(execution=f"{{mode: {mode}, detach: true}}"))) == [
        "hooks[0].execution.detach"
    ]


def test_a_detached_hook_has_no_timeout() -> None:
    hook = hook_of(execution="{detach: true, timeout_seconds: 5, delivery: durable}")

    assert (hook.mode, hook.timeout_s, hook.durable) == (Mode.DETACHED, None, True)


@pytest.mark.parametrize("written", ["0", "-1", "true", "'5'", ".nan", "-.inf"])
def test_25_a_timeout_is_more_than_nothing(written: str) -> None:
    assert errors(hooks_of(entry(execution=f"{{timeout_seconds: {written}}}"))) == [
        "hooks[0].execution.timeout_seconds"
    ]


@pytest.mark.parametrize(("written", "seconds"), [("1", 1.0), ("0.001", 0.001), (".inf", MAX_SECONDS)])
def test_timeouts_that_are_taken(written: str, seconds: float) -> None:
    assert hook_of(execution=f"{{timeout_seconds: {written}}}").timeout_s == seconds


@pytest.mark.parametrize(
    "text", ["mode: Blocking", "delivery: sure", "on_error: fail", "retries: 1", "detach: 1"]
)
def test_other_values_and_keys_are_errors(text: str) -> None:
    assert errors(hooks_of(entry(execution=f"{{{text}}}"))) == [
        f"hooks[0].execution.{text.partition(':')[0]}"
    ]


# ----------------------------------------------------------------------------------------------------------------------
# match


@pytest.mark.parametrize(
    "written",
    ["~", "{}", "{profile: ~, profiles: ~, tool_kind: ~, tool_name: ~, args: ~}", "{profiles: [], args: {}}"],
)
def test_no_condition_is_no_rule(written: str) -> None:
    assert hook_of(match=written).match is None


def test_an_empty_text_is_a_condition() -> None:
    rule = hook_of("before_tool_call", match="{profile: '', tool_kind: '', tool_name: ''}").match

    assert rule == ToolFilter(profile="", tool_kind="", tool_name="")


@pytest.mark.parametrize("kind", KNOWN_KINDS)
def test_4_known_kinds_are_taken_as_they_are(kind: str) -> None:
    document = hooks_of(
        entry("before_tool_call", match=f"{{tool_kind: {kind}}}", execution="{mode: blocking}")
    )

    assert document.problems == ()


def test_5_old_spellings_are_rewritten_with_one_warning() -> None:
    document = hooks_of(entry("after_tool_call", match="{tool_kind: chrys.shell}"))

    assert document.hooks[0].match == ToolFilter(tool_kind="shell")
    assert [(p.message, p.hint) for p in document.problems] == [
        ("chrys.shell is an old spelling", "write shell")
    ]


def test_6_other_kinds_and_names_of_arguments_are_left_alone() -> None:
    document = hooks_of(
        entry("after_tool_call", match="{tool_kind: chrys.vendor.custom, args: {chrys.shell: {}}}")
    )

    assert document.hooks[0].match == ToolFilter(
        tool_kind="chrys.vendor.custom", args=(ArgumentTest(name="chrys.shell"),)
    )
    assert document.problems == ()


def test_a_kind_that_looks_misspelt_is_warned_of() -> None:
    (problem,) = hooks_of(entry("after_tool_call", match="{tool_kind: filesystem.wirte}")).problems

    assert (problem.severity, problem.hint) == (Severity.WARNING, "did you mean filesystem.write?")


@pytest.mark.parametrize(
    ("match", "path"),
    [
        ("x", "match"),
        ("{tools: [a]}", "match.tools"),
        ("{profile: 5}", "match.profile"),
        ("{profiles: Code}", "match.profiles"),
        ("{profiles: [5]}", "match.profiles[0]"),
        ("{tool_kind: [a]}", "match.tool_kind"),
        ("{tool_name: true}", "match.tool_name"),
        ("{args: []}", "match.args"),
        ("{args: {path: x}}", "match.args.path"),
        ("{args: {path: ~}}", "match.args.path"),
        ("{args: {path: {contains: 3}}}", "match.args.path.contains"),
        ("{args: {path: {equals: ~}}}", "match.args.path.equals"),
        ("{args: {path: {glob: x}}}", "match.args.path.glob"),
    ],
)
def test_27_what_is_wrong_with_a_match_is_named_by_its_path(match: str, path: str) -> None:
    assert errors(hooks_of(entry("before_tool_call", match=match))) == [f"hooks[0].{path}"]


PATTERNS = ["'('", "'a{99999999999999999999}'", "'" + "(" * 5000 + ")" * 5000 + "'"]


@pytest.mark.parametrize("pattern", PATTERNS, ids=["syntax", "overflow", "recursion"])
def test_10_to_12_a_bad_pattern_costs_only_its_hook(pattern: str) -> None:
    bad = entry(
        "before_tool_call",
        id="bad",
        match=f"{{tool_kind: shell, args: {{a: {{}}, b: {{regex: {pattern}, contains: x}}}}}}",
        execution="{mode: blocking}",
    )
    document = hooks_of(entry(id="first"), bad, entry(id="last"))

    assert document.usable
    first, skipped, last = document.hooks
    assert first.load_problem is None
    assert last.load_problem is None
    assert skipped.load_problem in document.problems
    assert skipped.load_problem is not None
    assert skipped.load_problem.path == "hooks[1].match.args.b.regex"
    assert skipped.handler is None
    # What a guard on it is about is still known.
    assert skipped.match == ToolFilter(
        tool_kind="shell", args=(ArgumentTest(name="a"), ArgumentTest(name="b", contains="x"))
    )


def test_13_of_a_hook_that_is_switched_off_nobody_is_told() -> None:
    document = hooks_of(entry("before_tool_call", match="{args: {a: {regex: '('}}}", enabled="false"))

    assert document.problems == ()
    assert document.hooks[0].load_problem is None


def test_14_another_fault_beside_it_costs_the_document() -> None:
    document = hooks_of(entry("before_tool_call", match="{args: {a: {regex: '('}}}", enabled="'no'"))

    assert not document.usable
    assert "hooks[0].enabled" in errors(document)


def test_the_first_of_several_bad_patterns_is_the_reason() -> None:
    document = hooks_of(entry("before_tool_call", match="{args: {a: {regex: '('}, b: {regex: ')'}}}"))

    assert len(errors(document)) == 2
    assert document.hooks[0].load_problem == document.problems[1]


# ----------------------------------------------------------------------------------------------------------------------
# What is allowed, but hardly meant


def test_29_a_hook_for_every_tool_call_is_warned_of() -> None:
    document = hooks_of(entry("before_tool_call", execution="{mode: blocking}"))

    assert warnings(document) == ["it has no `match`, so it runs for every tool call"]


def test_30_a_blocking_hook_cannot_be_durable() -> None:
    document = hooks_of(entry(execution="{mode: blocking, delivery: durable}"))

    assert warnings(document) == ["`delivery: durable` has no effect on a blocking hook"]


def test_a_gate_whose_mode_is_not_written_is_warned_of() -> None:
    quiet = hooks_of(entry("user_prompt_submit", execution="{mode: fire_and_forget}"))

    assert quiet.problems == ()
    for execution in ("~", "{}", "{timeout_seconds: 1}"):
        (message,) = warnings(hooks_of(entry("user_prompt_submit", execution=execution)))
        assert "cannot stop user_prompt_submit" in message


@pytest.mark.parametrize(
    ("event", "mode", "why"),
    [
        ("after_turn", "blocking", "after_turn cannot be stopped"),
        ("user_prompt_submit", "async", "a hook in the background stops nothing"),
    ],
)
def test_on_error_block_where_it_cannot_act_is_warned_of(event: str, mode: str, why: str) -> None:
    document = hooks_of(entry(event, execution=f"{{mode: {mode}, on_error: block}}"))

    assert warnings(document) == [f"`on_error: block` has no effect: {why}"]


def test_a_condition_on_a_tool_where_there_is_none_is_warned_of() -> None:
    document = hooks_of(entry("before_turn", match="{tool_name: x}"))

    assert warnings(document) == ["before_turn is about no tool, so this hook never runs"]


def test_of_a_hook_that_is_switched_off_nothing_is_warned_of() -> None:
    assert hooks_of(entry("before_tool_call", enabled="false")).problems == ()


# ----------------------------------------------------------------------------------------------------------------------

_words: st.SearchStrategy[Any] = st.sampled_from(
    [
        "hooks",
        "id",
        "event",
        "run",
        "type",
        "shell",
        "match",
        "args",
        "execution",
        "mode",
        "x",
        1,
        0.5,
        True,
        None,
        "before_turn",
    ]
)
_trees = st.recursive(
    _words,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(_words.map(str), children, max_size=5),
    max_leaves=20,
)


@settings(deadline=None, max_examples=60)
@given(st.fixed_dictionaries({"hooks": st.lists(_trees, max_size=3)}) | _trees)
def test_any_tree_is_read_or_told(tree: Any) -> None:
    text = json.dumps(tree)
    for origin in (YAML, JSON):
        document = read(text, origin)
        assert document.usable or errors(document)
        assert all(problem.line is not None for problem in document.problems)


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_told(data: bytes) -> None:
    for origin in (YAML, JSON):
        document = read(data, origin)
        assert document.usable or document.problems
