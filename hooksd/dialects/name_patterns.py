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

from hooksd.dialects.document_text import cut


__all__ = ["MATCHER_MEMORY_BYTES", "PatternFault", "check_name_pattern", "compile_options"]

MATCHER_MEMORY_BYTES = 8 * 1024 * 1024
"""Most memory one compiled pattern may take: RE2's own default, a little below the reference's 10 MiB."""
MAX_PATTERN = 65_536
"""Longest pattern, in characters; the engine would need a second for a megabyte of nonsense."""
MAX_REPETITIONS = 1_000
"""Most that all counted repetitions of a pattern may come to together, as RE2 has it for a single one. The time that it
takes to compile grows with the square of them, and everything else in the process stands still for as long."""
MAX_FAULTS = 8
"""Most faults told of one pattern."""


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
    if len(pattern) > MAX_PATTERN:
        return [PatternFault(message=f"longer than {MAX_PATTERN} characters", hint="use several groups")]
    if _PLAIN.fullmatch(pattern):
        return []
    faults = _Linter(pattern).run()
    faults = faults or _too_many_repetitions(pattern)
    if faults:
        return faults
    refusal = _engine_refusal(pattern)
    return [] if refusal is None else [refusal]


# ----------------------------------------------------------------------------------------------------------------------
# The linter: what RE2 would take, and Rust would not or would read differently

_REPETITION = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_POSIX_CLASS = re.compile(r"\[:\^?[a-z]+:\]")
_FLAGS = re.compile(r"\(\?([a-zA-Z]*(?:-[a-zA-Z]*)?)([:)])")
_BRACED_ESCAPE = re.compile(r"\\([xpP])\{([^}]*)\}")
_SET_OPERATORS = ("&&", "--", "~~")

_LITERAL_BRACKET = "write \\[ for the character itself"
_QUOTE_EACH = "put a backslash before each special character"
_REFUSED_ESCAPES = {
    "<": ("`\\<` is a word edge to one engine and a plain < to the other", "write \\b, or < alone"),
    ">": ("`\\>` is a word edge to one engine and a plain > to the other", "write \\b, or > alone"),
    "C": ("`\\C` (any byte) is not supported", "write . for any character"),
    "Q": ("`\\Q…\\E` is not supported", _QUOTE_EACH),
    "E": ("`\\Q…\\E` is not supported", _QUOTE_EACH),
    "Z": ("`\\Z` is not supported", "write \\z, or $: both mean the very end of the name"),
}


class _Linter:
    """One walk over one pattern. It only has to know the constructs whose meaning differs; the engine knows the rest."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.faults: list[PatternFault] = []

    def run(self) -> list[PatternFault]:
        """Walk to the end; give what was found."""
        pattern, position = self._pattern, 0
        while position < len(pattern) and len(self.faults) < MAX_FAULTS:
            match pattern[position]:
                case "\\":
                    position = self._escape(position)
                case "[":
                    position = self._class(position)
                case "{":
                    position = self._brace(position)
                case "(":
                    position = self._group(position)
                case _:
                    position += 1
        return self.faults

    def _refuse(self, offset: int, message: str, hint: str | None = None) -> None:
        self.faults.append(PatternFault(message=message, hint=hint, offset=offset))

    def _brace(self, position: int) -> int:
        repetition = _REPETITION.match(self._pattern, position)
        if repetition is not None:
            return repetition.end()
        message = "`{` starts a repetition, which looks like {2}, {2,} or {2,5}"
        self._refuse(position, message, "write \\{ for the character itself")
        return position + 1

    def _group(self, position: int) -> int:
        flags = _FLAGS.match(self._pattern, position)
        if flags is None:
            return position + 1
        letters = flags[1].replace("-", "")
        if len(set(letters)) < len(letters) or (flags[2] == ")" and not flags[1]) or flags[1].endswith("-"):
            self._refuse(
                position, f"`{cut(flags[0])}` does not name each flag once", "write flags as in (?i)"
            )
        if flags[2] == ")" and self._pattern.startswith(("*", "+", "?", "{"), flags.end()):
            self._refuse(
                flags.end(), "nothing to repeat after flags", "put the repetition after what it repeats"
            )
        return flags.end()

    def _escape(self, position: int) -> int:
        """Look at the escape that starts here; give the position after it."""
        pattern = self._pattern
        letter = pattern[position + 1 : position + 2]
        braced = _BRACED_ESCAPE.match(pattern, position)
        if letter in _REFUSED_ESCAPES:
            self._refuse(position, *_REFUSED_ESCAPES[letter])
        elif letter.isdecimal() and letter.isascii():
            message = f"`\\{letter}`: there are no back-references and no octal numbers"
            self._refuse(position, message, "write the text out, or \\x41 for a character by its number")
        elif letter == "b" and pattern.startswith("{", position + 2):
            self._refuse(position, "`\\b{…}` is not supported", "write \\b for a word edge")
        elif braced is not None:
            if braced[2].startswith("^"):
                hint = f"write \\{'P' if braced[1] == 'p' else 'p'}{{{cut(braced[2][1:])}}}"
                self._refuse(position, f"`{cut(braced[0])}` is not supported", hint)
            elif braced[1] == "x" and _is_surrogate(braced[2]):
                self._refuse(
                    position, f"`{cut(braced[0])}` is half of a surrogate pair, which is no character"
                )
            return braced.end()
        return position + (3 if letter in ("p", "P") else 2)

    def _class(self, start: int) -> int:
        """Look at the bracketed class that starts here; give the position after it."""
        pattern = self._pattern
        position = start + 1
        if pattern.startswith("^", position):
            position += 1
        if pattern.startswith("]", position):
            position += 1  # the first character of a class is a plain one
        while position < len(pattern) and pattern[position] != "]":
            operator = pattern[position : position + 2]
            posix = _POSIX_CLASS.match(pattern, position)
            whole_class = posix is not None or operator in _CLASS_ESCAPES
            if posix is not None:
                position = posix.end()
            elif operator in _SET_OPERATORS:
                message = (
                    f"`{operator}` in a class is a set operation to one engine and plain text to the other"
                )
                self._refuse(
                    position,
                    message,
                    f"write the characters out, or \\{operator[0]} for the character itself",
                )
                position += 2
            elif operator.startswith("\\"):
                position = self._escape(position)
            elif operator.startswith("["):
                self._refuse(position, "a class in a class is not supported", _LITERAL_BRACKET)
                position += 1
            else:
                position += 1
            if whole_class and pattern.startswith("-", position) and not pattern.startswith("-]", position):
                self._refuse(
                    position,
                    "a range needs single characters at both ends",
                    "write \\- for the character itself",
                )
        if position >= len(pattern):
            self._refuse(start, "a `[` is never closed", _LITERAL_BRACKET)
        return position + 1


_CLASS_ESCAPES = frozenset(f"\\{letter}" for letter in "dDsSwWpP")


def _is_surrogate(digits: str) -> bool:
    return re.fullmatch(r"0*[dD][89a-fA-F][0-9a-fA-F]{2}", digits) is not None


# ----------------------------------------------------------------------------------------------------------------------
# The engine's own verdict

_ENGINE_HINTS = tuple(
    (re.compile(said), hint)
    for said, hint in (
        (r"no argument for repetition operator: \*", "write .* or leave matcher out to match every tool"),
        (r"no argument for repetition operator", "put a backslash before it for the character itself"),
        (
            r"invalid perl operator: \(\?(?:<?[=!]|>|\(|\||&|#|P[>=]|P$)",
            "no look-around, back-references, atomic groups, conditionals or comments; let the hook decide instead",
        ),
        (r"invalid perl operator: \(\?[a-zA-Z-]*x", "there is no (?x); write the pattern without spaces and comments"),
        (r"invalid perl operator", "the flags are i, m, s and U"),
        (r"invalid named capture group", "a group's name is made of letters, digits and _"),
        (r"bad repetition operator", "one repetition cannot follow another; put the inner one into (?:…)"),
        (r"invalid repetition size", "at most 1000 repetitions, those of nested groups multiplied"),
        (r"invalid character class range: \\[pP]", "general categories and scripts go by their short names: \\pL, \\p{Lu}, \\p{Greek}"),
        (r"invalid escape sequence: \\[uU]", "write \\x{41} for a character by its number"),
        (r"missing \)", "write \\( for the character itself"),
        (r"unexpected \)", "write \\) for the character itself"),
        (r"pattern too large", "make its repetitions smaller"),
    )
)  # fmt: skip
"""What to do about what RE2 says."""

_MAX_SAID = 200

_COUNTED = re.compile(r"(?<!\\)\{([0-9]{1,9})(?:,([0-9]{0,9}))?\}")


def _too_many_repetitions(pattern: str) -> list[PatternFault]:
    total = 0
    for counted in _COUNTED.finditer(pattern):
        most = int(counted[2] or counted[1])
        if most > MAX_REPETITIONS:
            return []  # the engine refuses it before it compiles anything, and has words for it
        total += most
        if total > MAX_REPETITIONS:
            message = f"its counted repetitions come to more than {MAX_REPETITIONS} together"
            return [PatternFault(message=message, hint="write + or * instead", offset=counted.start())]
    return []


@lru_cache(maxsize=1024)
def _engine_refusal(pattern: str) -> PatternFault | None:
    options = compile_options()
    try:
        # A set of one: twice as fast as `re2.compile`, and nothing stays behind in that function's own cache.
        alone = re2.Set.SearchSet(options)
        alone.Add(pattern)
        alone.Compile()
    except re2.error:
        pass
    else:
        return None
    said = "pattern too large"
    try:
        re2.compile(pattern, options)  # only for its words: a set has none
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace")
    hint = next((hint for known, hint in _ENGINE_HINTS if known.match(said)), None)
    # The engine names the culprit but not its place; the first such text is nearly always it.
    offset = pattern.find(said.partition(": ")[2] or pattern)
    return PatternFault(
        message=f"invalid regular expression: {cut(said, _MAX_SAID)}", hint=hint, offset=max(offset, 0)
    )
