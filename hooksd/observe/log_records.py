"""The lines of a log as records again, and which of them are wanted. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from hooksd.model.records import Level
from hooksd.model.star_patterns import StarPatterns
from hooksd.observe.record_text import timestamp


__all__ = ["Record", "RecordFilter", "parse_record"]

Record = dict[str, Any]
"""One record as it was written; `ts`, `level` and `event` are there and are texts."""

_RANKS = {level.value: rank for rank, level in enumerate(Level)}

_decode = msgspec.json.Decoder(Record).decode


class RecordFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which records are wanted; every field that is set must hold.

    Attributes:
        hook: Pattern of the hook's name, only `*` is special; a name without `*` is looked for anywhere in it.
        execution_id: Records of this execution.
        level: Of this level or above.
        since: Not before this time, seconds since the epoch.
        kinds: Patterns of record kinds.
    """

    hook: str | None = None
    execution_id: str | None = None
    level: Level | None = None
    since: float | None = None
    kinds: tuple[str, ...] = ()

    def compile(self) -> Callable[[Record], bool]:
        """The filter as a function of a record."""
        tests: list[Callable[[Record], bool]] = []
        if self.hook is not None:
            hooks = StarPatterns([self.hook if "*" in self.hook else f"*{self.hook}*"])
            tests.append(lambda record: hooks.fits(str(record.get("hook", ""))))
        if self.execution_id is not None:
            tests.append(lambda record: record.get("execution_id") == self.execution_id)
        if self.level is not None:
            least = _RANKS[self.level]
            tests.append(lambda record: _RANKS.get(record["level"], least) >= least)
        if self.since is not None:
            # Both have one form and UTC, so that the order of the texts is that of the times.
            since = timestamp(self.since)
            tests.append(lambda record: record["ts"] >= since)
        if self.kinds:
            kinds = StarPatterns(self.kinds)
            tests.append(lambda record: kinds.fits(record["event"]))
        return lambda record: all(test(record) for test in tests)


def parse_record(line: bytes) -> Record | None:
    """The record of a line; None for a line that is none."""
    try:
        record = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if all(isinstance(record.get(name), str) for name in ("ts", "level", "event")):
        return record
    return None
