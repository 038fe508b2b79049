"""Where the worker of a detached hook must live to outlive the daemon: a pure decision from what the system tells.

A session of its own is enough, unless the daemon runs as a service of systemd: what is in the service's control group
ends with the service. Under a user's manager the worker then goes into a scope of its own. A system service has no such
way out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum, auto
from pathlib import Path

import msgspec


__all__ = ["DetachedPlace", "Keeping", "detached_place", "own_cgroups"]

_USER_SERVICE = re.compile(r"/user@\d+\.service/.*\.service$")


class Keeping(Enum):
    """What keeps a worker alive when the daemon ends."""

    OWN_SESSION = auto()
    """Nothing has to: it is in a session of its own."""
    SCOPE = auto()
    """A transient scope of the user's manager."""
    NOTHING = auto()
    """The service manager ends it together with the daemon."""


class DetachedPlace(msgspec.Struct, frozen=True, kw_only=True):
    """How workers are started.

    Attributes:
        keeping: What keeps them alive.
        prefix: What comes before their command; `{id}` in it stands for the invocation id.
        limitation: What this system cannot do, for people; "" where it can.
    """

    keeping: Keeping
    prefix: tuple[str, ...] = ()
    limitation: str = ""

    def command(self, run_id: str, worker: tuple[str, ...]) -> tuple[str, ...]:
        """The whole command of a worker."""
        return (*(word.replace("{id}", run_id) for word in self.prefix), *worker)


def detached_place(env: Mapping[str, str], cgroups: str, find: Callable[[str], str | None]) -> DetachedPlace:
    """Decide.

    Args:
        env: The daemon's own environment.
        cgroups: Its `/proc/self/cgroup`, "" where there is none.
        find: Finds a program on the daemon's PATH.
    """
    group = _systemd_group(cgroups)
    if not group.endswith(".service") or not (env.get("INVOCATION_ID") or env.get("NOTIFY_SOCKET")):
        return DetachedPlace(keeping=Keeping.OWN_SESSION)
    if not _USER_SERVICE.search(group):
        return DetachedPlace(
            keeping=Keeping.NOTHING,
            limitation="hooksd runs as a system service, so detached hooks end when it is stopped; "
            "run it as a service of the user (`systemctl --user`) to let them live on",
        )
    program = find("systemd-run")
    if program is None or not env.get("XDG_RUNTIME_DIR"):
        missing = "systemd-run is not on the PATH" if program is None else "XDG_RUNTIME_DIR is not set"
        return DetachedPlace(
            keeping=Keeping.NOTHING,
            limitation=f"hooksd runs as a service and {missing}, so detached hooks end when it is stopped",
        )
    return DetachedPlace(
        keeping=Keeping.SCOPE,
        prefix=(
            program,
            "--user",
            "--scope",
            "--collect",
            "--quiet",
            "--unit=hooksd-detached-{id}",
            "--",
        ),
    )


def own_cgroups() -> str:
    """What this system says about the control groups of this process, "" where it has none."""
    try:
        return Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _systemd_group(cgroups: str) -> str:
    """The control group that systemd knows this process by."""
    for line in cgroups.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers in {"", "name=systemd"} and group not in {"", "/"}:
            return group
    return ""
