"""YAML with positions: the safe loader's own values, bounded, and every fault located."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from hooksd.dialects.json_document import MAX_DEPTH, JsonNode, to_plain
from hooksd.dialects.yaml_document import kind_of, parse_yaml


def plain(text: str) -> Any:
    parsed = parse_yaml(text)
    assert parsed.faults == ()
    return None if parsed.root is None else to_plain(parsed.root)


def faults(text: str) -> list[tuple[int, str]]:
    return [(fault.offset, fault.message) for fault in parse_yaml(text).faults]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "--- ~\n",
        "a: 1\nb: [on, Off, YES, no, true, y, n]\n",
        "a: [010, 0o10, 0x1f, 0b11, 1_000, 1:30, -5, +7]\n",
        "a: [1.5, 1e3, 5e-1, 1.0e+3, .5, .inf, -.INF, 190:20:30.15]\n",
        "a: [~, null, NULL, '', '~']\n",
        "a: [2024-01-31, 2024-01-31T10:00:00Z, '2024-01-31']\n",
        "a: !!str 10\nb: ! 10\nc: !!int '5'\nd: !!float 3\ne: !!bool 'yes'\nf: !!null ''\ng: !!binary aGk=\n",
        "a: |\n  one\n  two\nb: >\n  one\n  two\n",
        "a: &x {p: 1, q: [1, 2]}\nb: *x\nc: [*x, *x]\n",
        "a: &x {p: 1, q: 1}\nb: {<<: *x, q: 2}\n",
        "a: &x {p: 1}\nb: &y {p: 2, r: 3}\nc: {<<: [*x, *y], s: 4}\n",
        "a: {'<<': 1}\n",
        "[]",
        "just text",
        'é: ünï\nlist:\n- 日本\n- "\\u00e9\\U0001F600"\n',
        "a: 1\r\nb: 2\r\n",
        "? a\n: 1\n",
        "%YAML 1.1\n---\na: 1\n...\n",
        "a: !!map {b: !!seq [1]}\n",
    ],
)
def test_values_are_those_of_the_safe_loader(text: str) -> None:
    assert plain(text) == yaml.safe_load(text)


def test_not_a_number_is_one_too() -> None:
    assert math.isnan(plain("a: .nan")["a"])


def test_every_node_knows_where_it_stands() -> None:
    text = "# é\r\na: 1\r\nb:\r\n  - 'x'\r\n  - {c: d}\r\n"
    root = parse_yaml(text).root
    assert root is not None

    b = root.value["b"]
    c = b.value[1].value["c"]

    assert text[root.value["a"].key_offset :].startswith("a: 1")
    assert text[root.value["a"].offset :].startswith("1\r\n")
    assert text[b.key_offset :].startswith("b:")
    assert text[b.value[0].offset :].startswith("'x'")
    assert (text[c.key_offset :][:4], text[c.offset :][:1]) == ("c: d", "d")


def test_the_first_of_two_keys_counts_and_the_other_is_kept_count_of() -> None:
    text = "a: 1\nb: {c: 1, c: 2}\na: 3\na: 4\n"
    root = parse_yaml(text).root
    assert root is not None

    assert to_plain(root) == {"a": 1, "b": {"c": 1}}
    assert root.duplicates == [("a", text.index("a: 3")), ("a", text.index("a: 4"))]
    assert root.value["b"].duplicates == [("c", text.index("c: 2"))]


def test_a_key_that_a_merge_brings_too_is_no_duplicate() -> None:
    root = parse_yaml("a: &x {p: 1}\nb: {p: 2, <<: *x}\n").root

    assert root is not None
    assert root.value["b"].duplicates is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: b: c", [(4, "not YAML: mapping values are not allowed in this context")]),
        (
            "a: 'x\n",
            [
                (
                    6,
                    "not YAML: found unexpected end of stream (while scanning a quoted scalar, which began in line 1)",
                )
            ],
        ),
        (
            "a: @x",
            [
                (
                    3,
                    "not YAML: found character that cannot start any token (while scanning for the next token, which began in line 1)",
                )
            ],
        ),
        ("a: \x01", [(3, "the character U+0001, which YAML does not allow")]),
        ("a: \ufeff", [(3, "the character U+FEFF, which YAML does not allow")]),
        ("a: *b", [(3, "there is no anchor &b before this alias")]),
        ("a: &a [1, *a]", [(10, "*a stands for something that it is a part of")]),
        (
            "a: &x 1\nb: &x 2\nc: &x []",
            [(11, "there are two anchors &x"), (19, "there are two anchors &x")],
        ),
        ("a: &x [&x 1]", [(7, "there are two anchors &x")]),
        ("a: 1\n--- \nb: 2\n", [(5, "a second document begins here")]),
        ("a: 2024-02-31", [(3, "this is read as timestamp, and is none (day is out of range for month)")]),
        ("a: !!bool maybe", [(3, "this is read as bool, and is none (not the form of bool)")]),
        ("a: =", [(3, "the tag value means nothing here")]),
        ("a: !x {b: 1}", [(3, "the tag !x means nothing here")]),
        ("a: !!set {b}", [(3, "the tag set means nothing here")]),
        ("a: !!seq {b: 1}", [(3, "the tag seq means nothing here")]),
        ("<<: 1", [(4, "`<<` merges a mapping or a list of mappings")]),
        ("1: x", [(0, "a key must be a string; this one is read as a number")]),
        ("on: x", [(0, "a key must be a string; this one is read as a boolean")]),
        ("? [a]\n: 1", [(2, "a key must be a string; this one is read as a list")]),
        ("2024-01-01: x", [(0, "a key must be a string; this one is read as a date")]),
        ("? !!binary aGk=\n: 1", [(2, "a key must be a string; this one is read as binary data")]),
        ("? {a: 1}\n: 1", [(2, "a key must be a string; this one is read as a mapping")]),
        ("a: !!int 9" + "9" * 5000, None),
    ],
)
def test_what_a_safe_loader_refuses_is_told_with_its_place(text: str, expected: Any) -> None:
    found = faults(text)

    assert found == expected if expected is not None else len(found) == 1


def test_reading_goes_on_after_a_bad_value() -> None:
    assert [offset for offset, _ in faults("a: !!int x\nb: !y z\n1: 2\nc: =\n")] == [3, 14, 19, 27]


def test_aliases_cannot_grow_into_more_than_there_is_room_for() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    (found,) = faults("\n".join(lines))

    assert "more than 1000000 values" in found[1]


@pytest.mark.parametrize(
    "text",
    [
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "a: &a " + "[" * 100 + "]" * 100 + "\nb: " + "[" * 50 + "*a" + "]" * 50,
        "[" * 5000,
    ],
)
def test_depth_is_bounded_and_aliases_count(text: str) -> None:
    (found,) = faults(text)

    assert "nest" in found[1]


def test_the_deepest_that_is_allowed() -> None:
    assert faults("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []


def test_without_libyaml_the_same_comes_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml, "__with_libyaml__", False)

    assert plain("a: [1, on]\n") == {"a": [1, True]}
    assert faults("a: b: c")[0][0] == 4


def test_kinds_have_words() -> None:
    kinds = [kind_of(JsonNode(value, 0, 0)) for value in ({}, [], "", 1, None, True, b"")]

    assert kinds == ["a mapping", "a list", "a string", "a number", "null", "a boolean", "binary data"]


_keys = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=8)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(_keys, children, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=60)
@given(_values, st.sampled_from([None, False, True]), st.booleans())
def test_whatever_is_dumped_is_read(value: Any, flow: bool | None, unicode: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=unicode)

    assert plain(text) == yaml.load(text, Loader=yaml.CSafeLoader)


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="ab01:-?[]{},&*!|>'\"%#@`<~. \n\t\\é\x00\ufeff", max_size=40))
def test_any_text_is_read_or_told_and_agrees_with_the_loader(text: str) -> None:
    parsed = parse_yaml(text)
    assert all(0 <= fault.offset <= len(text) for fault in parsed.faults)
    try:
        value = yaml.load(text, Loader=yaml.CSafeLoader)
    except Exception:
        assert parsed.faults
        return
    if not parsed.faults and not _has_duplicates(parsed.root):
        assert parsed.root is None or repr(to_plain(parsed.root)) == repr(_ordered(value, parsed.root))


def _has_duplicates(node: JsonNode | None) -> bool:
    if node is None:
        return False
    members = (
        node.value.values()
        if isinstance(node.value, dict)
        else node.value
        if isinstance(node.value, list)
        else ()
    )
    return bool(node.duplicates) or any(_has_duplicates(member) for member in members)


def _ordered(value: Any, node: JsonNode) -> Any:
    """The loader's value with the keys in our order, since a merge puts them elsewhere."""
    if isinstance(value, dict):
        assert value.keys() == node.value.keys()
        return {key: _ordered(value[key], member) for key, member in node.value.items()}
    if isinstance(value, list):
        return [_ordered(item, member) for item, member in zip(value, node.value, strict=True)]
    return value
