"""Workspaces: where their hook sources lie, and whether these may be used.

A project's hooks come with somebody else's files, so they run only once trusted (design rules 8 and 9). Who grants that
is not decided here; `TrustGate` is the place where the question is asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import SourceState


__all__ = ["MAX_WORKSPACES", "Roots", "Trust", "TrustGate", "admission", "trust_nobody"]

MAX_WORKSPACES: Final = 1024
"""Workspaces whose sources are remembered; the one not opened for longest goes first, and is read again when needed."""


class Trust(StrEnum):
    """What is known of a project's hooks file as it is now."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    CHANGED = "changed"
    """Another content of it was trusted."""


TrustGate = Callable[[str, bytes], Trust]
"""Asked with the root directory of a project and the bytes of its hooks file; called off the loop, must not raise."""


def trust_nobody(directory: str, content: bytes) -> Trust:
    """The gate of a daemon to which nobody ever granted anything."""
    del directory, content
    return Trust.UNTRUSTED


def admission(
    gate: TrustGate, directory: str, content: bytes
) -> tuple[SourceState, tuple[ConfigProblem, ...]]:
    """Whether a project's hooks file may be used, and what to tell if not."""
    trust = gate(directory, content)
    if trust is Trust.TRUSTED:
        return SourceState.LOADED, ()
    changed = trust is Trust.CHANGED
    problem = ConfigProblem(
        severity=Severity.WARNING,
        path="",
        message="this project was trusted and has changed since: its hooks are not loaded"
        if changed
        else "this project is not trusted: its hooks are not loaded",
        hint=f"look at them with `hooksd trust show {directory}`",
    )
    return (SourceState.CHANGED if changed else SourceState.UNTRUSTED), (problem,)


class Roots:
    """The real directories of workspaces, remembered as long as the given path leads to the same one."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int] | None, str]] = {}

    def remembered(self, workspace: str) -> str | None:
        """As `root`, without a look where the workspace is known."""
        known = self._known.get(workspace)
        return self.root(workspace) if known is None else known[1]

    def root(self, workspace: str) -> str | None:
        """The directory without symbolic links, which need not exist; None for "" and where there can be none."""
        if not workspace:
            return None
        try:
            status = os.stat(workspace)
            identity = (status.st_dev, status.st_ino)
        except OSError:
            identity = None
        except ValueError:
            return None
        known = self._known.get(workspace)
        if known is not None and known[0] == identity is not None:
            return known[1]
        if not os.path.isabs(workspace):
            return None
        root = os.path.realpath(workspace)
        if len(self._known) >= MAX_WORKSPACES:
            self._known.clear()
        self._known[workspace] = (identity, root)
        return root
