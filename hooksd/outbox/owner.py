"""Who has a job: one daemon, told from every other and from whatever later gets its process id.

A lease has no end in time. It ends when its owner lets go, or is seen to be dead.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import msgspec


__all__ = ["Owner", "is_alive", "new_instance", "process_start"]

_PS_TIMEOUT_S = 5.0


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """One owner of jobs.

    Attributes:
        instance: Never the same twice.
        pid: Its process.
        started: When that process started, in words of the system that no later process of the same pid shares; ""
            where the system does not tell.
    """

    instance: int
    pid: int
    started: str

    @classmethod
    def of(cls, pid: int, instance: int | None = None) -> Owner:
        """An owner that lives as long as the process that has this pid now; a new one unless its number is given."""
        if instance is None:
            instance = new_instance()
        return cls(instance=instance, pid=pid, started=process_start(pid) or "")


def new_instance() -> int:
    """A number for an owner, never the same twice."""
    return secrets.randbits(62)


def is_alive(owner: Owner) -> bool:
    """Whether the process of an owner lives. When in doubt it does: a job must not run twice at the same time.

    Processes in another pid namespace are not seen; a state directory belongs to one machine and one namespace.
    """
    started = process_start(owner.pid)
    if started is None:
        return False
    return not owner.started or not started or started == owner.started


def process_start(pid: int) -> str | None:
    """When a process was started; None if there is none that lives, "" if that is all that can be said."""
    try:
        # The name of the program, in parentheses, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
        if fields[0] in (b"Z", b"X"):
            return None
        # Ticks since boot; together with the boot nobody else's.
        return f"{_boot()}:{fields[19].decode()}"
    except (FileNotFoundError, ProcessLookupError):
        return None if _has_proc() else _by_ps(pid)
    except (OSError, IndexError):
        return ""


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")


def _by_ps(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        # Another user's: not one of ours, which all run as us.
        return None
    try:
        told = subprocess.run(
            ["/bin/ps", "-o", "lstart=", "-p", str(pid)],
            capture_output=True,
            timeout=_PS_TIMEOUT_S,
            check=False,
            env={"LC_ALL": "C", "TZ": "UTC0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told.stdout.decode("ascii", "replace").strip()
