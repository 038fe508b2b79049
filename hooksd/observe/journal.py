"""The recorder of the daemon: every record passes here, and nowhere else, on its way to log, stream and counters.

A record is stamped (`ts`, `seq`), made one safe line (`record_text`), and handed on; nothing here waits. `seq` counts
the records of one life of the daemon from 1, also those that the log's level leaves out: a gap in the log is a
filtered record, or dropped ones, which the log then tells (`events.dropped`).

structlog carries the records: a filtering bound logger (a filtered level costs nothing but the call), one processor,
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
from hooksd.observe.stream import Entry, EventStream


__all__ = ["Journal", "LogFormat"]

LogFormat = Literal["json", "console"]

_NUMBERS = {Level.DEBUG: 10, Level.INFO: 20, Level.WARNING: 30, Level.ERROR: 40}

_DEBUG, _INFO, _WARNING = Level.DEBUG, Level.INFO, Level.WARNING

_OWN = ("ts", "seq", "level", "event")
"""What every record begins with, in this order; it is given here and by nobody else."""


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
        self._second = -1
        self._head = ""
        self.configure(level=level, max_field_bytes=max_field_bytes)

    def configure(self, *, level: Level, max_field_bytes: int) -> None:
        """Take new settings; they hold from the next record on."""
        self._level = _NUMBERS[level]
        self._max_field_bytes = max_field_bytes
        bound = structlog.wrap_logger(
            _Sink(self),
            processors=[self._render],
            # The stream wants what is of level info or above even where the log is quieter.
            wrapper_class=structlog.make_filtering_bound_logger(min(self._level, _NUMBERS[Level.INFO])),
        ).bind()
        self._debug, self._info, self._warning, self._error = (
            bound.debug,
            bound.info,
            bound.warning,
            bound.error,
        )

    def __call__(self, level: Level, event: str, fields: Mapping[str, Any]) -> None:
        """Record it (see `hooksd.model.records.Recorder`)."""
        if event == "hook.finished":
            self._metrics.finished(fields)
        # A chain of identities: looking the level up in a table would hash it, which an enumeration does in Python.
        if level is _INFO:
            self._info(event, fields=fields)
        elif level is _DEBUG:
            self._debug(event, fields=fields)
        elif level is _WARNING:
            self._warning(event, fields=fields)
        else:
            self._error(event, fields=fields)

    def dropped_line(self, count: int) -> bytes:
        """The line that tells the log how many records it lost at this place."""
        (_, _, _, line), _ = self._render(
            None, Level.WARNING, {"event": "events.dropped", "fields": {"dropped": count, "where": "log"}}
        )
        return self._log_line(line)

    def _render(
        self, _logger: Any, method: str, event_dict: MutableMapping[str, Any]
    ) -> tuple[Entry, dict[str, Any]]:
        """The last processor: the arguments of the sink's method are number, kind, execution and line."""
        event, fields = event_dict["event"], event_dict["fields"]
        now = self._clock()
        second = int(now)
        if second != self._second:
            self._second = second
            self._head = time.strftime('{"ts":"%Y-%m-%dT%H:%M:%S.', time.gmtime(second))
        if not fields.keys().isdisjoint(_OWN):
            fields = {key: value for key, value in fields.items() if key not in _OWN}
        seq = self._next_seq()
        # Put together as text: for an object the fields would have to be copied. Kinds are constants of the daemon,
        # plain words with dots.
        head = (
            f'{self._head}{int((now - second) * 1000):03d}Z","seq":{seq},"level":"{method}","event":"{event}"'
        )
        body = encode_record(fields, self._max_field_bytes)
        line = head.encode() + (b"," + body[1:] if fields else b"}")
        return (seq, event, fields.get("execution_id"), line), {}

    def _log_line(self, line: bytes) -> bytes:
        return console_line(line) if self._console else line + b"\n"


class _Sink:
    """What structlog calls a logger: one method per level, each given the arguments that `_render` made."""

    def __init__(self, journal: Journal) -> None:
        write, publish = journal._write, journal._publish  # noqa: SLF001 - one object in two halves
        log_line = journal._log_line  # noqa: SLF001

        def quiet(*entry: Any) -> None:
            publish(entry)

        def loud(*entry: Any) -> None:
            write(log_line(entry[3]))
            publish(entry)

        for level, number in _NUMBERS.items():
            setattr(self, level, loud if number >= journal._level else quiet)  # noqa: SLF001
