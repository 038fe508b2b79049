from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
import re2
from hypothesis import example, given, strategies as st

from hooksd.config import matching
from hooksd.config.matching import NameIndex
from hooksd.dialects.name_patterns import compile_options


def plain_search(patterns: list[str | None], name: str) -> list[int]:
    """What RE2 says about each pattern alone."""
    return [
        position
        for position, pattern in enumerate(patterns)
        if pattern is None or re2.search(pattern, name, compile_options())
    ]


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        (None, "Bash", True),
        ("", "Bash", True),
        ("Bash", "MyBashTool", True),
        ("bash", "Bash", False),
        ("(?i)bash", "Bash", True),
        ("^Bash$", "Bash", True),
        ("^Bash$", "Bash\n", False),
        ("^Bash$", "bash", False),
        ("^(Bash|Edit)$", "Edit", True),
        ("^(?:Bash|Edit)$", "Edit", True),
        ("^(?:Bash|Edit)$", "Bash|Edit", False),
        ("^(Bash|Bash)$", "Bash", True),
        ("^Bash|Edit$", "BashX", True),
        ("^(Bash)|Edit$", "BashX", True),
        ("^a.b$", "axb", True),
        ("^mcp__fs__read-file$", "mcp__fs__read-file", True),
        ("^é$", "é", True),
        ("^Bash$", "Bash\ud800", False),
        ("^Bash.$", "Bash\ud800", True),
        (r"\bfoo\b", "a foo b", True),
        ("^$", "", True),
    ],
)
def test_one_pattern(pattern: str | None, name: str, matches: bool) -> None:
    index = NameIndex([pattern])

    assert list(index.matching(name)) == ([0] if matches else [])
    assert not index.refused


def test_positions_come_in_order_whatever_way_they_match() -> None:
    patterns = ["^B", None, "^Bash$", "ash$", "", "^(Bash|Edit)$", "^B", "x"]

    assert list(NameIndex(patterns).matching("Bash")) == [0, 1, 2, 3, 4, 5, 6]
    assert list(NameIndex(patterns[1:3]).matching("Bash")) == [0, 1]
    assert list(NameIndex(patterns[2:3]).matching("Edit")) == []
    assert list(NameIndex([]).matching("Bash")) == []


def test_without_a_tool_name_patterns_do_not_count() -> None:
    assert list(NameIndex(["^B", None, "^Bash$"]).matching(None)) == [0, 1, 2]


def test_a_pattern_that_the_engine_does_not_take_is_told_and_matches() -> None:
    index = NameIndex(["^Bash$", "[", "\ud800", "^E", "["])

    assert set(index.refused) == {1, 2, 4}
    assert "[" in index.refused[1]
    assert list(index.matching("Edit")) == [1, 2, 3, 4]
    assert list(NameIndex(["["]).matching("Edit")) == [0]


def test_patterns_that_do_not_fit_one_set_become_several() -> None:
    patterns: list[str | None] = [f"^mcp__server{number}__(read|write)_[a-z]+$" for number in range(300)]

    index = NameIndex(patterns, set_memory_bytes=200_000)

    assert len(index._sets) > 1
    assert not index.refused
    for number in (0, 149, 299):
        assert list(index.matching(f"mcp__server{number}__read_file")) == [number]


def test_a_pattern_that_fits_no_set_is_refused_alone() -> None:
    index = NameIndex(["a{500}b{500}", "^x+$"], set_memory_bytes=30_000)

    assert list(index.refused) == [0]
    assert "30000 bytes" in index.refused[0]
    assert list(index.matching("xx")) == [0, 1]


def test_a_set_that_runs_out_of_memory_drops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An automaton that finds no memory: its wrapper cannot tell that from no match."""
    search_set = re2.Set.SearchSet

    def exhausted(options: re2.Options) -> object:
        real = search_set(options)
        return SimpleNamespace(Add=real.Add, Compile=real.Compile, Match=lambda text: None)

    monkeypatch.setattr(matching.re2, "Set", SimpleNamespace(SearchSet=exhausted))

    assert list(NameIndex(["^B", "sh$", "x+", None]).matching("Bash")) == [0, 1, 3]


pieces = st.sampled_from(
    ["^", "$", "a", "b", "A", ".", ".*", "(a|b)", "[ab]+", "_", r"\b", "|", "(?i)", "é", ":"]
)
plain = st.lists(st.sampled_from(["a", "b", "ab", "a_b", "a b", "a/b", "a:b"]), min_size=1, max_size=3).map(
    lambda names: f"^({'|'.join(names)})$"
)
patterns_of_all_kinds = st.one_of(
    st.none(),
    st.lists(pieces, max_size=5).map("".join),
    plain,
    plain.map(lambda pattern: pattern.replace("(", "(?:")),
    st.sampled_from(["^a$", "^b$", "^ab$", "^a_b$"]),
)
names = st.text(alphabet="abAB_: /é\n", max_size=5)


@given(st.lists(patterns_of_all_kinds, max_size=12), names)
@example(["^(a|b)$", "^(?:a|b)$", "^a$", "a", None, ""], "a")
def test_it_agrees_with_plain_search(patterns: list[str | None], name: str) -> None:
    assert list(NameIndex(patterns).matching(name)) == plain_search(patterns, name)


def test_ten_thousand_patterns_agree_with_plain_search() -> None:
    choose = random.Random(7)
    tools = [f"Tool{number}" for number in range(40)]
    patterns: list[str | None] = [
        choose.choice(
            [
                f"^{choose.choice(tools)}$",
                f"^({choose.choice(tools)}|{choose.choice(tools)})$",
                f"^Tool{at % 97}[0-9]?$",
            ]
        )
        for at in range(10_000)
    ]

    index = NameIndex(patterns)

    assert list(index.matching("Tool7")) == plain_search(patterns, "Tool7")
    assert list(index.matching("nothing")) == []
