"""Patterns in which only `*` is special; it stands for any characters, none and line breaks included (design rule 2).

Guards, serial hooks, denied variables and kinds of records are chosen by them. The tool-name patterns of a dialect are
something else (`NamePattern`).
"""

from __future__ import annotations

from collections.abc import Iterable


__all__ = ["StarPatterns"]


class StarPatterns:
    """Some patterns; a name fits when one of them fits the whole of it, case included.

    Matching is greedy from the left and so linear in the length of name times pattern: a pattern with many stars is no
    trap, as it would be for a backtracking regular expression.
    """

    __slots__ = ("_exact", "_wild", "patterns")

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self._exact = frozenset(pattern for pattern in self.patterns if "*" not in pattern)
        self._wild = tuple(tuple(pattern.split("*")) for pattern in self.patterns if "*" in pattern)

    def fits(self, name: str) -> bool:
        """Whether one of the patterns fits `name`."""
        return name in self._exact or any(_fits(parts, name) for parts in self._wild)


def _fits(parts: tuple[str, ...], name: str) -> bool:
    first, *middle, last = parts
    end = len(name) - len(last)
    at = len(first)
    if at > end or not name.startswith(first) or not name.endswith(last):
        return False
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
