from __future__ import annotations

import io
from typing import Any

import pytest

from hooksd.cli.log_lines import line_of, local_time
from hooksd.cli.terminal import Terminal


SPEAKER = Terminal(io.StringIO(), io.StringIO(), {"NO_COLOR": "1"})


def shown(kept: str | None = None, /, **fields: Any) -> str:
    record = {"ts": "2026-11-30T12:00:00.123Z", "level": "info", "seq": 7, **fields}
    return line_of(SPEAKER, record, lambda _: kept)


def test_a_run_is_one_line() -> None:
    line = shown(
        event="hook.finished", hook="h", hook_event="Stop", status="ok", duration_ms=12.5, decision="none"
    )

    assert "\n" not in line
    assert all(text in line for text in ("ok", "12 ms", "Stop", "h"))


def test_a_block_has_its_reason_while_it_is_kept() -> None:
    fields = {
        "event": "hook.finished",
        "hook": "h",
        "status": "blocked",
        "decision": "block",
        "invocation_id": "i",
    }

    assert "no\\nway" in shown("no\nway", **fields)
    assert "reason no longer kept" in shown(None, **fields)
    assert "logged one" in shown("asked one", **fields, reason="logged one")


def test_a_dry_run_is_told_apart_and_nothing_of_it_was_ever_kept() -> None:
    fields = {
        "event": "hook.finished",
        "hook": "h",
        "status": "blocked",
        "decision": "block",
        "invocation_id": "i",
    }

    line = shown("never asked", **fields, dry_run=True)

    assert "(dry run)" in line
    assert "never asked" not in line
    assert "kept" not in line


@pytest.mark.parametrize("decision", ["allow", "ask"])
def test_other_decisions_are_told(decision: str) -> None:
    assert shown(event="hook.finished", hook="h", status="ok", decision=decision).endswith(decision)


def test_a_failure_has_its_problem_and_what_to_do() -> None:
    problem = {"kind": "exit_code", "message": "exited 1", "hint": "look at it"}

    assert "exit_code: exited 1 → look at it" in shown(
        event="hook.finished", hook="h", status="failed", problem=problem
    )


def test_other_records_tell_their_fields_and_problems() -> None:
    problems = [{"path": "a.b", "message": "bad \x1b[31m", "severity": "error"}]

    line = shown(event="config.invalid", level="warning", source="s", revision=3, problems=problems, odd=None)

    assert "config.invalid  source=s revision=3" in line
    assert "a.b: bad \\e[31m" in line
    assert "odd" not in line


def test_a_time_that_is_none_is_shown_as_it_is() -> None:
    assert local_time("yester\x1bday") == "yester\\eday"
    assert len(local_time("2026-11-30T12:00:00.123Z", date=True)) == 19
