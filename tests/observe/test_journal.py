import json
from typing import Any

import pytest

from hooksd.model.hooks import Contract
from hooksd.model.problems import ProblemKind
from hooksd.model.records import Level


def test_a_record_begins_with_what_the_journal_gives(recorded: Any) -> None:
    log = recorded(clock=lambda: 1_764_521_234.5678)

    log("daemon.started", pid=42)
    log("hook.finished", Level.WARNING, hook="h")

    assert log.lines == [
        b'{"ts":"2025-11-30T16:47:14.567Z","seq":1,"level":"info","event":"daemon.started","pid":42}\n',
        b'{"ts":"2025-11-30T16:47:14.567Z","seq":2,"level":"warning","event":"hook.finished","hook":"h"}\n',
    ]


def test_a_record_without_fields(recorded: Any) -> None:
    log = recorded()

    log("daemon.ready")

    assert set(log.records[0]) == {"ts", "seq", "level", "event"}


def test_the_second_is_formatted_anew_when_it_changes(recorded: Any) -> None:
    times = iter([1_764_521_234.75, 1_764_521_235.25])
    log = recorded(clock=lambda: next(times))

    log("a.a")
    log("a.a")

    assert [record["ts"] for record in log.records] == [
        "2025-11-30T16:47:14.750Z",
        "2025-11-30T16:47:15.250Z",
    ]


def test_fields_cannot_replace_what_the_journal_gives(recorded: Any) -> None:
    log = recorded()

    log.journal(
        Level.INFO, "daemon.ready", {"event": "forged", "seq": 99, "ts": "never", "level": "x", "pid": 1}
    )

    (record,) = log.records
    assert (record["event"], record["seq"], record["level"], record["pid"]) == ("daemon.ready", 1, "info", 1)
    assert log.lines[0].count(b'"event"') == 1


def test_enums_and_nested_problems(recorded: Any) -> None:
    log = recorded()

    log(
        "hook.finished",
        contract=Contract.BAMBOO,
        problem={"kind": ProblemKind.TIMEOUT, "message": "too late"},
    )

    (record,) = log.records
    assert record["contract"] == "bamboo"
    assert record["problem"] == {"kind": "timeout", "message": "too late"}


def test_long_fields_are_cut(recorded: Any) -> None:
    log = recorded(max_field_bytes=100)

    log("config.invalid", message="x" * 5_000)

    (record,) = log.records
    assert len(record["message"]) <= 100
    assert record["message"].endswith("bytes more]")


def test_the_level_leaves_records_out_of_the_log_but_not_of_the_stream(recorded: Any) -> None:
    log = recorded(level=Level.WARNING)
    subscription = log.stream.subscribe(notify=lambda: None)

    log("a.debug", Level.DEBUG)
    log("a.info", Level.INFO)
    log("a.warning", Level.WARNING)
    log("a.error", Level.ERROR)

    assert [record["event"] for record in log.records] == ["a.warning", "a.error"]
    assert [json.loads(params)["event"] for params in subscription.take()] == [
        "a.info",
        "a.warning",
        "a.error",
    ]
    # A number that a subscriber does not see is a loss: filtered records of level debug take none.
    assert [record["seq"] for record in log.records] == [2, 3]


def test_debug_records_are_there_when_the_log_wants_them(recorded: Any) -> None:
    log = recorded(level=Level.DEBUG)

    log("a.debug", Level.DEBUG)

    assert [record["event"] for record in log.records] == ["a.debug"]


def test_configure_holds_from_the_next_record_on(recorded: Any) -> None:
    log = recorded()
    log("a.first")

    log.journal.configure(level=Level.ERROR, max_field_bytes=64)
    log("a.second")
    log("a.third", Level.ERROR, text="y" * 500)

    assert [(record["event"], record["seq"]) for record in log.records] == [("a.first", 1), ("a.third", 3)]
    assert len(log.records[1]["text"]) <= 64


def test_finished_hooks_are_counted(recorded: Any) -> None:
    log = recorded(level=Level.ERROR)

    log("hook.finished", hook="h", status="blocked", duration_ms=3.0)

    log("hook.skipped", hook="h", status="blocked", duration_ms=3.0)

    assert log.metrics.counters().blocked == 1
    assert log.metrics.counters().total == 1


def test_the_line_that_tells_of_dropped_ones(recorded: Any) -> None:
    log = recorded()
    log("a.first")

    line = log.journal.dropped_line(7)

    record = json.loads(line)
    assert line.endswith(b"}\n")
    assert record["seq"] == 2
    assert {
        "level": "warning",
        "event": "events.dropped",
        "dropped": 7,
        "where": "log",
    }.items() <= record.items()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"hook": "bamboo:user:b:a", "status": "ok", "exit_code": 0}, "bamboo:user:b:a ok"),
        ({"exit_code": 1, "problem": None, "warm": False}, "exit_code=1"),
        ({"message": "two words"}, 'message="two words"'),
        ({"message": "a\nb\x1b[31m"}, 'message="a\\nb\\u001b[31m"'),
        ({"problem": {"kind": "timeout"}}, 'problem={"kind":"timeout"}'),
    ],
)
def test_lines_for_people(recorded: Any, fields: dict[str, Any], text: str) -> None:
    log = recorded(log_format="console", clock=lambda: 1_764_521_234.5678)
    subscription = log.stream.subscribe(notify=lambda: None)

    log.journal(Level.WARNING, "hook.finished", fields)

    assert log.lines == [f"16:47:14.567 warning hook.finished {text}\n".encode()]
    # The stream has JSON all the same.
    assert json.loads(subscription.take()[0])["event"] == "hook.finished"
