"""What was granted against what is there: nothing may hide in it."""

from __future__ import annotations

import pytest

from hooksd.config import trust_diff
from hooksd.config.trust_diff import Side, difference


def side(before: bytes | None, after: bytes | None, *, path: str = "a.sh", kept: bool = True) -> Side:
    return Side(
        path=path,
        before_sha256="" if before is None else repr(before),
        before=before if kept else None,
        after_sha256="" if after is None else repr(after),
        after=after,
    )


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (
            b"one\ntwo\n",
            b"one\nthree\n",
            "--- granted/a.sh\n+++ now/a.sh\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n",
        ),
        (None, b"one\n", "--- /dev/null\n+++ now/a.sh\n@@ -0,0 +1 @@\n+one\n"),
        (b"one\n", None, "--- granted/a.sh\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"),
        (
            b"one\n",
            b"one",
            "--- granted/a.sh\n+++ now/a.sh\n@@ -1 +1 @@\n-one\n+one\n\\ No newline at end of file\n",
        ),
        (None, b"", "--- /dev/null\n+++ now/a.sh\n"),
        (b"a\r\n", b"a\n", "--- granted/a.sh\n+++ now/a.sh\n@@ -1 +1 @@\n-a\r\n+a\n"),
        (b"same", b"same", ""),
    ],
)
def test_a_diff(before: bytes | None, after: bytes | None, text: str) -> None:
    assert difference([side(before, after)]) == (text, True)


def test_lines_end_at_line_feeds_only() -> None:
    text, _ = difference([side(None, b"a\x0bb\xe2\x80\xa8c\xff\n")])

    assert text.split("\n")[3:] == ["+a\x0bb\u2028c\\xff", ""]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (side(b"\0one", b"two"), "not a text"),
        (side(b"one", b"two", kept=False), "too large for a diff (what was granted)"),
        (Side("a.sh", "1", None, "2", None), "what was granted and what is there now"),
    ],
)
def test_what_cannot_be_shown_is_said(given: Side, says: str) -> None:
    text, is_whole = difference([given])

    assert says in text
    assert "look at the file itself" in text
    assert not is_whole


def test_a_long_file_is_shown_whole_without_being_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust_diff, "MAX_COMPARED_LINES", 1)

    assert difference([side(b"one\ntwo\n", b"one\n")]) == (
        "--- granted/a.sh\n+++ now/a.sh\n@@ -1,2 +1,1 @@\n-one\n-two\n+one\n",
        True,
    )
    assert "@@ -0,0 +1,2 @@" in difference([side(None, b"one\ntwo\n")]).text


def test_what_does_not_fit_is_said_and_the_rest_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust_diff, "MAX_DIFF_CHARACTERS", 100)
    text, is_whole = difference([side(None, b"x" * 200, path="large"), side(None, b"small\n", path="small")])

    assert "# large: " in text
    assert "+small" in text
    assert not is_whole
