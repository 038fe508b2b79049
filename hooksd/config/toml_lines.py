"""Where in a TOML text its keys are written; `tomllib` does not tell.

A walk over a text that `tomllib` has taken already: it checks nothing, it only counts lines.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import NamedTuple


__all__ = ["Path", "dotted", "key_lines", "nearest_line"]

Path = tuple[str | int, ...]
"""Keys and positions in arrays, from the root."""

_TOKEN = re.compile(
    r"""(?P<string> \"{3} (?:\\.|[^\\])*? \"{3,5} | '{3} .*? '{3,5} | "(?:\\.|[^"\\])*" | '[^']*' )
    |   (?P<word> [A-Za-z0-9_+:-]+ )
    |   (?P<mark> [][{}=,.\n] )
    |   \#[^\n]* | [ \t]+""",
    re.DOTALL | re.VERBOSE,
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def key_lines(text: str) -> dict[Path, int]:
    """The 1-based line on which each key, table and array element of a valid TOML text starts.

    Args:
        text: What `tomllib` parsed, without a byte order mark.

    Raises:
        RecursionError: The text is nested deeper than the interpreter goes.
    """
    walk = _Walk(text.replace("\r\n", "\n"))
    walk.document()
    return walk.lines


def nearest_line(lines: Mapping[Path, int], path: Path) -> int | None:
    """The line of `path`, else of the nearest thing around it that has one."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


def dotted(path: Path) -> str:
    """A path as people write it: `limits.max_depth`, `source[0].path`, `env.allow_for["a:b"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _BARE_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += '["' + step.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    return text


class _Token(NamedTuple):
    text: str
    line: int
    is_string: bool = False


def _tokens(text: str) -> Iterator[_Token]:
    """Strings, words and marks, line ends among them; then an empty one for the end of the text."""
    line = 1
    for match in _TOKEN.finditer(text):
        if match.lastgroup is not None:
            yield _Token(match[0], line, match.lastgroup == "string")
        line += match[0].count("\n")
    yield _Token("", line)


class _Walk:
    """One walk over one text; `lines` is what it found."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._lengths: dict[Path, int] = {}
        self._rest = _tokens(text)
        self._next = next(self._rest)

    def document(self) -> None:
        table: Path = ()
        while self._next.text:
            if self._took("\n"):
                continue
            line = self._next.line
            if self._took("["):
                table = self._element(line) if self._took("[") else self._resolved(self._key())
                self.lines.setdefault(table, line)
                self._took("]")
            else:
                self._pair(table)

    def _element(self, line: int) -> Path:
        """The table that a `[[header]]` opens, past its first closing bracket."""
        key = self._key()
        array = self._resolved(key[:-1]) + key[-1:]
        index = self._lengths.get(array, 0)
        self._lengths[array] = index + 1
        self.lines.setdefault(array, line)
        self._took("]")
        return (*array, index)

    def _resolved(self, key: Path) -> Path:
        """The table that a header means: of an array of tables its last element so far."""
        path: Path = ()
        for step in key:
            path = (*path, step)
            if path in self._lengths:
                path = (*path, self._lengths[path] - 1)
        return path

    def _pair(self, table: Path) -> None:
        line = self._next.line
        key = self._key()
        for length in range(1, len(key) + 1):
            self.lines.setdefault(table + key[:length], line)
        self._took("=")
        self._value(table + key)

    def _key(self) -> Path:
        key: Path = ()
        while True:
            token = self._advance()
            # The strings of keys are the strings of values, and tomllib knows their escapes.
            key = (*key, tomllib.loads(f"key = {token.text}")["key"] if token.is_string else token.text)
            if not self._took("."):
                return key

    def _value(self, path: Path) -> None:
        if self._took("["):
            for index, token in enumerate(self._members("]")):
                self.lines[*path, index] = token.line
                self._value((*path, index))
        elif self._took("{"):
            for _ in self._members("}"):
                self._pair(path)
        else:
            # A date and a float are several words and marks.
            while self._next.text not in ("", ",", "]", "}", "\n"):
                self._advance()

    def _members(self, end: str) -> Iterator[_Token]:
        """The first token of each member of an array or inline table; whoever iterates moves past the member."""
        while self._next.text not in ("", end):
            if self._next.text in (",", "\n"):
                self._advance()
            else:
                yield self._next
        self._advance()

    def _advance(self) -> _Token:
        token = self._next
        self._next = next(self._rest, token)
        return token

    def _took(self, mark: str) -> bool:
        """Move past `mark` if it comes next."""
        if self._next.text != mark:
            return False
        self._advance()
        return True
