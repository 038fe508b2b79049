"""How outcomes, reports and plans look to a person; shared by the commands that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hooksd.cli.terminal import Terminal, milliseconds, safe


__all__ = ["config_problems", "label", "outcome", "problem", "quoted", "report"]

_LABEL_WIDTH = 12


def label(terminal: Terminal, name: str) -> str:
    """The left column of a fact."""
    return terminal.style(f"{name:<{_LABEL_WIDTH}}", "dim")


def quoted(terminal: Terminal, text: str, *, indent: str = "    ", most_lines: int = 40) -> None:
    """A text of somebody else, each line behind a bar, long ones cut."""
    lines = text.rstrip("\n").split("\n")
    for line in lines[:most_lines]:
        terminal.line(f"{indent}{terminal.style('│', 'dim')} {safe(line)}")
    if len(lines) > most_lines:
        terminal.line(f"{indent}{terminal.style(f'│ … {len(lines) - most_lines} more lines', 'dim')}")


def problem(terminal: Terminal, told: Mapping[str, Any], *, indent: str = "    ") -> None:
    """A problem of a hook or of a dispatch: kind, message, what to do, the hook's own words."""
    hook = f" {safe(told['hook'])}:" if told.get("hook") else ""
    terminal.line(
        f"{indent}{terminal.style(str(told.get('kind', 'problem')), 'yellow')}:{hook} {safe(told.get('message', ''))}"
    )
    if told.get("hint"):
        terminal.line(f"{indent}{terminal.style('→', 'cyan')} {safe(told['hint'])}")
    if told.get("detail"):
        quoted(terminal, str(told["detail"]), indent=indent)


def report(terminal: Terminal, told: Mapping[str, Any]) -> None:
    """One line for one hook of a dispatch, and its problem below."""
    status = str(told.get("status", ""))
    facts = []
    if status not in ("skipped", "started"):
        facts.append(milliseconds(float(told.get("duration_ms", 0))))
        if told.get("exit_code") is not None:
            facts.append(f"exit {told['exit_code']}")
        if told.get("signal") is not None:
            facts.append(f"signal {told['signal']}")
        if float(told.get("queued_ms", 0)) >= 1:
            facts.append(f"queued {milliseconds(float(told['queued_ms']))}")
        if told.get("left_running"):
            facts.append(f"left {told['left_running']} running")
    decision = told.get("decision")
    if decision not in (None, "none") and not (status == "blocked" and decision == "block"):
        facts.append(f"said {decision}")
    padded = terminal.status(status) + " " * max(1, 13 - len(status))
    tail = terminal.style(f"  ({', '.join(facts)})", "dim") if facts else ""
    terminal.line(f"  {padded}{safe(told.get('hook', ''))}{tail}")
    if told.get("problem"):
        problem(terminal, told["problem"], indent=" " * 15)


def outcome(terminal: Terminal, told: Mapping[str, Any]) -> None:
    """The whole answer of a dispatch."""
    decision = str(told.get("decision", "none"))
    terminal.line(f"{terminal.style(safe(told.get('event', '')), 'bold')} → {terminal.status(decision)}")
    if told.get("reason"):
        terminal.line(f"{label(terminal, 'reason')}{safe(told['reason'])}")
    if told.get("decided_by"):
        terminal.line(f"{label(terminal, 'decided by')}{safe(told['decided_by'])}")
    continuation = told.get("continuation")
    if continuation:
        spent = ", none left: the agent may stop" if continuation["exhausted"] else ""
        terminal.line(
            f"{label(terminal, 'continues')}{continuation['count']} of {continuation['limit']}{spent}"
        )
    for name in ("contexts", "reminders"):
        for text in told.get(name) or ():
            terminal.line(f"{label(terminal, name[:-1])}{safe(text)}")
    if told.get("arguments") is not None:
        terminal.line(f"{label(terminal, 'arguments')}{safe(told['arguments'])}")
    handlers: Sequence[Mapping[str, Any]] = told.get("handlers") or ()
    for one in handlers:
        report(terminal, one)
    if not handlers:
        terminal.line(terminal.style("  no hook matches", "dim"))
    for one in told.get("problems") or ():
        problem(terminal, one, indent="  ")


def config_problems(
    terminal: Terminal, problems: Sequence[Mapping[str, Any]], *, file: str = "", indent: str = ""
) -> None:
    """Located problems of a configuration, each with what to do."""
    for told in problems:
        place = safe(told.get("file") or file)
        if told.get("line") is not None:
            place += f":{told['line']}" + (f":{told['column']}" if told.get("column") is not None else "")
        severity = str(told.get("severity", "error"))
        word = terminal.style(severity, "bold red" if severity == "error" else "yellow")
        where = f" {safe(told['path'])}:" if told.get("path") else ""
        terminal.line(
            f"{indent}{place}: {word}:{where} {safe(told.get('message', ''))}"
            if place
            else f"{indent}{word}:{where} {safe(told.get('message', ''))}"
        )
        if told.get("hint"):
            terminal.line(f"{indent}    {terminal.style('→', 'cyan')} {safe(told['hint'])}")
