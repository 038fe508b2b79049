import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hooksd.model.records import Level
from hooksd.observe.log_records import RecordFilter, parse_record


def record(**fields: Any) -> dict[str, Any]:
    return {"ts": "2026-01-02T03:04:05.678Z", "seq": 1, "level": "info", "event": "hook.finished", **fields}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"Traceback (most recent call last):",
        b"[1, 2]",
        b'{"level":"info","event":"x"}',
        b'{"ts":1,"level":"info","event":"x"}',
        b'{"ts":"2026","level":"info","event":"x"',
        b"\xff\xfe",
        b'{"ts":"\xff","level":"info","event":"x"}',
        b"[" * 100_000,
    ],
)
def test_foreign_lines_are_no_records(line: bytes) -> None:
    assert parse_record(line) is None


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(line: bytes) -> None:
    assert parse_record(line) is None or isinstance(parse_record(line), dict)


def test_a_record_comes_back() -> None:
    assert parse_record(json.dumps(record(hook="h")).encode()) == record(hook="h")


@pytest.mark.parametrize(
    ("wanted", "accepted"),
    [
        (RecordFilter(), True),
        (RecordFilter(hook="bamboo:user:team:PreToolUse[0].hooks[1]"), True),
        (RecordFilter(hook="PreToolUse"), True),
        (RecordFilter(hook="bamboo:*:PreToolUse*"), True),
        (RecordFilter(hook="*PreToolUse"), False),
        (RecordFilter(hook="chrys:*"), False),
        (RecordFilter(hook="PreToolUse[01]"), False),
        (RecordFilter(execution_id="run-1"), True),
        (RecordFilter(execution_id="run-2"), False),
        (RecordFilter(level=Level.DEBUG), True),
        (RecordFilter(level=Level.WARNING), True),
        (RecordFilter(level=Level.ERROR), False),
        (RecordFilter(since=1_767_323_045.678), True),
        (RecordFilter(since=1_767_323_045.679), False),
        (RecordFilter(kinds=("hook.*",)), True),
        (RecordFilter(kinds=("config.*", "hook.finished")), True),
        (RecordFilter(kinds=("config.*", "hook")), False),
        (RecordFilter(hook="team", execution_id="run-1", level=Level.INFO, since=0, kinds=("*",)), True),
        (RecordFilter(hook="team", execution_id="run-2"), False),
    ],
)
def test_filters(wanted: RecordFilter, accepted: bool) -> None:
    accepts = wanted.compile()

    assert (
        accepts(record(hook="bamboo:user:team:PreToolUse[0].hooks[1]", execution_id="run-1", level="warning"))
        is accepted
    )


def test_a_record_without_the_field_is_not_wanted() -> None:
    assert not RecordFilter(hook="x").compile()(record())
    assert not RecordFilter(execution_id="x").compile()(record())


def test_a_level_of_another_program_is_wanted_at_any_level() -> None:
    assert RecordFilter(level=Level.ERROR).compile()(record(level="critical"))
