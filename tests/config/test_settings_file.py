from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from hooksd.config.settings import EnvSettings, GuardSettings, Limits, Settings, SourceSettings
from hooksd.config.settings_file import MAX_SETTINGS_BYTES, read_settings
from hooksd.model.hooks import GuardAction
from hooksd.model.problems import Severity


ONCE = "(each key and each [table] may come once; several of a kind are written [[…]])"

DOCUMENTED = b"""\
[daemon]
log_level = "info"
work_area = "~"
[limits]
max_message_bytes = 16_777_216
max_write_buffer_bytes = 67_108_864
max_executions = 10_000
execution_idle_s = 86_400
max_running_gates = 64
max_running_background = 16
max_queued = 1_024
max_queue_s = 60
max_depth = 4
max_ending = 256
kill_grace_ms = 500
drain_s = 10
stop_continuations = 5
kept_results = 256
max_subscribers = 64
max_log_field_bytes = 2_048
bamboo_output_bytes = 65_536
chrys_output_bytes = 262_144
result_file_bytes = 1_048_576
max_outbox_jobs = 100_000
watched_workspaces = 64
[shell]
command = "auto"
[runtimes]
uv = false
[warm]
python = true
node = false
[env]
deny = []
allow_for = { "chrys:user:chrys:deploy" = ["AWS_*"] }
[projects]
enabled = false
on_changed = "block"
[log]
reasons = false
[history]
keep_output = false
[[source]]
name = "team"
dialect = "bamboo"
path = "~/.bamboo/hooks.json"
scope = "user"
agents = ["bamboo"]
enabled = true
[serial]
hooks = []
[[guard]]
hooks = "bamboo:*:PreToolUse*"
on_failure = "block"
on_missing = "warn"
[sources]
defaults = true
"""


def told(text: str | bytes) -> list[str]:
    document = read_settings(text.encode() if isinstance(text, str) else text)
    assert (document.settings is None) == any(
        problem.severity is Severity.ERROR for problem in document.problems
    )
    return [problem.describe().removeprefix("hooksd.toml") for problem in document.problems]


def test_the_documented_file_says_the_defaults() -> None:
    document = read_settings(DOCUMENTED)

    assert document.problems == ()
    assert document.settings == Settings(
        env=EnvSettings(allow_for={"chrys:user:chrys:deploy": ("AWS_*",)}),
        source=(
            SourceSettings(
                name="team",
                dialect="bamboo",
                path="~/.bamboo/hooks.json",
                scope="user",
                agents=("bamboo",),
                enabled=True,
            ),
        ),
        guard=(GuardSettings(hooks="bamboo:*:PreToolUse*"),),
    )
    assert document.lines["limits.max_depth"] == 13
    assert document.lines["guard[0].hooks"] == 53


@pytest.mark.parametrize("text", [b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf[limits]\r\n", b"# nothing\n"])
def test_everything_is_optional(text: bytes) -> None:
    assert read_settings(text).settings == Settings()


def test_values_get_their_types() -> None:
    settings = read_settings(
        b'[limits]\ndrain_s = 2.5\nmax_queue_s = 3\n[[guard]]\nhooks = "*"\nevents = ["Stop"]\non_missing = "block"'
    ).settings

    assert settings is not None
    assert settings.limits == Limits(drain_s=2.5, max_queue_s=3)
    assert settings.guard == (GuardSettings(hooks="*", events=("Stop",), on_missing=GuardAction.BLOCK),)
    assert isinstance(settings.guard[0].on_missing, GuardAction)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "a = \x00",
            ":1:5: invalid TOML: Invalid value (text goes in quotes; truth values are true and false)",
        ),
        (
            "a = 1\nb = tru",
            ":2:5: invalid TOML: Invalid value (text goes in quotes; truth values are true and false)",
        ),
        ("[a]\nb = [\n1,\n\n", ":3:3: invalid TOML: Invalid value (is a quote or a bracket still open?)"),
        (
            "[limits]\nmax_depth=1\nmax_depth=2\n",
            f":3:12: invalid TOML: Cannot overwrite a value {ONCE}",
        ),
        (
            "[log]\n[log]\n",
            f":2:5: invalid TOML: Cannot declare ('log',) twice {ONCE}",
        ),
        (
            "a = {}\na.b = 1\n",
            f":2:8: invalid TOML: Cannot mutate immutable namespace ('a',) {ONCE}",
        ),
        ("a = 1 2", ":1:7: invalid TOML: Expected newline or end of document after a statement"),
        (
            "a = " + "9" * 5000,
            ": invalid TOML: Exceeds the limit (4300 digits) for integer string conversion: value has 5000 digits",
        ),
        ("a = " + "[" * 5000, ": the values are nested too deep (nothing here needs more than four levels)"),
        ("a = 1\nb = '\udcff'", ":2:6: byte 0xff is not UTF-8 (save the file as UTF-8)"),
        ("\ufeff\udcff", ":1:1: byte 0xff is not UTF-8 (save the file as UTF-8)"),
        (
            "#" * (MAX_SETTINGS_BYTES + 1),
            f": the file has {MAX_SETTINGS_BYTES + 1} bytes; at most {MAX_SETTINGS_BYTES} are read",
        ),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_a_text_that_is_no_toml(text: str, problem: str) -> None:
    assert told(text.encode("utf-8", "surrogateescape")) == [problem]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("limits.max_depth = '4'", '1: limits.max_depth: expected an integer from 1 to 2147483647, got "4" (write it without quotes)'),
        ("limits.max_depth = 0", "1: limits.max_depth: expected an integer from 1 to 2147483647, got 0"),
        ("limits.max_depth = 1.0", "1: limits.max_depth: expected an integer from 1 to 2147483647, got 1.0"),
        ("limits.max_depth = true", "1: limits.max_depth: expected an integer from 1 to 2147483647, got true"),
        (f"limits.max_depth = 0x{'f' * 9999}", "1: limits.max_depth: expected an integer from 1 to 2147483647, got a larger number"),
        ("limits.drain_s = nan", "1: limits.drain_s: expected a number from 0 to 31622400, got nan"),
        ("limits.drain_s = inf", "1: limits.drain_s: expected a number from 0 to 31622400, got inf"),
        ("limits.drain_s = -0.1", "1: limits.drain_s: expected a number from 0 to 31622400, got -0.1"),
        ("limits.drain_s = false", "1: limits.drain_s: expected a number from 0 to 31622400, got false"),
        ("limits.drain_s = []", "1: limits.drain_s: expected a number from 0 to 31622400, got an array"),
        ("warm.node = 1", "1: warm.node: expected true or false, got 1"),
        ("warm.node = 'yes'", '1: warm.node: expected true or false, got "yes" (write it without quotes)'),
        ("shell.command = 1979-05-27", "1: shell.command: expected text, got a date or time"),
        ("shell.command = {}", "1: shell.command: expected text, got a table"),
        ("daemon.log_level = 'inf'", '1: daemon.log_level: expected one of "debug", "error", "info", "warning", got "inf" (did you mean info?)'),
        ("daemon.log_level = 3", '1: daemon.log_level: expected one of "debug", "error", "info", "warning", got 3'),
        ("env.deny = 'X'", '1: env.deny: expected an array of texts, got "X" (put it into brackets)'),
        ("env.deny = ['X',\n 3]", "2: env.deny[1]: expected text, got 3"),
        ("env.allow_for = ['X']", "1: env.allow_for: expected a table, got an array"),
        ("limits = 3", "1: limits: expected a table, got 3"),
        ("[[limits]]", "1: limits: expected a table, got an array (write [limits], with single brackets)"),
        ("[source]\nname = 'x'", "1: source: expected an array of tables, got a table (write [[source]], with double brackets)"),
        ("source = ['x']", '1: source[0]: expected a table, got "x"'),
        ("shell.command = ['" + "x" * 99 + "']", "1: shell.command: expected text, got an array"),
        ("warm.node = '" + "x" * 99 + "'", '1: warm.node: expected true or false, got "' + "x" * 60 + '…" (write it without quotes)'),
        ("limts = {}", "1: limts: unknown key 'limts' (did you mean limits?)"),
        ("[limits]\nmax-depth = 3", "2: limits.max-depth: unknown key 'max-depth' (did you mean max_depth?)"),
        ("max_depth = 3", "1: max_depth: unknown key 'max_depth' (it belongs into [limits])"),
        ("[warm]\nx = 3", "2: warm.x: unknown key 'x' (known keys: python, node)"),
        ("[[guard]]\n", "1: guard[0]: the key 'hooks' is missing"),
        ("[[guard]]\nhooks = 3", "2: guard[0].hooks: expected text, got 3"),
        ("[[guard]]\nhooks = '*'\non_failure = 'blok'", '3: guard[0].on_failure: expected one of "block", "warn", got "blok" (did you mean block?)'),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind(text: str, problem: str) -> None:
    assert told(text) == [f":{problem}"]


def test_everything_is_told_at_once_in_file_order() -> None:
    text = "[[guard]]\nhooks = 3\n[limits]\nmax_dept = 1\ndrain_s = -1\n[[guard]]\nhooks = '*'\nx = 1\nevents = ['y', 2]\n"

    assert [line.split(":")[1:3] for line in told(text)] == [
        ["2", " guard[0].hooks"],
        ["4", " limits.max_dept"],
        ["5", " limits.drain_s"],
        ["8", " guard[1].x"],
        ["9", " guard[1].events[1]"],
        ["9", " guard[1].events[0]"],
    ]


def test_the_file_is_named(tmp_path: Path) -> None:
    for text in (b"x", b"x = 1"):
        (problem,) = read_settings(text, file=str(tmp_path)).problems
        assert problem.file == str(tmp_path)


@given(st.binary(max_size=60))
@example(b"\xef\xbb\xbf")
@example(b"\xff")
@example(b"a=1\r")
def test_no_bytes_make_it_raise(text: bytes) -> None:
    read_settings(text)


tables = list(msgspec.structs.fields(Settings))
plain_values = st.one_of(
    st.booleans().map(lambda value: "true" if value else "false"),
    st.integers().map(str),
    st.floats().map(repr),
    st.text(alphabet="aZ*:/~.[]0 é", max_size=6).map(lambda text: f'"{text}"'),
    st.just("1979-05-27"),
)
any_values = st.recursive(
    plain_values,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(st.sampled_from(["a", "hooks", "x"]), inner, max_size=2).map(
            lambda items: "{" + ", ".join(f"{key} = {item}" for key, item in items.items()) + "}"
        ),
    ),
    max_leaves=4,
)
known_keys = sorted(
    {
        field.name
        for table in (*(table.default for table in tables), SourceSettings(name=""), GuardSettings(hooks=""))
        if isinstance(table, msgspec.Struct)
        for field in msgspec.structs.fields(type(table))
    }
)
lines_of_settings = st.one_of(
    st.sampled_from([f"[{table.name}]" for table in tables] + ["[[source]]", "[[guard]]", "[[limits]]"]),
    st.tuples(st.sampled_from([*known_keys, "unknown"]), any_values).map(" = ".join),
)


@given(st.lists(lines_of_settings, max_size=8).map("\n".join))
def test_any_settings_are_taken_or_refused_with_a_place(text: str) -> None:
    document = read_settings(text.encode())

    errors = [problem for problem in document.problems if problem.severity is Severity.ERROR]
    assert bool(errors) == (document.settings is None)
    assert all(problem.line is not None and problem.file for problem in document.problems)
    if document.settings is not None:
        # What was taken is sound: it comes back the same from a strict decoder.
        assert msgspec.convert(msgspec.to_builtins(document.settings), Settings) == document.settings
