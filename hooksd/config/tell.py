"""What is told about a configuration that changed: the `config.*` records of protocol section 2.11.

Pure: states before and after go in, records come out. Problems quote the words of a configuration (a misspelt key),
which a log may have; the dialects never put the value of an environment variable into one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from hooksd.config.examine import Examined
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.records import Level
from hooksd.model.sources import SourceState


__all__ = ["MAX_TOLD_PROBLEMS", "Record", "file_records", "loaded_record", "note_record", "problems_record"]

MAX_TOLD_PROBLEMS: Final = 20
"""Problems in one record; a file full of them would otherwise make a record that nobody can read."""


class Record(NamedTuple):
    """What a `Recorder` takes."""

    level: Level
    kind: str
    fields: dict[str, Any]


def file_records(
    source: str, before: Examined[Any] | None, after: Examined[Any], revision: int
) -> Iterator[Record]:
    """What to tell about one file.

    Args:
        source: The name of its source.
        before: What was seen of it; None if nothing was.
        after: What is seen of it now.
        revision: What is in force now.
    """
    if after is before or not after.probes:
        return
    first = before is None or not before.probes
    was = SourceState.MISSING if before is None else before.state
    fields = {"source": source, "path": after.path, "revision": revision, "state": after.state.value}
    if after.in_force is not None:
        fields["content_digest"] = after.in_force.digest
    same_problems = before is not None and before.problems == after.problems
    if after.state is SourceState.INVALID:
        if not (was is SourceState.INVALID and same_problems):
            fields["last_good"] = after.in_force is not None
            yield Record(Level.ERROR, "config.invalid", fields | _told(after.problems))
    elif not first and was is SourceState.INVALID and after.state is SourceState.LOADED:
        yield Record(_level(after.problems), "config.recovered", fields | _told(after.problems))
    elif not first and (was is not after.state or _digest(before) != _digest(after)):
        yield Record(_level(after.problems), "config.changed", fields | _told(after.problems))
    elif after.problems and not same_problems:
        yield Record(Level.WARNING, "config.problem", fields | _told(after.problems))


def loaded_record(files: Sequence[tuple[str, Examined[Any], int]], revision: int, digest: str) -> Record:
    """What is in force when the daemon starts: name, state and number of hooks of each file that is there."""
    sources = [
        {"source": name, "path": examined.path, "state": examined.state.value, "hooks": hooks}
        for name, examined, hooks in files
        if examined.state is not SourceState.MISSING
    ]
    return Record(Level.INFO, "config.loaded", {"revision": revision, "digest": digest, "sources": sources})


def problems_record(problems: Sequence[ConfigProblem], revision: int) -> Record:
    """What is wrong beyond single files, such as a guard that fits no hook."""
    return Record(_level(problems), "config.problem", {"revision": revision} | _told(problems))


def note_record(message: str, hint: str | None = None) -> Record:
    """Something around the configuration that does not work, such as a directory that cannot be watched."""
    fields = {"message": message} | ({"hint": hint} if hint else {})
    return Record(Level.WARNING, "config.problem", fields)


def _digest(examined: Examined[Any] | None) -> str:
    return examined.in_force.digest if examined is not None and examined.in_force is not None else ""


def _level(problems: Sequence[ConfigProblem]) -> Level:
    if any(problem.severity is Severity.ERROR for problem in problems):
        return Level.ERROR
    return Level.WARNING if problems else Level.INFO


def _told(problems: Sequence[ConfigProblem]) -> dict[str, Any]:
    if not problems:
        return {}
    told = {"problems": [msgspec.to_builtins(problem) for problem in problems[:MAX_TOLD_PROBLEMS]]}
    return told | ({"problems_left_out": left} if (left := len(problems) - MAX_TOLD_PROBLEMS) > 0 else {})
