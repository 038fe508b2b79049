from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, strategies as st

from hooksd.model.star_patterns import StarPatterns


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("bamboo:user:bamboo:a", "bamboo:user:bamboo:a", True),
        ("bamboo:user:bamboo:a", "bamboo:user:bamboo:A", False),
        ("bamboo:user:bamboo:a", "bamboo:user:bamboo:ab", False),
        ("*", "", True),
        ("*", "a:b\nc", True),
        ("bamboo:*:PreToolUse*", "bamboo:user:x:PreToolUse[0].hooks[1]", True),
        ("bamboo:*:PreToolUse*", "chrys:user:x:PreToolUse[0].hooks[1]", False),
        ("*_TOKEN", "GH_TOKEN", True),
        ("*_TOKEN", "GH_TOKEN\n", False),
        ("AWS_*", "AWS_", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "abbc", True),
        ("a*b*c", "acbc", True),
        ("a*b*c", "acb", False),
        ("a*b*b", "ab", False),
        ("[0]?.", "[0]?.", True),
        ("[0]", "0", False),
        (".", "x", False),
        ("", "", True),
        ("", "x", False),
    ],
)
def test_only_the_star_is_special(pattern: str, name: str, fits: bool) -> None:
    assert StarPatterns([pattern]).fits(name) is fits


def test_one_of_several_is_enough() -> None:
    patterns = StarPatterns(["x", "a*", "*z"])

    assert [name for name in ("x", "abc", "yz", "y") if patterns.fits(name)] == ["x", "abc", "yz"]
    assert not StarPatterns([]).fits("")
    assert patterns.patterns == ("x", "a*", "*z")


few = st.text(alphabet="ab*:\n", max_size=8)


@given(few, st.text(alphabet="ab:\n", max_size=10))
@example("*a*", "ba")
def test_it_agrees_with_a_regular_expression(pattern: str, name: str) -> None:
    expression = ".*".join(map(re.escape, pattern.split("*")))

    assert StarPatterns([pattern]).fits(name) is bool(re.fullmatch(expression, name, re.DOTALL))


def test_many_stars_are_no_trap() -> None:
    began = time.monotonic()

    assert not StarPatterns(["*a" * 200 + "*b"]).fits("a" * 20_000)
    assert not StarPatterns(["*" * 200 + "b"]).fits("a" * 20_000)
    assert time.monotonic() - began < 5
