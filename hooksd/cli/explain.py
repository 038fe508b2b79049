"""`hooksd explain`: what would run for an event, in order, and why the rest would not."""

from __future__ import annotations

import argparse
import shlex

from hooksd.cli import render
from hooksd.cli.daemon_session import add_daemon_arguments, connected, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.one_shot import add_event_arguments, dispatch_params
from hooksd.cli.terminal import milliseconds, safe


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "explain"
HELP = "show what would run for an event, and why the rest would not; runs nothing"
EXAMPLES = """\
examples:
  hooksd explain PreToolUse --payload '{"tool_name": "Bash", "tool_call_id": "1", "tool_input": {"command": "ls"}}'
  hooksd explain PreToolUse                   with the event of a dry run
  hooksd explain Stop --workspace ~/project
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `explain`."""
    add_event_arguments(parser)
    add_daemon_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the plan."""
    params = dispatch_params(args, default_payload=synthetic_payload(args.agent, args.event))
    with connected(args) as client:
        told = client.call("hook/explain", params)
    speaker = terminal()
    if args.json:
        speaker.json(told)
        return ExitCode.DONE
    plan, rest = told.get("plan") or [], told.get("not_matched") or []
    counts = {0: "no hook would run", 1: "1 hook would run"}
    head = counts.get(len(plan), f"{len(plan)} hooks would run, one after another")
    speaker.line(f"{speaker.style(safe(args.event), 'bold')}  {head}  (revision {told.get('revision')})")
    for number, hook in enumerate(plan, 1):
        mode = "" if hook.get("mode") == "blocking" else f"  {hook.get('mode')}"
        speaker.line(f"{number:>3}. {safe(hook.get('hook', ''))}{speaker.style(mode, 'cyan')}")
        facts = [
            (
                "runs",
                " or ".join(_command_line(command) for command in hook.get("runs_as") or [])
                or hook.get("command")
                or "",
            ),
            ("in", hook.get("cwd") or ""),
            ("at most", milliseconds(float(hook["timeout_ms"])) if hook.get("timeout_ms") else "no limit"),
        ]
        for name, value in facts:
            speaker.line(f"     {render.label(speaker, name)}{safe(value)}")
        if hook.get("problem"):
            render.problem(speaker, hook["problem"], indent="     ")
    if rest:
        speaker.line(speaker.style("would not run:", "dim"))
        for hook in rest:
            speaker.line(f"     {safe(hook.get('hook', ''))}: {safe(hook.get('why', ''))}")
    return ExitCode.DONE


def _command_line(command: object) -> str:
    return shlex.join(command) if isinstance(command, list) else str(command)


def synthetic_payload(agent: str, event: str) -> dict[str, object]:
    """The payload of a dry run of that event; an empty one where the agent or the event is unknown here.

    The daemon then answers with the names that it knows.
    """
    from hooksd.dialects import DIALECTS  # late: only for its payloads

    dialect = DIALECTS.get(agent)
    native = dialect.native_event(event) if dialect else None
    return dict(dialect.synthetic_payload(native, 0.0)) if dialect and native else {}
