"""Patterns: 130 hard cases with the verdict of Rust's engine, what the linter refuses, bounds, and hypothesis.

The cases' `rust` column is what Rust's regex crate said (through polars), `hooksd` what RE2 behind the linter says.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import re2
from hypothesis import given, strategies as st

from hooksd.dialects.name_patterns import (
    MATCHER_MEMORY_BYTES,
    MAX_FAULTS,
    MAX_PATTERN,
    check_name_pattern,
    compile_options,
)


CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("name_pattern_cases.json").read_text())
ASCII_ONLY = ("\\d", "\\w", "\\s", "\\b")


def verdict(pattern: str, text: str) -> str:
    if check_name_pattern(pattern):
        return "refused"
    return "match" if re2.compile(pattern, compile_options()).search(text) else "no match"


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case["pattern"][:24]))
def test_the_130_cases(case: dict[str, Any]) -> None:
    assert verdict(case["pattern"], case["text"]) == case["hooksd"]


def test_no_difference_is_silent_but_the_documented_one() -> None:
    assert len(CASES) == 130
    for case in CASES:
        if case["hooksd"] not in ("refused", case["rust"]):
            assert case["difference"] == "ascii classes"
            assert any(escape in case["pattern"] for escape in ASCII_ONLY), case
            assert not case["text"].isascii(), case


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "anything", True),
        ("Bash", "MyBashTool", True),
        ("^Bash$", "Bash\n", False),
        ("bash", "Bash", False),
        ("(?i)bash", "Bash", True),
        ("Write|Edit", "NotebookEdit", True),
        (r"a\z", "a", True),
        ("[[:alpha:]]", "x", True),
        ("(?P<n>a)", "a", True),
        (".", "\n", False),
    ],
)
def test_the_reference_s_own_probe(pattern: str, text: str, matches: bool) -> None:
    """Bamboo dialect 1.4."""
    assert verdict(pattern, text) == ("match" if matches else "no match")


def test_case_09_an_anchored_choice() -> None:
    """The number is that of the reference's own case."""
    assert verdict("^(bash|write_file)$", "bash") == "match"
    assert verdict("^(bash|write_file)$", "write_file") == "match"
    assert verdict("^(bash|write_file)$", "read_file") == "no match"


@pytest.mark.parametrize(
    "pattern", ["*", "(?=B)B", r"^(a)\1$", "(?>a)", "[", "{", r"\Z", r"\h", r"\y", "(?P=n)", "(?(1)a|b)"]
)
def test_what_the_reference_refuses_is_refused(pattern: str) -> None:
    assert check_name_pattern(pattern)


def test_a_star_alone_says_what_to_write() -> None:
    (fault,) = check_name_pattern("*")
    assert fault.hint == "write .* or leave matcher out to match every tool"
    assert fault.offset == 0


# What the linter refuses though RE2 would take it, where it says so, and what it says.
LINTED = [
    ("a{,5}", 1, "repetition"),
    ("a{ 2}", 1, "repetition"),
    ("{", 0, "repetition"),
    ("x{1", 1, "repetition"),
    (r"\<foo", 0, "word edge"),
    (r"foo\>", 3, "word edge"),
    (r"[\<]", 1, "word edge"),
    (r"\C", 0, "any byte"),
    (r"\Qa.b\E", 0, "\\Q"),
    (r"a\Z", 1, "\\Z"),
    (r"\101", 0, "octal"),
    (r"(a)\1", 3, "back-references"),
    (r"\b{start}x", 0, "\\b{…}"),
    (r"\p{^L}", 0, "\\p{^L}"),
    (r"\P{^Lu}", 0, "\\P{^Lu}"),
    (r"\x{d800}", 0, "surrogate"),
    (r"[\x{0DFFF}]", 1, "surrogate"),
    ("[a&&b]", 2, "set operation"),
    ("[a--b]", 2, "set operation"),
    ("[--x]", 1, "set operation"),
    ("[a~~b]", 2, "set operation"),
    ("[a[bc]]", 2, "class in a class"),
    ("[[a]", 1, "class in a class"),
    ("[[.a.]]", 1, "class in a class"),
    (r"[\d-z]", 3, "single characters"),
    (r"[\pL-z]", 4, "single characters"),
    ("[[:alpha:]-z]", 10, "single characters"),
    ("[abc", 0, "never closed"),
    ("x[^]", 1, "never closed"),
    ("[a\\", 0, "never closed"),
    ("(?ii)a", 0, "each flag once"),
    ("(?i-i:a)", 0, "each flag once"),
    ("(?)a", 0, "each flag once"),
    ("(?i-)a", 0, "each flag once"),
    ("(?i)*a", 4, "nothing to repeat"),
    ("(?m){2}a", 4, "nothing to repeat"),
]


@pytest.mark.parametrize(("pattern", "offset", "words"), LINTED, ids=ascii)
def test_linter(pattern: str, offset: int, words: str) -> None:
    fault = check_name_pattern(pattern)[0]
    assert words in fault.message
    assert fault.offset == offset


@pytest.mark.parametrize(
    "pattern",
    [
        r"a{2}b{2,}c{2,5}",
        r"\{literal\}",
        "}",
        "]",
        "[]a]",
        "[^]a]",
        "[a-]",
        "[-a]",
        r"[\w-]",
        r"[\]\[\&&\-]",
        "[[:^digit:]x]",
        r"\x{41}[\x{42}-\x{43}]\x44",
        r"\p{Greek}\PL",
        "(?i)a(?-i:b)(?s-m:c)",
        "(?:a)(?P<n>b)(?<m>c)",
        "(?i)",
        r"\b\B^$\A\z",
        r"a\\b",
    ],
)
def test_what_means_the_same_is_taken(pattern: str) -> None:
    assert check_name_pattern(pattern) == []


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("(?=a)", "look-around"),
        ("(?#c)", "comments"),
        ("(?x) a", "no (?x)"),
        ("(?u)a", "the flags are i, m, s and U"),
        ("(?P<a.b>x)", "letters, digits and _"),
        ("a**", "one repetition cannot follow another"),
        ("a{1001}", "at most 1000"),
        (r"\p{Letter}", "short names"),
        (r"\u0041", "\\x{41}"),
        ("(a", "\\("),
        ("a)", "\\)"),
        ("+a", "backslash"),
        (r"\pL{1000}", "smaller"),
        (r"\h", None),
    ],
)
def test_what_the_engine_refuses_comes_with_a_hint(pattern: str, hint: str | None) -> None:
    (fault,) = check_name_pattern(pattern)
    assert fault.message.startswith("invalid regular expression: ")
    if hint is None:
        assert fault.hint is None
    else:
        assert fault.hint is not None
        assert hint in fault.hint


def test_every_fault_is_told_up_to_a_bound() -> None:
    assert [fault.offset for fault in check_name_pattern(r"a{,5}\<[a&&b]")] == [1, 5, 9]
    assert len(check_name_pattern("{" * 1000)) == MAX_FAULTS


def test_counted_repetitions_are_bounded_together() -> None:
    """Each of these would stop the whole process for minutes."""
    began = time.monotonic()
    for pattern in ("a{1,1000}" * 100, "(?:b{30}c{2,40})" * 400):
        (fault,) = check_name_pattern(pattern)
        assert "more than 1000 together" in fault.message
        assert fault.offset > 0
    assert time.monotonic() - began < 5

    assert check_name_pattern("a{500}b{1,499}c{1,}") == []
    assert check_name_pattern(r"\{600}" * 2) == []


def test_a_pattern_may_not_be_endless() -> None:
    assert check_name_pattern("a" * MAX_PATTERN) == []
    (fault,) = check_name_pattern("a" * (MAX_PATTERN + 1))
    assert str(MAX_PATTERN) in fault.message


def test_options_are_silent_and_bounded() -> None:
    options = compile_options()
    assert (options.log_errors, options.case_sensitive, options.max_mem) == (
        False,
        True,
        MATCHER_MEMORY_BYTES,
    )
    assert compile_options(1 << 20).max_mem == 1 << 20


def test_a_hostile_pattern_takes_no_time_to_match() -> None:
    assert verdict(r"^(\w+_?)*$", "a" * 10_000 + "!") == "no match"


@given(st.text(alphabet=r"ab.*+?{}[]()|^$\-&~:<>=!,123QECZbBdpPLxi ", max_size=12))
def test_whatever_is_taken_compiles(pattern: str) -> None:
    faults = check_name_pattern(pattern)
    if faults:
        assert all(fault.message and 0 <= fault.offset <= len(pattern) for fault in faults)
    else:
        re2.compile(pattern, compile_options()).search("a")


@given(st.text(max_size=30))
def test_never_raises(pattern: str) -> None:
    check_name_pattern(pattern)
