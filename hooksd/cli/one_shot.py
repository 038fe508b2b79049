"""The execution that a command opens for one question, and the options that describe it."""

from __future__ import annotations

import argparse
import os
import secrets
from typing import Any

from hooksd.cli.daemon_session import read_payload


__all__ = ["add_event_arguments", "dispatch_params"]


def add_event_arguments(parser: argparse.ArgumentParser) -> None:
    """The event, its payload, and whose execution it belongs to."""
    parser.add_argument(
        "event", metavar="EVENT", help="the agent's name for it, or a dotted one (`tool.before`)"
    )
    parser.add_argument(
        "--agent", default="bamboo", help="whose events and fields these are (default: %(default)s)"
    )
    parser.add_argument(
        "--payload", metavar="FILE|-|JSON", help="the event's own fields: a file, `-` for stdin, or an object"
    )
    parser.add_argument("--workspace", metavar="DIR", help="the workspace (default: the current directory)")
    parser.add_argument(
        "--session", metavar="ID", default="hooksd-cli", help="the session id (default: %(default)s)"
    )
    parser.add_argument(
        "--execution", metavar="ID", help="use an execution that is open, with its frozen configuration"
    )
    parser.add_argument("--model", help="the model that hooks are told")
    parser.add_argument("--background", action="store_true", help="a background tool completion")


def dispatch_params(args: argparse.Namespace, *, default_payload: dict[str, Any]) -> dict[str, Any]:
    """Params for `hook/dispatch` and `hook/explain` as the options say.

    Without `--execution` an execution is opened with the request and lives as long as the connection; its hooks get
    this shell's environment, as they would get their agent's.
    """
    payload = read_payload(args.payload)
    params: dict[str, Any] = {
        "event": args.event,
        "payload": default_payload if payload is None else payload,
        "background": args.background,
    }
    if args.execution:
        params["execution_id"] = args.execution
        return params
    name = f"hooksd-cli-{secrets.token_hex(6)}"
    params["execution_id"] = name
    params["execution"] = {
        "execution_id": name,
        "agent": args.agent,
        "session_id": args.session,
        "workspace_path": os.path.abspath(args.workspace or os.getcwd()),
        "env": dict(os.environ),
        "bound_to": "connection",
    }
    if args.model:
        params["execution"]["model"] = args.model
    return params
