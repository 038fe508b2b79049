"""What the subjects share: a figure with its goal, interleaved rounds, ratios, C programs compiled at run time."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple


__all__ = ["C_SOURCES", "Figure", "NotMeasured", "Rounds", "compiled", "interleaved", "plain_environment"]

C_SOURCES = Path(__file__).parent / "c"


class NotMeasured(Exception):
    """A subject cannot be measured on this machine; the text says why."""


class Figure(NamedTuple):
    """One line of the report.

    `goal` is `"<= 1.4"`, `">= 0.6"`, `"== 0"` or None for a figure that is only told. `note` says what it was made of.
    """

    name: str
    value: float
    goal: str | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        if self.goal is None:
            return None
        relation, bound = self.goal.split()
        limit = float(bound)
        match relation:
            case "<=":
                return self.value <= limit
            case ">=":
                return self.value >= limit
            case "==":
                return self.value == limit
        raise ValueError(f"{self.name}: a goal is written `<= N`, `>= N` or `== N`, not {self.goal!r}")


class Rounds(dict[str, list[float]]):
    """What each contestant needed in each round."""

    def ratio(self, ours: str, theirs: str) -> float:
        """The median of the ratios of each round: what disturbed a round disturbed both in it."""
        return statistics.median(a / b for a, b in zip(self[ours], self[theirs], strict=True))

    def median(self, name: str) -> float:
        """The median over the rounds."""
        return statistics.median(self[name])


def interleaved(rounds: int, contestants: Mapping[str, Callable[[], float]]) -> Rounds:
    """Let all contestants measure once per round; every other round in reverse order. The first round is a warm-up."""
    result = Rounds({name: [] for name in contestants})
    order = list(contestants.items())
    for number in range(rounds + 1):
        for name, measure in order if number % 2 else reversed(order):
            value = measure()
            if number:
                result[name].append(value)
    return result


def compiled(name: str) -> Path:
    """Compile `c/<name>.c`, once per run of the benchmarks.

    Raises:
        NotMeasured: There is no C compiler.
    """
    if name not in _compiled:
        compiler = os.environ.get("CC") or shutil.which("cc")
        if compiler is None:
            raise NotMeasured("there is no C compiler (cc) to make the yardstick with")
        target = Path(_directory.name) / name
        subprocess.run(
            [compiler, "-O2", "-Wall", "-Wextra", "-o", target, C_SOURCES / f"{name}.c"],
            check=True,
            text=True,
        )
        _compiled[name] = target
    return _compiled[name]


def plain_environment() -> dict[str, str]:
    """A small environment that is the same for all contestants. SHLVL keeps bash from taking itself for rshd's."""
    return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "SHLVL": "1"}


_compiled: dict[str, Path] = {}
_directory = tempfile.TemporaryDirectory(prefix="hooksd-bench-")
