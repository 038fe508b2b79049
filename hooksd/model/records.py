"""Records: what is told to the log and to the event stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any


__all__ = ["Level", "Recorder"]


class Level(StrEnum):
    """How much a record matters."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


Recorder = Callable[[Level, str, Mapping[str, Any]], None]
"""Takes one record: level, kind (`hook.finished`, `config.changed`, … of protocol section 2.11) and fields.

It returns at once, never raises and never waits for a disk. The fields are JSON values; the recorder adds `ts`, `seq`,
`level` and `event`. **Callers must leave out** payloads, arguments, environment values, hook output and `detail`
(design rule 8).
"""
