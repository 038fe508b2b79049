"""How a command talks to the daemon: the shared options, and errors turned into messages and exit codes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import Terminal, safe
from hooksd_client import Client
from hooksd_client.errors import ClientError, DaemonNotReachable, RequestFailed
from hooksd_client.paths import SocketPathError


__all__ = ["add_daemon_arguments", "add_json_argument", "connected", "fail", "read_payload", "terminal"]

_USAGE_CODES = {-32602, -32015, -32600}
"""JSON-RPC errors that tell of a fault in what the person typed."""


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """`--json`, the same everywhere."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document (stable) instead of text"
    )


def add_daemon_arguments(parser: argparse.ArgumentParser) -> None:
    """`--socket` and `--json`."""
    parser.add_argument(
        "--socket", metavar="PATH", help="the daemon's socket (default: see `hooksd socket-path`)"
    )
    add_json_argument(parser)


def terminal() -> Terminal:
    """The terminal of this process."""
    return Terminal.of_process(os.environ)


def fail(code: ExitCode, message: str, *hints: str) -> NoReturn:
    """End the command with a message on stderr."""
    speaker = terminal()
    speaker.error(message)
    for hint in hints:
        speaker.message(f"  {hint}")
    raise SystemExit(int(code))


@contextmanager
def connected(args: argparse.Namespace, *, timeout_s: float = 30.0) -> Iterator[Client]:
    """A client of the daemon; every failure of a request ends the command with its own exit code.

    Args:
        args: With the `socket` of `add_daemon_arguments`.
        timeout_s: Longest wait for one answer; `math.inf` for hooks that may take their time.
    """
    try:
        with Client(socket_path=args.socket, timeout=timeout_s) as client:
            yield client
    except SocketPathError as error:
        fail(ExitCode.USAGE, str(error))
    except DaemonNotReachable as error:
        fail(ExitCode.UNREACHABLE, safe(error))
    except RequestFailed as error:
        fail(
            ExitCode.USAGE if error.code in _USAGE_CODES else ExitCode.NO, safe(error), *_located(error.data)
        )
    except ClientError as error:
        fail(ExitCode.UNREACHABLE, safe(error))


def _located(data: Any) -> list[str]:
    problems = data.get("problems") if isinstance(data, Mapping) else None
    lines = []
    for problem in problems or ():
        if isinstance(problem, Mapping):
            hint = f" ({safe(problem['hint'])})" if problem.get("hint") else ""
            lines.append(f"{safe(problem.get('path', ''))}: {safe(problem.get('message', ''))}{hint}")
    return lines


def read_payload(given: str | None) -> dict[str, Any] | None:
    """The object that `--payload` names: a file, `-` for stdin, or the JSON text itself.

    Ends the command with a usage error where it is no JSON object.
    """
    if given is None:
        return None
    try:
        if given == "-":
            text = sys.stdin.buffer.read().decode("utf-8")
        elif given.lstrip().startswith("{"):
            text = given
        else:
            with open(given, encoding="utf-8-sig") as file:
                text = file.read()
        value = json.loads(text)
    except OSError as error:
        fail(ExitCode.USAGE, f"--payload {safe(given)}: {error.strerror}")
    except ValueError as error:
        fail(ExitCode.USAGE, f"--payload: no JSON: {safe(error)}")
    if not isinstance(value, dict):
        fail(ExitCode.USAGE, f"--payload: expected a JSON object, got {type(value).__name__}")
    return value
