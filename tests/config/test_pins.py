"""Right before a start: are the files that a hook names what was granted?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hooksd.config import digests, pins as pins_module
from hooksd.config.pins import PinCheck
from hooksd.model.hooks import Hook, Pins, ShellCommand


GUARD = b"#!/bin/sh\nexit 2\n"


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as steady at once, so that what is remembered is what is tested."""
    monkeypatch.setattr(digests, "STEADY_NS", -1)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    (tmp_path / "p" / "hooks").mkdir(parents=True)
    (tmp_path / "p" / "hooks" / "guard.sh").write_bytes(GUARD)
    return tmp_path / "p"


@pytest.fixture
def pinned(project: Path, make_hook: Callable[..., Hook]) -> Callable[[str], Hook]:
    """A hook with a command, pinned to the guard."""

    def make(command: str = "./hooks/guard.sh") -> Hook:
        files = (("hooks/guard.sh", hashlib.sha256(GUARD).hexdigest()),)
        return msgspec.structs.replace(
            make_hook("a"),
            handler=ShellCommand(command=command, shells=("sh",)),
            pins=Pins(root=str(project), files=files, blocks=True, hint="look"),
        )

    return make


def test_what_was_granted_passes_and_is_remembered(project: Path, pinned: Callable[..., Hook]) -> None:
    check, hook = PinCheck(), pinned()
    assert not check.passes_now(hook, str(project))
    assert check.fault(hook, str(project)) is None
    assert check.passes_now(hook, str(project))
    assert not check.passes_now(hook, str(project / "hooks"))
    assert not check.passes_now(pinned("./hooks/guard.sh x"), str(project))


def test_another_content_is_found_although_the_other_was_remembered(
    project: Path, pinned: Callable[..., Hook]
) -> None:
    check, hook = PinCheck(), pinned()
    check.fault(hook, str(project))
    (project / "hooks" / "guard.sh").write_bytes(GUARD.replace(b"2", b"0"))

    assert not check.passes_now(hook, str(project))
    assert check.fault(hook, str(project)) == "hooks/guard.sh is not what was granted"
    (project / "hooks" / "guard.sh").write_bytes(GUARD)
    assert check.fault(hook, str(project)) is None


def test_a_file_that_is_gone_is_a_fault(project: Path, pinned: Callable[..., Hook]) -> None:
    check, hook = PinCheck(), pinned("[ -x hooks/guard.sh ] && hooks/guard.sh || true")
    assert check.fault(hook, str(project)) is None
    (project / "hooks" / "guard.sh").unlink()

    assert not check.passes_now(hook, str(project))
    assert check.fault(hook, str(project)) == "hooks/guard.sh is not there any more"


def test_a_file_that_came_to_be_is_a_fault(project: Path, pinned: Callable[..., Hook]) -> None:
    check, hook = PinCheck(), pinned("hooks/guard.sh local.sh")
    assert check.fault(hook, str(project)) is None
    (project / "local.sh").write_text("exit 0")

    assert not check.passes_now(hook, str(project))
    assert check.fault(hook, str(project)) == "local.sh was not there when the project was granted trust"


@pytest.mark.parametrize("where", ["hooks", "."])
def test_a_link_is_what_it_leads_to(project: Path, pinned: Callable[..., Hook], where: str) -> None:
    """A file, or its directory, replaced by a symbolic link to a copy, and the link then turned elsewhere."""
    outside = project.parent / "outside"
    (outside / "hooks").mkdir(parents=True)
    (outside / "hooks" / "guard.sh").write_bytes(GUARD)
    check, hook = PinCheck(), pinned()
    link = project / "hooks" if where == "hooks" else project / "hooks" / "guard.sh"
    target = outside / "hooks" if where == "hooks" else outside / "hooks" / "guard.sh"
    if where == "hooks":
        (project / "hooks").rename(project / "old")
    else:
        link.unlink()
    link.symlink_to(target)
    assert check.fault(hook, str(project)) is None
    (outside / "evil").mkdir()
    (outside / "evil" / "guard.sh").write_text("exit 0")
    link.unlink()
    link.symlink_to(outside / "evil" if where == "hooks" else outside / "evil" / "guard.sh")

    assert not check.passes_now(hook, str(project))
    assert check.fault(hook, str(project)) == "hooks/guard.sh is not what was granted"


def test_a_directory_elsewhere_has_other_files_by_the_same_names(
    project: Path, pinned: Callable[..., Hook]
) -> None:
    elsewhere = project.parent / "elsewhere"
    (elsewhere / "hooks").mkdir(parents=True)
    check, hook = PinCheck(), pinned()
    assert check.fault(hook, str(elsewhere)) is None
    (elsewhere / "hooks" / "guard.sh").write_text("exit 0")

    assert not check.passes_now(hook, str(elsewhere))
    assert "outside of the project" in str(check.fault(hook, str(elsewhere)))


def test_a_directory_in_the_project_is_looked_at_as_the_process_will_see_it(
    project: Path, pinned: Callable[..., Hook]
) -> None:
    check = PinCheck()
    assert check.fault(pinned("./guard.sh"), str(project / "hooks")) is None
    (project / "sub" / "hooks").mkdir(parents=True)
    (project / "sub" / "hooks" / "guard.sh").write_bytes(GUARD)

    assert "sub/hooks/guard.sh was not there" in str(check.fault(pinned(), str(project / "sub")))


def test_what_lies_outside_is_not_covered(project: Path, pinned: Callable[..., Hook]) -> None:
    tool = project.parent / "tool.sh"
    tool.write_text("one")
    check, hook = PinCheck(), pinned(f"{tool} ../tool.sh")
    assert check.fault(hook, str(project)) is None
    tool.write_text("two")
    assert check.fault(hook, str(project)) is None


def test_a_file_that_others_can_write_is_a_fault(project: Path, pinned: Callable[..., Hook]) -> None:
    (project / "hooks" / "guard.sh").chmod(0o777)

    assert "could be changed by others" in str(PinCheck().fault(pinned(), str(project)))


def test_a_file_that_changed_just_now_is_not_remembered(
    project: Path, pinned: Callable[..., Hook], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "STEADY_NS", 10**15)
    check, hook = PinCheck(), pinned()

    assert check.fault(hook, str(project)) is None
    assert not check.passes_now(hook, str(project))


def test_only_so_many_checks_are_remembered(
    project: Path, pinned: Callable[..., Hook], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pins_module, "MAX_CHECKED", 2)
    check, hooks = PinCheck(), [pinned() for _ in range(3)]
    for hook in hooks:
        check.fault(hook, str(project))

    assert [check.passes_now(hook, str(project)) for hook in hooks] == [False, False, True]


def test_a_hook_without_pins_cannot_be_checked(make_hook: Callable[..., Hook]) -> None:
    with pytest.raises(TypeError, match="no pins"):
        PinCheck().fault(make_hook("a"), "/")
