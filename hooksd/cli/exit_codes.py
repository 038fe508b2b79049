"""The exit codes of `hooksd`, one meaning each."""

from __future__ import annotations

from enum import IntEnum


__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """What the exit status of a command says. `hooksd-hook` follows the agent's contract instead."""

    DONE = 0
    NO = 1
    """The answer is no: a block, an invalid file, an unhealthy daemon, a daemon that cannot start."""
    USAGE = 2
    UNREACHABLE = 3
    """No daemon answers at the socket."""
    ALREADY_RUNNING = 4
    INTERNAL = 70
    """A fault of hooksd itself (EX_SOFTWARE)."""
    INTERRUPTED = 130
    """128 + SIGINT."""
