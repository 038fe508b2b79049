"""`hooksd trust`: look at the hooks that a project brings along, trust them, take that back.

Trust is granted by a person who has seen what it is for: `grant` shows everything on the terminal itself and reads the
answer from there, whatever stdin and stdout are, so that no program can answer for him by a pipe.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TextIO

from hooksd.cli import render
from hooksd.cli.daemon_session import add_daemon_arguments, connected, fail, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import Terminal, safe
from hooksd_client.results import ConfigProblem, TrustReview


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "trust"
HELP = "look at the hooks that a project brings along, and say whether they may run"
EXAMPLES = """\
examples:
  hooksd trust list                 projects that are trusted, or bring hooks along
  hooksd trust show ~/project       what would be trusted, and how it differs from what was
  hooksd trust grant ~/project      look at it, then type yes
  hooksd trust revoke ~/project     its hooks do not run any more
"""

_ANSWER = "yes"
_MAX_ANSWER = 64
_STYLES = {"trusted": "green", "changed": "bold red", "untrusted": "yellow"}
_MARKS = {"same": " ", "new": "+", "changed": "~", "missing": "-"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `trust`."""
    parser.add_argument("action", choices=("list", "show", "grant", "revoke"), help="what to do")
    parser.add_argument(
        "dir", metavar="DIR", nargs="?", help="the project's directory (default: the current one)"
    )
    add_daemon_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Do it; 1 where trust was not granted, or where there was none to revoke."""
    if args.action == "list":
        if args.dir is not None:
            fail(ExitCode.USAGE, "trust list takes no directory; `hooksd trust show DIR` is about one")
        return _list(args)
    directory = os.path.abspath(os.path.expanduser(args.dir or "."))
    if args.action == "show":
        return _show(args, directory)
    if args.action == "grant":
        return _grant(args, directory)
    return _revoke(args, directory)


def _list(args: argparse.Namespace) -> int:
    speaker = terminal()
    if args.json:
        with connected(args) as client:
            speaker.json(client.call("trust/list", repeatable=True))
        return ExitCode.DONE
    with connected(args) as client:
        projects = client.list_trust()
    if not projects:
        speaker.line("no project is trusted, and none that was opened brings hooks along")
    for project in projects:
        since = f"since {_when(project.granted_at)}" if project.granted_at is not None else "never granted"
        state = speaker.style(f"{project.state:<10}", _STYLES.get(project.state, ""))
        speaker.line(f"{state} {safe(project.dir) or '(unknown)'}{speaker.style(f'  {since}', 'dim')}")
        _problems(speaker, project.problems, indent="           ")
    return ExitCode.DONE


def _show(args: argparse.Namespace, directory: str) -> int:
    speaker = terminal()
    if args.json:
        with connected(args) as client:
            speaker.json(client.call("trust/show", {"dir": directory}, repeatable=True))
        return ExitCode.DONE
    with connected(args) as client:
        found = client.show_trust(directory)
    _tell(speaker, found)
    if found.files and found.state != "trusted":
        speaker.line()
        speaker.line(f"to trust it as it is: hooksd trust grant {safe(shlex.quote(found.dir))}")
    return ExitCode.DONE


def _grant(args: argparse.Namespace, directory: str) -> int:
    if args.json:
        fail(ExitCode.USAGE, "trust grant asks a person, so it has no --json")
    with _own_terminal() as tty:
        speaker = Terminal(tty, sys.stderr, os.environ)
        with connected(args) as client:
            found = client.show_trust(directory)
            _tell(speaker, found)
            if any(problem.severity == "error" for problem in found.problems) or not found.files:
                fail(ExitCode.NO, f"{safe(found.dir)} cannot be trusted as it is")
            if found.state == "trusted":
                speaker.line("it is trusted as it is; there is nothing to do")
                return ExitCode.DONE
            if not _said_yes(speaker, tty, found):
                fail(ExitCode.NO, f"nothing was granted; {safe(found.dir)} is {found.state}")
            granted = client.grant_trust(found.dir, found.digest)
        speaker.line(
            f"{safe(granted.dir)} is {speaker.style(granted.state, _STYLES.get(granted.state, ''))} "
            f"(revision {granted.revision}): executions that are opened from now on run its hooks"
        )
    return ExitCode.DONE if granted.state == "trusted" else ExitCode.NO


def _revoke(args: argparse.Namespace, directory: str) -> int:
    speaker = terminal()
    with connected(args) as client:
        told = client.revoke_trust(directory)
    if args.json:
        speaker.json({"dir": told.dir, "revoked": told.revoked, "revision": told.revision})
    elif told.revoked:
        speaker.line(f"{safe(told.dir)} is not trusted any more (revision {told.revision})")
        speaker.line("executions that are open keep what they were opened with; close them to end that")
    else:
        speaker.line(f"{safe(told.dir)} was not trusted")
    return ExitCode.DONE if told.revoked else ExitCode.NO


# ----------------------------------------------------------------------------------------------------------------------
# Asking


@contextlib.contextmanager
def _own_terminal() -> Iterator[TextIO]:
    """The terminal this command runs in, to write to and to read from; ends the command where there is none."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        fail(
            ExitCode.USAGE,
            f"trust grant wants a terminal, so that a person answers; there is none ({error.strerror})",
            "run it yourself, in a terminal: an agent must not approve its own hooks",
        )
    # Not one buffered stream for both: a terminal cannot be sought in.
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace", buffering=1) as tty:
        yield tty


def _said_yes(speaker: Terminal, tty: TextIO, found: TrustReview) -> bool:
    """Ask, and whether the answer was the whole word; what was typed before the question does not count."""
    import termios  # late: not every system has it, and the help of all commands must work everywhere

    speaker.line()
    if not found.diff_is_whole:
        speaker.line(
            speaker.style(
                "part of this could not be shown: look at those files before you answer", "bold red"
            )
        )
    speaker.line(f"digest {found.digest}")
    termios.tcflush(tty.fileno(), termios.TCIFLUSH)
    tty.write(f"Type {_ANSWER} to trust the hooks of {safe(found.dir)} exactly as shown: ")
    tty.flush()
    return os.read(tty.fileno(), _MAX_ANSWER).decode("utf-8", "replace").strip() == _ANSWER


# ----------------------------------------------------------------------------------------------------------------------
# Telling


def _tell(speaker: Terminal, found: TrustReview) -> None:
    """Everything that there is to know before trusting a project."""
    state = speaker.style(found.state, _STYLES.get(found.state, ""))
    since = f", granted {_when(found.granted_at)}" if found.granted_at is not None else ""
    speaker.line(f"{speaker.style(safe(found.dir), 'bold')} is {state}{since}")
    _problems(speaker, found.problems, indent="  ")
    if found.files:
        speaker.line("covered:")
    for file in found.files:
        facts = f"{file.role}, {file.size_bytes} bytes, {file.change}"
        speaker.line(
            f"  {_MARKS.get(file.change, '?')} {safe(file.path)}{speaker.style(f'  ({facts})', 'dim')}"
        )
    if found.files:
        speaker.line(f"{render.label(speaker, 'digest')}{found.digest}")
        speaker.line("not covered:")
        for text in found.not_covered:
            speaker.line(f"  {safe(text)}")
    if found.diff:
        speaker.line()
    for line in found.diff.split("\n")[:-1]:
        speaker.line(speaker.style(safe(line), _style_of(line)))


def _style_of(line: str) -> str:
    if line.startswith(("---", "+++", "#")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def _problems(speaker: Terminal, problems: tuple[ConfigProblem, ...], *, indent: str) -> None:
    render.config_problems(
        speaker,
        [
            {
                "severity": one.severity,
                "path": one.path,
                "message": one.message,
                "line": one.line,
                "column": one.column,
                "hint": one.hint,
                "file": one.file,
            }
            for one in problems
        ],
        indent=indent,
    )


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
