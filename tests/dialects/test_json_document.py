"""The JSON reader: agrees with the standard library on all that is JSON, and refuses what only the latter takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from hooksd.dialects.json_document import (
    MAX_DEPTH,
    MAX_INTEGER_DIGITS,
    JsonFault,
    JsonNode,
    JsonSyntaxError,
    kind_of,
    parse_json,
    show,
    to_plain,
)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same types all the way down: 1, 1.0 and true are three different values in JSON."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@given(VALUES, st.sampled_from([None, 0, 3]), st.booleans())
def test_agrees_with_the_standard_library(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert same(to_plain(parse_json(text)), value)


@given(VALUES)
def test_every_offset_is_where_its_value_or_key_stands(value: Any) -> None:
    text = json.dumps(value, indent=1)
    decoder = json.JSONDecoder()

    def check(node: JsonNode) -> None:
        found, _ = decoder.raw_decode(text, node.offset)
        assert same(found, to_plain(node))
        if isinstance(node.value, dict):
            for key, member in node.value.items():
                assert decoder.raw_decode(text, member.key_offset)[0] == key
                check(member)
        elif isinstance(node.value, list):
            for item in node.value:
                assert item.key_offset == item.offset
                check(item)

    check(parse_json(text))


@given(st.text(alphabet=" \n{}[]:,\"\\u0aDdCc8-+.eE1tfrnulsNa'#/\x00é", max_size=24))
@example('"\\ud83d\\ude00"')
@example("[1e400]")
def test_takes_what_a_strict_parser_takes_and_nothing_else(text: str) -> None:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        expected = json.loads(text, parse_constant=refuse)
        json.dumps(expected, ensure_ascii=False).encode()  # no lone surrogate
    except ValueError:
        with pytest.raises(JsonSyntaxError) as caught:
            parse_json(text)
        assert 0 <= caught.value.offset <= len(text)
        assert caught.value.message
    else:
        assert json.dumps(to_plain(parse_json(text))) == json.dumps(expected)


# What is wrong, where, of which kind, and a word of the hint.
FAULTS = [
    ("", JsonFault.EMPTY, 0, None),
    (" \n ", JsonFault.EMPTY, 0, None),
    ("{", JsonFault.UNFINISHED, 1, None),
    ('{"a"', JsonFault.UNFINISHED, 4, None),
    ('{"a":', JsonFault.UNFINISHED, 5, None),
    ('{"a":1', JsonFault.UNFINISHED, 6, None),
    ("[1,", JsonFault.UNFINISHED, 3, None),
    ('["abc', JsonFault.UNFINISHED, 1, None),
    ('"\\', JsonFault.UNFINISHED, 0, None),
    ("[1,]", JsonFault.UNEXPECTED, 2, "remove the comma"),
    ('{"a":1,}', JsonFault.UNEXPECTED, 6, "remove the comma"),
    ("[,]", JsonFault.UNEXPECTED, 1, None),
    ("[}", JsonFault.UNEXPECTED, 1, None),
    ("[1}", JsonFault.UNEXPECTED, 2, None),
    ("{]", JsonFault.UNEXPECTED, 1, None),
    ("{'a':1}", JsonFault.UNEXPECTED, 1, "double quotes"),
    ("['a']", JsonFault.UNEXPECTED, 1, "double quotes"),
    ("{a:1}", JsonFault.UNEXPECTED, 1, None),
    ('{"a\\n" 1}', JsonFault.UNEXPECTED, 7, None),
    ('{"a":1 "b":2}', JsonFault.UNEXPECTED, 7, "comma is missing"),
    ("[NaN]", JsonFault.UNEXPECTED, 1, "true, false and null"),
    ("[-Infinity]", JsonFault.UNEXPECTED, 1, "true, false and null"),
    ("[True]", JsonFault.UNEXPECTED, 1, "true, false and null"),
    ("// c\n{}", JsonFault.UNEXPECTED, 0, "no comments"),
    ("[1 # c\n]", JsonFault.UNEXPECTED, 3, "no comments"),
    ("[1 /* c */]", JsonFault.UNEXPECTED, 3, "no comments"),
    ("[01]", JsonFault.UNEXPECTED, 2, None),
    ("[1.]", JsonFault.UNEXPECTED, 2, None),
    ("[\x01]", JsonFault.UNEXPECTED, 1, None),
    ("{} x", JsonFault.TRAILING, 3, None),
    ("{}{}", JsonFault.TRAILING, 2, None),
    ("1 2", JsonFault.TRAILING, 2, None),
    ('"a\nb"', JsonFault.STRING, 2, "\\n"),
    ('{"a\tb":1}', JsonFault.STRING, 3, "\\t"),
    ('"\\d+"', JsonFault.STRING, 1, "backslash twice"),
    ('"ok\\u12x"', JsonFault.STRING, 3, None),
    ('"\\ud800"', JsonFault.STRING, 1, None),
    ('"\\ud83d\\ude00\\udc00"', JsonFault.STRING, 13, None),
    ('"\\ud83d\\u0041"', JsonFault.STRING, 1, None),
]


@pytest.mark.parametrize(("text", "fault", "offset", "hint"), FAULTS, ids=ascii)
def test_faults(text: str, fault: JsonFault, offset: int, hint: str | None) -> None:
    with pytest.raises(JsonSyntaxError) as caught:
        parse_json(text)
    error = caught.value
    assert (error.fault, error.offset) == (fault, offset)
    if hint is None:
        assert error.hint is None
    else:
        assert error.hint is not None
        assert hint in error.hint


def test_a_character_that_cannot_be_shown_is_named() -> None:
    with pytest.raises(JsonSyntaxError, match=r"U\+0000"):
        parse_json("\0")


def test_duplicate_keys_are_kept_count_of() -> None:
    node = parse_json('{"a": 1, "b": 2, "a": 3, "a": 4}')
    assert to_plain(node) == {"a": 1, "b": 2}
    assert node.duplicates == [("a", 17), ("a", 25)]
    assert parse_json('{"a": 1}').duplicates is None


def test_depth_is_bounded_and_nothing_recurses() -> None:
    assert to_plain(parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)) is not None
    for opening in ("[", '{"a":'):
        with pytest.raises(JsonSyntaxError) as caught:
            parse_json(opening * 1_000_000)
        assert caught.value.fault is JsonFault.LIMIT


def test_the_number_of_values_is_bounded() -> None:
    assert len(parse_json("[" + "1," * 998 + "1]", 1000).value) == 999
    with pytest.raises(JsonSyntaxError) as caught:
        parse_json("[" + "1," * 999 + "1]", 1000)
    assert caught.value.fault is JsonFault.LIMIT
    assert "more than 1000 values" in caught.value.message


def test_huge_numbers() -> None:
    assert parse_json("9" * MAX_INTEGER_DIGITS).value == 10**MAX_INTEGER_DIGITS - 1
    assert parse_json("9" * 100_000).value == float("inf")
    assert parse_json("-1e999").value == float("-inf")


def test_megabytes_of_escapes() -> None:
    assert len(parse_json('"' + "\\n" * 1_000_000 + '"').value) == 1_000_000


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("{}", "an object", "an object"),
        ("[1]", "an array", "an array"),
        ('"a\\nb"', "a string", '"a\ufffdb"'),
        ("true", "a boolean", "true"),
        ("false", "a boolean", "false"),
        ("null", "null", "null"),
        ("1", "a number", "1"),
        ("-1.5", "a number", "-1.5"),
        ("9" * 100, "a number", "9" * 60 + "…"),
    ],
)
def test_words_for_messages(text: str, kind: str, shown: str) -> None:
    node = parse_json(text)
    assert kind_of(node) == kind
    assert show(node) == shown
