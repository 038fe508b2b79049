"""`hooksd ping`: is the daemon there, and how far away."""

from __future__ import annotations

import argparse
import time
from typing import Final

from hooksd.cli.daemon_session import add_daemon_arguments, connected, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import milliseconds
from hooksd_client import Client
from hooksd_client.errors import DaemonNotReachable


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "ping"
HELP = "ask the daemon for a sign of life"
EXAMPLES = """\
examples:
  hooksd ping
  hooksd ping --wait 10             as long as it takes a daemon to start, at most 10 s
  hooksd ping --socket /run/user/1000/hooksd/hooksd.sock --json
"""

_LONGEST_WAIT_S: Final = 3600.0

_PAUSE_S: Final = 0.05
"""Between two tries; a daemon needs some hundred milliseconds to start."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ping`."""
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=0.0,
        metavar="S",
        help="wait so many seconds for a daemon that is starting (default: do not wait)",
    )
    add_daemon_arguments(parser)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= _LONGEST_WAIT_S:
        raise argparse.ArgumentTypeError(f"{text}: no time from 0 to {_LONGEST_WAIT_S:.0f} s")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Print the round trip; 3 when nobody answers."""
    _wait_for_daemon(args.socket, args.wait)
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


def _wait_for_daemon(socket: str | None, wait_s: float) -> None:
    """Return when somebody answers, or when the time is over; what is wrong then is told by the real request."""
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        try:
            with Client(socket_path=socket, timeout=5.0) as client:
                client.ping()
        except DaemonNotReachable:
            time.sleep(_PAUSE_S)
        else:
            return
