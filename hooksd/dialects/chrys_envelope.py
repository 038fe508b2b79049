"""What a Chrys hook is given: the payload file's text, its variables, its directory (Chrys dialect 1.5, 2, 4)."""

from __future__ import annotations

import json
import os
import weakref
from typing import Any

from hooksd.dialects.base import PayloadRefused, Places
from hooksd.dialects.chrys_events import BASE_FIELDS, utc_seconds
from hooksd.dialects.payload_check import refusal
from hooksd.model.events import Event
from hooksd.model.hooks import Hook, Scope


__all__ = ["PayloadEncoder", "envelope_object", "filled_in", "working_directory"]

SCHEMA_VERSION = 1
_CONFIG_DIRECTORY = ".chrys"
_HOOKS_DIRECTORY = "hooks"


def envelope_object(event: Event, cwd: str) -> dict[str, Any]:
    """The envelope as an object: the base fields, then the event's own."""
    payload = event.payload
    base = {
        "schema": SCHEMA_VERSION,
        "event": event.native,
        "timestamp": utc_seconds(event.timestamp),
        "session_id": payload.get("session_id", event.session_id),
        "profile": event.profile,
        "cwd": payload.get("cwd", event.workspace_path or cwd),
    }
    return {**base, **{key: value for key, value in payload.items() if key not in BASE_FIELDS}}


class PayloadEncoder:
    """Encodes envelopes, and remembers the last one for as long as its event lives: hooks of one event get the same."""

    def __init__(self) -> None:
        self._last: tuple[weakref.ref[Event], str, bytes] | None = None

    def encode(self, event: Event, cwd: str) -> bytes:
        """The text of the payload file: JSON, everything that is not ASCII escaped, as the reference writes it.

        Raises:
            PayloadRefused: The payload is nested too deeply to be encoded.
        """
        last = self._last
        if last is not None and last[0]() is event and last[1] == cwd:
            return last[2]
        try:
            text = json.dumps(envelope_object(event, cwd)).encode()
        except RecursionError:
            raise PayloadRefused([refusal("payload", "is nested too deeply")]) from None
        self._last = (weakref.ref(event, self._forget), cwd, text)
        return text

    def _forget(self, _dead: weakref.ref[Event]) -> None:
        # A reference that was replaced is gone itself, and calls nothing: this is always about the last event.
        self._last = None


def filled_in(text: str, event: Event, hook: Hook, places: Places) -> str:
    """A text with its placeholders filled in, one after another: what one puts in, the next may find."""
    if "${" not in text:
        return text
    for name, value in (
        ("${workspace_cwd}", _event_cwd(event, places)),
        ("${chrys_home}", _home(hook, places)),
        ("${session_id}", event.payload.get("session_id", event.session_id) or ""),
        ("${profile}", event.profile),
    ):
        text = text.replace(name, value)
    return text


def working_directory(event: Event, hook: Hook, places: Places) -> str:
    """Where a hook runs: its own `cwd`, relative to the event's; without one there.

    The reference takes a relative one relative to the agent's process, of which the daemon knows nothing.
    """
    base = _event_cwd(event, places)
    return os.path.join(base, filled_in(hook.cwd, event, hook, places)) if hook.cwd else base


def _event_cwd(event: Event, places: Places) -> str:
    """The directory that the event is about: the dispatch's, the payload's, the workspace, else the daemon's own."""
    told: str = event.payload.get("cwd", "") if event.agent == "chrys" else ""
    return places.cwd or told or places.workspace or places.daemon_cwd


def _home(hook: Hook, places: Places) -> str:
    """The agent's configuration directory; for a file outside a `hooks` directory that file's own (design.md)."""
    if hook.scope is Scope.PROJECT:
        return os.path.join(places.home, _CONFIG_DIRECTORY)
    directory = os.path.dirname(hook.file)
    return os.path.dirname(directory) if os.path.basename(directory) == _HOOKS_DIRECTORY else directory
