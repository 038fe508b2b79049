"""What was granted against what is there, as a unified diff for people. Pure.

Nothing may hide in it: what is left out is said in its place, and whether anything was. Lines end at line feeds only;
a carriage return or a form feed stays in its line, for the terminal to be made harmless by whoever prints it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple


__all__ = ["MAX_COMPARED_LINES", "MAX_DIFF_CHARACTERS", "Difference", "Side", "difference"]

MAX_DIFF_CHARACTERS: Final = 1_048_576
"""Longest diff: what one can read is far less, and it has to fit into one message."""

MAX_COMPARED_LINES: Final = 2_000
"""Longest file that is compared line by line, which may take the square of it; of a longer one all of both is shown."""

_CONTEXT: Final = 3


class Side(NamedTuple):
    """One file before and after.

    `None` as a text means that there is no copy; an empty digest means that there is no such file.
    """

    path: str
    before_sha256: str
    before: bytes | None
    after_sha256: str
    after: bytes | None


class Difference(NamedTuple):
    """The text, and whether everything is in it."""

    text: str
    is_whole: bool


def difference(sides: Iterable[Side]) -> Difference:
    """The diff of all files that differ, in their order."""
    parts: list[str] = []
    left = MAX_DIFF_CHARACTERS
    is_whole = True
    for side in sides:
        if side.before_sha256 == side.after_sha256:
            continue
        lines, complete = _file(side)
        text = "".join(f"{line}\n" for line in lines)
        is_whole = is_whole and complete
        if len(text) <= left:
            left -= len(text)
        else:
            is_whole = False
            text = f"# {side.path}: {len(text)} characters of diff do not fit here; look at the file itself\n"
        parts.append(text)
    return Difference("".join(parts), is_whole)


def _file(side: Side) -> tuple[list[str], bool]:
    head = [
        f"--- {'granted/' + side.path if side.before_sha256 else '/dev/null'}",
        f"+++ {'now/' + side.path if side.after_sha256 else '/dev/null'}",
    ]
    missing = [
        when
        for when, sha256, text in (
            ("what was granted", side.before_sha256, side.before),
            ("what is there now", side.after_sha256, side.after),
        )
        if sha256 and text is None
    ]
    if missing:
        return [*head, f"# too large for a diff ({' and '.join(missing)}); look at the file itself"], False
    before, after = side.before or b"", side.after or b""
    if b"\0" in before or b"\0" in after:
        return [*head, "# not a text; look at the file itself"], False
    return [*head, *_hunks(_lines(before), _lines(after))], True


def _hunks(before: list[str], after: list[str]) -> Iterator[str]:
    if max(len(before), len(after)) <= MAX_COMPARED_LINES:
        found = difflib.unified_diff(before, after, n=_CONTEXT, lineterm="")
        # Its own header has no room for what the two sides are.
        yield from list(found)[2:]
        return
    yield f"@@ -{_span(len(before))} +{_span(len(after))} @@"
    yield from (f"-{line}" for line in before)
    yield from (f"+{line}" for line in after)


def _span(length: int) -> str:
    return f"{1 if length else 0},{length}"


def _lines(text: bytes) -> list[str]:
    """The lines without their ends; one that has no end says so, so that it differs from one that has."""
    if not text:
        return []
    lines = text.decode("utf-8", "backslashreplace").split("\n")
    if lines[-1]:
        return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]
    return lines[:-1]
