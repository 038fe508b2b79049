"""Workspaces: which real directories they are. Whether the hooks there may be used is said by `trust.py`."""

from __future__ import annotations

import os
from typing import Final


__all__ = ["MAX_WORKSPACES", "Roots"]

MAX_WORKSPACES: Final = 1024
"""Workspaces whose sources are remembered; the one not opened for longest goes first, and is read again when needed."""


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
