"""Which children of the daemon belong to somebody in the daemon, so that the reaper of orphans leaves them alone."""

from __future__ import annotations


__all__ = ["disown", "is_owned", "own"]

_owned: set[int] = set()


def own(pid: int) -> None:
    """Announce a child that its starter reaps.

    Needed for children in sessions of their own only: the reaper never touches one of the daemon's own session,
    because no descendant of a hook can be in it.
    """
    _owned.add(pid)


def disown(pid: int) -> None:
    """Announce that it was reaped."""
    _owned.discard(pid)


def is_owned(pid: int) -> bool:
    """Whether somebody in the daemon reaps this child."""
    return pid in _owned
