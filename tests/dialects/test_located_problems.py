from __future__ import annotations

import pytest

from hooksd.dialects.document_text import LineIndex
from hooksd.dialects.located_problems import MAX_PROBLEMS, LocatedProblems
from hooksd.model.problems import Severity


def test_problems_come_in_file_order_with_their_places() -> None:
    problems = LocatedProblems(LineIndex("one\ntwo\nthree"))
    problems.error("b", 9, "second", lambda: "found")
    problems.warning("a", 4, "first", "given")
    problems.error("c", 12, "third", lambda: None)

    told = problems.in_file_order()

    assert [(p.path, p.line, p.column, p.hint) for p in told] == [
        ("a", 2, 1, "given"),
        ("b", 3, 2, "found"),
        ("c", 3, 5, None),
    ]
    assert [p.severity for p in told] == [Severity.WARNING, Severity.ERROR, Severity.ERROR]


def test_past_the_bound_they_are_counted_and_no_hint_is_looked_for() -> None:
    problems = LocatedProblems(LineIndex("x"))
    for _ in range(MAX_PROBLEMS):
        problems.error("", 0, "again")
    left_out = problems.error("last", 0, "one more", lambda: pytest.fail("looked for a hint"))

    told = problems.in_file_order()

    assert left_out.path == "last"  # still usable as the reason why a hook did not load
    assert len(told) == MAX_PROBLEMS + 1
    assert told[-1].message == "1 more problems are not listed"
