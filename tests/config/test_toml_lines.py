from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hooksd.config.toml_lines import Path, dotted, key_lines, nearest_line


DOCUMENT = '''\
# a comment with "a quote and = [ {
a = 1 # ]
"q\\u0041.b" . 'c' = """
hi "" # [no.table]
"""
[limits]
max_depth = 4

[[source]]
name = "x"
agents = [
  "a", # ] not the end
  "b",
]
inl = { p = 1, "k l" = [1, {z = 2}], d = 1979-05-27 07:32:00, f= -1.5e+3 }
[[source]]
[source.sub]
y = \'\'\'
a\'\'\'
[[source.deep.er]]
y = 2
[[source.deep.er]]
  z.w = true
[ limits . more ]
'''


def test_every_key_table_and_element_has_its_line() -> None:
    tomllib.loads(DOCUMENT)

    lines = {dotted(path): line for path, line in key_lines(DOCUMENT).items()}

    assert lines == {
        "a": 2,
        '["qA.b"]': 3,
        '["qA.b"].c': 3,
        "limits": 6,
        "limits.max_depth": 7,
        "source": 9,
        "source[0]": 9,
        "source[0].name": 10,
        "source[0].agents": 11,
        "source[0].agents[0]": 12,
        "source[0].agents[1]": 13,
        "source[0].inl": 15,
        "source[0].inl.p": 15,
        'source[0].inl["k l"]': 15,
        'source[0].inl["k l"][0]': 15,
        'source[0].inl["k l"][1]': 15,
        'source[0].inl["k l"][1].z': 15,
        "source[0].inl.d": 15,
        "source[0].inl.f": 15,
        "source[1]": 16,
        "source[1].sub": 17,
        "source[1].sub.y": 18,
        "source[1].deep.er": 20,
        "source[1].deep.er[0]": 20,
        "source[1].deep.er[0].y": 21,
        "source[1].deep.er[1]": 22,
        "source[1].deep.er[1].z": 23,
        "source[1].deep.er[1].z.w": 23,
        "limits.more": 24,
    }


def test_windows_line_ends_count_once() -> None:
    assert key_lines("a = 1\r\nb = 2\r\n") == {("a",): 1, ("b",): 2}


@pytest.mark.parametrize("text", ["a = [", "a = {", "[[a", "a = [1", "a", "[", "a = {b"])
def test_a_text_that_is_no_toml_ends_too(text: str) -> None:
    key_lines(text)


def test_a_path_without_a_line_has_that_of_what_is_around_it() -> None:
    lines: dict[Path, int] = {("source",): 3, ("source", 0): 3, ("source", 0, "name"): 4}

    assert nearest_line(lines, ("source", 0, "name")) == 4
    assert nearest_line(lines, ("source", 0, "path")) == 3
    assert nearest_line(lines, ("guard", 0)) is None
    assert nearest_line(lines, ()) is None


def test_paths_are_written_as_people_do() -> None:
    assert dotted(()) == ""
    assert dotted(("env", "allow_for", 'a:"b\\', 0)) == 'env.allow_for["a:\\"b\\\\"][0]'
    assert dotted(("", 1)) == '[""][1]'


keys = st.text(alphabet="ab-_.\"'# \\\n=[]", max_size=4)
texts = st.text(alphabet="ab\"'#\\\n=[]{},é", max_size=8)
scalars = st.one_of(
    texts.map(lambda text: '"' + _escaped(text) + '"'),
    texts.map(lambda text: '"""' + _escaped(text).replace("\\n", "\n") + '"""'),
    st.sampled_from(
        ["'a#[=\"'", "'''x\n''y'''", "1", "-1.5e+3", "true", "1979-05-27 07:32:00", "inf", "0xff"]
    ),
)
values: st.SearchStrategy[str] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[ # x ]\n" + ",\n".join(items) + " ]"),
        st.dictionaries(keys, inner, max_size=3).map(
            lambda items: "{" + ", ".join(f'"{_escaped(key)}" = {item}' for key, item in items.items()) + "}"
        ),
    ),
    max_leaves=6,
)
pairs = st.tuples(st.lists(keys, min_size=1, max_size=2), values).map(
    lambda pair: " . ".join(f'"{_escaped(key)}"' for key in pair[0]) + f" = {pair[1]} # end\n"
)
headers = st.sampled_from(["[t]\n", "[[s]]\n", "[[s.s]]\n", '[s."s x"]\n', "[t . u]\n", "[[s]] # [[x]]\n"])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*path, key))


@given(st.lists(st.one_of(pairs, headers), max_size=6).map("".join))
def test_it_finds_what_tomllib_finds(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return

    lines = key_lines(text)

    paths = set(_paths(document))
    # A table that is only named on the way to another one has no place of its own.
    on_the_way = {path for path in paths if any(other[: len(path)] == path for other in lines)}
    assert set(lines) <= paths
    assert paths - set(lines) <= on_the_way
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


@given(st.text(max_size=40))
def test_it_takes_whatever_tomllib_takes(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return

    assert set(key_lines(text)) <= set(_paths(document))
