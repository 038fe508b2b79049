from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import example, given, strategies as st

from hooksd_client.wire import DEFAULT_LIMIT, LineSplitter, LineTooLong, encode


def split(chunks: list[bytes], limit: int = 20) -> list[bytes | LineTooLong]:
    splitter = LineSplitter(limit)
    lines = [line for chunk in chunks for line in splitter.receive_data(chunk)]
    return lines + splitter.receive_eof()


def by_definition(stream: bytes, limit: int) -> list[bytes | LineTooLong]:
    """The rule, said as simply as it can be and with the whole stream at hand."""
    found: list[bytes | LineTooLong] = []
    for line in stream.split(b"\n"):
        content = line.removesuffix(b"\r")
        if len(content) > limit:
            found.append(LineTooLong(limit))
        elif content.strip():
            found.append(content)
    return found


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        (b"", []),
        (b"\n", []),
        (b"\r\n", []),
        (b" \t \r\n\n\n", []),
        (b"{}\n", [b"{}"]),
        (b"{}\r\n", [b"{}"]),
        (b"{}\r\r\n", [b"{}\r"]),
        (b" {}\n", [b" {}"]),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\rb\n", [b"a\rb"]),
        (b"a\n\nb", [b"a", b"b"]),
        (b"left", [b"left"]),
        (b"left\r", [b"left"]),
        (b"x" * 20 + b"\n", [b"x" * 20]),
        (b"x" * 20 + b"\r\n", [b"x" * 20]),
        (b"x" * 21 + b"\n", [LineTooLong(20)]),
        (b"x" * 20 + b"\r\r\n", [LineTooLong(20)]),
        (b"x" * 20 + b"\ry\n", [LineTooLong(20)]),
        (b"x" * 500 + b"\nafter\n", [LineTooLong(20), b"after"]),
        (b"x" * 500, [LineTooLong(20)]),
        (b" " * 21 + b"\n", [LineTooLong(20)]),
        (b"x" * 21 + b"\n" + b"y" * 21 + b"\nz\n", [LineTooLong(20), LineTooLong(20), b"z"]),
    ],
)
def test_lines(stream: bytes, lines: list[bytes | LineTooLong]) -> None:
    whole, byte_by_byte = split([stream]), split([stream[i : i + 1] for i in range(len(stream))])

    assert (whole, byte_by_byte) == (lines, lines)


@given(
    stream=st.lists(
        st.sampled_from([b"\n", b"\r", b"\r\n", b" ", b"{}", b"word", b"x" * 7, b"x" * 19]), max_size=30
    ).map(b"".join),
    cuts=st.lists(st.integers(0, 200), max_size=20),
)
@example(stream=b"x" * 20 + b"\r\n", cuts=[20, 21])
@example(stream=b"x" * 20 + b"\r\n", cuts=[21])
@example(stream=b"x" * 30 + b"\n{}\n", cuts=[15])
def test_any_chunking_gives_the_same_lines(stream: bytes, cuts: list[int]) -> None:
    ends = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    chunks = [stream[ends[at] : ends[at + 1]] for at in range(len(ends) - 1)]

    assert split(chunks) == by_definition(stream, 20)


def test_the_overrun_is_told_as_soon_as_it_is_certain() -> None:
    splitter = LineSplitter(4)

    assert splitter.receive_data(b"12345") == [LineTooLong(4)]
    assert splitter.receive_data(b"678\r") == []
    assert splitter.receive_data(b"9\nnext\n") == [b"next"]


def test_a_return_that_may_end_the_line_is_no_overrun_yet() -> None:
    splitter = LineSplitter(4)

    assert splitter.receive_data(b"1234\r") == []
    assert splitter.receive_data(b"\n") == [b"1234"]


def test_an_ended_stream_leaves_nothing() -> None:
    splitter = LineSplitter(4)

    assert splitter.receive_data(b"ab") == []
    assert splitter.receive_eof() == [b"ab"]
    assert splitter.receive_eof() == []


@pytest.mark.parametrize("chunk", [1, 2, 64 * 1024, DEFAULT_LIMIT + 10])
def test_memory_is_bounded_and_given_back(chunk: int) -> None:
    """Too long a line in chunks of any size; small limits for small chunks keep the test quick."""
    limit = min(DEFAULT_LIMIT, chunk * 10_000)
    splitter = LineSplitter(limit)
    piece = b"x" * chunk
    tracemalloc.start()
    try:
        lines: list[bytes | LineTooLong] = []
        for _ in range(limit // chunk * 2 + 1):
            lines += splitter.receive_data(piece)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert lines == [LineTooLong(limit)]
    assert held < 10_000
    assert peak < 2.5 * limit + 2 * chunk + 10_000
    assert splitter.receive_data(b"\n{}\n") == [b"{}"]


def test_memory_of_a_good_line_is_given_back() -> None:
    splitter = LineSplitter(1_000_000)
    tracemalloc.start()
    try:
        splitter.receive_data(b"x" * 900_000)
        splitter.receive_data(b"\n")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < 10_000


def test_a_long_line_in_many_chunks_comes_whole() -> None:
    splitter = LineSplitter()
    line = bytes(range(32, 127)) * 170_000
    chunks = [line[start : start + 65_536] for start in range(0, len(line), 65_536)]

    found = [got for chunk in chunks for got in splitter.receive_data(chunk)] + splitter.receive_data(b"\n")

    assert found == [line]


def test_line_too_long_is_a_value() -> None:
    assert LineTooLong(5) == LineTooLong(5)
    assert LineTooLong(5) != LineTooLong(6)
    assert LineTooLong(5) != 5
    assert len({LineTooLong(5), LineTooLong(5)}) == 1
    assert repr(LineTooLong(5)) == "LineTooLong(5)"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(json_values)
def test_encode_round_trip(value: object) -> None:
    data = encode(value)

    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    assert b"\r" not in data
    assert json.loads(data) == value


def test_encode_is_compact() -> None:
    assert encode({"a": [1, "é"], "b": None}) == '{"a":[1,"é"],"b":null}\n'.encode()


@pytest.mark.parametrize(
    ("text", "carried"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udcff", "\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("line\u2028end", "line\u2028end"),
    ],
)
def test_lone_surrogates_never_make_invalid_utf8(text: str, carried: str) -> None:
    assert json.loads(encode({text: [text]}).decode("utf-8")) == {carried: [carried]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": -float("inf")}])
def test_encode_refuses_what_json_has_not(value: object) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        encode(value)


def test_encode_refuses_other_objects() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        encode({"a": object()})


@pytest.mark.parametrize("module", ["wire", "paths"])
def test_import_stays_cheap(module: str) -> None:
    """These two are imported by a one-shot hook command at every start."""
    heavy = {
        "asyncio",
        "typing",
        "dataclasses",
        "re",
        "json",
        "socket",
        "hashlib",
        "enum",
        "collections",
        "functools",
    }
    code = f"import sys, hooksd_client.{module}; print(*sys.modules)"
    # -S: no site packages, whose .pth files import what they like.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert heavy.isdisjoint(done.stdout.split())
    assert f"hooksd_client.{module}" in done.stdout.split()
