"""The outcome: what all replies of a dispatch come to."""

from __future__ import annotations

from typing import Any

import msgspec

from hooksd.model.decision import Decision
from hooksd.model.problems import DispatchProblem
from hooksd.model.report import HandlerReport


__all__ = ["Continuation", "Outcome"]


class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """The state of forced continuations of a turn (protocol section 2.3): `count` includes this one."""

    count: int
    limit: int
    exhausted: bool


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `hook/dispatch` (protocol section 2.3)."""

    event: str
    decision: Decision = Decision.NONE
    reason: str | None = None
    decided_by: str | None = None
    contexts: tuple[str, ...] = ()
    reminders: tuple[str, ...] = ()
    arguments: dict[str, Any] | None = None
    continuation: Continuation | None = None
    revision: int
    handlers: tuple[HandlerReport, ...] = ()
    problems: tuple[DispatchProblem, ...] = ()
