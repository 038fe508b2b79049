"""Python's patterns on an engine that can be stopped: the same matches, the same refusals."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import assume, given, settings, strategies as st

from hooksd.dialects.python_patterns import (
    MAX_PATTERN,
    check_python_pattern,
    compile_python_pattern,
    for_engine,
)


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        ("a{e}", r"a\{e}"),
        ("{}", r"\{}"),
        ("a{1,2}b{,3}c{4}d{5,}", "a{1,2}b{,3}c{4}d{5,}"),
        (r"\{e}", r"\{e}"),
        ("[[:alpha:]]", r"[\[:alpha:]]"),
        (r"[]\]]{e}[]a]{e}", r"[]\]]\{e}[]a]\{e}"),
        (r"[^][]x", r"[^]\[]x"),
    ],
)
def test_what_the_engine_reads_otherwise_is_rewritten(pattern: str, written: str) -> None:
    assert for_engine(pattern) == written


def test_a_comment_of_a_verbose_pattern_opens_no_set() -> None:
    pattern = "(?x) a # [\n {e} # ]"

    assert compile_python_pattern(pattern).search("a{e}") is not None
    assert compile_python_pattern(pattern).search("b") is None


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("(a", "missing ), unterminated subpattern (at character 1)"),
        (r"\p{L}", "bad escape \\p (at character 1)"),
        ("a{99999999999999999999}", "the repetition number is too large"),
        ("(" * 5000 + ")" * 5000, "recursion"),
        ("(?<=a+)b", "look-behind requires fixed-width pattern"),
        ("x" * (MAX_PATTERN + 1), f"more than {MAX_PATTERN}"),
    ],
)
def test_what_python_does_not_take_is_told_in_its_words(pattern: str, told: str) -> None:
    fault = check_python_pattern(pattern)

    assert fault is not None
    assert told in fault.message


def test_what_only_the_engine_refuses_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import regex

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise regex.error("too odd")

    monkeypatch.setattr(regex, "compile", refuse)

    fault = check_python_pattern("only-here-0")

    assert fault is not None
    assert "too odd (the engine of hooksd)" in fault.message


def test_good_ones_have_no_fault() -> None:
    assert check_python_pattern(r"^/etc/|\.py$") is None


_pieces = st.lists(
    st.sampled_from(
        [
            *"ab[]{}()|*+?^$\\.,-:&~1e#= \n",
            *(
                "(?:",
                "(?=",
                "(?!",
                "(?<=",
                r"\d",
                r"\b",
                "[^",
                "{1,2}",
                "{,2}",
                "{e}",
                "[:alpha:]",
                "(?i)",
                "(?x)",
            ),
            *("(?P<n>", "[a-b", "||", "--", "&&", "(?s)", "*?", "++"),
        ]
    ),
    max_size=9,
)


@settings(deadline=None)
@given(_pieces, st.lists(st.text(alphabet="ab[]{}e1:,\n &-#", max_size=8), max_size=4))
def test_every_pattern_that_python_takes_finds_the_same(pieces: list[str], texts: list[str]) -> None:
    pattern = "".join(pieces)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ours = re.compile(pattern)
        except (re.error, OverflowError):
            assume(False)
        for text in texts:
            found, expected = compile_python_pattern(pattern).search(text), ours.search(text)
            assert (found and found.span()) == (expected and expected.span())
