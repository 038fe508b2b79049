"""How many jobs there are, by state, without a page of its own in each commit."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Final

from hooksd.outbox.jobs import Counts, JobState


__all__ = ["Tally"]

_QUERIES: Final = (
    "SELECT 'pending', count(*) FROM jobs WHERE state = 'pending' AND owner IS NULL",
    "SELECT state, count(*) FROM jobs WHERE owner IS NOT NULL GROUP BY state",
    "SELECT state, count(*) FROM jobs WHERE ended_at IS NOT NULL GROUP BY state",
)
"""Every job is in one of these, and each is answered from an index."""


class Tally:
    """Counted once, then kept up with what this connection does; what other daemons do is seen by `count_again`.

    Args:
        connection: To a database that has the tables.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute
        self._counts: dict[str, int] | None = None
        """As of the last commit."""
        self._changes: Counter[str] = Counter()
        """By the transaction under way."""

    def add(self, state: JobState, count: int) -> None:
        """So many jobs have come to be in a state; fewer than 0 are gone."""
        self._changes[state.value] += count

    def move(self, before: JobState, after: JobState, count: int = 1) -> None:
        """So many have gone from one state to another, which may be the same."""
        self._changes[before.value] -= count
        self._changes[after.value] += count

    def counts(self) -> Counts:
        """With what the transaction under way changes."""
        return Counts(**{state: count + self._changes[state] for state, count in self._counted().items()})

    def count_again(self) -> None:
        """Look, next time."""
        self._counts = None

    def committed(self) -> None:
        """The transaction has ended well."""
        counts = self._counted()
        for state, change in self._changes.items():
            counts[state] += change
        self._changes.clear()

    def rolled_back(self) -> None:
        """The transaction has not happened."""
        self._changes.clear()

    def _counted(self) -> dict[str, int]:
        if self._counts is None:
            counts = {state.value: 0 for state in JobState}
            for query in _QUERIES:
                for state, count in self._execute(query):
                    counts[state] += count
            # They have what the transaction under way has changed, which may yet be taken back.
            self._counts = {state: count - self._changes[state] for state, count in counts.items()}
        return self._counts
