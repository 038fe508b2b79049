import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hooksd.observe.log_file import AppendFailed, LogFile


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0, 0o022, 0o777])
def test_the_file_is_closed_to_others_whatever_the_umask(log: Path, mask: int) -> None:
    with umask(mask), closing(LogFile(str(log))) as file:
        file.append(b"one\n", 0)

    assert mode(log) == 0o600
    assert log.read_bytes() == b"one\n"


def test_a_file_that_was_open_to_others_is_closed(log: Path) -> None:
    log.write_bytes(b"before\n")
    log.chmod(0o644)

    with closing(LogFile(str(log))) as file:
        file.append(b"one\n", 0)

    assert mode(log) == 0o600
    assert log.read_bytes() == b"before\none\n"


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    log = tmp_path / "a" / "b" / "hooksd.log"

    with closing(LogFile(str(log))) as file:
        file.append(b"one\n", 0)

    assert log.read_bytes() == b"one\n"


def test_half_a_line_of_a_crash_does_not_spoil_the_next_record(log: Path) -> None:
    log.write_bytes(b'{"a":1}\n{"tor')

    with closing(LogFile(str(log))) as file:
        file.append(b"one\n", 0)
        file.append(b"two\n", 0)

    assert log.read_bytes() == b'{"a":1}\n{"tor\none\ntwo\n'


def test_rotation_by_size_keeps_so_many_files(log: Path) -> None:
    with closing(LogFile(str(log), max_bytes=100, keep=3)) as file:
        for number in range(100):
            file.append(b"%03d %s\n" % (number, b"x" * 35), 0)

    names = sorted(os.listdir(log.parent))
    assert names == ["hooksd.log", "hooksd.log.1", "hooksd.log.2"]
    numbers = [
        int(line[:3]) for name in reversed(names) for line in (log.parent / name).read_bytes().splitlines()
    ]
    assert numbers == [94, 95, 96, 97, 98, 99]
    assert all(mode(log.parent / name) == 0o600 for name in names)


def test_a_batch_that_is_larger_than_a_file_is_written_whole(log: Path) -> None:
    with closing(LogFile(str(log), max_bytes=10, keep=2)) as file:
        file.append(b"x" * 50 + b"\n", 0)
        file.append(b"y\n", 0)

    assert log.read_bytes() == b"y\n"
    assert (log.parent / "hooksd.log.1").read_bytes() == b"x" * 50 + b"\n"


def test_one_file_only(log: Path) -> None:
    with closing(LogFile(str(log), max_bytes=10, keep=1)) as file:
        file.append(b"12345678\n", 0)
        file.append(b"new\n", 0)

    assert os.listdir(log.parent) == ["hooksd.log"]
    assert log.read_bytes() == b"new\n"


def test_the_size_that_was_there_before_counts(log: Path) -> None:
    log.write_bytes(b"x" * 99 + b"\n")

    with closing(LogFile(str(log), max_bytes=100, keep=2)) as file:
        file.append(b"one\n", 0)

    assert log.read_bytes() == b"one\n"


@pytest.mark.parametrize("how", ["renamed", "deleted", "replaced"])
def test_a_file_that_is_not_there_any_more_is_opened_anew(log: Path, how: str) -> None:
    with closing(LogFile(str(log))) as file:
        file.append(b"one\n", 0)
        if how == "renamed":
            log.rename(log.with_suffix(".old"))
        elif how == "deleted":
            log.unlink()
        else:
            other = log.with_suffix(".new")
            other.write_bytes(b"zero\n")
            other.rename(log)
        file.append(b"two\n", 0)

    assert log.read_bytes() == (b"zero\ntwo\n" if how == "replaced" else b"two\n")


def test_a_truncated_file_goes_on_at_its_end(log: Path) -> None:
    with closing(LogFile(str(log))) as file:
        file.append(b"one\n", 0)
        os.truncate(log, 0)
        file.append(b"two\n", 0)

    assert log.read_bytes() == b"two\n"


def test_a_symlink_is_followed_and_rotated_where_it_leads(tmp_path: Path) -> None:
    disk, link = tmp_path / "disk", tmp_path / "hooksd.log"
    disk.mkdir()
    link.symlink_to(disk / "real.log")

    with closing(LogFile(str(link), max_bytes=5, keep=2)) as file:
        file.append(b"one\n", 0)
        file.append(b"two\n", 0)

    assert sorted(os.listdir(disk)) == ["real.log", "real.log.1"]
    assert link.is_symlink()
    assert link.read_bytes() == b"two\n"


def test_when_rotation_is_not_possible_the_file_goes_on(log: Path) -> None:
    with closing(LogFile(str(log), max_bytes=5, keep=2)) as file:
        # A directory in the place of the rotated file cannot be replaced by a file.
        (log.parent / "hooksd.log.1" / "in").mkdir(parents=True)
        file.append(b"one\n", 0)
        file.append(b"two\n", 0)
        file.append(b"three\n", 0)

        assert file.rotation_failure == "cannot rotate: Is a directory"
        assert log.read_bytes() == b"one\ntwo\nthree\n"

        # It is tried again when the file has grown by as much again.
        (log.parent / "hooksd.log.1" / "in").rmdir()
        (log.parent / "hooksd.log.1").rmdir()
        file.append(b"four\n", 0)
        assert log.read_bytes() == b"four\n"
        assert file.rotation_failure is None


def test_a_full_disk_is_told_and_the_device_left_as_it_is() -> None:
    before = os.stat("/dev/full")
    with closing(LogFile("/dev/full", max_bytes=1, keep=2)) as file:
        for _ in range(3):
            with pytest.raises(AppendFailed, match="No space left") as caught:
                file.append(b"one\n", 0)

    assert caught.value.written == 0
    assert not caught.value.busy
    assert os.stat("/dev/full").st_mode == before.st_mode
    assert not os.path.lexists("/dev/full.1")


def test_a_place_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(AppendFailed, match=r"directory|exists"):
        LogFile(str(tmp_path / "file" / "hooksd.log")).append(b"one\n", 0)
    with pytest.raises(AppendFailed, match="directory"):
        LogFile(str(tmp_path)).append(b"one\n", 0)


def test_a_fifo_without_a_reader_does_not_wait(log: Path) -> None:
    os.mkfifo(log)

    with pytest.raises(AppendFailed, match="No such device"):
        LogFile(str(log)).append(b"one\n", 10)


def test_a_fifo_whose_reader_does_not_read_is_waited_for_only_so_long(log: Path) -> None:
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    data = b"0123456789abcde\n" * 10_000
    try:
        with closing(LogFile(str(log), max_bytes=1)) as file:
            with pytest.raises(AppendFailed, match="does not read") as caught:
                file.append(data, 0.01)
            written = caught.value.written
            assert caught.value.busy
            assert 0 < written < len(data)

            got = os.read(reader, 1 << 20)
            assert got == data[:written]
            # It goes on with the line that was cut, on a line of its own.
            rest = data[data.rfind(b"\n", 0, written) + 1 :][:160]
            file.append(rest, 1)
            again = os.read(reader, 1 << 20)

        assert again.lstrip(b"\n") == rest
        assert stat.S_ISFIFO(log.stat().st_mode)
    finally:
        os.close(reader)


def test_a_fifo_whose_reader_went_is_opened_anew(log: Path) -> None:
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    with closing(LogFile(str(log))) as file:
        file.append(b"one\n", 1)
        os.close(reader)
        with pytest.raises(AppendFailed):
            file.append(b"two\n", 1)
        reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
        file.append(b"three\n", 1)
        assert os.read(reader, 100) == b"three\n"
    os.close(reader)


def test_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    file = LogFile("-", max_bytes=1)
    file.append(b"one\n", 1)
    file.append(b"two\n", 1)
    file.close()
    file.append(b"three\n", 1)

    assert file.is_stderr
    assert capfd.readouterr().err == "one\ntwo\nthree\n"
