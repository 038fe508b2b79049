"""What is in force now, as the loop's thread sees it: the base, the projects, the revision, the snapshots made of them.

No file is read here and nothing is waited for; `store.py` brings the new state, this module compares, counts and keeps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from hooksd.config.assemble import SETTINGS_SOURCE, Base, Project
from hooksd.config.examine import Examined, unchanged
from hooksd.config.files import is_missing
from hooksd.config.projects import MAX_WORKSPACES
from hooksd.config.settling import OPEN_PATIENCE_S
from hooksd.config.snapshot import Snapshot, SnapshotTable
from hooksd.model.hooks import Hook
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import SourceReport, SourceState


__all__ = ["Current", "Waiting", "not_still"]

NO_PROJECT: Final = ""
"""The root under which the snapshot without a workspace is kept."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A file that does not stand still: its source, where it lies, and when to look again (monotonic clock)."""

    source: str
    path: str
    due_s: float


class Current:
    """Belongs to the loop's thread.

    Args:
        base: The first one.
        revision: Its revision.

    Attributes:
        base: In force.
        revision: In force; goes up by one with each change of what is in force, in a project too.
        projects: The workspaces that are known, the one opened last at the end.
    """

    def __init__(self, base: Base, revision: int) -> None:
        self.base = base
        self.revision = revision
        self.projects: OrderedDict[str, Project] = OrderedDict()
        self._table = SnapshotTable()
        self._held: dict[str, tuple[tuple[Hook, ...], Snapshot]] = {}

    def apply(self, base: Base, projects: Sequence[Project]) -> None:
        """Put a new state in force."""
        changed = base.in_force != self.base.in_force
        if base is not self.base:
            self._held.clear()
        self.base = base
        for project in projects:
            before = self.projects.get(project.root)
            if before is project:
                continue
            changed = changed or project.in_force != (before.in_force if before else "")
            self._held.pop(project.root, None)
            self.projects[project.root] = project
        while len(self.projects) > MAX_WORKSPACES:
            root, _ = self.projects.popitem(last=False)
            self._held.pop(root, None)
        if changed:
            self.revision += 1
            self._held.clear()

    def project(self, root: str) -> Project | None:
        """What is known of a workspace, if it fits the base in force."""
        project = self.projects.get(root)
        if project is None or project.policy is not self.base.policy:
            return None
        return project if project.identities is self.base.identities else None

    def looks_current(self, root: str | None) -> bool:
        """Look at every file an opening in `root` depends on: whether all is as it was, and all of it stands still."""
        base = self.base
        if base.due_s is not None or not unchanged(base.probes):
            return False
        if root is None:
            return True
        project = self.project(root)
        return project is not None and project.due_s is None and unchanged(project.probes)

    def snapshot(
        self, root: str | None, programmatic: tuple[Hook, ...], waiting: Sequence[Waiting] = ()
    ) -> Snapshot:
        """The snapshot of what is in force; the same one as long as nothing changes.

        Args:
            root: The workspace, None without one. One that is not known has no sources.
            programmatic: The hooks of connected clients; pass the same tuple as long as they are the same.
            waiting: Files that did not stand still in time, which the snapshot's problems then tell.
        """
        key = root or NO_PROJECT
        held = self._held.get(key)
        if held is not None and held[0] is programmatic and not waiting:
            return held[1]
        project = self.project(root) if root else None
        snapshot = self._table.get(
            revision=self.revision,
            policy=self.base.policy,
            base=self.base.layer,
            project=project.layer if project else None,
            programmatic=programmatic,
            problems=(*self.base.problems, *map(not_still, waiting)),
            hooks_may_run=self.base.hooks_may_run,
        )
        if not waiting and (root is None or project is not None):
            self._held[key] = (programmatic, snapshot)
        return snapshot

    def waiting(self, root: str | None, *, everything: bool = False) -> list[Waiting]:
        """The files that an opening in `root` waits for; those of all known workspaces with `everything`."""
        projects = [*self.projects.values()] if everything else [self.projects.get(root or NO_PROJECT)]
        found = [*_pending(SETTINGS_SOURCE, self.base.settings)]
        for part in (self.base, *projects):
            if part is not None:
                found += [one for file in part.files for one in _pending(file.source.name, file.examined)]
        return found

    def used(self, root: str) -> None:
        """Note that an execution was opened in a workspace."""
        if root in self.projects:
            self.projects.move_to_end(root)

    def files_to_watch(self) -> frozenset[str]:
        """Every path whose change matters, within `limits.watched_workspaces`."""
        settings = self.base.policy.settings
        paths = {self.base.settings.path}
        for file in self.base.files:
            if file.source.enabled:
                paths.update(file.source.candidates)
        watched = settings.limits.watched_workspaces if settings.projects.enabled else 0
        for project in [*reversed(self.projects.values())][:watched]:
            for file in project.files:
                if file.source.enabled:
                    paths.update(file.source.candidates)
            if project.judgement is not None:
                paths.update(
                    probe.path for probe in project.judgement.probes if not is_missing(probe.signature)
                )
        return frozenset(paths)

    @property
    def degraded(self) -> bool:
        """Whether something is invalid (design rule 4); of a project only where somebody trusted it."""
        trusted = [
            project
            for project in self.projects.values()
            if project.judgement is not None and project.judgement.grant is not None
        ]
        files = [*self.base.files, *(file for project in trusted for file in project.files)]
        return self.base.settings.state is SourceState.INVALID or any(
            file.examined.state is SourceState.INVALID for file in files
        )

    def reports(self) -> tuple[SourceReport, ...]:
        """Every source: managed and user ones, then those of the known projects that have any."""
        return (
            *self.base.layer.sources,
            *(one for project in self.projects.values() for one in project.layer.sources),
        )


def _pending(source: str, examined: Examined[Any]) -> Iterator[Waiting]:
    if examined.pending is not None:
        yield Waiting(source=source, path=examined.path, due_s=examined.pending.due_s)


def not_still(waiting: Waiting) -> ConfigProblem:
    """What an opening is told that waited for the file in vain."""
    return ConfigProblem(
        severity=Severity.WARNING,
        path="",
        message=f"{waiting.source} is being written: it did not stand still for {OPEN_PATIENCE_S * 1000:g} ms, "
        "and what was in force before still is",
        hint="it is read as soon as it stands still; executions that are opened then have it",
        file=waiting.path,
    )
