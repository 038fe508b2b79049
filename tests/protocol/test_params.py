"""What is wrong with params, in words of ours."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given, strategies as st

from hooksd.model.errors import ProtocolError
from hooksd.protocol.errors import ErrorCode
from hooksd.protocol.methods import METHODS
from hooksd.protocol.params import decode_params, invalid_params


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    colour: Colour | None = None
    colours: tuple[Colour, ...] = ()
    level: Literal[1, 2] = 1
    mood: Annotated[Colour, msgspec.Meta(description="told in the schema")] = Colour.RED


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=3)]
    count: Annotated[int, msgspec.Meta(ge=0, le=9)] | None = None
    flag: bool = False
    ratio: float = 0.0
    words: Annotated[tuple[str, ...], msgspec.Meta(max_length=2)] = ()
    table: dict[str, str] = {}
    anything: Any = None
    inner: Inner | None = None
    shape: Inner | str | None = None

    def __post_init__(self) -> None:
        if self.text == "own":
            raise ValueError("`text` must not be own")
        if self.text == "odd":
            raise ValueError("something else")


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


def refusal(params, struct=Params):
    with pytest.raises(ProtocolError) as caught:
        decode_params(msgspec.json.Decoder(struct), struct, msgspec.Raw(json.dumps(params).encode()), "a/b")
    return caught.value


def test_good_params():
    decoder = msgspec.json.Decoder(Params)

    assert decode_params(decoder, Params, msgspec.Raw(b'{"text":"a"}'), "a/b") == Params(text="a")


@pytest.mark.parametrize(
    ("params", "place", "words"),
    [
        ({}, "text", "is missing"),
        ({"text": "a", "txt": 1}, "txt", "is not known; known are `text`, `count`, `flag`"),
        ({"text": 1}, "text", "must be a string, not an integer"),
        ({"text": None}, "text", "must be a string, not null"),
        ({"text": ""}, "text", "must have at least 1 characters"),
        ({"text": "abcd"}, "text", "must have at most 3 characters"),
        ({"text": "a", "count": -1}, "count", "must be at least 0"),
        ({"text": "a", "count": 10}, "count", "must be at most 9"),
        ({"text": "a", "count": 1.5}, "count", "must be an integer or null, not a number"),
        ({"text": "a", "count": "1"}, "count", "must be an integer or null, not a string"),
        ({"text": "a", "flag": 1}, "flag", "must be true or false, not an integer"),
        ({"text": "a", "ratio": []}, "ratio", "must be a number, not an array"),
        ({"text": "a", "words": "x"}, "words", "must be an array, not a string"),
        ({"text": "a", "words": ["x", 1]}, "words[1]", "must be a string, not an integer"),
        ({"text": "a", "words": ["x"] * 3}, "words", "must have at most 2 items"),
        ({"text": "a", "table": {"k": 1}}, "table[...]", "must be a string, not an integer"),
        ({"text": "a", "inner": []}, "inner", "must be an object or null, not an array"),
        ({"text": "a", "inner": {"color": 1}}, "inner.color", "is not known; known are `colour`, `colours`, `level`, `mood`"),
        ({"text": "a", "inner": {"colour": "x"}}, "inner.colour", "must be one of 'red', 'blue', not 'x'"),
        ({"text": "a", "inner": {"colours": ["red", "x"]}}, "inner.colours[1]", "must be one of 'red', 'blue', not 'x'"),
        ({"text": "a", "inner": {"level": 3}}, "inner.level", "must be one of 1, 2, not 3"),
        ({"text": "a", "inner": {"mood": "x"}}, "inner.mood", "must be one of 'red', 'blue', not 'x'"),
        ({"text": "own"}, "text", "must not be own"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_place(params, place, words):
    error = refusal(params)

    assert error.code == ErrorCode.INVALID_PARAMS
    assert error.kind == "invalid_params"
    assert error.message.startswith(f"a/b: `params.{place}` {words}")
    assert [problem.path for problem in error.problems] == [f"params.{place}"]


def test_a_fault_of_no_field():
    error = refusal({"text": "odd"})

    assert error.message == "a/b: `params` cannot be used: something else"


def test_a_number_that_cannot_be_represented():
    with pytest.raises(ProtocolError) as caught:
        decode_params(
            msgspec.json.Decoder(Params), Params, msgspec.Raw(b'{"text":"a","anything":{"x":1e999}}'), "a/b"
        )

    assert caught.value.message == "a/b: `params.anything[...]` cannot be used: Number out of range"


def test_params_that_are_no_object():
    assert refusal([]).code == ErrorCode.INVALID_PARAMS
    assert "named members, not an array" in refusal([]).message
    for value in (1, "x", None, True, 1.5):
        assert refusal(value).code == ErrorCode.INVALID_REQUEST


def test_a_method_without_params():
    error = refusal({"a": 1}, Nothing)

    assert error.message == "a/b: `params.a` is not known; known are none"


def test_long_values_are_cut():
    assert len(refusal({"text": "a", "x" * 10_000: 1}).message) < 600
    assert len(refusal({"text": "a", "inner": {"colour": "x" * 10_000}}).message) < 400


def test_invalid_params_of_a_method_itself():
    error = invalid_params("event", "must be an observer")

    assert error.message == "`params.event` must be an observer"
    assert invalid_params("", "must be so", method="x").message == "x: `params` must be so"


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
FIELDS = sorted({name for method in METHODS.values() for name in method.params.__struct_fields__})


@given(st.sampled_from(sorted(METHODS)), st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6) | JSON)
def test_any_params_of_any_method_are_taken_or_refused(name, params):
    method = METHODS[name]
    text = json.dumps(params, allow_nan=False) if _finite(params) else "{}"
    refusals = []
    try:
        decode_params(msgspec.json.Decoder(method.params), method.params, msgspec.Raw(text.encode()), name)
    except ProtocolError as error:
        refusals.append(error.code)

    assert refusals in ([], [ErrorCode.INVALID_PARAMS], [ErrorCode.INVALID_REQUEST])


def _finite(value):
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    return all(map(_finite, value)) if isinstance(value, list) else True
