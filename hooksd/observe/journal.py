"""The recorder of the daemon: every record passes here, and nowhere else, on its way to log, stream and counters.

A record is stamped (`ts`, `seq`), made one safe line (`record_text`), and handed on; nothing here waits. `seq` counts
the records of one life of the daemon from 1, also those that the log's level leaves out: a gap in the log is a
filtered record, or dropped ones, which the log then tells (`events.dropped`).

structlog carries the records: a filtering bound logger (a filtered level costs nothing but the call), two processors,
and a sink that takes bytes. It is wrapped, not configured globally: there is no other logger in the daemon.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Literal

import structlog

from hooksd.model.records import Level
from hooksd.observe.console import console_line
from hooksd.observe.metrics import Metrics
from hooksd.observe.record_text import encode_record
from hooksd.observe.stream import EventStream


__all__ = ["Journal", "LogFormat"]

LogFormat = Literal["json", "console"]

_NUMBERS = {Level.DEBUG: 10, Level.INFO: 20, Level.WARNING: 30, Level.ERROR: 40}
_RESERVED = 4
"""`ts`, `seq`, `level` and `event` are given here, in this order, before every other field."""


class Journal:
    """A `Recorder`. It is called on one thread, that of the loop.

    Args:
        write: Takes a line for the log, with its line end; returns at once.
        stream: Gets every record of level info or above, whatever the log's level.
        metrics: Counts what hooks did.
        level: Least level that is written to the log.
        max_field_bytes: `limits.max_log_field_bytes`.
        log_format: What a line of the log looks like; the stream always has JSON.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        *,
        write: Callable[[bytes], None],
        stream: EventStream,
        metrics: Metrics,
        level: Level = Level.INFO,
        max_field_bytes: int = 2_048,
        log_format: LogFormat = "json",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._write = write
        self._publish = stream.publish
        self._metrics = metrics
        self._console = log_format == "console"
        self._clock = clock
        self._next_seq = itertools.count(1).__next__
        self._second = (-1, "")
        self.configure(level=level, max_field_bytes=max_field_bytes)

    def configure(self, *, level: Level, max_field_bytes: int) -> None:
        """Take new settings; they hold from the next record on."""
        self._level = _NUMBERS[level]
        self._max_field_bytes = max_field_bytes
        bound = structlog.wrap_logger(
            _Sink(self),
            processors=[self._stamp, self._render],
            # The stream wants what is of level info or above even where the log is quieter.
            wrapper_class=structlog.make_filtering_bound_logger(min(self._level, _NUMBERS[Level.INFO])),
        ).bind()
        self._methods: dict[str, Callable[..., Any]] = {one: getattr(bound, one) for one in Level}

    def __call__(self, level: Level, event: str, fields: Mapping[str, Any]) -> None:
        """Record it (see `hooksd.model.records.Recorder`)."""
        self._metrics.observe(event, fields)
        self._methods[level](event, fields=fields)

    def dropped_line(self, count: int) -> bytes:
        """The line that tells the log how many records it lost at this place."""
        fields = {"dropped": count, "where": "log"}
        record = self._stamp(None, Level.WARNING, {"event": "events.dropped", "fields": fields})
        return self._log_line(record, encode_record(record, self._max_field_bytes))

    def _stamp(self, _logger: Any, method: str, event_dict: MutableMapping[str, Any]) -> dict[str, Any]:
        fields = event_dict["fields"]
        seconds, thousandths = divmod(int(self._clock() * 1000), 1000)
        second = self._second
        if second[0] != seconds:
            second = self._second = (seconds, time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(seconds)))
        record = {
            "ts": f"{second[1]}{thousandths:03d}Z",
            "seq": self._next_seq(),
            "level": method,
            "event": event_dict["event"],
        }
        record.update(fields)
        if len(record) != _RESERVED + len(fields):
            # Our own fields win over a caller's of the same name.
            record = {**record, "level": method, "event": event_dict["event"]}
        return record

    def _render(
        self, _logger: Any, _method: str, record: MutableMapping[str, Any]
    ) -> tuple[tuple[MutableMapping[str, Any], bytes], dict[str, Any]]:
        return (record, encode_record(record, self._max_field_bytes)), {}

    def _log_line(self, record: Mapping[str, Any], line: bytes) -> bytes:
        return console_line(record) if self._console else line + b"\n"

    def _take(self, number: int, record: Mapping[str, Any], line: bytes) -> None:
        if number >= self._level:
            self._write(self._log_line(record, line))
        self._publish(record["seq"], record["event"], record.get("execution_id"), line)


class _Sink:
    """What structlog calls a logger: one method per level, each given the arguments that `_render` made."""

    def __init__(self, journal: Journal) -> None:
        take = journal._take  # noqa: SLF001 - one object in two halves
        for level, number in _NUMBERS.items():
            setattr(self, level, self._method(take, number))

    @staticmethod
    def _method(take: Callable[..., None], number: int) -> Callable[..., None]:
        return lambda record, line: take(number, record, line)
