"""A reply: what one invocation said, read from its process or its client by its dialect."""

from __future__ import annotations

from typing import Any

import msgspec

from hooksd.model.decision import Decision
from hooksd.model.problems import HookProblem


__all__ = ["MAX_DETAIL_BYTES", "Reply"]

MAX_DETAIL_BYTES = 2048
"""Most of a hook's own words that a problem's `detail` holds (protocol section 2.3)."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What one invocation said.

    A reply with a `failure` is no valid answer: its other fields are at their defaults, except that a failure which
    the hook's own configuration turns into a block (Chrys `on_error: block`) has that decision and reason.

    Attributes:
        decision: What the hook decided.
        reason: Of a block; never blank then.
        contexts: Additional context, in order, blank ones dropped.
        reminders: System reminders, in order, blank ones dropped.
        arguments: The tool's full new arguments, if the hook changed them.
        arguments_patch: Top-level keys to lay over the current arguments, if the dialect's rewrite is a merge.
        failure: Why this is no valid answer; None for a valid one.
        notes: Problems that do not make it fail (`inherited_pipe`, `suspicious_exit_2`), most important first.
    """

    decision: Decision = Decision.NONE
    reason: str | None = None
    contexts: tuple[str, ...] = ()
    reminders: tuple[str, ...] = ()
    arguments: dict[str, Any] | None = None
    arguments_patch: dict[str, Any] | None = None
    failure: HookProblem | None = None
    notes: tuple[HookProblem, ...] = ()
