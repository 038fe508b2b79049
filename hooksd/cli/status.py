"""`hooksd status`: what the running daemon is doing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from hooksd.cli import render
from hooksd.cli.daemon_session import add_daemon_arguments, connected, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import Terminal, milliseconds, safe


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "status"
HELP = "show what the running daemon is doing"
EXAMPLES = """\
examples:
  hooksd status
  hooksd status --json | jq .hooks
exit status: 0 ready, 1 degraded or draining, 3 no daemon
"""

_STATE_STYLES = {"ready": "green", "degraded": "bold yellow", "draining": "yellow", "starting": "cyan"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `status`."""
    add_daemon_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print it; 1 when the daemon is not healthy."""
    with connected(args, timeout_s=10.0) as client:
        told = client.call("daemon/status", {})
    if args.json:
        terminal().json(told)
    else:
        _show(terminal(), told)
    return ExitCode.DONE if told.get("state") == "ready" else ExitCode.NO


def _show(speaker: Terminal, told: Mapping[str, Any]) -> None:
    state = str(told.get("state"))
    speaker.line(
        f"hooksd {told.get('version')}  {speaker.style(state, _STATE_STYLES.get(state, ''))}  "
        f"pid {told.get('pid')}  up {_span(float(told.get('uptime_s', 0)))}  revision {told.get('revision')}"
    )
    executions = told.get("executions")
    count = executions if isinstance(executions, int) else len(executions or ())
    hooks: Mapping[str, Any] = told.get("hooks") or {}
    speaker.line(f"{render.label(speaker, 'socket')}{safe(told.get('socket', ''))}")
    speaker.line(f"{render.label(speaker, 'executions')}{count} open")
    speaker.line(
        f"{render.label(speaker, 'hooks')}{hooks.get('running', 0)} running, {hooks.get('queued', 0)} waiting; "
        f"{hooks.get('total', 0)} run so far: {hooks.get('blocked', 0)} blocked, {hooks.get('failed', 0)} failed, "
        f"{hooks.get('timed_out', 0)} timed out"
    )
    outbox: Mapping[str, Any] = told.get("outbox") or {}
    if any(outbox.values()):
        speaker.line(
            f"{render.label(speaker, 'outbox')}{outbox.get('pending', 0)} pending, "
            f"{outbox.get('running', 0)} running, {outbox.get('failed', 0)} failed; see `hooksd outbox list`"
        )
    sources = [source for source in told.get("sources") or () if source.get("state") != "missing"]
    if sources:
        speaker.line()
        rows = [
            [safe(source[key]) for key in ("name", "dialect", "scope", "state", "hooks", "path")]
            for source in sources
        ]
        speaker.table(rows, header=("SOURCE", "DIALECT", "SCOPE", "STATE", "HOOKS", "FILE"))
        for source in sources:
            render.config_problems(
                speaker, source.get("problems") or (), file=source.get("path", ""), indent="  "
            )
    latency: Mapping[str, Mapping[str, float]] = told.get("latency_ms") or {}
    if latency:
        speaker.line()
        rows = [
            [safe(name), *(milliseconds(float(digest[key])) for key in ("p50", "p95", "p99"))]
            for name, digest in latency.items()
        ]
        speaker.table(rows, header=("HOOK", "P50", "P95", "P99"))
    problems = told.get("problems") or ()
    if problems:
        speaker.line()
        render.config_problems(speaker, problems)


def _span(seconds: float) -> str:
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86_400)
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{int(seconds)} s"
