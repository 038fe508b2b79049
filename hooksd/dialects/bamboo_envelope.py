"""The envelope that a Bamboo hook reads from its stdin (Bamboo dialect 2.1).

Compact UTF-8 JSON without a line end, fields in the reference's order. Of one dispatch all hooks get the same text but
for `workspace_path`, so it is encoded once and only joined per hook: payloads may have megabytes.
"""

from __future__ import annotations

import re
import weakref
from typing import Any

import msgspec

from hooksd.dialects.bamboo_events import convenience_fields, rfc3339
from hooksd.dialects.base import PayloadRefused
from hooksd.dialects.payload_check import refusal
from hooksd.model.events import Event


__all__ = ["EnvelopeEncoder", "envelope_object"]

SCHEMA_VERSION = 1

_SURROGATES = re.compile("[\ud800-\udfff]")


def envelope_object(event: Event, cwd: str) -> dict[str, Any]:
    """The envelope as an object."""
    return {**_before(event), "workspace_path": _valid(cwd), **_after(event, _payload(event))}


class EnvelopeEncoder:
    """Encodes envelopes, and remembers the last event's text for as long as that event lives."""

    def __init__(self) -> None:
        self._last: tuple[weakref.ref[Event], bytes, bytes] | None = None

    def encode(self, event: Event, cwd: str) -> bytes:
        """The bytes for a hook that runs in `cwd`.

        Raises:
            PayloadRefused: The payload is nested too deeply to be encoded.
        """
        last = self._last
        if last is None or last[0]() is not event:
            head, tail = _encode_parts(event)
            last = self._last = (weakref.ref(event, self._forget), head, tail)
        return b"".join((last[1], msgspec.json.encode(_valid(cwd)), last[2]))

    def _forget(self, _dead: weakref.ref[Event]) -> None:
        # A reference that was replaced is gone itself, and calls nothing: this is always about the last event.
        self._last = None


def _payload(event: Event) -> dict[str, Any]:
    if event.continued and not event.payload.get("stop_hook_active", True):
        # The daemon's own count says that the agent goes on because of a Stop hook, though the caller did not.
        return {**event.payload, "stop_hook_active": True}
    return event.payload


def _before(event: Event) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "hook_event_name": event.native,
        "session_id": event.session_id,
    }


def _after(event: Event, payload: dict[str, Any]) -> dict[str, Any]:
    return {
        # A notification belongs to no model call (Bamboo dialect 7).
        "model": "" if event.native == "Notification" else event.model,
        "payload": payload,
        **convenience_fields(event.native, payload),
        "timestamp": rfc3339(event.timestamp),
    }


def _encode_parts(event: Event) -> tuple[bytes, bytes]:
    """What comes before and after the value of `workspace_path`."""
    payload = _payload(event)
    try:
        # What the envelope has twice is encoded once.
        for twice in ("parsed_args", "outcome"):
            if twice in payload:
                payload = {**payload, twice: msgspec.Raw(msgspec.json.encode(payload[twice]))}
        head = msgspec.json.encode(_before(event))
        tail = msgspec.json.encode(_after(event, payload))
    except RecursionError:
        raise PayloadRefused([refusal("payload", "is nested too deeply")]) from None
    return head[:-1] + b',"workspace_path":', b"," + tail[1:]


def _valid(path: str) -> str:
    """A path as text: bytes that are not UTF-8, which Python keeps as lone surrogates, become U+FFFD."""
    return path if path.isascii() else _SURROGATES.sub("\ufffd", path)
