from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hooksd.dialects.document_text import (
    MAX_DOCUMENT_BYTES,
    MAX_SHOWN,
    LineIndex,
    UnreadableText,
    cut,
    decode_document,
)


def test_utf_8_with_and_without_byte_order_mark() -> None:
    assert decode_document("é".encode()) == "é"
    assert decode_document(b"\xef\xbb\xbf{}") == "{}"


@pytest.mark.parametrize(
    ("data", "words", "line"),
    [
        ("{}".encode("utf-16"), "UTF-16", 1),
        (b"\xfe\xff\x00{", "UTF-16", 1),
        (b"{\n\n\xff}", "not UTF-8 (byte 3)", 3),
        (b"\xed\xa0\x80", "not UTF-8 (byte 0)", 1),
        (b" " * (MAX_DOCUMENT_BYTES + 1), f"more than {MAX_DOCUMENT_BYTES}", 1),
    ],
)
def test_unreadable(data: bytes, words: str, line: int) -> None:
    with pytest.raises(UnreadableText) as caught:
        decode_document(data)
    assert words in caught.value.problem.message
    assert caught.value.problem.line == line
    assert caught.value.problem.hint


@given(st.text(alphabet="ab\n\r", max_size=40))
def test_places_agree_with_counting(text: str) -> None:
    index = LineIndex(text)
    for offset in range(len(text) + 1):
        before = text[:offset]
        assert index.line(offset) == before.count("\n") + 1
        assert index.place(offset) == (before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("x" * MAX_SHOWN, "x" * MAX_SHOWN),
        ("x" * (MAX_SHOWN + 1), "x" * MAX_SHOWN + "…"),
        ("a\nb\x1b[31m", "a\ufffdb\ufffd[31m"),
    ],
)
def test_cut(text: str, shown: str) -> None:
    assert cut(text) == shown
