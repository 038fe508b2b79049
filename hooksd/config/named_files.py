"""Which files of a project a hook names: what trust in the project covers (design rule 9).

A hook names files by its script's path, by words of its argument list and by words of its command line. A word counts
when it is an existing regular file in the project, so what cannot be a file needs no understanding, and a command line
need not be understood as its shell would: every reading of it that could name a file is tried. What a script reads or
imports by itself is not covered, nor is a program that is found by its bare name on the PATH.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
from collections.abc import Iterator
from typing import Final

from hooksd.model.hooks import Argv, Handler, Programmatic, Script, ShellCommand


__all__ = ["MAX_WORDS", "is_file", "named_words", "place_in"]

MAX_WORDS: Final = 1024
"""Words of one hook that are looked at. A hook with more cannot be pinned and so is never trusted."""

_MAX_DEPTH: Final = 3
"""Command lines inside the words of command lines (`sh -c '…'`) are followed so deep."""

_WRITTEN_TO: Final = re.compile(r"""[0-9&]?>{1,2}[|&]?\s*(?:"[^"\n]*"|'[^'\n]*'|[^\s;|&()<>]+)""")
"""The target of a redirection is written, not run: a log file must not cost a project its trust."""

_PIECES: Final = re.compile(r"""[^\s"'`;|&()<>\[\]{}=,:$]+""")
"""Whatever could be a path when quotes and operators are taken for separators."""

_SHELL_TEXT: Final = re.compile(r"[\s;|&()<>`]")
"""What makes a word look like a command line of its own."""

_VARIABLE: Final = re.compile(r"""(?:\$\{\w+\}|\$\w+|~)/""")
"""A directory that only the shell knows; most often it is the workspace."""


def named_words(handler: Handler | None) -> tuple[str, ...]:
    """Every word of a handler that could be the path of a file, without repetition; more than `MAX_WORDS` are too many.

    Relative words are relative to the hook's working directory.
    """
    found: dict[str, None] = {}
    for word in _words(handler):
        if word and "\0" not in word:
            found[word] = None
        if len(found) > MAX_WORDS:
            break
    return tuple(found)


def _words(handler: Handler | None) -> Iterator[str]:
    match handler:
        case Script():
            yield os.path.join(handler.base or "", handler.path)
            for argument in handler.arguments:
                yield from _argument(argument, _MAX_DEPTH)
        case Argv():
            for argument in handler.argv:
                yield from _argument(argument, _MAX_DEPTH)
        case ShellCommand():
            yield from _command_line(handler.command, _MAX_DEPTH)
        case Programmatic() | None:
            return


def _argument(text: str, depth: int) -> Iterator[str]:
    """A word as it is, and what else it may hold: an option's value, a variable's directory, a command line."""
    yield text
    if found := _VARIABLE.match(text):
        yield text[found.end() :]
    if not depth:
        return
    if "=" in text:
        yield from _argument(text.partition("=")[2], depth - 1)
    if _SHELL_TEXT.search(text):
        yield from _command_line(text, depth - 1)


def _command_line(text: str, depth: int) -> Iterator[str]:
    text = _WRITTEN_TO.sub(" ", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    # A quote that is not closed ends the words; the pieces below hold what the rest would have.
    with contextlib.suppress(ValueError):
        for word in lexer:
            yield from _argument(word, depth)
    for piece in _PIECES.findall(text):
        yield piece
        if piece.startswith("/"):
            # What is before it may have been a variable or a substitution.
            yield piece.lstrip("/")


def place_in(root: str, path: str) -> str | None:
    """Where a path enters a project, and the names below it, as `hooks/check.sh`; None if it stays outside.

    The directories on the way are followed, the names inside the project are not: a symbolic link in the project is the
    project's own, wherever it leads.

    Args:
        root: The project's real directory.
        path: Absolute; nothing of it need exist.
    """
    current, inside = "/", "" if root == "/" else None
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            current = os.path.dirname(os.path.realpath(current))
            inside = _below(root, current)
            continue
        current = os.path.join(current, part)
        inside = os.path.join(inside, part) if inside is not None else _below(root, os.path.realpath(current))
    return inside or None


def _below(root: str, path: str) -> str | None:
    """The rest of a real path below a real directory; "" for the directory itself."""
    if path == root:
        return ""
    prefix = root if root.endswith("/") else root + "/"
    return path[len(prefix) :] if path.startswith(prefix) else None


def is_file(path: str) -> bool:
    """Whether there is a regular file, symbolic links followed."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
