from __future__ import annotations

import pytest

from hooksd.dialects.suggestions import MAX_WORD, did_you_mean, nearest, nearest_or_all


KNOWN = ("PreToolUse", "PostToolUse", "Stop")


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("preToolUse", "PreToolUse"),
        ("PRETOOLUSE", "PreToolUse"),
        ("PostTolUse", "PostToolUse"),
        ("stop", "Stop"),
        ("quite another", None),
        ("", None),
        ("PreToolUse" * MAX_WORD, None),
    ],
)
def test_nearest(word: str, found: str | None) -> None:
    assert nearest(word, KNOWN) == found


def test_hints() -> None:
    assert did_you_mean("Stops", KNOWN) == "did you mean Stop?"
    assert did_you_mean("xyz", KNOWN) is None
    assert nearest_or_all("Stops", KNOWN, "one of three") == "did you mean Stop?"
    assert nearest_or_all("xyz", KNOWN, "one of three") == "one of three"
