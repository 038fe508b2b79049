"""Workspaces: where they really are, and who may say that their hooks may run."""

from __future__ import annotations

from pathlib import Path

import pytest

from hooksd.config import projects
from hooksd.config.projects import Roots, Trust, admission, trust_nobody
from hooksd.model.sources import SourceState


@pytest.mark.parametrize(
    ("trust", "state", "told"),
    [
        (Trust.TRUSTED, SourceState.LOADED, []),
        (Trust.UNTRUSTED, SourceState.UNTRUSTED, ["this project is not trusted: its hooks are not loaded"]),
        (
            Trust.CHANGED,
            SourceState.CHANGED,
            ["this project was trusted and has changed since: its hooks are not loaded"],
        ),
    ],
)
def test_only_trusted_content_is_admitted(trust: Trust, state: SourceState, told: list[str]) -> None:
    asked: list[tuple[str, bytes]] = []

    def gate(directory: str, content: bytes) -> Trust:
        asked.append((directory, content))
        return trust

    found, problems = admission(gate, "/work", b"text")

    assert asked == [("/work", b"text")]
    assert found is state
    assert [problem.message for problem in problems] == told
    assert all("hooksd trust show /work" in str(problem.hint) for problem in problems)


def test_nobody_is_trusted_without_a_grant() -> None:
    assert trust_nobody("/work", b"text") is Trust.UNTRUSTED


@pytest.mark.parametrize("workspace", ["", "relative", "zero\0byte"])
def test_what_is_no_workspace(workspace: str) -> None:
    assert Roots().root(workspace) is None
    assert Roots().remembered(workspace) is None


def test_a_workspace_is_known_by_its_real_directory(tmp_path: Path) -> None:
    roots = Roots()
    (tmp_path / "real").mkdir()
    (tmp_path / "other").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real")
    assert roots.root(str(link)) == str(tmp_path / "real")
    link.unlink()
    link.symlink_to("other")
    assert roots.remembered(str(link)) == str(tmp_path / "real")
    assert roots.root(str(link)) == str(tmp_path / "other")
    assert roots.remembered(str(link)) == str(tmp_path / "other")


def test_a_workspace_need_not_exist(tmp_path: Path) -> None:
    roots = Roots()
    (tmp_path / "link").symlink_to("none")

    assert roots.root(f"{tmp_path}/link/deeper") == f"{tmp_path}/none/deeper"
    (tmp_path / "none").mkdir()
    assert roots.root(f"{tmp_path}/link/deeper") == f"{tmp_path}/none/deeper"


def test_only_so_many_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "MAX_WORKSPACES", 2)
    roots = Roots()
    for number in range(5):
        roots.root(f"{tmp_path}/{number}")

    assert len(roots._known) <= 2
