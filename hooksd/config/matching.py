"""Which of many tool-name patterns match a name, at a cost that hardly grows with their number.

Three ways, by what the pattern is: a dictionary for plain names (`^lit$`, `^(A|B)$`, `^(?:A|B)$`), one RE2 set for the
rest, nothing at all for hooks without a pattern. What a pattern may be is the dialect's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import re2


__all__ = ["NameIndex", "SET_MEMORY_BYTES"]

SET_MEMORY_BYTES = 64 * 1024 * 1024
"""Most that one RE2 set may take: some ten thousand real patterns fit. It is a bound, not a reservation."""

_PLAIN = re.compile(r"\^(?:[\w:/ -]+|\((?:\?:)?[\w:/ -]+(?:\|[\w:/ -]+)*\))\$", re.ASCII)
"""Patterns that name tools. No character in them means anything to RE2, and `$` is the very end there."""


class NameIndex:
    """The patterns of some hooks, compiled. Immutable; may be used in several threads.

    Args:
        patterns: One per hook, None for a hook that matches every name.

    Attributes:
        refused: Positions of patterns that the engine does not take, and what it says. Such a hook counts as one that
            matches every name: the caller decides what it means, but it is never lost.
    """

    __slots__ = ("_always", "_plain", "_sets", "_size", "refused")

    def __init__(self, patterns: Sequence[str | None]) -> None:
        self._size = len(patterns)
        self.refused: dict[int, str] = {}
        plain: dict[str, list[int]] = {}
        rest: dict[str, list[int]] = {}
        always: list[int] = []
        for position, pattern in enumerate(patterns):
            if not pattern:
                always.append(position)
            elif _PLAIN.fullmatch(pattern):
                for name in set(_names(pattern)):
                    plain.setdefault(name, []).append(position)
            else:
                rest.setdefault(pattern, []).append(position)
        for pattern in list(rest):
            if (refusal := _refusal(pattern)) is not None:
                positions = rest.pop(pattern)
                self.refused.update(dict.fromkeys(positions, refusal))
                always += positions
        self._always = tuple(sorted(always))
        self._plain = {name: tuple(positions) for name, positions in plain.items()}
        self._sets = tuple(_sets(list(rest), [tuple(positions) for positions in rest.values()]))

    def matching(self, name: str | None) -> Sequence[int]:
        """The positions whose patterns match, ascending; with None, an event without a tool name, all of them."""
        if name is None:
            return range(self._size)
        found = self._always
        if (named := self._plain.get(name)) is not None:
            found = (*found, *named)
        for patterns in self._sets:
            found = patterns.add_matching(name, found)
        return found if found is self._always or found is named else sorted(found)


def _names(pattern: str) -> list[str]:
    body = pattern[1:-1]
    if body.startswith("("):
        body = body[1:-1].removeprefix("?:")
    return body.split("|")


def _options(memory_bytes: int) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory_bytes
    return options


_SINGLE = _options(8 * 1024 * 1024)


def _refusal(pattern: str) -> str | None:
    try:
        re2.compile(pattern, _SINGLE)
    except (re2.error, UnicodeEncodeError) as error:
        return str(error)
    return None


class _PatternSet:
    """Patterns that are matched in one pass, and whose positions each stands for."""

    __slots__ = ("_positions", "_set")

    def __init__(self, compiled: re2.Set, positions: Sequence[tuple[int, ...]]) -> None:
        self._set = compiled
        self._positions = positions

    def add_matching(self, name: str, found: tuple[int, ...]) -> tuple[int, ...]:
        hits = self._set.Match(name)
        for hit in hits or ():
            found += self._positions[hit]
        return found


def _sets(patterns: list[str], positions: list[tuple[int, ...]]) -> Iterator[_PatternSet]:
    if not patterns:
        return
    compiled = re2.Set.SearchSet(_options(SET_MEMORY_BYTES))
    for pattern in patterns:
        compiled.Add(pattern)
    compiled.Compile()
    yield _PatternSet(compiled, positions)
