"""The entry of `hooksd`: a table of commands, each in a module of its own, and what all of them share.

A command module has `NAME`, `HELP` (one line), `EXAMPLES` (a text of command lines), `add_arguments(parser)` and
`run(args) -> int`. It is imported only when it is used, so that no command pays for another's imports. What a command
does with the daemon, its output and its exit code are its own; here are only the borders: usage errors, a closed
pipe, an interrupt, and the last resort for a fault of ours.
"""

from __future__ import annotations

import argparse
import difflib
import io
import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import NoReturn, Protocol, cast

from hooksd import __version__
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import OutputLost, flush, give_up, put, safe, tell


__all__ = ["COMMANDS", "Command", "main"]

COMMANDS: Mapping[str, str] = {
    "serve": "hooksd.cli.serve",
    "demo": "hooksd.cli.demo",
    "init": "hooksd.cli.init",
    "validate": "hooksd.cli.validate",
    "explain": "hooksd.cli.explain",
    "test": "hooksd.cli.test",
    "dispatch": "hooksd.cli.dispatch",
    "status": "hooksd.cli.status",
    "ping": "hooksd.cli.ping",
    "reload": "hooksd.cli.reload",
    "stop": "hooksd.cli.stop",
    "logs": "hooksd.cli.logs",
    "history": "hooksd.cli.history",
    "trust": "hooksd.cli.trust",
    "outbox": "hooksd.cli.outbox",
    "schema": "hooksd.cli.schema",
    "socket-path": "hooksd.cli.socket_path",
    "version": "hooksd.cli.version",
}
"""Every command and the module it lies in, in the order of the help."""

_INTRODUCTION = (
    "hooksd runs the lifecycle hooks of coding agents. `hooksd COMMAND -h` tells more about a command."
)

_EXAMPLES = """\
examples:
  hooksd demo                               see it work, in a private daemon
  hooksd serve                              run the daemon in the foreground
  hooksd validate                           check the configuration
  hooksd explain PreToolUse                 what would run, and why the rest would not
  hooksd logs -f                            follow what runs
"""


class Command(Protocol):
    """The shape of a command module."""

    NAME: str
    HELP: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the result is the exit status."""
        ...


class _Parser(argparse.ArgumentParser):
    """A parser whose help begins with examples, and whose errors suggest what was meant."""

    examples: str = ""

    def format_help(self) -> str:  # type: ignore[explicit-override]  # `typing.override` came with Python 3.12
        """The usual help, with the examples first."""
        text = super().format_help()
        return f"{self.examples.rstrip()}\n\n{text}" if self.examples else text

    def print_help(self, file: object = None) -> None:  # type: ignore[explicit-override]
        """To stdout; argparse's own swallows every error of the disk."""
        put(self.format_help())

    def error(self, message: str) -> NoReturn:  # type: ignore[explicit-override]
        """One line, a suggestion where there is one, exit status 2."""
        prefix = "unrecognized arguments: "
        if message.startswith(prefix):
            unknown = message.removeprefix(prefix).split()[0].partition("=")[0]
            options = [option for action in self._actions for option in action.option_strings]
            message += _suggestion(unknown, options) if unknown.startswith("-") else ""
        tell(f"{self.prog}: {safe(message)}\n{self.prog}: see `{self.prog} -h`\n")
        self.exit(ExitCode.USAGE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The arguments without the program's name; those of the process by default.

    Returns:
        The exit status.
    """
    _complete_streams()
    try:
        try:
            status = _run(list(sys.argv[1:] if argv is None else argv))
        except SystemExit as end:
            # argparse ends so, after the help or a mistake.
            status = end.code if isinstance(end.code, int) else ExitCode.USAGE
        # What is still buffered would otherwise fail after this function, with a traceback.
        flush()
    except BrokenPipeError:
        return _after_broken_pipe()
    except OutputLost as error:
        return _after_lost_output(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the border: no traceback reaches a user
        return _internal_error(error)
    return status


def _complete_streams() -> None:
    """Make sure that 0, 1 and 2 are open, and that everything can be written.

    A program that was started with one of them closed would get a socket or the log in its place.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free: this one
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the whole life
        elif isinstance(stream, io.TextIOWrapper) and name != "stdin":
            stream.reconfigure(errors="backslashreplace")


def _run(arguments: list[str]) -> int:
    name, rest = _split(arguments)
    command = cast("Command", import_module(COMMANDS[name]))
    parser = _Parser(prog=f"hooksd {name}", description=command.HELP, allow_abbrev=False)
    parser.examples = command.EXAMPLES
    command.add_arguments(parser)
    return int(command.run(parser.parse_args(rest)))


def _split(arguments: list[str]) -> tuple[str, list[str]]:
    """The command's name and its own arguments; help, version and mistakes end here."""
    if not arguments:
        _usage_error("no command given")
    first = arguments[0]
    if first in {"-h", "--help"} or (first == "help" and len(arguments) == 1):
        put(_help())
        raise SystemExit(ExitCode.DONE)
    if first == "help":
        first, arguments = arguments[1], [arguments[1], "-h"]
    if first == "--version":
        put(f"hooksd {__version__}\n")
        raise SystemExit(ExitCode.DONE)
    if first.startswith("-"):
        _usage_error(f"unknown option {first!r} before the command")
    if first not in COMMANDS:
        _usage_error(f"unknown command {first!r}" + _suggestion(first, COMMANDS, prefix="hooksd "))
    return first, arguments[1:]


def _help() -> str:
    lines = [_EXAMPLES.rstrip(), "", "usage: hooksd COMMAND ...", "", _INTRODUCTION, "", "commands:"]
    width = max(map(len, COMMANDS)) + 2
    for name, module in COMMANDS.items():
        lines.append(f"  {name:<{width}}{cast('Command', import_module(module)).HELP}")
    lines += ["", "options:", "  -h, --help     this text", "  --version      the version", ""]
    return "\n".join(lines)


def _suggestion(word: str, known: Iterable[str], *, prefix: str = "") -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean `{prefix}{near[0]}`?" if near else ""


def _usage_error(message: str) -> NoReturn:
    tell(f"hooksd: {message}\nhooksd: see `hooksd -h`\n")
    raise SystemExit(ExitCode.USAGE)


def _after_broken_pipe() -> int:
    give_up(sys.stdout)
    return ExitCode.DONE


def _after_lost_output(error: OutputLost) -> int:
    give_up(sys.stdout)
    tell(f"hooksd: the output cannot be written: {error}\n")
    # Not 0: whoever asked for a decision must not take its absence for an allow.
    return ExitCode.NO


def _internal_error(error: Exception) -> int:
    if os.environ.get("HOOKSD_DEBUG") == "1":
        traceback.print_exception(error)
        return ExitCode.INTERNAL
    tell(
        f"hooksd: internal error: {type(error).__name__}: {safe(error)}\n"
        "hooksd: this is a fault of hooksd; HOOKSD_DEBUG=1 shows where it happened\n"
    )
    return ExitCode.INTERNAL
