"""`hooksd dispatch`: report an event for real, from the shell."""

from __future__ import annotations

import argparse
import math

from hooksd.cli import render
from hooksd.cli.daemon_session import add_daemon_arguments, connected, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.one_shot import add_event_arguments, dispatch_params


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "dispatch"
HELP = "report an event for real and print the outcome"
EXAMPLES = """\
examples:
  hooksd dispatch PreToolUse --payload '{"tool_name": "Bash", "tool_call_id": "1", "tool_input": {"command": "ls"}}'
  hooksd dispatch Stop --execution run-42 --payload '{"stop_hook_active": false}' --json
exit status: 0 none or allow, 1 ask or block
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `dispatch`."""
    add_event_arguments(parser)
    parser.add_argument("--timeout-ms", type=int, metavar="N", help="budget of all its hooks together")
    add_daemon_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Dispatch; 1 when the answer is ask or block."""
    params = dispatch_params(args, default_payload={})
    if args.timeout_ms is not None:
        params["timeout_ms"] = args.timeout_ms
    with connected(args, timeout_s=math.inf) as client:
        told = client.call("hook/dispatch", params)
    if args.json:
        terminal().json(told)
    else:
        render.outcome(terminal(), told)
    return ExitCode.NO if told.get("decision") in ("ask", "block") else ExitCode.DONE
