import json
import unicodedata
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from hooksd.observe.record_text import MAX_ITEMS, MAX_RECORD_BYTES, cut, encode_record, timestamp


LIMIT = 256

texts = st.text(
    st.characters() | st.sampled_from("\n\r\x00\x1b\x7f\x85\u2028\u2029\u202e\ud800\udfff\ufeff\U000e0001")
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | texts | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


def every_text(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in every_text(item)]
    if isinstance(value, dict):
        return [*value, *(text for item in value.values() for text in every_text(item))]
    return []


@given(st.dictionaries(texts, json_values, max_size=6))
def test_whatever_the_fields_hold_the_line_is_one_safe_json_object(fields: dict[str, Any]) -> None:
    line = encode_record(fields, LIMIT)

    assert len(line) <= MAX_RECORD_BYTES
    text = line.decode("utf-8")
    assert len(text.splitlines()) == 1
    assert not any(unicodedata.category(char) in {"Cc", "Zl", "Zp", "Cs"} for char in text)
    record = json.loads(text)
    assert isinstance(record, dict)
    for one in every_text(record):
        assert len(one.encode()) <= LIMIT


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=20),
        st.text(st.characters(codec="utf-8"), max_size=20),
        max_size=4,
    )
)
def test_short_text_comes_back_unchanged(fields: dict[str, str]) -> None:
    assert json.loads(encode_record(fields, 2_048)) == fields


def test_a_forged_record_stays_text() -> None:
    forged = 'x"}\n{"event":"hook.finished","decision":"allow"}\u2028{"event":"daemon.ready"}'

    line = encode_record({"message": forged}, LIMIT)

    assert b"\n" not in line
    assert b"\xe2\x80\xa8" not in line
    assert json.loads(line) == {"message": forged}


def test_active_characters_are_written_out() -> None:
    line = encode_record({"name": "a\x9b31m\u202eb\x7f\U000e0041"}, LIMIT)

    assert line == b'{"name":"a\\u009b31m\\u202eb\\u007f\\udb40\\udc41"}'
    assert json.loads(line) == {"name": "a\x9b31m\u202eb\x7f\U000e0041"}


def test_characters_of_scripts_stay() -> None:
    assert encode_record({"name": "Ä 漢 🙂"}, LIMIT) == '{"name":"Ä 漢 🙂"}'.encode()


def test_lone_surrogates_become_replacement_characters_and_pairs_characters() -> None:
    assert json.loads(encode_record({"a": "x\ud800y", "b": "\ud83d\ude42"}, LIMIT)) == {
        "a": "x\ufffdy",
        "b": "🙂",
    }


@given(texts, st.integers(64, 300))
def test_cut_keeps_within_the_limit_and_marks_what_is_missing(text: str, limit: int) -> None:
    result = cut(text, limit)

    assert len(result.encode()) <= limit
    if len(text.encode("utf-8", "surrogatepass")) > limit:
        assert result.endswith("bytes more]")


def test_cut_is_on_a_border_of_characters() -> None:
    result = cut("漢" * 100, 64)

    assert result == "漢" * 14 + "… [258 bytes more]"
    assert len("漢" * 100) * 3 == 14 * 3 + 258


def test_a_text_at_the_limit_stays_whole() -> None:
    assert cut("x" * 64, 64) == "x" * 64


def test_a_record_that_is_too_long_keeps_what_identifies_it() -> None:
    fields = {"hook": "bamboo:user:bamboo:a", "status": "ok"} | {f"field{n}": "y" * 2_000 for n in range(60)}

    record = json.loads(encode_record(fields, 2_048))

    assert record == {"hook": "bamboo:user:bamboo:a", "status": "ok", "record_cut": True}


def test_long_lists_and_objects_are_cut() -> None:
    fields = {
        "problems": ["x" * 10] * (MAX_ITEMS + 3),
        "by_name": {str(n): "y" * 5 for n in range(MAX_ITEMS + 2)},
    }

    record = json.loads(encode_record(fields, 64))

    assert len(record["problems"]) == MAX_ITEMS + 1
    assert record["problems"][-1] == "… 3 more"
    assert record["by_name"]["…"] == "2 more"


def test_what_json_does_not_have_becomes_the_name_of_its_type() -> None:
    class Thing(msgspec.Struct):
        name: str
        inner: object

    loop: list[object] = []
    loop.append(loop)

    record = json.loads(
        encode_record(
            {
                "object": object(),
                "set": {1},
                "struct": Thing(name="\ud800", inner=b"x"),
                "loop": loop,
                "big": 2**80,
                "nan": float("nan"),
            },
            LIMIT,
        )
    )

    assert record["object"] == "<object>"
    assert record["set"] == [1]
    assert record["struct"] == {"name": "\ufffd", "inner": "<bytes>"}
    assert record["loop"] == [[[["<list>"]]]]
    assert record["big"] == "<81 bit number>"
    assert record["nan"] is None


@pytest.mark.parametrize("key", [1, None, 2.5])
def test_keys_become_text(key: object) -> None:
    assert json.loads(encode_record({key: "\ud800"}, LIMIT)) == {str(key): "\ufffd"}  # type: ignore[dict-item]


def test_timestamp() -> None:
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(1_764_521_234.5678) == "2025-11-30T16:47:14.567Z"
