"""Which of many tool-name patterns match a name, at a cost that hardly grows with their number.

Three ways, by what the pattern is: a dictionary for plain names (`^lit$`, `^(A|B)$`, `^(?:A|B)$`), RE2 sets, as a rule
one, for the rest, nothing at all for hooks without a pattern. What a pattern may be is the business of its dialect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import re2

from hooksd.dialects.name_patterns import compile_options


__all__ = ["SET_MEMORY_BYTES", "ExactName", "NameIndex"]

SET_MEMORY_BYTES: Final = 64 * 1024 * 1024
"""Most that one RE2 set may take, so that 10,000 real patterns (they need 10 MiB) fit well. Not a reservation."""

_PLAIN = re.compile(r"\^(?:[\w:/ -]+|\((?:\?:)?[\w:/ -]+(?:\|[\w:/ -]+)*\))\$", re.ASCII)
"""Patterns that name tools. No character in the names means anything to RE2, and `$` is the very end there."""


class ExactName(msgspec.Struct, frozen=True):
    """The one name that a hook is for."""

    name: str


class NameIndex:
    """The patterns of some hooks, compiled. Immutable; may be used in several threads.

    Args:
        patterns: One per hook; None or empty for a hook that matches every name, an `ExactName` for one that matches
            no other.
        set_memory_bytes: Most memory of one set. What does not fit becomes several sets.

    Attributes:
        refused: Positions of the patterns that the engine does not take, and what it says. They match every name here:
            what becomes of such a hook is for the caller to say, but it is never lost.
    """

    __slots__ = ("_always", "_plain", "_sets", "_size", "refused")

    def __init__(
        self, patterns: Sequence[str | ExactName | None], *, set_memory_bytes: int = SET_MEMORY_BYTES
    ) -> None:
        plain: dict[str, list[int]] = {}
        rest: dict[str, list[int]] = {}
        always: list[int] = []
        for position, pattern in enumerate(patterns):
            if isinstance(pattern, ExactName):
                plain.setdefault(pattern.name, []).append(position)
            elif not pattern:
                always.append(position)
            elif _PLAIN.fullmatch(pattern):
                for name in _names(pattern):
                    plain.setdefault(name, []).append(position)
            else:
                rest.setdefault(pattern, []).append(position)
        sets, refused = _compiled(rest, set_memory_bytes)
        self.refused: Mapping[int, str] = {
            position: why for pattern, why in refused.items() for position in rest[pattern]
        }
        self._size = len(patterns)
        self._always = tuple(sorted([*always, *self.refused]))
        self._plain = {name: tuple(positions) for name, positions in plain.items()}
        self._sets = tuple(sets)

    def matching(self, name: str | None) -> Sequence[int]:
        """The positions whose patterns match, ascending; with None, an event without a tool name, all of them."""
        if name is None:
            return range(self._size)
        named = self._plain.get(name, ())
        if not self._sets:
            return sorted(self._always + named) if self._always and named else self._always or named
        found = [*self._always, *named]
        # UTF-8 has no half surrogate pairs, but a name from outside may; to the engine each is one odd character.
        text = name.encode("utf-8", "surrogatepass")
        for patterns in self._sets:
            patterns.collect(text, found)
        found.sort()
        return found


def _names(pattern: str) -> set[str]:
    body = pattern[1:-1]
    if body.startswith("("):
        body = body[1:-1].removeprefix("?:")
    return set(body.split("|"))


class _PatternSet:
    """Patterns that are matched in one pass over the name, and the positions that each stands for."""

    __slots__ = ("_compiled", "_members")

    def __init__(self, compiled: re2.Set, members: Sequence[tuple[str, Sequence[int]]]) -> None:
        self._compiled = compiled
        self._members = members

    def collect(self, text: bytes, found: list[int]) -> None:
        """Add the positions of the patterns that match."""
        hits = self._compiled.Match(text)
        if hits is None:
            # Not even the last member matched, which matches everything: the engine ran out of memory.
            for pattern, positions in self._members:
                if re2.search(pattern, text, compile_options()):
                    found += positions
            return
        for hit in hits:
            found += self._members[hit][1]


def _compiled(
    members: Mapping[str, Sequence[int]], memory_bytes: int
) -> tuple[list[_PatternSet], dict[str, str]]:
    """As few sets as the memory allows, and the patterns that the engine does not take."""
    candidate = re2.Set.SearchSet(compile_options(memory_bytes))
    taken: list[tuple[str, Sequence[int]]] = []
    refused: dict[str, str] = {}
    for pattern, positions in members.items():
        try:
            candidate.Add(pattern)
        except (re2.error, UnicodeEncodeError) as error:
            refused[pattern] = str(error)
        else:
            taken.append((pattern, positions))
    if not taken:
        return [], refused
    taken.append(("", ()))  # matches everything: see `_PatternSet.collect`
    candidate.Add("")
    try:
        candidate.Compile()
    except re2.error:
        del taken[-1]
    else:
        return [_PatternSet(candidate, taken)], refused
    if len(taken) == 1:
        return [], {**refused, taken[0][0]: f"it needs more than {memory_bytes} bytes of memory"}
    sets = []
    for half in (taken[: len(taken) // 2], taken[len(taken) // 2 :]):
        compiled, too_large = _compiled(dict(half), memory_bytes)
        sets += compiled
        refused.update(too_large)
    return sets, refused
