"""Log records as lines for people, shared by `hooksd logs` and `hooksd history`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from hooksd.cli.terminal import STATUS_STYLES, Terminal, milliseconds, safe


__all__ = ["LEVEL_STYLES", "line_of", "local_time"]

LEVEL_STYLES: Mapping[str, str] = {"debug": "dim", "info": "", "warning": "yellow", "error": "bold red"}

Reason = Callable[[str], str | None]
"""Gives the reason of an invocation's block while the daemon keeps it, by its id."""

_SHOWN_APART = frozenset({"ts", "seq", "level", "event", "problem", "problems"})


def local_time(timestamp: str, *, date: bool = False) -> str:
    """A record's time on the clock of the person; the text itself where it is no time."""
    try:
        moment = datetime.fromisoformat(timestamp).astimezone()
    except ValueError:
        return safe(timestamp)
    return moment.strftime("%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S")


def line_of(terminal: Terminal, record: Mapping[str, Any], reason: Reason, *, date: bool = False) -> str:
    """One line: when, which event, which hook, how it went, why."""
    when = terminal.style(local_time(record["ts"], date=date), "dim")
    if record["event"] in ("hook.finished", "hook.skipped"):
        return f"{when}  {_hook_line(terminal, record, reason)}"
    level = str(record["level"])
    facts = [
        f"{name}={safe(value)}"
        for name, value in record.items()
        if name not in _SHOWN_APART and _tells(value)
    ]
    text = f"{when}  {terminal.style(safe(record['event']), LEVEL_STYLES.get(level, ''))}"
    text += f"  {' '.join(facts)}" if facts else ""
    problems = record.get("problems")
    for problem in [record.get("problem"), *(problems if isinstance(problems, list) else [])]:
        if isinstance(problem, Mapping):
            text += f"\n{' ' * 10}{_problem(terminal, problem)}"
    return text


def _hook_line(terminal: Terminal, record: Mapping[str, Any], reason: Reason) -> str:
    status = str(record.get("status", ""))
    word = terminal.style(f"{status:<12}", STATUS_STYLES.get(status, ""))
    took = milliseconds(_number(record.get("duration_ms"))) if status not in ("skipped", "started") else ""
    text = f"{word} {took:>8}  {safe(record.get('hook_event', '')):<16} {safe(record.get('hook', ''))}"
    # `hooksd test` showed what it said; the daemon keeps nothing of it.
    dry_run = record.get("dry_run") is True
    if dry_run:
        text += f"  {terminal.style('(dry run)', 'dim')}"
    decision = record.get("decision")
    if decision == "block" or status == "blocked":
        said = record.get("reason") or (None if dry_run else reason(str(record.get("invocation_id", ""))))
        if said:
            text += f"  {terminal.style(safe(said), 'bold')}"
        elif not dry_run:
            text += f"  {terminal.style('(reason no longer kept)', 'dim')}"
    elif decision in ("allow", "ask"):
        text += f"  {terminal.status(str(decision))}"
    problem = record.get("problem")
    if isinstance(problem, Mapping):
        text += f"  {_problem(terminal, problem)}"
    return text


def _problem(terminal: Terminal, problem: Mapping[str, Any]) -> str:
    kind = safe(problem.get("kind") or problem.get("path") or "problem")
    hint = f" → {safe(problem['hint'])}" if problem.get("hint") else ""
    return f"{terminal.style(kind, 'yellow')}: {safe(problem.get('message', ''))}{hint}"


def _tells(value: Any) -> bool:
    return value is not None and value != "" and not isinstance(value, dict | list)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
