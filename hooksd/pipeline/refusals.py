"""What callers are told instead of an answer; none of it ever stands for a decision."""

from __future__ import annotations

from hooksd.model.errors import ProtocolError
from hooksd.protocol.errors import ErrorCode, protocol_error


__all__ = ["draining", "execution_closed", "unknown_execution"]


def execution_closed(execution_id: str) -> ProtocolError:
    """What the caller of a dispatch gets that a close cut off."""
    return protocol_error(
        ErrorCode.UNKNOWN_EXECUTION,
        f"execution {execution_id!r} was closed while this was in progress; nothing was decided",
        kind="execution_closed",
    )


def draining() -> ProtocolError:
    """What everybody gets who wants something while the daemon shuts down."""
    return protocol_error(
        ErrorCode.DRAINING, "the daemon is shutting down; nothing was decided, try again later"
    )


def unknown_execution(execution_id: str) -> ProtocolError:
    """What everybody gets who names an execution that is not open."""
    return protocol_error(
        ErrorCode.UNKNOWN_EXECUTION,
        f"no execution {execution_id!r} is open; it was never opened, was closed, or was dropped as idle",
    )
