"""The report of one hook of a dispatch, as it goes to the caller and, less the hook's own words, to the log."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from hooksd.model.decision import Decision
from hooksd.model.hooks import Contract, Mode
from hooksd.model.problems import HookProblem


__all__ = ["HandlerReport", "Status"]


class Status(StrEnum):
    """How the run of a hook ended, or that it has not (protocol section 2.3)."""

    OK = "ok"
    BLOCKED = "blocked"
    FAILED = "failed"
    TIMEOUT = "timeout"
    LAUNCH_ERROR = "launch_error"
    CANCELLED = "cancelled"
    STARTED = "started"
    SKIPPED = "skipped"


class HandlerReport(msgspec.Struct, frozen=True, kw_only=True):
    """`HandlerReport` of protocol section 2.3; the fields and their meaning are defined there."""

    hook: str
    source: str
    contract: Contract
    mode: Mode
    status: Status
    exit_code: int | None = None
    signal: int | None = None
    duration_ms: float = 0.0
    queued_ms: float = 0.0
    decision: Decision = Decision.NONE
    problem: HookProblem | None = None
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    left_running: int = 0
    warm: bool = False
    pid: int | None = None
    invocation_id: str = ""
