"""`hooksd serve`: run the daemon in the foreground."""

from __future__ import annotations

import argparse
import os
import sys

from hooksd.cli.exit_codes import ExitCode
from hooksd.model.errors import AlreadyRunning, ServiceError


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "serve"
HELP = "run the daemon in the foreground"
EXAMPLES = """\
examples:
  hooksd serve                                        with the default places
  hooksd serve --log-file - --log-format console      records on stderr, for people
  hooksd serve --socket /tmp/h/hooksd.sock --config ./hooksd.toml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `serve`."""
    parser.add_argument(
        "--socket", metavar="PATH", help="where to listen (default: see `hooksd socket-path`)"
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="the hooksd.toml to use (default: $HOOKSD_CONFIG, else in the configuration directory)",
    )
    parser.add_argument(
        "--state-dir", metavar="DIR", help="where trust, last good configuration and logs are kept"
    )
    parser.add_argument(
        "--log-file",
        metavar="PATH|-",
        help="where records go; `-` is stderr (default: hooksd.log in the state directory)",
    )
    parser.add_argument(
        "--log-level",
        choices=["debug", "info", "warning", "error"],
        help="least level that is logged (default: $HOOKSD_LOG_LEVEL, else hooksd.toml)",
    )
    parser.add_argument(
        "--log-format",
        choices=["json", "console"],
        default="json",
        help="one JSON object per line, or lines for people",
    )
    parser.add_argument(
        "--ready-fd",
        metavar="N",
        type=int,
        help="write a line end to this descriptor, and close it, when the socket is served",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop. Tells on stderr why it cannot start."""
    # Late: only this command pays for the daemon's imports.
    from hooksd.daemon import ServeOptions, serve
    from hooksd.model.records import Level

    level = args.log_level or os.environ.get("HOOKSD_LOG_LEVEL") or None
    if level not in {None, *Level}:
        sys.stderr.write(f"hooksd serve: HOOKSD_LOG_LEVEL is {level!r}; it can be {', '.join(Level)}\n")
        return ExitCode.USAGE
    options = ServeOptions(
        socket=args.socket,
        config=args.config,
        state_dir=args.state_dir,
        log_file=args.log_file,
        log_level=Level(level) if level else None,
        log_format=args.log_format,
        ready_fd=args.ready_fd,
    )
    try:
        return serve(options)
    except AlreadyRunning as error:
        sys.stderr.write(f"hooksd serve: {error}\n")
        return ExitCode.ALREADY_RUNNING
    except ServiceError as error:
        sys.stderr.write(f"hooksd serve: {error}\n")
        return ExitCode.NO
