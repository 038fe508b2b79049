"""How a command talks to the daemon: the shared options, and errors turned into messages and exit codes."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, NoReturn

from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import Terminal, safe
from hooksd.protocol.jsonrpc import MAX_NESTING
from hooksd_client import Client
from hooksd_client.errors import ClientError, DaemonNotReachable, RequestFailed
from hooksd_client.paths import SocketPathError


__all__ = ["add_daemon_arguments", "add_json_argument", "connected", "fail", "read_payload", "terminal"]

_USAGE_CODES = {-32602, -32015, -32600, -32700, -32001}
"""JSON-RPC errors that tell of a fault in what the person typed; the last two of a payload that is too deep or too long."""

MAX_PAYLOAD_BYTES: Final = 64 * 1024 * 1024
"""Most that is read of a payload: four times what the daemon takes in one message unless it is told to take more."""

_MAX_PAYLOAD_NESTING: Final = MAX_NESTING - 2
"""What the daemon takes, less the message and its params around the payload."""


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
        message = safe(error)
        # A refusal that tells its faults in its message, too, tells them once.
        located = [line for line in _located(error.data) if line not in message]
        fail(ExitCode.USAGE if error.code in _USAGE_CODES else ExitCode.NO, message, *located)
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

    Ends the command with a usage error where it is no JSON object, or none that a message could carry.
    """
    if given is None:
        return None
    try:
        if given == "-":
            text = _read(sys.stdin.buffer)
        elif given.lstrip().startswith("{"):
            text = given
        else:
            with open(given, "rb") as file:
                text = _read(file)
        value = json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
    except RecursionError:
        _fail_too_deep()
    except OSError as error:
        fail(ExitCode.USAGE, f"--payload {safe(given)}: {error.strerror}")
    except ValueError as error:
        fail(ExitCode.USAGE, f"--payload: no JSON: {safe(error)}")
    if _is_too_deep(value):
        _fail_too_deep()
    if not isinstance(value, dict):
        fail(ExitCode.USAGE, f"--payload: expected a JSON object, got {type(value).__name__}")
    return value


def _fail_too_deep() -> NoReturn:
    fail(ExitCode.USAGE, f"--payload: nested deeper than {_MAX_PAYLOAD_NESTING} levels")


def _read(file: BinaryIO) -> str:
    """All of a file that may be endless.

    Raises:
        ValueError: It is longer than `MAX_PAYLOAD_BYTES`, or not UTF-8.
    """
    data = file.read(MAX_PAYLOAD_BYTES + 1)
    if len(data) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"it is longer than {MAX_PAYLOAD_BYTES} bytes")
    return data.decode("utf-8-sig")


def _refuse_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _is_too_deep(value: object) -> bool:
    """Whether a value is nested deeper than any message may be; the client could not even encode it."""
    level = [value]
    for _ in range(_MAX_PAYLOAD_NESTING):
        level = [
            item
            for container in level
            if isinstance(container, (dict, list))
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        if not level:
            return False
    return True
