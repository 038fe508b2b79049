"""`hook/test` of a Chrys hook that is written nowhere: `run`, `execution` and `match` as in a hooks file.

It is read by the reader of documents, so that it means exactly what it would mean there, except that it runs whatever
its mode says, and is waited for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from hooksd.dialects.base import DryRun, PayloadRefused
from hooksd.dialects.chrys_document import read_document
from hooksd.dialects.chrys_events import NATIVE_NAMES
from hooksd.dialects.chrys_schema import DEFAULT_TIMEOUT_S, EVENTS
from hooksd.dialects.payload_check import refusal
from hooksd.dialects.suggestions import did_you_mean
from hooksd.model.hooks import Mode, Scope, Script
from hooksd.model.problems import Severity
from hooksd.model.sources import Origin


__all__ = ["read_dry_run"]

SOURCE = "hook-test"
"""The source name of a hook that is written nowhere."""

_FILE = "/hook-test.json"
"""Said to be JSON; a relative script is taken as relative to the working directory, for want of a hooks file."""
_KEYS = ("event", "run", "execution", "match")
_ENTRY = "hooks[0]."


def read_dry_run(params: Mapping[str, Any]) -> DryRun:
    """The hook that the parameters describe.

    Raises:
        PayloadRefused: It could never run; every fault is told.
    """
    faults = [
        refusal(f"params.{key}", "has no meaning for a Chrys hook", f"known keys: {', '.join(_KEYS)}")
        for key in params
        if key not in _KEYS
    ]
    given = str(params.get("event", ""))
    native = NATIVE_NAMES.get(given)
    if native is None:
        faults.append(refusal("params.event", "unknown event", did_you_mean(given, EVENTS)))
    entry = {key: params[key] for key in _KEYS if key in params}
    entry |= {"id": "hook-test", "event": native or next(iter(EVENTS))}
    document = read_document(
        json.dumps({"hooks": [entry]}).encode(), Origin(source=SOURCE, scope=Scope.CLIENT, file=_FILE)
    )
    faults += (
        refusal("params." + problem.path.removeprefix(_ENTRY), problem.message, problem.hint)
        for problem in document.problems
        if problem.severity is Severity.ERROR
    )
    if faults or native is None:
        raise PayloadRefused(faults)
    hook = document.hooks[0]
    handler = hook.handler
    if isinstance(handler, Script):
        handler = msgspec.structs.replace(handler, base=None)
    hook = msgspec.structs.replace(
        hook,
        handler=handler,
        mode=Mode.BLOCKING,
        timeout_s=hook.timeout_s or DEFAULT_TIMEOUT_S,
        file="",
        line=None,
    )
    return DryRun(hook=hook, event=native)
