"""The problems of one document: collected while it is read, told with their lines, in file order, and bounded."""

from __future__ import annotations

from collections.abc import Callable

from hooksd.dialects.document_text import LineIndex
from hooksd.model.problems import ConfigProblem, Severity


__all__ = ["MAX_PROBLEMS", "Hint", "LocatedProblems"]

MAX_PROBLEMS = 1_000
"""Most problems told of one document; one more says how many were left out."""

Hint = str | Callable[[], str | None] | None
"""What to do about a problem, or how to find out: looking for the nearest word is dear, and done only for what is told."""


class LocatedProblems:
    """Collects the problems of one text."""

    def __init__(self, lines: LineIndex) -> None:
        self._lines = lines
        self._found: list[ConfigProblem] = []
        self._left_out = 0

    def error(self, path: str, offset: int, message: str, hint: Hint = None) -> ConfigProblem:
        """Tell of something that does not work."""
        return self._add(Severity.ERROR, path, offset, message, hint)

    def warning(self, path: str, offset: int, message: str, hint: Hint = None) -> ConfigProblem:
        """Tell of something that works, but probably not as meant."""
        return self._add(Severity.WARNING, path, offset, message, hint)

    def in_file_order(self) -> tuple[ConfigProblem, ...]:
        """All of them, and a last one that says how many were left out, if any were."""
        found = sorted(self._found, key=lambda problem: (problem.line or 0, problem.column or 0))
        if self._left_out:
            message = f"{self._left_out} more problems are not listed"
            found.append(
                ConfigProblem(severity=Severity.ERROR, path="", message=message, line=found[-1].line)
            )
        return tuple(found)

    def _add(self, severity: Severity, path: str, offset: int, message: str, hint: Hint) -> ConfigProblem:
        kept = len(self._found) < MAX_PROBLEMS
        line, column = self._lines.place(offset)
        problem = ConfigProblem(
            severity=severity,
            path=path,
            message=message,
            line=line,
            column=column,
            hint=hint if isinstance(hint, str) or hint is None else hint() if kept else None,
        )
        if kept:
            self._found.append(problem)
        else:
            self._left_out += 1
        return problem
