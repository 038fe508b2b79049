"""Trace contexts: what is taken over, what is refused, what is made."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hooksd.pipeline.trace import Trace


TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
GIVEN = f"00-{TRACE_ID}-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    "given_text", [GIVEN, GIVEN.replace("00-", "cc-", 1), "cc" + GIVEN[2:] + "-more-fields"]
)
def test_a_good_one_is_handed_on_unchanged(given_text: str) -> None:
    assert Trace.parse(given_text) == Trace(traceparent=given_text, trace_id=TRACE_ID)


@pytest.mark.parametrize(
    ("given_text", "why"),
    [
        ("", "expected"),
        ("garbage", "expected"),
        (GIVEN.upper(), "expected"),
        (GIVEN + "\n", "expected"),
        (GIVEN[:-1], "expected"),
        ("cc" + GIVEN[2:] + "-" + "x" * 600, "expected"),
        ("ff" + GIVEN[2:], "ff"),
        (GIVEN + "-more", "four fields"),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", "trace id"),
        (f"00-{TRACE_ID}-{'0' * 16}-01", "parent id"),
    ],
)
def test_a_bad_one_is_refused_with_the_reason(given_text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Trace.parse(given_text)


def test_a_new_one_is_good_and_unlike_any_other() -> None:
    one, other = Trace.new(), Trace.new()

    assert Trace.parse(one.traceparent) == one
    assert one.trace_id != other.trace_id


@given(st.text())
def test_arbitrary_text_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Trace.parse(text)
