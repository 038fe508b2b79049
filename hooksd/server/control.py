"""What the methods need of the daemon itself; `hooksd.daemon` gives it."""

from __future__ import annotations

from typing import Protocol

from hooksd.protocol.methods.daemon import DaemonStatusResult


__all__ = ["DaemonControl"]


class DaemonControl(Protocol):
    """The daemon, as `daemon/status` and `daemon/shutdown` see it."""

    def status(self) -> DaemonStatusResult:
        """The result of `daemon/status`."""
        ...

    def shutdown(self, grace_s: float | None = None) -> None:
        """Begin to drain, for at most `grace_s` (None: `limits.drain_s`), then stop; returns at once."""
        ...
