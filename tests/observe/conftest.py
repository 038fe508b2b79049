from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hooksd.model.records import Level
from hooksd.observe.journal import Journal
from hooksd.observe.metrics import Metrics
from hooksd.observe.stream import EventStream


class Recorded:
    """A journal whose log lines are kept in a list."""

    def __init__(self, **options: Any) -> None:
        self.lines: list[bytes] = []
        self.stream = EventStream(4)
        self.metrics = Metrics()
        self.journal = Journal(write=self.lines.append, stream=self.stream, metrics=self.metrics, **options)

    def __call__(self, event: str, level: Level = Level.INFO, **fields: Any) -> None:
        self.journal(level, event, fields)

    @property
    def records(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in self.lines]


@pytest.fixture
def recorded() -> Callable[..., Recorded]:
    return Recorded


def log_line(seq: int, **fields: Any) -> bytes:
    record = {
        "ts": f"2026-01-01T00:00:00.{seq % 1000:03d}Z",
        "seq": seq,
        "level": "info",
        "event": "hook.finished",
        **fields,
    }
    return msgspec.json.encode(record) + b"\n"


@pytest.fixture
def line() -> Callable[..., bytes]:
    """Makes the line of a record."""
    return log_line


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "hooksd.log"
