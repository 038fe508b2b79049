r"""Patterns over tool names: which ones are taken, and how they are compiled.

The Bamboo reference matches with Rust's `regex` crate; hooksd matches with RE2, the same linear-time family. A pattern
is taken only if both engines read it and read it alike, so that one `hooks.json` means the same everywhere. Two checks
see to that: RE2 itself refuses what it cannot do (look-around, back-references, flags it does not have), and a linter
refuses what RE2 would take but Rust refuses or understands differently (class set operations, `\b{start}`, `\<`,
octal escapes, a bare `{`, …). A refused pattern is a located problem, never a silent miss.

**The one difference that is left**, and is documented: `\d`, `\w`, `\s` and `\b` know only ASCII in RE2. Tool names
are ASCII in every agent, so no pattern that tells tool names apart notices.

Compiling whole sets and matching live in the config room; it takes `compile_options` from here.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec
import re2


__all__ = ["MATCHER_MEMORY_BYTES", "PatternFault", "check_name_pattern", "compile_options"]

MATCHER_MEMORY_BYTES = 8 * 1024 * 1024
"""Most memory one compiled pattern may take: RE2's own default, a little below the reference's 10 MiB."""


class PatternFault(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pattern is not taken. `offset` counts characters from its start."""

    message: str
    hint: str | None = None
    offset: int = 0


def compile_options(memory_bytes: int = MATCHER_MEMORY_BYTES) -> re2.Options:
    """The options that every tool name pattern is compiled with: case-sensitive, UTF-8, silent, bounded."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory_bytes
    return options


# Most matchers in real files: plain names, anchored or not. They mean the same to both engines and need no compiling.
_PLAIN = re.compile(r"\^?(?:[A-Za-z0-9_]+|\([A-Za-z0-9_]+(?:\|[A-Za-z0-9_]+)*\))\$?")


def check_name_pattern(pattern: str) -> list[PatternFault]:
    """Everything that keeps a pattern from being taken, in its order; empty if it is sound.

    The engine is asked only when the linter has nothing to say: its complaint about the same construct would be a
    second voice with worse words.
    """
    if _PLAIN.fullmatch(pattern):
        return []
    faults = _lint(pattern)
    if faults:
        return faults
    refusal = _engine_refusal(pattern)
    return [] if refusal is None else [refusal]


# ----------------------------------------------------------------------------------------------------------------------
# The linter: what RE2 would take, and Rust would not or would read differently

_REPETITION = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_POSIX_CLASS = re.compile(r"\[:\^?[a-z]+:\]")
_BRACED_ESCAPE = re.compile(r"\\(?:x|[pP])\{([^}]*)\}")
_SET_OPERATORS = ("&&", "--", "~~")

_WORD_EDGE = "write \\b"
_REFUSED_ESCAPES: dict[str, tuple[str, str | None]] = {
    "<": ("`\\<` means a word edge to one engine and a plain `<` to the other", "write \\b, or < alone"),
    ">": ("`\\>` means a word edge to one engine and a plain `>` to the other", "write \\b, or > alone"),
    "C": ("`\\C` (any byte) is not supported", "write . for any character"),
    "Q": ("`\\Q…\\E` quoting is not supported", "put a backslash before each special character"),
    "E": ("`\\Q…\\E` quoting is not supported", "put a backslash before each special character"),
    "Z": ("`\\Z` is not supported", "write \\z, or $: both mean the very end of the name"),
}


def _lint(pattern: str) -> list[PatternFault]:
    faults: list[PatternFault] = []
    position, end = 0, len(pattern)
    while position < end:
        character = pattern[position]
        if character == "\\":
            position = _lint_escape(pattern, position, faults, in_class=False)
        elif character == "[":
            position = _lint_class(pattern, position, faults)
        elif character == "{":
            repetition = _REPETITION.match(pattern, position)
            if repetition is None:
                faults.append(
                    PatternFault(
                        message="`{` starts a repetition, which must look like {2}, {2,} or {2,5}",
                        hint="write \\{ for the character itself",
                        offset=position,
                    )
                )
            position = repetition.end() if repetition else position + 1
        else:
            position += 1
    return faults


def _lint_escape(pattern: str, position: int, faults: list[PatternFault], *, in_class: bool) -> int:
    """Look at the escape that starts at `position`; give the position after it."""
    letter = pattern[position + 1 : position + 2]
    if letter in _REFUSED_ESCAPES:
        message, hint = _REFUSED_ESCAPES[letter]
        faults.append(PatternFault(message=message, hint=hint, offset=position))
    elif letter.isascii() and letter.isdigit():
        faults.append(
            PatternFault(
                message=f"`\\{letter}` is not supported: there are no back-references and no octal numbers",
                hint="write the text out, or \\x41 for a character by its number",
                offset=position,
            )
        )
    elif letter == "b" and in_class:
        faults.append(PatternFault(message="`\\b` has no meaning inside [ ]", offset=position))
    elif letter == "b" and pattern.startswith("{", position + 2):
        faults.append(
            PatternFault(
                message="`\\b{…}` is not supported", hint="write \\b for a word edge", offset=position
            )
        )
    elif braced := _BRACED_ESCAPE.match(pattern, position):
        if braced[1].startswith("^"):
            faults.append(
                PatternFault(
                    message=f"`{braced[0]}` is not supported",
                    hint=f"write \\P{{{braced[1][1:]}}} for everything but it",
                    offset=position,
                )
            )
        return braced.end()
    return position + 2


def _lint_class(pattern: str, position: int, faults: list[PatternFault]) -> int:
    """Look at the bracketed class that starts at `position`; give the position after it."""
    start = position
    position += 1
    if pattern.startswith("^", position):
        position += 1
    if pattern.startswith("]", position):
        position += 1  # first in a class, it is a plain character
    while position < len(pattern) and pattern[position] != "]":
        if pattern[position] == "\\":
            position = _lint_escape(pattern, position, faults, in_class=True)
        elif posix := _POSIX_CLASS.match(pattern, position):
            position = posix.end()
        elif pattern[position] == "[":
            faults.append(
                PatternFault(
                    message="a class inside a class is not supported",
                    hint="write \\[ for the character itself, or one class with all the characters",
                    offset=position,
                )
            )
            position += 1
        elif pattern[position : position + 2] in _SET_OPERATORS:
            operator = pattern[position : position + 2]
            faults.append(
                PatternFault(
                    message=f"`{operator}` in a class is a set operation to one engine and plain text to the other",
                    hint=f"write the characters out, or \\{operator[0]} for the character itself",
                    offset=position,
                )
            )
            position += 2
        else:
            position += 1
    if position >= len(pattern):
        faults.append(
            PatternFault(
                message="a `[` is never closed", hint="write \\[ for the character itself", offset=start
            )
        )
    return position + 1


# ----------------------------------------------------------------------------------------------------------------------
# The engine's own verdict

_ENGINE_HINTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"no argument for repetition operator: \*"),
        "write .* or leave matcher out to match every tool",
    ),
    (
        re.compile(r"no argument for repetition operator"),
        "put a backslash before it for the character itself",
    ),
    (
        re.compile(r"invalid perl operator: \(\?(<?[=!]|>|\(|\||&|#|P[>=])"),
        "look-around, back-references, atomic groups and conditionals are not supported; use several groups, or let the hook decide",
    ),
    (
        re.compile(r"invalid perl operator: \(\?-?[a-zA-Z]*x"),
        "the (?x) flag is not supported; write the pattern without spaces and comments",
    ),
    (re.compile(r"invalid perl operator: \(\?"), "only the flags i, m, s and U are supported"),
    (
        re.compile(r"bad repetition operator"),
        "one repetition may not follow another; write (?:…)* around the inner one",
    ),
    (re.compile(r"invalid repetition size"), "at most 1000 repetitions, nested ones multiplied"),
    (
        re.compile(r"invalid character class range: \\[pP]"),
        "only general categories and scripts by their short name, such as \\pL, \\p{Lu} or \\p{Greek}",
    ),
    (re.compile(r"invalid escape sequence: \\[uU]"), "write \\x{41} for a character by its number"),
    (re.compile(r"missing \)"), "write \\( for the character itself"),
    (re.compile(r"unexpected \)"), "write \\) for the character itself"),
    (re.compile(r"pattern too large"), "make the repetitions smaller"),
)


@lru_cache(maxsize=1024)
def _engine_refusal(pattern: str) -> PatternFault | None:
    try:
        re2.compile(pattern, compile_options())
    except re2.error as error:
        (said,) = error.args
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    else:
        return None
    _, _, culprit = text.partition(": ")
    offset = pattern.find(culprit) if culprit else -1
    hint = next((hint for known, hint in _ENGINE_HINTS if known.match(text)), None)
    return PatternFault(message=f"invalid regular expression: {text}", hint=hint, offset=max(offset, 0))
