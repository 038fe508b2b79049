"""`hooksd ping`: is the daemon there, and how far away."""

from __future__ import annotations

import argparse
import time

from hooksd.cli.daemon_session import add_daemon_arguments, connected, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import milliseconds


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "ping"
HELP = "ask the daemon for a sign of life"
EXAMPLES = """\
examples:
  hooksd ping
  hooksd ping --socket /run/user/1000/hooksd/hooksd.sock --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ping`."""
    add_daemon_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the round trip; 3 when nobody answers."""
    with connected(args, timeout_s=5.0) as client:
        # The first exchange pays for the connection; the second is what an agent sees.
        client.call("daemon/ping", {})
        start = time.perf_counter()
        client.call("daemon/ping", {})
        elapsed_ms = (time.perf_counter() - start) * 1000
    if args.json:
        terminal().json({"pong": True, "round_trip_ms": round(elapsed_ms, 3)})
    else:
        terminal().line(f"pong in {milliseconds(elapsed_ms)}")
    return ExitCode.DONE
