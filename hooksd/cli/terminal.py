"""How the command line speaks: data on stdout, messages on stderr, colour only where it is wanted.

Text that comes from hooks, agents or files goes through `safe` before it reaches a terminal, so that no hook can move
the cursor, set the title or fake a line.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, TextIO


__all__ = [
    "STATUS_STYLES",
    "OutputLost",
    "Style",
    "Terminal",
    "flush",
    "give_up",
    "milliseconds",
    "put",
    "safe",
    "tell",
    "width",
]

Style = str
"""Space-separated words of `_CODES`, such as `"bold red"`."""

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}

STATUS_STYLES: Mapping[str, Style] = {
    "ok": "green",
    "blocked": "bold red",
    "failed": "yellow",
    "timeout": "yellow",
    "launch_error": "yellow",
    "cancelled": "dim",
    "started": "cyan",
    "skipped": "dim",
    "allow": "green",
    "ask": "bold yellow",
    "block": "bold red",
    "none": "dim",
}


def safe(text: object, *, lines: bool = False) -> str:
    """The text with every character that could act on a terminal written out; line ends stay with `lines`."""
    kept = "\n\t" if lines else ""
    parts = []
    for char in str(text):
        if char in kept or not unicodedata.category(char).startswith("C") or char in "\u200d\ufe0f":
            parts.append(char)
        else:
            code = ord(char)
            parts.append({9: "\\t", 10: "\\n", 13: "\\r", 27: "\\e"}.get(code, f"\\u{{{code:x}}}"))
    return "".join(parts)


class OutputLost(Exception):
    """What a command prints cannot be written, though somebody is there to read it; a full disk is no fault of ours."""


def put(text: str, stream: TextIO | None = None) -> None:
    """Write data, to stdout if nothing else is said.

    Raises:
        BrokenPipeError: Nobody reads it any more.
        OutputLost: It cannot be written.
    """
    try:
        (stream or sys.stdout).write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(error.strerror) from error


def flush(stream: TextIO | None = None) -> None:
    """Hand on what was `put` so far, with the same errors."""
    try:
        (stream or sys.stdout).flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(error.strerror) from error


def tell(text: str, stream: TextIO | None = None) -> None:
    """Write a message, to stderr if nothing else is said.

    One that cannot be written (a full disk) changes nothing about how a command ends.
    """
    target = stream or sys.stderr
    try:
        target.write(text)
        target.flush()
    except OSError:
        give_up(target)


def give_up(stream: TextIO) -> None:
    """Let what a stream still holds go nowhere: the interpreter's own flush at its end would fail once more."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def width(text: str) -> int:
    """How many columns a terminal gives the text, near enough for tables."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def milliseconds(value: float) -> str:
    """A duration for people: `0.4 ms`, `12 ms`, `3.2 s`."""
    if value >= 10_000:
        return f"{value / 1000:.0f} s"
    if value >= 1000:
        return f"{value / 1000:.1f} s"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _wants_colour(stream: TextIO, environment: Mapping[str, str]) -> bool:
    if environment.get("NO_COLOR"):
        return False
    forced = environment.get("FORCE_COLOR", "")
    if forced:
        return forced != "0"
    return environment.get("TERM") != "dumb" and stream.isatty()


class Terminal:
    """The two streams of one command."""

    def __init__(self, out: TextIO, err: TextIO, environment: Mapping[str, str]) -> None:
        self._out = out
        self._err = err
        self._colour = _wants_colour(out, environment)
        self._colour_err = _wants_colour(err, environment)

    @classmethod
    def of_process(cls, environment: Mapping[str, str]) -> Terminal:
        """The terminal of this process."""
        return cls(sys.stdout, sys.stderr, environment)

    @property
    def interactive(self) -> bool:
        """Whether a person reads stdout as it comes."""
        return self._out.isatty()

    def style(self, text: str, style: Style) -> str:
        """The text in that style for stdout, or as it is where colour is not wanted."""
        return _styled(text, style) if self._colour and style else text

    def status(self, word: str) -> str:
        """A status or a decision in its colour."""
        return self.style(word, STATUS_STYLES.get(word, ""))

    def line(self, text: str = "") -> None:
        """One line of data on stdout."""
        put(text + "\n", self._out)

    def raw(self, text: str) -> None:
        """Text for stdout as it is, without a line end."""
        put(text, self._out)

    def flush(self) -> None:
        """Hand on what was written so far."""
        flush(self._out)

    def json(self, value: Any) -> None:
        """One JSON document on stdout, indented for a person, one line for a program."""
        indent = 2 if self.interactive else None
        text = json.dumps(value, ensure_ascii=False, indent=indent)
        # A lone surrogate can come in an answer and cannot be written as UTF-8.
        self.line(text.encode("utf-8", "backslashreplace").decode("utf-8"))

    def message(self, text: str, style: Style = "") -> None:
        """One line for the person on stderr."""
        tell((_styled(text, style) if self._colour_err and style else text) + "\n", self._err)

    def error(self, text: str) -> None:
        """What went wrong, on stderr."""
        self.message(f"hooksd: {text}", "red")

    def table(self, rows: Sequence[Sequence[str]], *, header: Sequence[str] = (), indent: str = "") -> None:
        """Rows of plain text in aligned columns; a cell that is a status or a decision gets its colour."""
        every = [list(header), *map(list, rows)] if header else [list(row) for row in rows]
        if not every:
            return
        columns = [max(width(row[index]) for row in every) for index in range(len(every[0]))]
        for number, row in enumerate(every):
            head = bool(header) and number == 0
            cells = []
            for index, cell in enumerate(row):
                padding = " " * (columns[index] - width(cell)) if index < len(row) - 1 else ""
                cells.append((cell if head else self.status(cell)) + padding)
            text = "  ".join(cells)
            if head:
                text = self.style(text, "dim")
            self.line(indent + text)


def _styled(text: str, style: Style) -> str:
    codes = ";".join(_CODES[word] for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m" if codes else text
