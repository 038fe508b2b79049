"""`hooksd socket-path`: where the daemon listens and clients look."""

from __future__ import annotations

import argparse
import os

from hooksd.cli.daemon_session import add_json_argument, fail, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd_client import paths


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "socket-path"
HELP = "print the path of the daemon's socket"
EXAMPLES = """\
examples:
  hooksd socket-path
  printf '{"jsonrpc":"2.0","id":1,"method":"daemon/ping"}\\n' | nc -NU "$(hooksd socket-path)"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `socket-path`."""
    parser.add_argument("--socket", metavar="PATH", help="check this path instead of the rule")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print the path that the rule of protocol section 1 gives here."""
    try:
        path = paths.socket_path(os.environ, args.socket)
    except paths.SocketPathError as error:
        fail(ExitCode.USAGE, str(error))
    if args.json:
        terminal().json({"socket": path})
    else:
        terminal().line(path)
    return ExitCode.DONE
