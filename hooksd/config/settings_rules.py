"""What must hold in a `hooksd.toml` beyond the types of its values.

Each rule says what it found through a `Report`; none of them raises, and none needs another one to have held.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hooksd.config.guards import event_names
from hooksd.config.settings import (
    DaemonSettings,
    EnvSettings,
    GuardSettings,
    SerialSettings,
    ShellSettings,
    SourceSettings,
)
from hooksd.config.sources import ANY_AGENT, DEFAULT_SOURCES, PLANNED_DIALECTS
from hooksd.config.toml_lines import Path, dotted, nearest_line
from hooksd.dialects.base import Dialect
from hooksd.dialects.suggestions import did_you_mean
from hooksd.model.events import EventName
from hooksd.model.hooks import GuardAction
from hooksd.model.problems import ConfigProblem, Severity


__all__ = ["MAX_NAME", "Report", "check_document", "check_table"]

MAX_NAME = 64
"""Longest name of a source: it is in the name of every one of its hooks."""

_DEFAULTS = {default.name: default for default in DEFAULT_SOURCES}
_SOURCE_NAME = re.compile(r"[^\s:*](?:[^:*]*[^\s:*])?")
_RESERVED = "hooksd.toml"
"""`config/write` knows the settings by this name."""
_POSITION = re.compile(r"\[\d+\]")


class Report:
    """Collects what is wrong with one `hooksd.toml`, each problem with its line."""

    def __init__(self, file: str, lines: Mapping[Path, int]) -> None:
        self._file = file
        self._lines = lines
        self._problems: list[ConfigProblem] = []

    @property
    def problems(self) -> tuple[ConfigProblem, ...]:
        """Everything reported so far, in file order."""
        return tuple(sorted(self._problems, key=lambda problem: problem.line or 0))

    @property
    def has_errors(self) -> bool:
        """Whether the file cannot be used."""
        return any(problem.severity is Severity.ERROR for problem in self._problems)

    def error(self, path: Path, message: str, *, hint: str | None = None) -> None:
        """Report something that keeps the file from being used."""
        self._problems.append(
            ConfigProblem(
                severity=Severity.ERROR,
                path=dotted(path),
                message=message,
                line=nearest_line(self._lines, path),
                hint=hint,
                file=self._file,
            )
        )


def check_document(document: Mapping[str, Any], report: Report) -> None:
    """The rules on the file as a whole: the names of sources are unique."""
    seen: dict[str, int] = {}
    sources = document.get("source")
    for index, source in enumerate(sources if isinstance(sources, list) else ()):
        name = source.get("name") if isinstance(source, dict) else None
        if not isinstance(name, str):
            continue
        if (first := seen.setdefault(name, index)) != index:
            report.error(
                ("source", index, "name"),
                f"the name {name!r} is taken by source[{first}]",
                hint="give each [[source]] a name of its own",
            )


def check_table(
    table: msgspec.Struct, path: Path, given: Container[str], report: Report, dialects: Mapping[str, Dialect]
) -> None:
    """The rules on one table.

    Args:
        table: The table, with its defaults in the place of keys that are missing or were reported already.
        path: Where it is.
        given: The keys that are in the file.
        report: Takes what is wrong.
        dialects: Those that are built in.
    """
    match table:
        case DaemonSettings():
            _check_work_area(table, path, report)
        case ShellSettings():
            _check_shell(table, path, report)
        case EnvSettings():
            _check_env(table, path, report)
        case SerialSettings():
            _check_patterns(table.hooks, (*path, "hooks"), report)
        case SourceSettings():
            _check_source(table, path, given, report, {*PLANNED_DIALECTS, *dialects})
        case GuardSettings():
            _check_guard(table, path, given, report, dialects)
        case _:
            pass  # nothing beyond the types


def _check_work_area(daemon: DaemonSettings, path: Path, report: Report) -> None:
    if daemon.work_area and not _is_anchored(daemon.work_area):
        report.error(
            (*path, "work_area"),
            f"{daemon.work_area!r} is not an absolute path",
            hint='start it with / or ~/; "" switches it off',
        )


def _check_shell(shell: ShellSettings, path: Path, report: Report) -> None:
    if shell.command != "auto" and not _is_absolute(shell.command):
        report.error(
            (*path, "command"),
            f"{shell.command!r} is not the absolute path of a shell",
            hint='write a path such as "/bin/bash", or "auto"',
        )


def _check_env(env: EnvSettings, path: Path, report: Report) -> None:
    _check_patterns(env.deny, (*path, "deny"), report)
    for name, patterns in env.allow_for.items():
        at = (*path, "allow_for", name)
        _check_patterns(patterns, at, report)
        if name.count(":") < 3:
            report.error(
                at,
                f"{name!r} is not the full name of a hook",
                hint="a full name is <dialect>:<scope>:<source>:<id>; `hooksd explain` shows it",
            )
        elif _POSITION.search(name):
            report.error(
                at,
                f"{name!r} names a hook by its position, which another hook may have after the next edit",
                hint="variables may be allowed only for hooks that have an id",
            )
        elif "*" in name:
            report.error(
                at, f"{name!r} is a pattern", hint="allow variables for one hook at a time, by its name"
            )


def _check_source(
    source: SourceSettings, path: Path, given: Container[str], report: Report, known: set[str]
) -> None:
    is_name = _SOURCE_NAME.fullmatch(source.name) and source.name.isprintable()
    if not is_name or len(source.name) > MAX_NAME or source.name == _RESERVED:
        report.error(
            (*path, "name"),
            f"{source.name!r} cannot be the name of a source",
            hint=f"1 to {MAX_NAME} printable characters, no colon or star, no space at either end, not {_RESERVED}",
        )
    if source.dialect is not None and source.dialect not in known:
        report.error(
            (*path, "dialect"), f"unknown dialect {source.dialect!r}", hint=_known_hint(source.dialect, known)
        )
    if source.agents is not None:
        _check_agents(source.agents, (*path, "agents"), report, known)
    default = _DEFAULTS.get(source.name)
    if default is not None and default.is_project:
        _check_project_source(source, path, report)
        return
    if source.path is not None and not _is_anchored(source.path):
        report.error(
            (*path, "path"), f"{source.path!r} is not an absolute path", hint="start it with / or ~/"
        )
    if default is None:
        for key in ("dialect", "path"):
            if key not in given:
                report.error(
                    path,
                    f"the key {key!r} is missing",
                    hint=did_you_mean(source.name, _DEFAULTS)
                    or "only a source with the name of a default may leave it out",
                )


def _check_project_source(source: SourceSettings, path: Path, report: Report) -> None:
    """A project's source stays a project's: it could else escape the trust that projects need."""
    if source.scope is not None:
        report.error(
            (*path, "scope"),
            f"the scope of {source.name} cannot be changed",
            hint="leave scope out, or add a [[source]] of another name",
        )
    if source.path is not None and (
        not source.path
        or "\0" in source.path
        or source.path.startswith("~")
        or os.path.isabs(source.path)
        or ".." in source.path.split("/")
    ):
        report.error(
            (*path, "path"),
            f"{source.path!r} is not a path inside the workspace",
            hint="write it relative to the workspace, without ..",
        )


def _check_agents(agents: Sequence[str], path: Path, report: Report, known: set[str]) -> None:
    if not agents:
        report.error(path, "no agent is named", hint="write enabled = false to switch the source off")
    for index, agent in enumerate(agents):
        if agent != ANY_AGENT and agent not in known:
            report.error((*path, index), f"unknown agent {agent!r}", hint=_known_hint(agent, known))


def _check_guard(
    guard: GuardSettings, path: Path, given: Container[str], report: Report, dialects: Mapping[str, Dialect]
) -> None:
    _check_patterns([guard.hooks], (*path, "hooks"), report, indexed=False)
    for index, word in enumerate(guard.events):
        if not event_names(word, dialects):
            known = [*EventName, *(native for dialect in dialects.values() for native in dialect.events)]
            report.error(
                (*path, "events", index),
                f"unknown event {word!r}",
                hint=did_you_mean(word, known) or "normalised events: " + ", ".join(EventName),
            )
    if guard.on_missing is GuardAction.BLOCK and "events" not in given:
        report.error(
            path,
            'on_missing = "block" needs events: those that are blocked while no hook fits',
            hint='for example events = ["tool.before"]',
        )
    elif "events" in given and not guard.events:
        report.error((*path, "events"), "no event is named", hint="leave events out for every gate")


def _check_patterns(patterns: Iterable[str], path: Path, report: Report, *, indexed: bool = True) -> None:
    for index, pattern in enumerate(patterns):
        if not pattern.strip():
            report.error(
                (*path, index) if indexed else path,
                "the pattern is blank and fits nothing",
                hint='"*" fits every name',
            )


def _is_absolute(path: str) -> bool:
    return os.path.isabs(path) and "\0" not in path


def _is_anchored(path: str) -> bool:
    """Whether a path means the same wherever the daemon runs."""
    return path == "~" or (path.startswith("~/") and "\0" not in path) or _is_absolute(path)


def _known_hint(word: str, known: Iterable[str]) -> str:
    words = sorted(known)
    return did_you_mean(word, words) or "known words: " + ", ".join(words)
