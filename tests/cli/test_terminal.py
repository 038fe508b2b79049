from __future__ import annotations

import io
import json

import pytest

from hooksd.cli.terminal import Terminal, milliseconds, safe, width


class Stream(io.StringIO):
    """A stream that is a terminal, or not."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def of(environment: dict[str, str], *, terminal: bool = True) -> tuple[Terminal, Stream, Stream]:
    out, err = Stream(terminal=terminal), Stream(terminal=terminal)
    return Terminal(out, err, environment), out, err


@pytest.mark.parametrize(
    ("environment", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colour_is_used_where_it_is_wanted(
    environment: dict[str, str], terminal: bool, coloured: bool
) -> None:
    speaker, out, err = of(environment, terminal=terminal)

    speaker.line(speaker.style("text", "bold red"))
    speaker.message("told", "red")

    assert ("\x1b[1;31mtext\x1b[0m" in out.getvalue()) is coloured
    assert ("\x1b[31mtold\x1b[0m" in err.getvalue()) is coloured
    assert "text" in out.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï 日本 👍🏽", "plain ünï 日本 👍🏽"),
        ("\x1b[2Jcleared", "\\e[2Jcleared"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\x9b31m", "\\u{9b}31m"),
        ("\u202egpj.exe", "\\u{202e}gpj.exe"),
        ("\ud800", "\\u{d800}"),
        ("👩\u200d💻", "👩\u200d💻"),
    ],
)
def test_foreign_text_cannot_act_on_the_terminal(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_line_ends_stay_where_they_are_wanted() -> None:
    assert safe("a\nb\tc\x07", lines=True) == "a\nb\tc\\u{7}"


@pytest.mark.parametrize(
    ("value", "shown"), [(0.42, "0.4 ms"), (12.3, "12 ms"), (3210, "3.2 s"), (61_000, "61 s")]
)
def test_durations(value: float, shown: str) -> None:
    assert milliseconds(value) == shown


def test_width_counts_columns() -> None:
    assert (width("abc"), width("日本"), width("e\u0301")) == (3, 4, 1)


def test_table_aligns_columns_and_paints_states() -> None:
    speaker, out, _ = of({})

    speaker.table([["日本", "blocked", "x"], ["b", "ok", "yy"]], header=("NAME", "STATUS", "LAST"))

    plain = out.getvalue().replace("\x1b[0m", "").replace("\x1b[2m", "").replace("\x1b[1;31m", "")
    assert plain.replace("\x1b[32m", "").splitlines() == [
        "NAME  STATUS   LAST",
        "日本  blocked  x",
        "b     ok       yy",
    ]
    assert "\x1b[1;31mblocked\x1b[0m" in out.getvalue()


def test_an_empty_table_is_nothing() -> None:
    speaker, out, _ = of({})
    speaker.table([])
    assert out.getvalue() == ""


def test_json_is_one_line_for_programs_and_survives_surrogates() -> None:
    speaker, out, _ = of({}, terminal=False)

    speaker.json({"text": "ü\ud800"})

    assert out.getvalue().count("\n") == 1
    assert json.loads(out.getvalue())["text"] in ("ü\ud800", "ü\\ud800")
    out.getvalue().encode("utf-8")
