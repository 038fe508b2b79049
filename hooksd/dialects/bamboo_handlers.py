"""What a Bamboo handler runs: shells, script extensions, runners and runtimes (Bamboo dialect 3.1 and 3.2).

As changed by design.md: commands go to bash where there is one, `.sh` scripts to the shell their first line names.
"""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

from hooksd.model.hooks import Script, ShellCommand


__all__ = ["EXTENSIONS", "RunnerMismatch", "command_handler", "script_extension", "script_handler", "trim"]

SHELLS = ("bash", "sh")

EXTENSIONS = ("js", "mjs", "cjs", "py", "sh", "ps1", "bat", "cmd")

_RUNS = {
    "node": ("js", "mjs", "cjs"),
    "bun": ("js", "mjs", "cjs"),
    "python": ("py",),
    "bash": ("sh",),
    "powershell": ("ps1",),
    "cmd": ("bat", "cmd"),
}
_NODE = ("node",)
_BUN = ("bun", "run")
_POWERSHELL = ("-NoLogo", "-NoProfile", "-NonInteractive", "-File")

# Rust's trim: Unicode White_Space. Python's str.strip() takes U+001C to U+001F besides.
_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def trim(text: str) -> str:
    """The text without Unicode white space at its ends, as the reference trims."""
    return text.strip(_WHITE_SPACE)


class RunnerMismatch(Exception):
    """A runner that cannot run a script of that extension."""


def command_handler(command: str) -> ShellCommand:
    """The handler of a command line."""
    return ShellCommand(command=command, shells=SHELLS)


def script_extension(path: str, *, windows: bool) -> str | None:
    """The last suffix of a path in lower case, without its dot; None if it is not one of `EXTENSIONS`."""
    suffix = (PureWindowsPath(path) if windows else PurePosixPath(path)).suffix[1:]
    # ASCII only, as the reference does: "K" (the Kelvin sign) is no k.
    lowered = suffix.lower() if suffix.isascii() else suffix
    return lowered if lowered in EXTENSIONS else None


def script_handler(path: str, extension: str, runner: str, *, windows: bool) -> Script:
    """The handler of a script.

    Args:
        path: Trimmed and not blank.
        extension: One of `EXTENSIONS`.
        runner: One of the schema's `RUNNERS`.
        windows: Whether hooks are to run on Windows.

    Raises:
        RunnerMismatch: The runner cannot run such a script.
    """
    if runner != "auto" and extension not in _RUNS[runner]:
        raise RunnerMismatch(f"runner {runner} cannot execute {path}")
    refusal: str | None = None
    shebang_shell = False
    runtimes: tuple[tuple[str, ...], ...]
    match extension:
        case "js" | "mjs" | "cjs":
            runtimes = {"node": (_NODE,), "bun": (_BUN,)}.get(runner, (_NODE, _BUN))
        case "py":
            runtimes = (("python3",), ("python",), ("py", "-3")) if windows else (("python3",), ("python",))
        case "sh":
            shebang_shell = runner == "auto" and not windows
            runtimes = (("bash",), ("sh",)) if shebang_shell else (("bash",),)
        case "ps1":
            runtimes = (("pwsh", *_POWERSHELL), ("powershell", *_POWERSHELL))
        case _ if windows:
            runtimes = (("cmd.exe", "/D", "/C", "call"),)
        case _:
            runtimes = ()
            refusal = f".{extension} scripts require Windows"
    return Script(path=path, runtimes=runtimes, shebang_shell=shebang_shell, refusal=refusal)


def runners_for(extension: str) -> tuple[str, ...]:
    """The runners that can run a script of that extension, for a hint."""
    return ("auto", *(runner for runner, extensions in _RUNS.items() if extension in extensions))
