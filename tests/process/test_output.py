from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hooksd.process.output import KeptEnds, KeptHead, is_whole_answer


PIECES = st.lists(st.binary(max_size=40), max_size=12)


@given(PIECES, st.integers(0, 60))
def test_head_is_the_beginning_however_it_is_cut(pieces, limit):
    kept = KeptHead(limit)
    for piece in pieces:
        kept.add(piece)
    whole = b"".join(pieces)
    assert kept.value() == whole[:limit]
    assert kept.total == len(whole)
    assert kept.truncated == (len(whole) > limit)


@given(PIECES, st.integers(0, 60))
def test_ends_are_both_ends_however_they_are_cut(pieces, limit):
    kept = KeptEnds(limit)
    for piece in pieces:
        kept.add(piece)
    whole = b"".join(pieces)
    assert kept.total == len(whole)
    assert kept.truncated == (len(whole) > limit)
    if len(whole) <= limit:
        expected = whole
    else:
        head, tail = whole[: limit // 3], whole[len(whole) - (limit - limit // 3) :]
        expected = head + b"\n[hooksd: %d bytes dropped here]\n" % (len(whole) - limit) + tail
    assert kept.value() == expected


def test_what_is_kept_is_bounded():
    kept = KeptEnds(3000)
    for _ in range(1000):
        kept.add(b"x" * 1000)
    assert len(kept._head) + len(kept._tail) <= 1000 + 2 * 2000 + 1000


@pytest.mark.parametrize(
    "data",
    [b"{}", b"[]", b' \r\n{"a": [1, {}]}\n', b'\xef\xbb\xbf{"a": "\xff"}', b'["]"]'],
)
def test_whole_answers(data):
    assert is_whole_answer(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n",
        b"{",
        b'{"a": 1',
        b'{"a": 1} x',
        b"{}{}",
        b"12",
        b"null",
        b'"text"',
        b"text",
        b"[" * 100_000,
        b"[1,]",
    ],
)
def test_what_may_go_on_or_is_no_answer(data):
    assert not is_whole_answer(data)
