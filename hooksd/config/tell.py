"""What is told about a configuration that changed: the `config.*` records of protocol section 2.11.

Pure: states before and after go in, records come out. Problems quote the words of a configuration (a misspelt key),
which a log may have; the dialects never put the value of an environment variable into one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from hooksd.config.assemble import SETTINGS_SOURCE, Base, Project, SourceFile
from hooksd.config.current import Waiting, not_still
from hooksd.config.examine import Examined
from hooksd.config.shared_ids import shared_ids
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.records import Level
from hooksd.model.sources import SourceState


__all__ = [
    "MAX_TOLD_PROBLEMS",
    "Record",
    "base_records",
    "file_record",
    "internal_record",
    "loaded_record",
    "note_record",
    "problems_record",
    "project_records",
    "shared_id_records",
    "waiting_record",
]

MAX_TOLD_PROBLEMS: Final = 20
"""Problems in one record; a file full of them would otherwise make a record that nobody can read."""


class Record(NamedTuple):
    """What a `Recorder` takes."""

    level: Level
    kind: str
    fields: dict[str, Any]


def loaded_record(base: Base, revision: int) -> Record:
    """What is in force when the daemon starts."""
    hooks = {report.name: report.hooks for report in base.layer.sources}
    sources = [
        {
            "source": file.source.name,
            "path": file.examined.path,
            "state": file.examined.state.value,
            "hooks": hooks.get(file.source.name, 0),
        }
        for file in base.files
        if file.examined.state is not SourceState.MISSING
    ]
    settings = {"path": base.settings.path, "state": base.settings.state.value}
    return Record(
        Level.INFO, "config.loaded", {"revision": revision, "settings": settings, "sources": sources}
    )


def base_records(before: Base | None, after: Base, revision: int) -> Iterator[Record]:
    """What to tell about the settings file and the managed and user sources.

    Args:
        before: What was seen of them; None when the daemon starts.
        after: What is seen of them now.
        revision: What is in force now.
    """
    if before is None:
        for name, examined in _named(after.settings, after.files):
            yield from file_record(name, None, examined, revision, starting=True)
        return
    yield from file_record(SETTINGS_SOURCE, before.settings, after.settings, revision)
    yield from _file_records(before.files, after.files, revision)


def project_records(before: Project | None, after: Project, revision: int) -> Iterator[Record]:
    """The same about the sources of a workspace; one that is seen for the first time has not changed."""
    if before is None:
        for file in after.files:
            yield from file_record(file.source.name, None, file.examined, revision, starting=True)
    else:
        yield from _file_records(before.files, after.files, revision)


def shared_id_records(
    before: tuple[Base, Project | None], after: tuple[Base, Project], revision: int
) -> Iterator[Record]:
    """What is new about ids that a workspace has in common with the user's files.

    Args:
        before: What was in force; without the workspace if it was not known.
        after: What is in force now.
        revision: The revision in force now.
    """
    was = _shared_ids(before[0], before[1]) if before[1] is not None else ()
    problems = _shared_ids(*after)
    if problems and problems != was:
        yield problems_record(problems, revision)


def file_record(
    source: str, before: Examined[Any] | None, after: Examined[Any], revision: int, *, starting: bool = False
) -> Iterator[Record]:
    """What to tell about one file: one record, or none.

    Args:
        source: The name of its source.
        before: What was seen of it; None if nothing was.
        after: What is seen of it now.
        revision: What is in force now.
        starting: Nothing was known before, so that a good file is nothing new.
    """
    if after is before or not after.probes:
        return
    was = SourceState.MISSING if before is None else before.state
    same_problems = after.problems == (before.problems if before is not None else ())
    fields: dict[str, Any] = {
        "source": source,
        "path": after.path,
        "revision": revision,
        "state": after.state.value,
        **_told(after.problems),
    }
    if after.state is SourceState.INVALID:
        if was is not SourceState.INVALID or not same_problems:
            yield Record(Level.ERROR, "config.invalid", fields | {"last_good": after.in_force is not None})
    elif was is SourceState.INVALID and after.state is SourceState.LOADED:
        yield Record(_level(after.problems), "config.recovered", fields)
    elif not starting and (was is not after.state or _digest(before) != _digest(after)):
        yield Record(_level(after.problems), "config.changed", fields)
    elif not same_problems and after.problems:
        yield Record(_level(after.problems), "config.problem", fields)


def problems_record(problems: Sequence[ConfigProblem], revision: int) -> Record:
    """What is wrong beyond single files, such as a guard that fits no hook."""
    return Record(_level(problems), "config.problem", {"revision": revision} | _told(problems))


def note_record(message: str, hint: str | None = None) -> Record:
    """Something around the configuration that does not work, such as a directory that cannot be watched."""
    return Record(Level.WARNING, "config.problem", {"message": message} | ({"hint": hint} if hint else {}))


def waiting_record(waiting: Waiting, revision: int) -> Record:
    """A file that somebody waited for in vain, because it does not stand still."""
    fields = {
        "source": waiting.source,
        "path": waiting.path,
        "revision": revision,
        **_told([not_still(waiting)]),
    }
    return Record(Level.WARNING, "config.problem", fields)


def internal_record(error: Exception) -> Record:
    """A fault of ours while reading the configuration: what is in force stays so."""
    fields = {
        "message": f"the configuration could not be read because of a fault of hooksd: {type(error).__name__}: {error}",
        "hint": "what was in force stays in force; please report this",
    }
    return Record(Level.ERROR, "config.problem", fields)


def _shared_ids(base: Base, project: Project) -> tuple[ConfigProblem, ...]:
    return shared_ids((*project.layer.parts, *base.layer.parts))


def _named(settings: Examined[Any], files: Sequence[SourceFile]) -> Iterator[tuple[str, Examined[Any]]]:
    yield SETTINGS_SOURCE, settings
    for file in files:
        yield file.source.name, file.examined


def _file_records(
    before: Sequence[SourceFile], after: Sequence[SourceFile], revision: int
) -> Iterator[Record]:
    known = {file.source.name: file.examined for file in before}
    for file in after:
        yield from file_record(file.source.name, known.pop(file.source.name, None), file.examined, revision)
    for name, examined in known.items():
        if examined.in_force is not None:
            fields = {"source": name, "path": examined.path, "revision": revision, "state": "removed"}
            yield Record(Level.INFO, "config.changed", fields)


def _digest(examined: Examined[Any] | None) -> str:
    return examined.in_force.digest if examined is not None and examined.in_force is not None else ""


def _level(problems: Sequence[ConfigProblem]) -> Level:
    if any(problem.severity is Severity.ERROR for problem in problems):
        return Level.ERROR
    return Level.WARNING if problems else Level.INFO


def _told(problems: Sequence[ConfigProblem]) -> dict[str, Any]:
    if not problems:
        return {}
    left_out = len(problems) - MAX_TOLD_PROBLEMS
    told: dict[str, Any] = {"problems": [_as_fields(problem) for problem in problems[:MAX_TOLD_PROBLEMS]]}
    return told | ({"problems_left_out": left_out} if left_out > 0 else {})


def _as_fields(problem: ConfigProblem) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(problem).items() if value is not None}
