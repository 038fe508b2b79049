"""What the methods need of the daemon itself; `hooksd.daemon` gives it."""

from __future__ import annotations

from typing import Protocol

from hooksd.protocol.methods.daemon import DaemonState


__all__ = ["DaemonControl"]


class DaemonControl(Protocol):
    """The daemon, as `daemon/status` and `daemon/shutdown` see it."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    @property
    def version(self) -> str:
        """Its version."""
        ...

    @property
    def uptime_s(self) -> float:
        """Seconds since its start."""
        ...

    @property
    def socket(self) -> str:
        """Where it listens."""
        ...

    @property
    def state(self) -> DaemonState:
        """Where it is in its life."""
        ...

    def shutdown(self, grace_ms: int | None) -> None:
        """Begin to drain, for at most `grace_ms` (None: `limits.drain_s`), then stop; returns at once."""
        ...
