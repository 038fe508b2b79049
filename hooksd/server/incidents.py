"""Faults of our own: the peer gets an id and nothing else, the log the id and where it happened."""

from __future__ import annotations

import secrets
import traceback

from hooksd.model.errors import ProtocolError
from hooksd.model.records import Level, Recorder
from hooksd.protocol.errors import ErrorCode, protocol_error


__all__ = ["MAX_FRAMES", "incident"]

MAX_FRAMES = 12
"""Innermost frames that the record of an incident names."""


def incident(error: BaseException, record: Recorder, method: str) -> ProtocolError:
    """Record an exception that nobody expected, and make the error that the peer gets.

    The text of the exception is in neither: it may hold anything that a client or a hook sent (design rule 8).
    """
    incident_id = f"inc-{secrets.token_hex(6)}"
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    record(
        Level.ERROR,
        "daemon.internal_error",
        {
            "incident": incident_id,
            "method": method[:100],
            "error": type(error).__name__,
            "where": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
        },
    )
    return protocol_error(
        ErrorCode.INTERNAL_ERROR,
        f"hooksd has made an error of its own; the log has more under incident {incident_id}",
        detail=incident_id,
    )
