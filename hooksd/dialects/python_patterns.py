r"""Argument patterns of the Chrys dialect: Python's `re`, run by an engine that can be stopped.

What a pattern means is decided by `re` (Chrys dialect 1.7). It is run by the `regex` package, which takes a limit on
the time of a match. The two read some patterns differently; `for_engine` writes those so that they mean the same:

- `a{e}`: literal braces in `re`, approximate matching in `regex`
- `[[:alpha:]]`: a set with a bracket in it in `re`, a POSIX class in `regex`

Everything else that only `regex` knows (`\p{L}`, `(?R)`, `(*SKIP)`, …) is an error in `re`, and refused before.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec


if TYPE_CHECKING:
    import regex


__all__ = [
    "MAX_PATTERN",
    "PythonPatternFault",
    "check_python_pattern",
    "compile_python_pattern",
    "for_engine",
]

MAX_PATTERN = 16_384
"""Longest pattern, in characters: compiling a longer one takes seconds, and no person wrote it."""

MAX_REMEMBERED = 512
"""Compiled patterns that are remembered: a document is checked first, then compiled."""

# One token: an escape, a repetition as `re` reads it, a set as a whole, or one character.
_TOKENS = r"\\.|\{[0-9]*(?:,[0-9]*)?\}|\[\^?\]?(?:\\.|[^\]\\])*+\]|."
_TOKEN = re.compile(_TOKENS, re.DOTALL)
_VERBOSE_TOKEN = re.compile(r"#[^\n]*+|" + _TOKENS, re.DOTALL)
_EMPTY_BRACES = "{}"


class PythonPatternFault(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pattern cannot be used."""

    message: str
    hint: str | None = None


def check_python_pattern(pattern: str) -> PythonPatternFault | None:
    """Why Python, or hooksd, does not take a pattern; None if both do."""
    if len(pattern) > MAX_PATTERN:
        return PythonPatternFault(
            message=f"the pattern has {len(pattern)} characters, more than {MAX_PATTERN}",
            hint="test for less, and let the hook look at the rest",
        )
    try:
        compile_python_pattern(pattern)
    except re.error as error:
        place = "" if error.pos is None else f" (at character {error.pos + 1})"
        return PythonPatternFault(message=f"Python does not take this pattern: {error.msg}{place}")
    except (OverflowError, RecursionError, MemoryError, ValueError) as error:
        return PythonPatternFault(message=f"Python does not take this pattern: {error}", hint="simplify it")
    return None


@lru_cache(maxsize=MAX_REMEMBERED)
def compile_python_pattern(pattern: str) -> regex.Pattern[str]:
    """The pattern, ready for `search(text, timeout=…)`.

    Raises:
        re.error, OverflowError, RecursionError, MemoryError, ValueError: As Python's `re` does, with its words.
    """
    import regex  # only who has patterns pays for it

    with warnings.catch_warnings():
        # Python warns of sets that it may once read differently (`[[a]`); they mean what they mean now.
        warnings.simplefilter("ignore", FutureWarning)
        flags = re.compile(pattern).flags
    try:
        text = for_engine(pattern, verbose=bool(flags & re.VERBOSE))
        return regex.compile(text, regex.VERSION0, cache_pattern=False)
    except regex.error as error:
        raise re.error(f"{error} (the engine of hooksd)") from None


def for_engine(pattern: str, *, verbose: bool = False) -> str:
    """A pattern that `re` takes, as `regex` reads it with the same meaning; `verbose` as by `(?x)`."""
    return (_VERBOSE_TOKEN if verbose else _TOKEN).sub(_token_for_engine, pattern)


def _token_for_engine(found: re.Match[str]) -> str:
    token = found[0]
    if token in ("{", _EMPTY_BRACES):
        return "\\" + token
    if token.startswith("[") and len(token) > 1:
        return "[" + re.sub(r"\\.|\[", _in_set, token[1:], flags=re.DOTALL)
    return token


def _in_set(found: re.Match[str]) -> str:
    return "\\[" if found[0] == "[" else found[0]
