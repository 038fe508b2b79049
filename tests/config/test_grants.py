"""Grants on disk: what counts, what does not, and whose they are."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import msgspec
import pytest

from hooksd.config import grants as grants_module
from hooksd.config.grants import (
    DirectoryIdentity,
    Grant,
    GrantDamaged,
    GrantedFile,
    Grants,
    identify_directory,
)
from hooksd.model.errors import HooksdError
from hooksd.protocol.methods.trust import TrustRole


HOOKS = GrantedFile(
    path=".bamboo/hooks.json",
    role=TrustRole.HOOKS,
    sha256="s",
    size_bytes=3,
    text=b"{}\xff",
    source="project-bamboo",
    dialect="bamboo",
)


def grant(root: str = "/p", **more: object) -> Grant:
    here = DirectoryIdentity(device=1, inode=2, boot="b")
    return msgspec.structs.replace(
        Grant(root=root, identity=here, granted_at=1.5, digest="d", files=(HOOKS,)), **more
    )


class Kept:
    """Grants in a state directory, and what they told."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.told: list[str] = []
        self.grants = self.again()

    def again(self) -> Grants:
        return Grants(str(self.state), self.told.append)

    @property
    def file(self) -> Path:
        return next((self.state / "trust").iterdir())


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "state")


def test_a_grant_survives_a_restart(kept: Kept) -> None:
    assert kept.grants.get("/p") is None
    kept.grants.save(grant())

    assert kept.grants.get("/p") == grant()
    assert kept.again().get("/p") == grant()
    assert kept.again().get("/P") is None
    assert list(kept.again().all()) == [grant()]
    assert kept.told == []
    assert stat.S_IMODE(kept.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.file.parent.stat().st_mode) == 0o700


def test_a_grant_replaces_an_earlier_one_and_can_be_taken_back(kept: Kept) -> None:
    kept.grants.save(grant())
    kept.grants.save(grant(digest="other"))
    assert [one.digest for one in kept.grants.all() if isinstance(one, Grant)] == ["other"]
    assert kept.grants.remove("/p")
    assert not kept.grants.remove("/p")
    assert kept.grants.get("/p") is None
    assert kept.again().get("/p") is None


def test_what_is_remembered_can_be_read_afresh(kept: Kept) -> None:
    kept.grants.save(grant())
    kept.file.unlink()
    assert kept.grants.get("/p") is not None
    kept.grants.forget_remembered()
    assert kept.grants.get("/p") is None


def damage(how: str, file: Path) -> None:
    raw = file.read_bytes()
    match how:
        case "cut":
            file.write_bytes(raw[:-1])
        case "changed":
            file.write_bytes(raw.replace(b'"digest":"d"', b'"digest":"e"'))
        case "empty":
            file.write_bytes(b"")
        case "nonsense":
            file.write_bytes(b"\xff\xfe no json\n{}")
        case "typing":
            body = b'{"root":"/p"}'
            header = {"root": "/p", "sha256": grants_module._digest(body)}
            file.write_bytes(msgspec.json.encode(header) + b"\n" + body)
        case "others can read":
            file.chmod(0o640)
        case "link":
            file.rename(file.with_suffix(".real"))
            file.symlink_to(file.with_suffix(".real"))
        case "directory":
            file.unlink()
            file.mkdir(mode=0o700)
        case "pipe":
            file.unlink()
            os.mkfifo(file, 0o600)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("cut", "is damaged"),
        ("changed", "is damaged"),
        ("empty", "is damaged"),
        ("nonsense", "is damaged"),
        ("typing", "is damaged"),
        ("others can read", "not ours alone"),
        ("link", "symbolic link"),
        ("directory", "no regular file"),
        ("pipe", "no regular file"),
    ],
)
def test_a_damaged_grant_is_told_and_grants_nothing(kept: Kept, how: str, says: str) -> None:
    kept.grants.save(grant())
    damage(how, kept.file)
    again = kept.again()

    assert again.get("/p") is None
    assert says in kept.told[0]
    assert "/p" in kept.told[0]
    assert says in str(again.damage("/p"))
    assert [says in str(one) for one in again.all() if isinstance(one, GrantDamaged)] == [True]
    again.get("/p")
    again.forget_remembered()
    again.get("/p")
    assert len(kept.told) == 1


def test_a_grant_of_another_owner_grants_nothing(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.grants.save(grant())
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    assert kept.again().get("/p") is None


def test_a_grant_that_cannot_be_opened_grants_nothing(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.grants.save(grant())

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "open", refuse)
    assert kept.again().get("/p") is None
    assert "Input/output error" in kept.told[0]


def test_a_grant_in_the_place_of_another_grants_nothing(kept: Kept) -> None:
    """Copied, it would carry trust to where nobody granted it."""
    kept.grants.save(grant("/trusted"))
    raw = kept.file.read_bytes()
    kept.grants.save(grant("/evil"))
    for file in (kept.state / "trust").iterdir():
        file.write_bytes(raw)
    again = kept.again()

    assert again.get("/trusted") is not None
    assert again.get("/evil") is None
    assert "another directory" in kept.told[0]


def test_a_damaged_grant_can_be_taken_back(kept: Kept) -> None:
    kept.grants.save(grant())
    damage("cut", kept.file)

    assert kept.again().remove("/p")
    assert kept.again().damage("/p") is None


def test_grants_are_bounded(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants_module, "MAX_GRANTS", 2)
    kept.grants.save(grant("/a"))
    kept.grants.save(grant("/b"))
    kept.grants.save(grant("/b", digest="again"))
    with pytest.raises(HooksdError, match="MAX_GRANTS"):
        kept.grants.save(grant("/c"))
    for root in ("/d", "/e", "/f"):
        kept.grants.get(root)
    assert len(kept.grants._known) <= 2
    monkeypatch.setattr(grants_module, "MAX_GRANT_BYTES", 10)
    with pytest.raises(HooksdError, match="MAX_GRANT_BYTES"):
        kept.grants.save(grant("/a"))


def test_a_grant_that_vanishes_meanwhile_is_none(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept.grants, "_paths", lambda: iter([str(kept.state / "none.grant")]))

    assert list(kept.grants.all()) == []


def test_a_directory_of_grants_that_cannot_be_read_is_told(kept: Kept) -> None:
    kept.state.mkdir()
    (kept.state / "trust").write_text("")

    assert list(kept.grants.all()) == []
    assert "cannot be read" in kept.told[0]


# ----------------------------------------------------------------------------------------------------------------------
# Which directory it is


def test_a_directory_is_known_by_what_lies_there(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "f").write_text("")
    (tmp_path / "link").symlink_to("a")
    before = identify_directory(str(tmp_path / "a"))
    assert before is not None
    assert before.is_same(before)
    assert identify_directory(str(tmp_path / "f")) is None
    assert identify_directory(str(tmp_path / "none")) is None
    assert identify_directory(str(tmp_path / "link")) is None
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").mkdir()
    after = identify_directory(str(tmp_path / "a"))
    assert after is not None
    assert not before.is_same(after)


@pytest.mark.parametrize(
    ("granted", "now", "same"),
    [
        ((1, 2, "boot"), (1, 2, "boot"), True),
        ((1, 2, "boot"), (1, 3, "boot"), False),
        ((1, 2, "boot"), (9, 2, "boot"), False),
        # Many file systems get another device number at each boot.
        ((1, 2, "boot"), (9, 2, "next"), True),
        ((1, 2, "boot"), (9, 3, "next"), False),
        ((1, 2, ""), (9, 2, ""), True),
    ],
)
def test_a_device_counts_within_one_boot(
    granted: tuple[int, int, str], now: tuple[int, int, str], same: bool
) -> None:
    def identity(one: tuple[int, int, str]) -> DirectoryIdentity:
        return DirectoryIdentity(device=one[0], inode=one[1], boot=one[2])

    assert identity(granted).is_same(identity(now)) is same


def test_a_system_that_does_not_tell_its_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants_module, "_BOOT_ID", str(tmp_path / "none"))
    found = identify_directory(str(tmp_path))

    assert found is not None
    assert found.boot == ""
