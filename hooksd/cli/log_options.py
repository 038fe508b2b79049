"""The filters that `hooksd logs` and `hooksd history` share, and where the log lies."""

from __future__ import annotations

import argparse
import os
import re
import time
from datetime import datetime
from typing import Any

from hooksd.cli.daemon_session import fail
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import safe
from hooksd.model.records import Level
from hooksd.observe.log_records import RecordFilter
from hooksd_client import Client, paths
from hooksd_client.errors import ClientError


__all__ = ["Reasons", "add_log_arguments", "log_file", "record_filter"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def add_log_arguments(parser: argparse.ArgumentParser) -> None:
    """Which log and which of its records."""
    parser.add_argument(
        "--log-file", metavar="PATH", help="the log (default: hooksd.log in the state directory)"
    )
    parser.add_argument("--since", metavar="T", help="a time (2026-01-31T12:00) or an age (90s, 10m, 2h, 3d)")
    parser.add_argument("--hook", metavar="P", help="part of a hook's name, or a pattern with *")
    parser.add_argument("--execution", metavar="ID", help="records of one execution")
    parser.add_argument("--socket", metavar="PATH", help="the daemon that is asked for reasons")


def log_file(args: argparse.Namespace) -> str:
    """The path of the log; ends the command where there is none yet."""
    path: str = args.log_file or paths.log_path(os.environ)
    if not os.path.exists(path):
        fail(
            ExitCode.NO,
            f"there is no log at {safe(path)}",
            "has `hooksd serve` run? `--log-file` names another one",
        )
    return path


def record_filter(
    args: argparse.Namespace, *, kinds: tuple[str, ...] = (), level: str | None = None
) -> RecordFilter:
    """The filter that the options describe."""
    return RecordFilter(
        hook=args.hook,
        execution_id=args.execution,
        level=Level(level) if level else None,
        since=_moment(args.since) if args.since else None,
        kinds=kinds,
    )


def _moment(text: str) -> float:
    age = re.fullmatch(r"(\d+)([smhd])", text)
    if age:
        return time.time() - int(age[1]) * _UNITS[age[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        fail(
            ExitCode.USAGE,
            f"--since {safe(text)}: no time",
            "write an age such as 10m, or a time such as 2026-01-31T12:00",
        )


class Reasons:
    """Asks the daemon for the reasons of blocks, which are in no log; quietly gives none when it cannot be asked."""

    def __init__(self, socket: str | None) -> None:
        self._socket = socket
        self._client: Client | None = None
        self._reachable = True

    def __call__(self, invocation_id: str) -> str | None:
        """The reason that an invocation gave, while the daemon keeps it."""
        if not self._reachable or not invocation_id:
            return None
        try:
            if self._client is None:
                self._client = Client(socket_path=self._socket, timeout=2.0)
            told: dict[str, Any] = self._client.call("hook/result", {"invocation_id": invocation_id})
        except ClientError as error:
            # Without a daemon every further question would fail, too; an id that is not kept says nothing of others.
            self._reachable = getattr(error, "code", None) is not None
            return None
        reason = told.get("reason")
        return reason if isinstance(reason, str) else None

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
