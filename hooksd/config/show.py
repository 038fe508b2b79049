"""What `config/show` and `config/reload` tell of what is in force. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from hooksd.config.assemble import SETTINGS_DIALECT, SETTINGS_SOURCE, Base, Project
from hooksd.config.examine import Examined
from hooksd.model.hooks import Scope
from hooksd.model.problems import ConfigProblem
from hooksd.model.sources import Document, SourceReport
from hooksd.protocol.methods.config import ConfigDocument


__all__ = ["shown_documents", "source_problems"]


def shown_documents(base: Base, project: Project | None, revision: int) -> tuple[ConfigDocument, ...]:
    """The texts that are in force: managed and user sources, those of a project, and last `hooksd.toml`."""
    documents = [
        ConfigDocument(
            name=file.source.name,
            dialect=file.source.dialect,
            scope=file.source.scope,
            path=file.examined.path,
            state=file.examined.state,
            revision=revision,
            content=_text(file.examined),
            hooks=_hook_names(file.examined),
        )
        for file in (*base.files, *(project.files if project else ()))
    ]
    settings = base.settings
    documents.append(
        ConfigDocument(
            name=SETTINGS_SOURCE,
            dialect=SETTINGS_DIALECT,
            scope=Scope.USER,
            path=settings.path,
            state=settings.state,
            revision=revision,
            content=_text(settings),
            hooks=(),
        )
    )
    return tuple(documents)


def source_problems(reports: Iterable[SourceReport]) -> list[ConfigProblem]:
    """The problems of sources, each with its file."""
    return [
        problem if problem.file else msgspec.structs.replace(problem, file=report.path)
        for report in reports
        for problem in report.problems
    ]


def _text(examined: Examined[Any]) -> str | None:
    return examined.in_force.text.decode("utf-8", "replace") if examined.in_force else None


def _hook_names(examined: Examined[Document]) -> tuple[str, ...]:
    return tuple(hook.name for hook in examined.in_force.value.hooks) if examined.in_force else ()
