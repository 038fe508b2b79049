"""Workspaces: where they really are."""

from __future__ import annotations

from pathlib import Path

import pytest

from hooksd.config import projects
from hooksd.config.projects import Roots


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
