"""Did you mean: the nearest known word for an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


__all__ = ["did_you_mean", "nearest", "nearest_or_all"]

MAX_WORD = 64
"""Longest word that is compared; comparing is quadratic, and no known word is as long."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was most likely meant, None if none is near. Case does not count."""
    if len(word) > MAX_WORD:
        return None
    by_lower = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint that names the nearest known word, None if none is near."""
    found = nearest(word, known)
    return None if found is None else f"did you mean {found}?"


def nearest_or_all(word: str, known: Iterable[str], all_of_them: str) -> str:
    """A hint that names the nearest known word; if none is near, the given hint, which names them all."""
    return did_you_mean(word, known) or all_of_them
