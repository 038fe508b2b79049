"""`hooksd reload`: read all configuration again."""

from __future__ import annotations

import argparse
import os
import signal

from hooksd.cli import render
from hooksd.cli.daemon_session import add_daemon_arguments, connected, terminal
from hooksd.cli.exit_codes import ExitCode


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "reload"
HELP = "read all configuration again"
EXAMPLES = """\
examples:
  hooksd reload            ask for it and go on
  hooksd reload --wait     until the new revision is in force; exit 1 if an error stands in it
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `reload`."""
    add_daemon_arguments(parser)
    parser.add_argument(
        "--wait", action="store_true", help="until the new revision is in force, and tell its problems"
    )


def run(args: argparse.Namespace) -> int:
    """Reload; with `--wait`, 1 when an error stands in the configuration."""
    speaker = terminal()
    with connected(args, timeout_s=60.0) as client:
        if not args.wait:
            pid = int(client.call("daemon/status")["pid"])
            os.kill(pid, signal.SIGHUP)
            if args.json:
                speaker.json({"requested": True, "pid": pid})
            else:
                speaker.line(f"told pid {pid} to reload; `--wait` tells what comes of it")
            return ExitCode.DONE
        told = client.call("config/reload")
    problems = told.get("problems") or []
    if args.json:
        speaker.json(told)
    else:
        changed = "changed" if told.get("changed") else "nothing changed"
        speaker.line(f"revision {told.get('revision')} is in force, {changed}")
        render.config_problems(speaker, problems)
    return ExitCode.NO if any(problem.get("severity") == "error" for problem in problems) else ExitCode.DONE
