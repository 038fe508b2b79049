"""One id in the files of both layers, a project's and the user's: allowed, but seldom meant (Chrys dialect 1.8). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hooksd.config.layer import Part
from hooksd.model.hooks import Scope
from hooksd.model.problems import ConfigProblem, Severity


__all__ = ["MAX_NAMED_IDS", "shared_ids"]

MAX_NAMED_IDS: Final = 10
"""Ids in one warning; the others are counted."""


def shared_ids(parts: Iterable[Part]) -> tuple[ConfigProblem, ...]:
    """One warning for each file of a project that has ids of a file of the user's in the same dialect; it names both.

    Only hooks that can run count: nobody is told anything about the text of a project that is not trusted.
    """
    projects: list[Part] = []
    users: list[Part] = []
    for part in parts:
        if part.source is not None and part.ids:
            if part.source.scope is Scope.PROJECT:
                projects.append(part)
            elif part.source.scope is Scope.USER:
                users.append(part)
    return tuple(
        _problem(project, user, common)
        for project in projects
        for user in users
        if project.source is not None and user.source is not None
        if project.source.dialect == user.source.dialect
        if (common := project.ids.keys() & user.ids.keys())
    )


def _problem(project: Part, user: Part, common: set[str]) -> ConfigProblem:
    ids = [name for name in project.ids if name in common]
    first = project.ids[ids[0]]
    named = ", ".join(map(repr, ids[:MAX_NAMED_IDS]))
    if len(ids) > MAX_NAMED_IDS:
        named += f" and {len(ids) - MAX_NAMED_IDS} more"
    subject = f"the id {named} is" if len(ids) == 1 else f"the ids {named} are"
    return ConfigProblem(
        severity=Severity.WARNING,
        path=f"{first.path}.id",
        message=f"{subject} in {user.ids[ids[0]].file} too: both hooks run, the project's first",
        line=first.line,
        hint="a hook of a project replaces none of the user's; other ids would tell the two apart",
        file=first.file,
    )
