"""The trace context of a dispatch (W3C Trace Context, level 1): read, or made where the caller gave none. No exporting."""

from __future__ import annotations

import os
import re

import msgspec


__all__ = ["Trace"]

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_MAX_CHARACTERS = 512
"""A version after 00 may append fields; this is more than the specification asks implementations to carry."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """What hooks get as `TRACEPARENT`, and the id that records carry."""

    traceparent: str
    trace_id: str

    @classmethod
    def new(cls) -> Trace:
        """A trace that begins here; not sampled, since nothing is exported."""
        trace_id, span_id = os.urandom(16).hex(), os.urandom(8).hex()
        return cls(traceparent=f"00-{trace_id}-{span_id}-00", trace_id=trace_id)

    @classmethod
    def parse(cls, given: str) -> Trace:
        """Take over the caller's, unchanged.

        Raises:
            ValueError: It is none; the text says why.
        """
        found = _FORM.fullmatch(given) if len(given) <= _MAX_CHARACTERS and given.isprintable() else None
        if found is None:
            raise ValueError("expected version-traceid-parentid-flags in lower-case hex (2-32-16-2 digits)")
        version, trace_id, parent_id, _, more = found.groups()
        if version == "ff":
            raise ValueError("the version ff is not allowed")
        if version == "00" and more:
            raise ValueError("version 00 has exactly four fields")
        if not trace_id.strip("0"):
            raise ValueError("the trace id must not be all zeros")
        if not parent_id.strip("0"):
            raise ValueError("the parent id must not be all zeros")
        return cls(traceparent=given, trace_id=trace_id)
