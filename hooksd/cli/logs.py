"""`hooksd logs`: the log as readable lines, and what is written to it from now on."""

from __future__ import annotations

import argparse
import json
import time

from hooksd.cli.daemon_session import terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.log_lines import line_of
from hooksd.cli.log_options import Reasons, add_log_arguments, log_file, record_filter
from hooksd.cli.terminal import Terminal
from hooksd.observe.log_reader import LogReader
from hooksd.observe.log_records import Record


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "logs"
HELP = "show the log, one readable line for every run of a hook, and follow it"
EXAMPLES = """\
examples:
  hooksd logs                         the last 20 records
  hooksd logs -f --hook guard         follow the hooks with `guard` in their name
  hooksd logs --since 2h --level warning
  hooksd logs -f -o json | jq .
"""

_LOOK_S = 0.15
"""How often a followed log is looked at: quick for an eye, nothing for a machine."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `logs`."""
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is written from now on")
    parser.add_argument(
        "-n", type=int, default=20, metavar="N", dest="count", help="the last N records (default: 20)"
    )
    parser.add_argument(
        "--level", choices=["debug", "info", "warning", "error"], help="of this level or above"
    )
    parser.add_argument(
        "-o", "--output", choices=["pretty", "json"], default="pretty", help="lines, or JSON lines"
    )
    parser.add_argument(
        "--json", action="store_const", const="json", dest="output", help="the same as -o json"
    )
    add_log_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the newest records; with `--follow`, go on until interrupted."""
    speaker = terminal()
    wanted = record_filter(args, level=args.level)
    reasons = Reasons(args.socket)
    try:
        with LogReader(log_file(args)) as reader:
            for record in reader.last(max(0, args.count), wanted):
                _print(speaker, record, reasons, args.output)
            speaker.flush()
            while args.follow:
                records = reader.new(wanted)
                for record in records:
                    _print(speaker, record, reasons, args.output)
                if records:
                    speaker.flush()
                else:
                    time.sleep(_LOOK_S)
    finally:
        reasons.close()
    return ExitCode.DONE


def _print(speaker: Terminal, record: Record, reasons: Reasons, output: str) -> None:
    if output == "json":
        speaker.line(json.dumps(record, ensure_ascii=False, separators=(",", ":")))
    else:
        speaker.line(line_of(speaker, record, reasons))
