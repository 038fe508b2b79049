"""Which configuration files there are, whose they are, and in which order they count.

Pure: environment, home and directories are arguments, and whether a file exists is not asked here. The rules are those
of design.md, "Configuration sources".
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from hooksd.config.settings import Settings, SourceSettings
from hooksd.dialects import DIALECTS
from hooksd.dialects.base import Dialect
from hooksd.model.hooks import Scope
from hooksd.model.problems import ConfigProblem, Severity


__all__ = [
    "ANY_AGENT",
    "DEFAULT_SOURCES",
    "DefaultSource",
    "Source",
    "base_sources",
    "expand",
    "project_sources",
]

ANY_AGENT = "*"
"""In `agents`: the source applies to the executions of every agent."""

PLANNED_DIALECTS = ("bamboo", "chrys", "claude", "codex", "gemini", "cursor", "copilot")
"""Words that mean a dialect. One that is not built in yet is a problem of the source that wants it, not of the file."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration file that may be there.

    Attributes:
        name: Unique; part of the names of its hooks.
        dialect: The word of the dialect that reads it; see `problems` for one that is not built in.
        scope: Whose it is, and so its place in the order of a plan.
        candidates: Absolute paths; the first one that exists is the source, the others do not count then.
        agents: The agents whose executions it applies to; `ANY_AGENT` is every one.
        disabled: Why it is not to be read; None when it is.
        problems: What is wrong with the source itself. It is told where one of the candidates exists; with an error
            among them the source cannot be read.
    """

    name: str
    dialect: str
    scope: Scope
    candidates: tuple[str, ...]
    agents: tuple[str, ...]
    disabled: str | None = None
    problems: tuple[ConfigProblem, ...] = ()

    @property
    def enabled(self) -> bool:
        """Whether it is to be read."""
        return self.disabled is None

    def applies_to(self, agent: str) -> bool:
        """Whether its hooks run for the executions of `agent`."""
        return ANY_AGENT in self.agents or agent in self.agents


class DefaultSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source that is there without being configured. Its paths are relative to `root`."""

    name: str
    dialect: str
    root: str
    """`bamboo` (`$BAMBOO_DATA_DIR`, else `~/.bamboo`), `home`, `config` (hooksd's own directory) or `workspace`."""
    paths: tuple[str, ...]
    shared: bool = False
    """Applies to every agent, not only to that of its dialect."""

    @property
    def is_project(self) -> bool:
        """Whether it lies in a workspace."""
        return self.root == "workspace"


_CHRYS_FILES = ("hooks/hooks.yaml", "hooks/hooks.yml", "hooks/hooks.json")

DEFAULT_SOURCES: tuple[DefaultSource, ...] = (
    DefaultSource(name="bamboo", dialect="bamboo", root="bamboo", paths=("hooks.json",)),
    DefaultSource(
        name="chrys", dialect="chrys", root="home", paths=tuple(f".chrys/{name}" for name in _CHRYS_FILES)
    ),
    DefaultSource(name="shared-json", dialect="bamboo", root="config", paths=("hooks.json",), shared=True),
    DefaultSource(name="shared-yaml", dialect="chrys", root="config", paths=("hooks.yaml",), shared=True),
    DefaultSource(
        name="project-chrys",
        dialect="chrys",
        root="workspace",
        paths=tuple(f".chrys/{name}" for name in _CHRYS_FILES),
    ),
    DefaultSource(name="project-bamboo", dialect="bamboo", root="workspace", paths=(".bamboo/hooks.json",)),
    DefaultSource(
        name="project-json", dialect="bamboo", root="workspace", paths=(".hooksd/hooks.json",), shared=True
    ),
    DefaultSource(
        name="project-yaml", dialect="chrys", root="workspace", paths=(".hooksd/hooks.yaml",), shared=True
    ),
)
"""The default sources, in their order."""


def base_sources(
    settings: Settings,
    *,
    env: Mapping[str, str],
    home: str,
    config_dir: str,
    dialects: Mapping[str, Dialect] = DIALECTS,
) -> tuple[Source, ...]:
    """The managed and user sources: the defaults in their order, then `[[source]]` entries in file order.

    Args:
        settings: Decide which defaults there are, what is changed about them and what comes on top.
        env: The daemon's environment; `BAMBOO_DATA_DIR` counts.
        home: The daemon's home directory, absolute.
        config_dir: The directory of hooksd's own configuration, absolute.
        dialects: Those that are built in.
    """
    data_dir, fault = _bamboo_data_dir(env, home)
    roots = {"bamboo": data_dir, "home": home, "config": config_dir}
    entries = {entry.name: entry for entry in settings.source}
    sources = []
    for default in DEFAULT_SOURCES:
        entry = entries.pop(default.name, None)
        if default.is_project or not (entry or settings.sources.defaults):
            continue
        candidates = tuple(f"{roots[default.root]}/{path}" for path in default.paths)
        problems = fault if default.root == "bamboo" else ()
        sources.append(_default(default, entry, candidates, dialects, home=home, problems=problems))
    sources += [_configured(entry, dialects, home) for entry in settings.source if entry.name in entries]
    return tuple(sources)


def project_sources(
    settings: Settings, workspace: str, *, dialects: Mapping[str, Dialect] = DIALECTS
) -> tuple[Source, ...]:
    """The sources of one workspace (an absolute path), in their order; all are disabled unless projects are enabled."""
    entries = {entry.name: entry for entry in settings.source}
    sources = []
    for default in DEFAULT_SOURCES:
        entry = entries.get(default.name)
        if not default.is_project or not (entry or settings.sources.defaults):
            continue
        candidates = tuple(f"{workspace}/{path}" for path in default.paths)
        source = _default(default, entry, candidates, dialects, workspace=workspace)
        if source.enabled and not settings.projects.enabled:
            source = msgspec.structs.replace(
                source, disabled="hooks of projects are off ([projects] enabled = false)"
            )
        sources.append(source)
    return tuple(sources)


def expand(path: str, home: str) -> str:
    """`path` with a leading `~` replaced by `home`."""
    if path == "~" or path.startswith("~/"):
        return home + path[1:]
    return path


def _default(
    default: DefaultSource,
    entry: SourceSettings | None,
    candidates: tuple[str, ...],
    dialects: Mapping[str, Dialect],
    *,
    home: str = "",
    workspace: str = "",
    problems: tuple[ConfigProblem, ...] = (),
) -> Source:
    """The default as it is, or as an entry with its name changes it. `problems` are those of its own place."""
    changed = entry or SourceSettings(name=default.name)
    dialect = changed.dialect or default.dialect
    if changed.path is not None:
        candidates = (f"{workspace}/{changed.path}" if workspace else expand(changed.path, home),)
        problems = ()
    disabled = _switched_off(changed)
    if dialect not in dialects:
        if changed.dialect:
            problems = (_not_built_in(dialect, Severity.ERROR),)
        else:
            # Nobody asked for it: a machine where another agent keeps hooks is not thereby broken.
            problems = (_not_built_in(dialect, Severity.WARNING),)
            disabled = disabled or f"the dialect {dialect} is not built in yet"
    return Source(
        name=default.name,
        dialect=dialect,
        scope=Scope.PROJECT if default.is_project else Scope(changed.scope or Scope.USER),
        candidates=candidates,
        agents=changed.agents or ((ANY_AGENT,) if default.shared else (dialect,)),
        disabled=disabled,
        problems=problems,
    )


def _configured(entry: SourceSettings, dialects: Mapping[str, Dialect], home: str) -> Source:
    """A `[[source]]` of its own; `settings_file` made sure of its dialect and path."""
    dialect, path = entry.dialect or "", entry.path or ""
    return Source(
        name=entry.name,
        dialect=dialect,
        scope=Scope(entry.scope or Scope.USER),
        candidates=(expand(path, home),),
        agents=entry.agents or (dialect,),
        disabled=_switched_off(entry),
        problems=() if dialect in dialects else (_not_built_in(dialect, Severity.ERROR),),
    )


def _switched_off(entry: SourceSettings) -> str | None:
    return "switched off in hooksd.toml ([[source]] enabled = false)" if entry.enabled is False else None


def _bamboo_data_dir(env: Mapping[str, str], home: str) -> tuple[str, tuple[ConfigProblem, ...]]:
    """Where Bamboo keeps its files, and what is wrong with what the environment says about it."""
    usual = f"{home}/.bamboo"
    given = expand(env.get("BAMBOO_DATA_DIR") or usual, home)
    if os.path.isabs(given):
        return given, ()
    problem = ConfigProblem(
        severity=Severity.WARNING,
        path="",
        message=f"BAMBOO_DATA_DIR is {given!r}, which is relative to where Bamboo runs; {usual} is read instead",
        hint="start the daemon with an absolute BAMBOO_DATA_DIR, or give the path in a [[source]] named bamboo",
    )
    return usual, (problem,)


def _not_built_in(dialect: str, severity: Severity) -> ConfigProblem:
    return ConfigProblem(
        severity=severity,
        path="",
        message=f"the dialect {dialect} is not built into this version of hooksd; none of these hooks run",
        hint="switch the source off with enabled = false, or use a version that has the dialect",
    )
