"""An outbox over a real file, with a clock that stands still unless it is moved."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hooksd.model.records import Level
from hooksd.outbox.database import Database, secured
from hooksd.outbox.jobs import NewJob, OutboxLimits, RetryRules
from hooksd.outbox.outbox import Outbox
from hooksd.outbox.owner import Owner


class Bench:
    """A state directory, outboxes of its daemons, and what they told."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "outbox.sqlite3")
        self.now = 1_000_000.0
        self.limits = OutboxLimits(max_jobs=1000, max_bytes=1 << 30)
        self.records: list[tuple[Level, str, dict[str, Any]]] = []
        self.opened: list[Outbox] = []

    def outbox(self) -> Outbox:
        """One more daemon's outbox on the file."""
        made = Outbox(
            self.path,
            record=self.record,
            limits=lambda: self.limits,
            clock=lambda: self.now,
            chance=lambda: 0.5,
        )
        self.opened.append(made)
        return made

    def record(self, level: Level, kind: str, fields: Mapping[str, Any]) -> None:
        self.records.append((level, kind, dict(fields)))

    def told(self, kind: str) -> list[dict[str, Any]]:
        """The fields of the records of a kind."""
        return [fields for _, found, fields in self.records if found == kind]


@pytest.fixture
async def bench(tmp_path: Path, anyio_backend: object) -> AsyncIterator[Bench]:
    """A bench whose outboxes are closed at the end."""
    made = Bench(tmp_path)
    yield made
    for outbox in made.opened:
        await outbox.aclose()


@pytest.fixture(scope="session")
def new_job() -> Callable[..., NewJob]:
    """A job by what matters about it."""

    def make(hook: str = "h", *, max_starts: int = 3, age_s: float = 60.0, **more: Any) -> NewJob:
        given: dict[str, Any] = {"lane": hook, "event": "after_turn", "payload": b"{}", **more}
        return NewJob(hook=hook, rules=RetryRules(max_starts=max_starts, retry_age_s=age_s), **given)

    return make


@pytest.fixture
def open_database(tmp_path: Path) -> Iterator[Callable[..., Database]]:
    """A database in this thread; another owner for each, of this process unless another is given."""
    opened: list[Database] = []

    def make(path: str | None = None, owner: Owner | None = None) -> Database:
        where = path or str(tmp_path / "outbox.sqlite3")
        database = Database(where, owner or Owner.of(os.getpid()), secured(where))
        opened.append(database)
        return database

    yield make
    for database in opened:
        database.close()
