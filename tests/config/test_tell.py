"""What is told about a file, by what it was before and is now."""

from __future__ import annotations

from typing import Any

import pytest

from hooksd.config.examine import Examined, Probe, Version
from hooksd.config.tell import MAX_TOLD_PROBLEMS, file_record, internal_record, note_record, problems_record
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.records import Level
from hooksd.model.sources import SourceState


WARNING = ConfigProblem(severity=Severity.WARNING, path="a", message="odd", line=3)
BAD = ConfigProblem(severity=Severity.ERROR, path="b", message="bad")


def seen(state: SourceState, text: str = "", *problems: ConfigProblem) -> Examined[str]:
    """A file that was looked at; with a text, that is in force."""
    version = Version(value=text, text=text.encode(), digest=text, path="/p") if text else None
    return Examined(
        path="/p", state=state, in_force=version, problems=problems, probes=(Probe("/p", (), (1,)),)
    )


MISSING = seen(SourceState.MISSING)
ONE = seen(SourceState.LOADED, "one")
TWO = seen(SourceState.LOADED, "two")
ODD = seen(SourceState.LOADED, "two", WARNING)
INVALID = seen(SourceState.INVALID, "one", BAD)
WORSE = seen(SourceState.INVALID, "one", BAD, BAD)
NOTHING = seen(SourceState.INVALID, "", BAD)


def told(
    before: Examined[str] | None, after: Examined[str], *, starting: bool = False
) -> tuple[str, str, Any] | None:
    records = list(file_record("s", before, after, 7, starting=starting))
    if not records:
        return None
    (record,) = records
    assert record.fields["source"] == "s"
    assert record.fields["path"] == "/p"
    assert record.fields["revision"] == 7
    assert record.fields["state"] == after.state
    return record.kind, str(record.level), record.fields.get("last_good")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (ONE, ONE, None),
        (ONE, TWO, ("config.changed", "info", None)),
        (ONE, ODD, ("config.changed", "warning", None)),
        (ONE, MISSING, ("config.changed", "info", None)),
        (MISSING, ONE, ("config.changed", "info", None)),
        (None, ONE, ("config.changed", "info", None)),
        (None, MISSING, None),
        (ONE, seen(SourceState.LOADED, "one"), None),
        (ONE, seen(SourceState.LOADED, "one", WARNING), ("config.problem", "warning", None)),
        (ODD, seen(SourceState.LOADED, "two"), None),
        (ONE, INVALID, ("config.invalid", "error", True)),
        (MISSING, NOTHING, ("config.invalid", "error", False)),
        (INVALID, WORSE, ("config.invalid", "error", True)),
        (INVALID, seen(SourceState.INVALID, "one", BAD), None),
        (INVALID, ONE, ("config.recovered", "info", None)),
        (INVALID, ODD, ("config.recovered", "warning", None)),
        (INVALID, MISSING, ("config.changed", "info", None)),
        (ONE, seen(SourceState.UNTRUSTED, "", WARNING), ("config.changed", "warning", None)),
    ],
)
def test_a_file_that_changed(
    before: Examined[str] | None, after: Examined[str], expected: tuple[str, str, Any] | None
) -> None:
    assert told(before, after) == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (ONE, None),
        (ODD, ("config.problem", "warning", None)),
        (NOTHING, ("config.invalid", "error", False)),
        (seen(SourceState.DISABLED, "", WARNING), ("config.problem", "warning", None)),
    ],
)
def test_a_file_at_the_start(after: Examined[str], expected: tuple[str, str, Any] | None) -> None:
    assert told(None, after, starting=True) == expected


def test_a_file_that_was_never_looked_at_is_no_news() -> None:
    assert told(None, Examined(path="/p", state=SourceState.LOADED)) is None


def test_problems_are_told_without_empty_fields_and_not_all() -> None:
    record = problems_record([WARNING] * (MAX_TOLD_PROBLEMS + 2), 7)

    assert record.level is Level.WARNING
    assert record.fields["problems"][0] == {"severity": "warning", "path": "a", "message": "odd", "line": 3}
    assert len(record.fields["problems"]) == MAX_TOLD_PROBLEMS
    assert record.fields["problems_left_out"] == 2
    assert "problems_left_out" not in problems_record([BAD], 7).fields
    assert problems_record([BAD], 7).level is Level.ERROR


def test_notes() -> None:
    assert note_record("odd").fields == {"message": "odd"}
    assert note_record("odd", "do").fields == {"message": "odd", "hint": "do"}
    assert "ZeroDivisionError: x" in internal_record(ZeroDivisionError("x")).fields["message"]
