"""What a Chrys hook runs: command lines, programs, scripts and their interpreters (Chrys dialect 1.5).

As changed by design.md: a shell script goes to the shell that its first line names, else bash, else sh; a Python script
to `python3`, then `python`. `uv run`, the reference's first choice, is only marked as possible: it may write into a
workspace, so `hooksd.toml` must ask for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from hooksd.model.hooks import Argv, Script, ShellCommand


__all__ = ["command_handler", "script_handler", "shell_handler"]

_SHELLS = ("$SHELL", "/bin/sh")
_PYTHON = (("python3",), ("python",))
_SHELL_SUFFIXES = (".sh", ".bash", ".zsh")
_RUNTIMES: dict[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(_SHELL_SUFFIXES, (("bash",), ("sh",))),
    ".ps1": (("pwsh", "-NoProfile", "-File"), ("powershell", "-NoProfile", "-File")),
    ".js": (("node",),),
    ".mjs": (("node",),),
    ".ts": (("npx", "tsx"),),
    ".rb": (("ruby",),),
    ".pl": (("perl",),),
}
"""By suffix; whatever is not here is run as Python, as in the reference."""


def shell_handler(line: str) -> ShellCommand:
    """The handler of a line for the shell."""
    return ShellCommand(command=line, shells=_SHELLS)


def command_handler(argv: Sequence[str], args: Sequence[str]) -> Argv:
    """The handler of a program with its arguments; `argv` is not empty."""
    return Argv(argv=(*argv, *args))


def script_handler(path: str, args: Sequence[str], directory: str) -> Script:
    """The handler of a script.

    Args:
        path: As it is written.
        args: Its arguments.
        directory: What a relative path is relative to: the directory of the hooks file.
    """
    suffix = os.path.splitext(path)[1].lower()
    runtimes = _RUNTIMES.get(suffix, _PYTHON)
    return Script(
        path=path,
        base=directory,
        runtimes=runtimes,
        shebang_shell=suffix in _SHELL_SUFFIXES,
        arguments=tuple(args),
        prefers_uv=runtimes is _PYTHON,
    )
