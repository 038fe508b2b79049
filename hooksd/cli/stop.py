"""`hooksd stop`: let the daemon finish what runs, then end."""

from __future__ import annotations

import argparse
import os
import time

from hooksd.cli.daemon_session import add_daemon_arguments, connected, fail, terminal
from hooksd.cli.exit_codes import ExitCode


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "stop"
HELP = "drain the daemon and end it"
EXAMPLES = """\
examples:
  hooksd stop                  wait for running hooks as long as `limits.drain_s`
  hooksd stop --grace-ms 0     now
"""

_MARGIN_S = 10.0
"""Beyond the drain itself: ending process trees, writing the log."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `stop`."""
    add_daemon_arguments(parser)
    parser.add_argument("--grace-ms", type=int, metavar="N", help="how long running hooks may take")


def run(args: argparse.Namespace) -> int:
    """Ask for the shutdown and wait until the process is gone."""
    with connected(args, timeout_s=10.0) as client:
        pid = int(client.call("daemon/status", {})["pid"])
        grace_ms = args.grace_ms
        client.call("daemon/shutdown", {} if grace_ms is None else {"grace_ms": grace_ms})
    end = time.monotonic() + (grace_ms / 1000 if grace_ms is not None else 60.0) + _MARGIN_S
    while _alive(pid):
        if time.monotonic() > end:
            fail(ExitCode.NO, f"pid {pid} is still draining", "`hooksd status` tells what it waits for")
        time.sleep(0.02)
    if args.json:
        terminal().json({"stopped": True, "pid": pid})
    else:
        terminal().line(f"hooksd (pid {pid}) has stopped")
    return ExitCode.DONE


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        # A zombie whose parent has not looked yet has stopped all the same.
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return os.path.isdir("/proc/self") is False
