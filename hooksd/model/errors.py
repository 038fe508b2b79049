"""The exceptions of hooksd.

One root, split by whose fault it is:

- `HooksdError`
  - `ProtocolError`: the peer sent something it must not; becomes one JSON-RPC error
  - `ConfigError`: a configuration file cannot be used
  - `ServiceError`: the surroundings of the daemon are not usable
    - `AlreadyRunning`, `SocketUnusable`, `UnsafePermissions`

What goes wrong with a *hook* is never an exception: it is a `Reply` with a failure (see `reply.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from hooksd.model.problems import ConfigProblem


__all__ = [
    "AlreadyRunning",
    "ConfigError",
    "HooksdError",
    "ProtocolError",
    "ServiceError",
    "SocketUnusable",
    "UnsafePermissions",
]


class HooksdError(Exception):
    """Root of every error that hooksd raises on purpose."""


class ProtocolError(HooksdError):
    """A request that is answered with a JSON-RPC error.

    Attributes:
        code: One of the numbers of protocol section 4 (`hooksd.protocol.errors.ErrorCode`).
        message: One sentence: what was wrong, with the expected and the given value, and what to do.
        kind: A short constant word for programs, such as `unknown_execution`.
        detail: More text, never a traceback and never a secret.
        problems: Located problems, where the fault is in a document.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        kind: str,
        detail: str | None = None,
        problems: Sequence[ConfigProblem] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.kind = kind
        self.detail = detail
        self.problems = tuple(problems)


class ConfigError(HooksdError):
    """A configuration file that cannot be used; `problems` is never empty."""

    def __init__(self, problems: Sequence[ConfigProblem], *, file: str | None = None) -> None:
        self.problems = tuple(problems)
        self.file = file
        super().__init__("; ".join(problem.describe() for problem in self.problems))


class ServiceError(HooksdError):
    """The daemon cannot start or go on because of its surroundings."""


class AlreadyRunning(ServiceError):
    """Another daemon holds the lock. `pid` is what it wrote there, None if that cannot be read."""

    def __init__(self, lock_path: str, pid: int | None) -> None:
        self.lock_path = lock_path
        self.pid = pid
        who = f"pid {pid}" if pid is not None else "its pid is not known"
        super().__init__(f"hooksd is already running ({who}; lock {lock_path})")


class SocketUnusable(ServiceError):
    """The socket path cannot be used; what lies there was left alone."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"cannot use the socket path {path}: {reason}")


class UnsafePermissions(ServiceError):
    """A directory or file of ours could be changed by somebody else."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"refusing {path}: {reason}")
