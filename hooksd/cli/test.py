"""`hooksd test`: a dry run of one handler, of one configured hook, or of the whole pipeline.

Like `dispatch` and `explain` it plays an agent that was started where the person stands: the workspace is the current
directory, so that `--script ./hook.sh` is the file the person means, and hooks get this shell's environment.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Mapping
from typing import Any

from hooksd.cli import render
from hooksd.cli.daemon_session import add_daemon_arguments, connected, fail, read_payload, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import Terminal, milliseconds, safe


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "test"
HELP = "run hooks with a made-up event and show what they said and how it is read"
EXAMPLES = """\
examples:
  hooksd test PreToolUse                                   the configured hooks of that event
  hooksd test PreToolUse --hook 'bamboo:user:bamboo:PreToolUse[0].hooks[1]'
  hooksd test PreToolUse --command 'jq .tool_input >&2; exit 2'
  hooksd test Stop --script ./hooks/tests-first.sh --payload '{"stop_hook_active": true}'
  hooksd test before_tool_call --dialect chrys             in Chrys' terms
exit status: 0 none or allow, 1 ask or block
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `test`."""
    parser.add_argument("event", metavar="EVENT", help="such as PreToolUse")
    parser.add_argument(
        "--dialect",
        default="bamboo",
        help="whose events, fields and handlers these are (default: %(default)s)",
    )
    parser.add_argument("--workspace", metavar="DIR", help="the workspace (default: the current directory)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--command", metavar="TEXT", help="a command handler that is written nowhere")
    what.add_argument("--script", metavar="PATH", help="a script handler that is written nowhere")
    what.add_argument("--hook", metavar="NAME", help="one configured hook, by its full name")
    parser.add_argument("--runner", help="of --script: auto, node, bun, python, bash, powershell, cmd")
    parser.add_argument("--matcher", metavar="RE2", help="a matcher to try on the event's tool name")
    parser.add_argument("--timeout-ms", type=int, metavar="N", help="the handler's time limit")
    parser.add_argument(
        "--payload", metavar="FILE|-|JSON", help="the event's own fields (default: a made-up event)"
    )
    add_daemon_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run it; 1 when what came out is ask or block."""
    params = _params(args)
    with connected(args, timeout_s=math.inf) as client:
        told = client.call("hook/test", params)
    results = told["results"] if isinstance(told.get("results"), list) else [told]
    if args.json:
        terminal().json(told)
    else:
        speaker = terminal()
        for number, result in enumerate(results):
            if number:
                speaker.line()
            _show(speaker, result)
        if not results:
            speaker.line("no configured hook matches this event; `hooksd explain` tells why")
    stopped = any((result.get("interpreted") or {}).get("decision") in ("ask", "block") for result in results)
    return ExitCode.NO if stopped else ExitCode.DONE


def _params(args: argparse.Namespace) -> dict[str, Any]:
    params: dict[str, Any] = {
        "event": args.event,
        "dialect": args.dialect,
        "workspace_path": os.path.abspath(args.workspace or os.getcwd()),
        "env": dict(os.environ),
    }
    payload = read_payload(args.payload)
    if payload is not None:
        params["payload"] = payload
    if args.command is None and args.script is None:
        for option in ("runner", "matcher", "timeout_ms"):
            if getattr(args, option) is not None:
                fail(ExitCode.USAGE, f"--{option.replace('_', '-')} needs --command or --script")
        if args.hook is not None:
            params["hook"] = args.hook
        return params
    if args.command is not None and args.runner is not None:
        fail(ExitCode.USAGE, "--runner needs --script")
    return params | (_chrys_handler(args) if args.dialect == "chrys" else _bamboo_handler(args))


def _bamboo_handler(args: argparse.Namespace) -> dict[str, Any]:
    params: dict[str, Any] = {}
    if args.command is not None:
        params |= {"type": "command", "command": args.command}
    else:
        params |= {"type": "script", "path": args.script}
        if args.runner is not None:
            params["runner"] = args.runner
    if args.matcher is not None:
        params["matcher"] = args.matcher
    if args.timeout_ms is not None:
        params["timeout_ms"] = args.timeout_ms
    return params


def _chrys_handler(args: argparse.Namespace) -> dict[str, Any]:
    for option in ("runner", "matcher"):
        if getattr(args, option) is not None:
            fail(ExitCode.USAGE, f"--{option} has no meaning for a Chrys hook")
    run = (
        {"type": "shell", "shell": args.command}
        if args.command is not None
        else {"type": "script", "path": os.path.abspath(args.script)}
    )
    return {
        "run": run,
        "execution": {} if args.timeout_ms is None else {"timeout_seconds": args.timeout_ms / 1000},
    }


def _show(terminal: Terminal, result: Mapping[str, Any]) -> None:
    interpreted: Mapping[str, Any] = result.get("interpreted") or {}
    decision = str(interpreted.get("decision", "none"))
    if result.get("hook"):
        terminal.line(terminal.style(safe(result["hook"]), "bold"))
    facts = [
        ("ran", _command(result.get("command"))),
        ("in", result.get("cwd") or ""),
        ("ended", _ending(result)),
        (
            "matched",
            {True: "yes", False: "no: for real, this hook would not run", None: ""}[result.get("matched")],
        ),
    ]
    for name, value in facts:
        if value:
            terminal.line(f"{render.label(terminal, name)}{safe(value)}")
    for stream in ("stdout", "stderr"):
        text = result.get(stream) or ""
        if text:
            cut = "  (cut: more was written than is kept)" if result.get(f"{stream}_truncated") else ""
            terminal.line(f"{render.label(terminal, stream)}{cut}")
            render.quoted(terminal, text)
    terminal.line(f"{render.label(terminal, 'read as')}{terminal.status(decision)}")
    for name in ("reason", "additional_context"):
        if interpreted.get(name):
            terminal.line(f"{render.label(terminal, name.split('_')[-1])}{safe(interpreted[name])}")
    if result.get("problem"):
        # The detail is the tail of what is shown above already.
        render.problem(
            terminal, {key: value for key, value in result["problem"].items() if key != "detail"}, indent=""
        )


def _command(command: object) -> str:
    import shlex  # late: only for a person's eyes

    return shlex.join(map(str, command)) if isinstance(command, list) else str(command or "")


def _ending(result: Mapping[str, Any]) -> str:
    took = milliseconds(float(result.get("duration_ms") or 0))
    if result.get("timed_out"):
        return f"at its time limit, after {took}"
    if result.get("exit_code") is not None:
        return f"with exit code {result['exit_code']} after {took}"
    if result.get("signal") is not None:
        return f"by signal {result['signal']} after {took}"
    return "before it started"
