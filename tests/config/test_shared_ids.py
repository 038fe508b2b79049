from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from hooksd.config.guards import Policy
from hooksd.config.layer import Part
from hooksd.config.settings import Settings
from hooksd.config.shared_ids import MAX_NAMED_IDS, shared_ids
from hooksd.config.sources import Source
from hooksd.model.hooks import Hook, Scope, Withheld
from hooksd.model.problems import ConfigProblem, ProblemKind, Severity


MakePart = Callable[..., Part]


@pytest.fixture
def make_part(make_hook: Callable[..., Hook]) -> MakePart:
    """The hooks with these ids, in a file of their own."""

    def make(scope: Scope, *ids: str, dialect: str = "chrys", **more: Any) -> Part:
        source = Source(name=f"{scope}-{dialect}", dialect=dialect, scope=scope, candidates=(), agents=("*",))
        hooks = [
            msgspec.structs.replace(make_hook(one), id=one, file=f"/{scope}.yaml", line=at + 4, **more)
            for at, one in enumerate(ids)
        ]
        return Part(source, hooks, Policy(Settings()))

    return make


def test_43_both_files_are_named(make_part: MakePart) -> None:
    project, user = make_part(Scope.PROJECT, "a", "same"), make_part(Scope.USER, "same", "b")

    (problem,) = shared_ids([project, user])

    assert problem == ConfigProblem(
        severity=Severity.WARNING,
        path="same.id",
        message="the id 'same' is in /user.yaml too: both hooks run, the project's first",
        line=5,
        hint=problem.hint,
        file="/project.yaml",
    )
    assert shared_ids([user, project]) == (problem,)


def test_several_are_one_warning_in_the_order_of_the_projects_file(make_part: MakePart) -> None:
    ids = [f"h{at:02}" for at in range(MAX_NAMED_IDS + 2)]
    (problem,) = shared_ids([make_part(Scope.PROJECT, *reversed(ids)), make_part(Scope.USER, *ids)])

    assert problem.message.startswith("the ids 'h11', 'h10', 'h09'")
    assert "'h02' and 2 more are in /user.yaml too" in problem.message
    assert problem.path == "h11.id"


def test_what_is_no_matter(make_part: MakePart, make_hook: Callable[..., Hook]) -> None:
    user = make_part(Scope.USER, "a")
    untrusted = Withheld(kind=ProblemKind.UNTRUSTED, message="no", hint="look", blocks=False)
    broken = ConfigProblem(severity=Severity.ERROR, path="x", message="bad")

    for other in (
        make_part(Scope.PROJECT, "b"),
        make_part(Scope.PROJECT, "a", dialect="bamboo"),
        make_part(Scope.PROJECT, "a", inactive="off"),
        make_part(Scope.PROJECT, "a", load_problem=broken),
        make_part(Scope.PROJECT, "a", withheld=untrusted),
        make_part(Scope.MANAGED, "a"),
        make_part(Scope.USER, "a"),
        Part(None, [make_hook("a", priority=1)], Policy(Settings())),
    ):
        assert shared_ids([other, user]) == ()
    # Hooks that are known by where they stand have no ids.
    assert shared_ids([make_part(Scope.PROJECT, ""), make_part(Scope.USER, "")]) == ()
