"""Reading one file safely: what is refused, what is noticed."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from hooksd.config import files
from hooksd.config.files import MAX_FILE_BYTES, follow, is_missing, read_file, sign, signed_times


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving files away takes root")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hooks.json"
    path.write_bytes(b"{}")
    path.chmod(0o600)
    tmp_path.chmod(0o700)
    return path


def read(path: Path | str) -> files.Reading:
    _, directories = follow(str(path))
    return read_file(str(path), sign(str(path), directories), directories)


def refusal(path: Path | str) -> str:
    reading = read(path)

    assert reading.file is None
    assert reading.problem is not None
    assert not reading.changed
    return reading.problem.describe()


def test_a_regular_file_is_read(file: Path) -> None:
    reading = read(file)

    assert reading.problem is None
    assert reading.file is not None
    assert reading.file.data == b"{}"


def test_a_signature_tells_versions_apart(file: Path) -> None:
    before = sign(str(file), ())
    file.write_bytes(b"{ }")

    assert before != sign(str(file), ())
    assert before[2] == 2


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    for path in ("none", "no/such/directory", "file/below", "zero\0byte", "surrogate\udc80"):
        signature = sign(f"{tmp_path}/{path}", ())
        assert is_missing(signature)
        assert signed_times(signature) is None


def test_a_signature_has_the_directories(file: Path) -> None:
    _, directories = follow(str(file))
    before = sign(str(file), directories)
    file.parent.chmod(0o755)

    assert directories == (str(file.parent),)
    assert before != sign(str(file), directories)


def test_a_directory_that_is_gone_changes_the_signature_but_the_file_is_not_missing(file: Path) -> None:
    signature = sign(str(file), (f"{file.parent}/none",))

    assert not is_missing(signature)
    assert signature[-3:] == (-errno.ENOENT, 0, 0)


def test_a_link_is_followed_and_both_directories_count(file: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    link = there / "link.json"
    link.symlink_to(file)

    assert follow(str(link)) == (str(file), (str(there), str(tmp_path)))
    assert read(link).file is not None


def test_a_linked_directory_counts_once(file: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(tmp_path)

    assert follow(f"{tmp_path}/linked/hooks.json") == (str(file), (str(tmp_path),))


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/socket")

        assert "a named pipe" in refusal(tmp_path / "pipe")
        assert "a directory" in refusal(tmp_path / "directory")
        assert "a socket" in refusal(tmp_path / "socket")
        assert "a device" in refusal("/dev/null")


def test_a_pipe_put_in_place_at_the_last_moment_holds_nobody_up(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_open = os.open

    def swap_and_open(path: str, flags: int) -> int:
        file.unlink()
        os.mkfifo(file)
        return really_open(path, flags)

    signature = sign(str(file), ())
    monkeypatch.setattr(os, "open", swap_and_open)

    assert read_file(str(file), signature, ()).changed


def test_a_file_that_is_too_long_is_refused_with_the_limit(file: Path) -> None:
    os.truncate(file, MAX_FILE_BYTES + 1)

    assert str(MAX_FILE_BYTES) in refusal(file)


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    assert "circle" in refusal(tmp_path / "a")


def test_a_file_that_may_not_be_read_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    signature = sign(str(file), ())
    monkeypatch.setattr(os, "open", refuse)
    reading = read_file(str(file), signature, ())

    assert reading.problem is not None
    assert "Permission denied" in reading.problem.message
    assert "readable" in str(reading.problem.hint)


def test_a_broken_disk_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, size: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    signature = sign(str(file), ())
    monkeypatch.setattr(os, "read", fail)
    reading = read_file(str(file), signature, ())

    assert reading.problem is not None
    assert os.strerror(errno.EIO) in reading.problem.message


def test_a_file_that_vanishes_has_changed(file: Path) -> None:
    signature = sign(str(file), ())
    file.unlink()

    assert read_file(str(file), signature, ()).changed


@pytest.mark.parametrize("change", [b"", b"{}}", b"[]"], ids=["shrunk", "grown", "rewritten"])
def test_a_file_that_changes_while_it_is_read_is_not_taken(
    file: Path, change: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_read = os.read

    def change_and_read(descriptor: int, size: int) -> bytes:
        data = really_read(descriptor, size)
        file.write_bytes(change)
        os.utime(file, ns=(1, 1))
        return data

    signature = sign(str(file), ())
    monkeypatch.setattr(os, "read", change_and_read)

    assert read_file(str(file), signature, ()).changed


def test_another_file_in_its_place_is_not_taken(file: Path) -> None:
    signature = sign(str(file), ())
    other = file.with_name("other")
    other.write_bytes(b"[]")
    other.rename(file)

    assert read_file(str(file), signature, ()).changed


# -- who may write


@pytest.mark.parametrize("mode", [0o602, 0o666, 0o777])
def test_a_file_that_everyone_can_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)

    assert "writable by everyone" in refusal(file)
    assert f"chmod go-w {file}" in refusal(file)


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_directory_that_everyone_can_write_is_refused(file: Path, mode: int) -> None:
    file.parent.chmod(mode)

    assert f"its directory {file.parent} is writable by everyone" in refusal(file)


def test_the_directory_of_a_link_counts_too(file: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o777)
    (there / "link.json").symlink_to(file)

    assert str(there) in refusal(there / "link.json")


@as_root
def test_a_file_of_somebody_else_is_refused(file: Path) -> None:
    os.chown(file, 54321, -1)

    assert "belongs to uid 54321" in refusal(file)


@as_root
def test_a_directory_of_somebody_else_is_refused(file: Path) -> None:
    os.chown(file.parent, 54321, -1)

    assert "belongs to uid 54321" in refusal(file)


def people(monkeypatch: pytest.MonkeyPatch, gid: int, members: list[str], primary: dict[str, int]) -> None:
    """A user database in which group `gid` has these members, and these users have it as their own."""
    import grp
    import pwd

    def group(wanted: int) -> object:
        if wanted != gid:
            raise KeyError(wanted)
        return SimpleNamespace(gr_name="staff", gr_gid=gid, gr_mem=members)

    users = [SimpleNamespace(pw_name=name, pw_uid=uid, pw_gid=gid) for name, uid in primary.items()]
    monkeypatch.setattr(grp, "getgrgid", group)
    monkeypatch.setattr(pwd, "getpwall", lambda: users)


def test_a_private_group_may_write(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people(monkeypatch, file.stat().st_gid, ["me"], {"me": os.geteuid(), "root": 0})
    file.chmod(0o660)
    file.parent.chmod(0o770)

    assert read(file).file is not None


@pytest.mark.parametrize(
    ("members", "primary", "told"),
    [
        (["eve"], {}, "group staff, which eve belongs to"),
        ([], {"eve": 54321}, "group staff, which eve belongs to"),
        (["eve", "mallory"], {}, "eve, mallory belong to"),
        (["a", "b", "c", "d"], {}, "a, b, c and others belong to"),
    ],
)
def test_a_group_with_others_may_not_write(
    file: Path, members: list[str], primary: dict[str, int], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(monkeypatch, file.stat().st_gid, members, {"me": os.geteuid(), **primary})
    file.chmod(0o660)

    assert told in refusal(file)


def test_a_group_that_nobody_knows_may_not_write_unless_it_is_ours(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(monkeypatch, -1, [], {})
    file.chmod(0o660)

    assert read(file).file is not None

    monkeypatch.setattr(os, "getegid", lambda: file.stat().st_gid + 1)

    assert "whose members are not known" in refusal(file)


def test_a_group_that_may_not_write_is_not_asked_about(file: Path) -> None:
    file.chmod(0o640)

    assert read(file).file is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
