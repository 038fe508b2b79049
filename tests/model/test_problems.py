"""How a located problem reads in one line."""

from __future__ import annotations

from typing import Any

import pytest

from hooksd.model.problems import ConfigProblem, Severity


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"file": "/h.json", "line": 3, "column": 7, "path": "a[0]", "hint": "do"},
            "/h.json:3:7: a[0]: bad (do)",
        ),
        ({"file": "/h.json", "line": 3, "path": "a[0]"}, "/h.json:3: a[0]: bad"),
        ({"file": "/h.json"}, "/h.json: bad"),
        ({"line": 3, "column": 7, "path": "a[0]"}, "line 3, column 7: a[0]: bad"),
        ({"line": 3}, "line 3: bad"),
        ({"column": 7, "path": "matcher"}, "matcher: bad"),
        ({}, "bad"),
    ],
)
def test_place_message_and_hint_stand_in_one_line(fields: dict[str, Any], line: str) -> None:
    problem = ConfigProblem(**{"severity": Severity.ERROR, "path": "", "message": "bad", **fields})

    assert problem.describe() == line
