"""What a restart must know."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from hooksd.config import last_good
from hooksd.config.last_good import InForce, LastGood


class Kept(LastGood):
    """With what it tells."""

    def __init__(self, directory: Path) -> None:
        self.told: list[str] = []
        super().__init__(str(directory), self.told.append)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "state")


def copies(kept: Kept) -> list[Path]:
    return sorted(Path(kept._directory).iterdir())


def test_a_text_is_kept(kept: Kept, tmp_path: Path) -> None:
    kept.save("/a", "bamboo", b"one\ntwo\0\xff")

    assert Kept(tmp_path / "state").load("/a", "bamboo") == b"one\ntwo\0\xff"
    assert kept.load("/b", "bamboo") is None
    assert kept.load("/a", "chrys") is None
    assert kept.told == []


def test_copies_are_ours_alone(kept: Kept) -> None:
    kept.save("/a", "bamboo", b"secret")
    (copy,) = copies(kept)

    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(copy.parent.parent.stat().st_mode) == 0o700


def test_the_newest_text_is_kept_and_written_once(kept: Kept) -> None:
    kept.save("/a", "bamboo", b"one")
    kept.save("/a", "bamboo", b"two")
    (copy,) = copies(kept)
    before = copy.stat().st_ino
    kept.save("/a", "bamboo", b"two")

    assert kept.load("/a", "bamboo") == b"two"
    assert copy.stat().st_ino == before


def test_what_was_loaded_is_not_written_again(kept: Kept, tmp_path: Path) -> None:
    kept.save("/a", "bamboo", b"one")
    (copy,) = copies(kept)
    before = copy.stat().st_ino
    again = Kept(tmp_path / "state")
    again.load("/a", "bamboo")
    again.save("/a", "bamboo", b"one")

    assert copy.stat().st_ino == before


def test_a_deleted_source_is_forgotten(kept: Kept) -> None:
    kept.save("/a", "bamboo", b"one")
    kept.forget("/a", "bamboo")
    kept.forget("/never", "bamboo")
    assert kept.load("/a", "bamboo") is None
    kept.save("/a", "bamboo", b"one")
    assert kept.load("/a", "bamboo") == b"one"
    assert kept.told == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-1],
        lambda raw: raw.replace(b"one", b"two"),
        lambda raw: b"",
        lambda raw: b"\xff" + raw,
        lambda raw: b"{}\n" + raw,
        lambda raw: raw.replace(b'"/a"', b'"/b"'),
    ],
)
def test_a_damaged_copy_is_told_once_and_does_not_count(kept: Kept, damage: object) -> None:
    kept.save("/a", "bamboo", b"one")
    (copy,) = copies(kept)
    copy.write_bytes(damage(copy.read_bytes()))  # type: ignore[operator]

    assert kept.load("/a", "bamboo") is None
    assert kept.load("/a", "bamboo") is None
    (told,) = kept.told
    assert "damaged" in told
    assert str(copy) in told


def test_a_copy_that_cannot_be_read_is_told(kept: Kept) -> None:
    kept.save("/a", "bamboo", b"one")
    (copy,) = copies(kept)
    copy.unlink()
    copy.mkdir()
    kept.forget("/a", "bamboo")

    assert kept.load("/a", "bamboo") is None
    assert len(kept.told) == 2
    assert "stays" in kept.told[0]
    assert "cannot be read" in kept.told[1]


def test_a_state_directory_that_cannot_be_written_is_told_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in its place")
    kept = Kept(tmp_path / "state")
    kept.save("/a", "bamboo", b"one")
    kept.save("/b", "bamboo", b"one")
    kept.save_in_force(InForce(revision=1, digest=""))
    kept.save_guards(b"{}")

    assert kept.load("/a", "bamboo") is None
    assert any("the last good copy of /a" in told for told in kept.told)
    assert any("revision" in told for told in kept.told)
    assert any("guarded events" in told for told in kept.told)


def test_a_full_disk_is_told_and_tried_again(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    kept.save("/a", "bamboo", b"one")
    monkeypatch.undo()

    assert "No space left" in kept.told[0]
    kept.save("/a", "bamboo", b"one")
    assert kept.load("/a", "bamboo") == b"one"


def test_only_so_many_copies_are_kept(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_good, "MAX_COPIES", 2)
    for number, path in enumerate(["/a", "/b", "/c"]):
        kept.save(path, "bamboo", b"one")
        os.utime(kept._file(path, "bamboo"), (number, number))

    kept.save("/d", "bamboo", b"one")

    assert [kept.load(path, "bamboo") for path in ("/a", "/b", "/c", "/d")] == [None, None, b"one", b"one"]


def test_copies_that_cannot_be_removed_are_told(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(last_good, "MAX_COPIES", 0)
    monkeypatch.setattr(os, "unlink", refuse)
    kept.save("/a", "bamboo", b"one")

    assert "cannot be removed" in kept.told[0]


def test_the_revision_is_kept(kept: Kept, tmp_path: Path) -> None:
    assert kept.load_in_force() is None
    kept.save_in_force(InForce(revision=7, digest="d"))

    assert Kept(tmp_path / "state").load_in_force() == InForce(revision=7, digest="d")


@pytest.mark.parametrize("text", [b"", b"[]", b'{"revision": "7", "digest": ""}', b"\xff"])
def test_a_damaged_revision_is_told(kept: Kept, text: bytes) -> None:
    kept.save_in_force(InForce(revision=7, digest="d"))
    Path(kept._state_dir, "revision.json").write_bytes(text)

    assert kept.load_in_force() is None
    assert "counting starts at 1 again" in kept.told[0]


def test_a_revision_that_cannot_be_read_is_told(kept: Kept) -> None:
    Path(kept._state_dir, "revision.json").mkdir(parents=True)

    assert kept.load_in_force() is None
    assert "cannot be read" in kept.told[0]


def test_guards_are_kept_where_clients_look(kept: Kept) -> None:
    kept.save_guards(b"[1]")
    path = Path(kept._state_dir, "guards.json")
    before = path.stat().st_ino

    assert path.read_bytes() == b"[1]"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept.save_guards(b"[1]")
    assert path.stat().st_ino == before
    path.chmod(0o644)
    kept.save_guards(b"[1]")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept.save_guards(b"[2]")
    assert path.read_bytes() == b"[2]"


def test_what_killed_daemons_left_behind_is_removed(kept: Kept) -> None:
    kept.save("/a", "bamboo", b"one")
    kept.save_in_force(InForce(revision=3, digest="d"))
    state = Path(kept._state_dir)
    left = [
        state / ".revision.json.0123456789abcdef.tmp",
        Path(kept._directory) / ".abc.0123456789abcdef.tmp",
    ]
    for path in left:
        path.write_bytes(b"half")
        os.utime(path, (0, 0))

    kept.tidy()

    assert [path.exists() for path in left] == [False, False]
    assert kept.load("/a", "bamboo") == b"one"
    assert kept.load_in_force() == InForce(revision=3, digest="d")
    assert kept.told == []


def test_leftovers_that_cannot_be_removed_are_told(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(last_good, "remove_leftovers", refuse)
    kept.tidy()

    assert len(kept.told) == 2
    assert "cannot be removed (Operation not permitted)" in kept.told[0]


def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(kept: Kept) -> None:
    kept.save("/a", "bamboo", b"one")
    (copy,) = copies(kept)
    copy.unlink()
    for path in (copy, Path(kept._state_dir, "revision.json"), Path(kept._state_dir, "guards.json")):
        os.mkfifo(path)

    assert kept.load("/a", "bamboo") is None
    assert kept.load_in_force() is None
    kept.save_guards(b"[]")

    assert Path(kept._state_dir, "guards.json").read_bytes() == b"[]"
    assert [("it is no regular file" in told) for told in kept.told] == [True, True]


@pytest.mark.parametrize("umask", [0, 0o077, 0o777])
def test_whatever_the_umask_the_copies_can_be_written_and_read(kept: Kept, umask: int) -> None:
    before = os.umask(umask)
    try:
        kept.save("/a", "bamboo", b"one")
    finally:
        os.umask(before)

    assert stat.S_IMODE(os.stat(kept._directory).st_mode) == 0o700
    assert kept.load("/a", "bamboo") == b"one"
