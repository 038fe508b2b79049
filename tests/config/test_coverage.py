"""What trust in a project covers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hooksd.config import coverage as coverage_module
from hooksd.config.coverage import Coverage, HooksText, cover
from hooksd.config.digests import FileDigests
from hooksd.dialects import DIALECTS
from hooksd.model.hooks import Scope
from hooksd.model.sources import Origin
from hooksd.protocol.methods.trust import TrustRole


Look = Callable[..., Coverage]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    (tmp_path / "p" / "hooks").mkdir(parents=True)
    return tmp_path / "p"


@pytest.fixture
def look(project: Path) -> Look:
    """The coverage of a project with these handlers, each for another event."""

    def look(*handlers: Any, source: str = "project-bamboo") -> Coverage:
        events = ("PreToolUse", "PostToolUse", "Stop", "SessionEnd")
        section: dict[str, Any] = {"enabled": True}
        for event, handler in zip(events, handlers, strict=False):
            one = {"type": "command", "command": handler} if isinstance(handler, str) else handler
            section[event] = [{"hooks": [one]}]
        text = json.dumps({"lifecycle_hooks": section}).encode()
        path = ".bamboo/hooks.json"
        origin = Origin(source=source, scope=Scope.PROJECT, file=f"{project}/{path}")
        document = DIALECTS["bamboo"].read(text, origin)
        assert document.usable
        hooks = HooksText(source=source, dialect="bamboo", path=path, text=text, document=document)
        return cover(str(project), [hooks], DIALECTS, FileDigests())

    return look


def write(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o700) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def scripts(coverage: Coverage) -> list[str]:
    return [path for path, _ in coverage.scripts]


def test_hooks_files_and_what_they_name_are_covered(project: Path, look: Look) -> None:
    for name in ("hooks/a.sh", "hooks/b.js", "rules.txt", "not-named.sh"):
        write(project / name)
    found = look("./hooks/a.sh -r rules.txt", {"type": "script", "path": "hooks/b.js"}, "hooks/a.sh")

    assert [(file.path, file.role) for file in found.files] == [
        (".bamboo/hooks.json", TrustRole.HOOKS),
        ("hooks/a.sh", TrustRole.SCRIPT),
        ("hooks/b.js", TrustRole.SCRIPT),
        ("rules.txt", TrustRole.SCRIPT),
    ]
    assert found.problems == ()
    assert sorted(found.named.values()) == [("hooks/a.sh",), ("hooks/a.sh", "rules.txt"), ("hooks/b.js",)]


def test_what_lies_elsewhere_is_not_covered(project: Path, look: Look) -> None:
    outside = write(project.parent / "tool.sh")
    (project / "directory").mkdir()

    assert scripts(look(f"{outside} ../tool.sh directory none.sh /bin/sh")) == []


def test_a_link_out_of_the_project_is_covered_by_what_it_leads_to(project: Path, look: Look) -> None:
    outside = write(project.parent / "tool.sh")
    (project / "tool.sh").symlink_to(outside)
    (project / "tools").symlink_to("..")
    before = look("tool.sh", "tools/tool.sh")
    assert scripts(before) == ["tool.sh", "tools/tool.sh"]
    write(outside, "other")
    assert look("tool.sh", "tools/tool.sh").digest != before.digest


@pytest.mark.parametrize(
    "change",
    [
        lambda project: write(project / "hooks" / "a.sh", "other"),
        lambda project: (project / "hooks" / "a.sh").unlink(),
        lambda project: write(project / "new.sh"),
    ],
)
def test_the_digest_is_over_contents_and_names(
    project: Path, look: Look, change: Callable[[Path], object]
) -> None:
    write(project / "hooks" / "a.sh")
    before = look("hooks/a.sh new.sh")
    assert look("hooks/a.sh new.sh").digest == before.digest
    change(project)
    assert look("hooks/a.sh new.sh").digest != before.digest


def test_the_digest_is_over_the_hooks_and_who_reads_them(project: Path, look: Look) -> None:
    assert len({look("a").digest, look("b").digest, look("a", source="project-json").digest}) == 3


def test_an_unnamed_file_changes_nothing(project: Path, look: Look) -> None:
    before = look("true")
    write(project / "other.sh")
    assert look("true").digest == before.digest


def test_what_to_look_at_includes_names_that_are_no_file_yet(project: Path, look: Look) -> None:
    write(project / "a.sh")
    probes = {probe.path for probe in look("./a.sh missing.sh").probes}

    assert {f"{project}/a.sh", f"{project}/./a.sh", f"{project}/missing.sh"} <= probes


def test_what_others_can_write_is_a_problem(project: Path, look: Look) -> None:
    write(project / "a.sh", mode=0o777)
    problem = look("./a.sh").problems[0]

    assert "could be changed by others" in problem.message
    assert problem.file == f"{project}/a.sh"
    assert "chmod" in str(problem.hint)


def test_too_much_is_a_problem(project: Path, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        write(project / f"{number}.sh")
    monkeypatch.setattr(coverage_module, "MAX_COVERED_FILES", 2)
    assert look("0.sh 1.sh").problems == ()
    problem = look("0.sh 1.sh 2.sh").problems[0]
    assert "MAX_COVERED_FILES" in problem.message
    assert problem.path == "lifecycle_hooks.PreToolUse[0].hooks[0]"
    monkeypatch.setattr(coverage_module, "MAX_WORDS", 3)
    assert "MAX_WORDS" in look("a b c d").problems[0].message
    monkeypatch.setattr(coverage_module, "MAX_PROBED", 1)
    assert len(look("x y").probes) == 1
