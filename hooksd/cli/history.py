"""`hooksd history`: what ran, what was decided, what failed; from the log."""

from __future__ import annotations

import argparse
from collections import Counter, deque
from typing import Any

from hooksd.cli.daemon_session import add_json_argument, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.log_lines import line_of
from hooksd.cli.log_options import Reasons, add_log_arguments, log_file, record_filter
from hooksd.observe.log_reader import LogReader
from hooksd.observe.log_records import Record


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "history"
HELP = "show what ran, what was decided and what failed"
EXAMPLES = """\
examples:
  hooksd history --blocked --since 1d
  hooksd history --failed --hook format
  hooksd history --execution run-42 --json
"""

_FAILED = frozenset({"failed", "timeout", "launch_error"})
_KINDS = ("hook.finished", "hook.skipped")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `history`."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--failed", action="store_true", help="only runs without a valid answer")
    which.add_argument("--blocked", action="store_true", help="only runs that blocked")
    parser.add_argument(
        "-n", type=int, default=50, metavar="N", dest="count", help="the last N of them (default: 50)"
    )
    add_log_arguments(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print the newest runs that are wanted, and a summary of all of them."""
    speaker = terminal()
    shown: deque[Record] = deque(maxlen=max(0, args.count))
    counts: Counter[str] = Counter()
    with LogReader(log_file(args)) as reader:
        for record in reader.all(record_filter(args, kinds=_KINDS)):
            if _wanted(record, args):
                shown.append(record)
                counts[str(record.get("status"))] += 1
    if args.json:
        speaker.json({"runs": list(shown), "counts": dict(counts)})
        return ExitCode.DONE
    reasons = Reasons(args.socket)
    try:
        for record in shown:
            speaker.line(line_of(speaker, record, reasons, date=True))
    finally:
        reasons.close()
    total = sum(counts.values())
    summary = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    speaker.line(speaker.style(f"{total} runs{f': {summary}' if summary else ''}", "dim"))
    return ExitCode.DONE


def _wanted(record: dict[str, Any], args: argparse.Namespace) -> bool:
    if args.failed:
        return record.get("status") in _FAILED
    if args.blocked:
        return record.get("status") == "blocked" or record.get("decision") == "block"
    return True
