from __future__ import annotations

from typing import Any

import pytest

from hooksd.config.settings import ProjectSettings, Settings, SourceSettings, SourcesSettings
from hooksd.config.sources import ANY_AGENT, Source, base_sources, expand, project_sources
from hooksd.model.hooks import Scope
from hooksd.model.problems import Severity


BOTH: Any = {"bamboo": object(), "chrys": object()}
BAMBOO: Any = {"bamboo": object()}
NO_DEFAULTS = SourcesSettings(defaults=False)
PROJECTS = ProjectSettings(enabled=True)


def base(
    *entries: SourceSettings, dialects: Any = BOTH, env: dict[str, str] | None = None, **more: Any
) -> list[Source]:
    settings = Settings(source=entries, **more)
    return list(
        base_sources(settings, env=env or {}, home="/home/u", config_dir="/cfg/hooksd", dialects=dialects)
    )


def project(*entries: SourceSettings, dialects: Any = BOTH, **more: Any) -> list[Source]:
    return list(project_sources(Settings(source=entries, **more), "/w", dialects=dialects))


def test_the_defaults_in_their_order() -> None:
    assert [(source.name, source.dialect, source.agents, source.candidates) for source in base()] == [
        ("bamboo", "bamboo", ("bamboo",), ("/home/u/.bamboo/hooks.json",)),
        (
            "chrys",
            "chrys",
            ("chrys",),
            (
                "/home/u/.chrys/hooks/hooks.yaml",
                "/home/u/.chrys/hooks/hooks.yml",
                "/home/u/.chrys/hooks/hooks.json",
            ),
        ),
        ("shared-json", "bamboo", ("*",), ("/cfg/hooksd/hooks.json",)),
        ("shared-yaml", "chrys", ("*",), ("/cfg/hooksd/hooks.yaml",)),
    ]
    assert all(source.enabled and source.scope is Scope.USER and not source.problems for source in base())


def test_the_defaults_of_a_project_in_their_order() -> None:
    sources = project(projects=PROJECTS)

    assert [(source.name, source.dialect, source.agents, source.candidates) for source in sources] == [
        (
            "project-chrys",
            "chrys",
            ("chrys",),
            ("/w/.chrys/hooks/hooks.yaml", "/w/.chrys/hooks/hooks.yml", "/w/.chrys/hooks/hooks.json"),
        ),
        ("project-bamboo", "bamboo", ("bamboo",), ("/w/.bamboo/hooks.json",)),
        ("project-json", "bamboo", ("*",), ("/w/.hooksd/hooks.json",)),
        ("project-yaml", "chrys", ("*",), ("/w/.hooksd/hooks.yaml",)),
    ]
    assert all(source.enabled and source.scope is Scope.PROJECT for source in sources)


def test_projects_are_off_unless_switched_on() -> None:
    assert {source.disabled for source in project()} == {
        "hooks of projects are off ([projects] enabled = false)"
    }
    off = project(SourceSettings(name="project-json", enabled=False))[2]
    assert off.disabled == "switched off in hooksd.toml ([[source]] enabled = false)"


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("/data", "/data/hooks.json"),
        ("~/data", "/home/u/data/hooks.json"),
        ("", "/home/u/.bamboo/hooks.json"),
    ],
)
def test_the_data_directory_of_bamboo(value: str, path: str) -> None:
    assert base(env={"BAMBOO_DATA_DIR": value})[0].candidates == (path,)


def test_a_relative_data_directory_is_no_place() -> None:
    (source, *_) = base(env={"BAMBOO_DATA_DIR": "data"})

    assert source.candidates == ("/home/u/.bamboo/hooks.json",)
    (problem,) = source.problems
    assert problem.severity is Severity.WARNING
    assert "BAMBOO_DATA_DIR" in problem.message


def test_an_entry_changes_a_default_and_leaves_it_in_its_place() -> None:
    sources = base(
        SourceSettings(name="team", dialect="bamboo", path="/team.json", scope="managed", agents=("*",)),
        SourceSettings(name="chrys", path="~/hooks.yaml", scope="managed", agents=("chrys", "codex")),
        SourceSettings(name="shared-yaml", dialect="bamboo"),
        SourceSettings(name="bamboo", enabled=False),
        SourceSettings(name="mine", dialect="chrys", path="~/m.yaml"),
    )

    assert [source.name for source in sources] == [
        "bamboo",
        "chrys",
        "shared-json",
        "shared-yaml",
        "team",
        "mine",
    ]
    bamboo, chrys, _, shared_yaml, team, mine = sources
    assert (bamboo.enabled, bamboo.candidates) == (False, ("/home/u/.bamboo/hooks.json",))
    assert (chrys.candidates, chrys.scope, chrys.agents) == (
        ("/home/u/hooks.yaml",),
        Scope.MANAGED,
        ("chrys", "codex"),
    )
    assert (shared_yaml.dialect, shared_yaml.agents) == ("bamboo", (ANY_AGENT,))
    assert (team.scope, team.candidates, team.agents) == (Scope.MANAGED, ("/team.json",), ("*",))
    assert (mine.scope, mine.candidates, mine.agents) == (Scope.USER, ("/home/u/m.yaml",), ("chrys",))


def test_an_entry_moves_a_source_inside_projects() -> None:
    (source,) = project(
        SourceSettings(name="project-json", path=".agents/hooks.json", agents=("bamboo",)),
        projects=PROJECTS,
        sources=NO_DEFAULTS,
    )

    assert (source.name, source.scope) == ("project-json", Scope.PROJECT)
    assert (source.candidates, source.agents) == (("/w/.agents/hooks.json",), ("bamboo",))


def test_without_defaults_only_what_is_named_counts() -> None:
    entries = (
        SourceSettings(name="mine", dialect="bamboo", path="/m.json"),
        SourceSettings(name="shared-json", enabled=True),
    )

    assert [source.name for source in base(*entries, sources=NO_DEFAULTS)] == ["shared-json", "mine"]
    assert base(sources=NO_DEFAULTS) == project(*entries, sources=NO_DEFAULTS) == []


def test_a_dialect_that_is_not_built_in_is_a_problem_of_its_source() -> None:
    default, changed, own = base(
        SourceSettings(name="shared-json", dialect="cursor"),
        SourceSettings(name="mine", dialect="gemini", path="/m.json"),
        SourceSettings(name="chrys"),
        dialects=BAMBOO,
        sources=NO_DEFAULTS,
    )

    # Nobody asked for the default: a machine where Chrys keeps hooks is not broken by that.
    assert default.disabled is not None
    assert "chrys" in default.disabled
    assert default.problems[0].severity is Severity.WARNING
    for source, dialect in ((changed, "cursor"), (own, "gemini")):
        assert source.enabled
        (problem,) = source.problems
        assert problem.severity is Severity.ERROR
        assert dialect in problem.message
    (switched_off,) = base(SourceSettings(name="chrys", enabled=False), dialects=BAMBOO, sources=NO_DEFAULTS)
    assert switched_off.disabled == "switched off in hooksd.toml ([[source]] enabled = false)"


def test_agents() -> None:
    def source(*agents: str) -> Source:
        return Source(name="x", dialect="bamboo", scope=Scope.USER, candidates=("/x",), agents=agents)

    assert source("*").applies_to("whoever")
    assert source("bamboo", "chrys").applies_to("chrys")
    assert not source("bamboo").applies_to("chrys")


@pytest.mark.parametrize(
    ("path", "expanded"), [("~", "/h"), ("~/a", "/h/a"), ("/a/~", "/a/~"), ("~u/a", "~u/a"), ("a", "a")]
)
def test_home(path: str, expanded: str) -> None:
    assert expand(path, "/h") == expanded
