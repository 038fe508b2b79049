"""`hook/test` of a Bamboo handler that is written nowhere (Bamboo dialect 6, protocol section 2.7).

The reference checks in a fixed order and tells the first fault; here every fault is told, in that order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from hooksd.dialects.bamboo_events import NATIVE_NAMES
from hooksd.dialects.bamboo_handlers import (
    EXTENSIONS,
    RunnerMismatch,
    command_handler,
    script_extension,
    script_handler,
    trim,
)
from hooksd.dialects.bamboo_schema import DEFAULT_TIMEOUT_MS, EVENTS, MAX_TIMEOUT_MS, Runner
from hooksd.dialects.base import DryRun, PayloadRefused
from hooksd.dialects.name_patterns import check_name_pattern
from hooksd.dialects.payload_check import checked, refusal
from hooksd.dialects.suggestions import did_you_mean
from hooksd.model.hooks import Contract, Handler, Hook, NamePattern, Scope
from hooksd.model.problems import ConfigProblem


__all__ = ["read_dry_run"]

SOURCE = "hook-test"
"""The source name of a handler that is written nowhere."""


class _Request(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The parameters; keys of the other type are accepted and ignored."""

    event: str
    type: Literal["command", "script"] = "command"
    command: str | None = None
    path: str | None = None
    runner: Runner = "auto"
    matcher: str | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    payload: dict[str, Any] | None = None


def read_dry_run(params: Mapping[str, Any], *, windows: bool) -> DryRun:
    """The hook that the parameters describe.

    Raises:
        PayloadRefused: It could never run; every fault is told.
    """
    request = checked(params, _Request, "params")
    faults: list[ConfigProblem] = []
    native = NATIVE_NAMES.get(request.event)
    if native is None:
        faults.append(refusal("params.event", "unknown event", did_you_mean(request.event, EVENTS)))
    if not 1 <= request.timeout_ms <= MAX_TIMEOUT_MS:
        faults.append(refusal("params.timeout_ms", f"must be between 1 and {MAX_TIMEOUT_MS}"))
    faults += (
        refusal("params.matcher", fault.message, fault.hint)
        for fault in check_name_pattern(request.matcher or "")
    )
    handler = (
        _command(request, faults) if request.type == "command" else _script(request, faults, windows=windows)
    )
    if faults or native is None:
        raise PayloadRefused(faults)
    hook = Hook(
        name=f"bamboo:{Scope.CLIENT}:{SOURCE}:{native}",
        dialect="bamboo",
        contract=Contract.BAMBOO,
        source=SOURCE,
        scope=Scope.CLIENT,
        event=EVENTS[native],
        native_event=native,
        handler=handler,
        match=NamePattern(pattern=request.matcher) if request.matcher else None,
        timeout_s=request.timeout_ms / 1000,
    )
    return DryRun(hook=hook, event=native)


def _command(request: _Request, faults: list[ConfigProblem]) -> Handler | None:
    if _blank_or_nul("command", request.command, faults):
        return None
    return command_handler(request.command or "")


def _script(request: _Request, faults: list[ConfigProblem], *, windows: bool) -> Handler | None:
    if _blank_or_nul("path", request.path, faults):
        return None
    path = trim(request.path or "")
    extension = script_extension(path, windows=windows)
    if extension is None:
        known = ", ".join(f".{known}" for known in EXTENSIONS)
        faults.append(refusal("params.path", "unsupported script extension", f"one of {known}"))
        return None
    try:
        return script_handler(path, extension, request.runner, windows=windows)
    except RunnerMismatch as mismatch:
        faults.append(refusal("params.runner", str(mismatch)))
        return None


def _blank_or_nul(name: str, text: str | None, faults: list[ConfigProblem]) -> bool:
    if text is None or not trim(text):
        faults.append(refusal(f"params.{name}", "is missing or blank"))
    elif "\0" in text:
        faults.append(refusal(f"params.{name}", "must not contain a NUL character"))
    else:
        return False
    return True
