import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hooksd.observe.log_file import LogFile
from hooksd.observe.log_reader import LogReader
from hooksd.observe.log_records import RecordFilter


Line = Callable[..., bytes]
EVERYTHING = RecordFilter()


def seqs(records: Any) -> list[int]:
    return [record["seq"] for record in records]


@pytest.fixture
def rotated(log: Path, line: Line) -> Path:
    """A log of three files with the records 1 to 90."""
    for name, first in (("hooksd.log.2", 1), ("hooksd.log.1", 31), ("hooksd.log", 61)):
        (log.parent / name).write_bytes(
            b"".join(line(seq, hook="even" if seq % 2 == 0 else "odd") for seq in range(first, first + 30))
        )
    return log


def test_nothing_there(log: Path) -> None:
    with LogReader(str(log)) as reader:
        assert reader.last(10, EVERYTHING) == []
        assert list(reader.all(EVERYTHING)) == []
        assert reader.new(EVERYTHING) == []


def test_the_newest_records_across_files(rotated: Path) -> None:
    with LogReader(str(rotated)) as reader:
        assert seqs(reader.last(5, EVERYTHING)) == [86, 87, 88, 89, 90]
        assert seqs(reader.last(40, EVERYTHING)) == list(range(51, 91))
        assert seqs(reader.last(1_000, EVERYTHING)) == list(range(1, 91))
        assert seqs(reader.last(3, RecordFilter(hook="even"))) == [86, 88, 90]
        assert reader.last(0, EVERYTHING) == []


def test_all_records_in_order(rotated: Path) -> None:
    with LogReader(str(rotated)) as reader:
        assert seqs(reader.all(EVERYTHING)) == list(range(1, 91))
        assert seqs(reader.all(RecordFilter(hook="odd"))) == list(range(1, 91, 2))


def test_files_that_are_too_old_are_not_read(rotated: Path) -> None:
    os.utime(rotated.parent / "hooksd.log.2", (1_000, 1_000))

    with LogReader(str(rotated)) as reader:
        assert seqs(reader.all(RecordFilter(since=2_000))) == list(range(31, 91))


def test_foreign_lines_are_passed_over_and_counted(log: Path, line: Line) -> None:
    log.write_bytes(
        b"hello\n" + line(1) + b"\n\r\n" + b"\xff\xfe\n" + line(2) + b'{"torso":' + b"\n" + line(3) + b'{"ts"'
    )

    with LogReader(str(log)) as reader:
        assert seqs(reader.all(EVERYTHING)) == [1, 2, 3]
        assert reader.foreign == 3
    with LogReader(str(log)) as reader:
        assert seqs(reader.last(10, EVERYTHING)) == [1, 2, 3]
        assert reader.foreign == 3


@pytest.mark.parametrize("size", [200_000, 1_000_000])
def test_a_monstrous_line_is_skipped_in_bounded_memory(log: Path, line: Line, size: int) -> None:
    log.write_bytes(line(1) + b"x" * size + b"\n" + line(2) + b"y" * size)

    with LogReader(str(log)) as reader:
        assert seqs(reader.all(EVERYTHING)) == [1, 2]
        assert seqs(reader.last(10, EVERYTHING)) == [1, 2]
        with log.open("ab") as file:
            file.write(b"y" * size + b"\n" + line(3))
        assert seqs(reader.new(EVERYTHING)) == [3]


def test_lines_at_the_borders_of_blocks(log: Path, line: Line) -> None:
    log.write_bytes(b"".join(line(seq, text="z" * (seq % 700)) for seq in range(1, 2_001)))

    with LogReader(str(log)) as reader:
        assert seqs(reader.all(EVERYTHING)) == list(range(1, 2_001))
        assert seqs(reader.last(2_000, EVERYTHING)) == list(range(1, 2_001))
        assert reader.foreign == 0


def test_what_is_appended_is_new_once(rotated: Path, line: Line) -> None:
    with LogReader(str(rotated)) as reader:
        assert reader.new(EVERYTHING) == []
        with rotated.open("ab") as file:
            file.write(line(91) + line(92, hook="even"))
        assert seqs(reader.new(EVERYTHING)) == [91, 92]
        assert reader.new(EVERYTHING) == []
        with rotated.open("ab") as file:
            file.write(line(93, hook="odd") + line(94, hook="even"))
        assert seqs(reader.new(RecordFilter(hook="even"))) == [94]


def test_a_line_that_is_being_written_comes_when_it_is_whole(log: Path, line: Line) -> None:
    whole = line(2)
    log.write_bytes(line(1) + whole[:20])

    with LogReader(str(log)) as reader:
        assert seqs(reader.last(10, EVERYTHING)) == [1]
        assert reader.new(EVERYTHING) == []
        with log.open("ab") as file:
            file.write(whole[20:-1])
        assert reader.new(EVERYTHING) == []
        with log.open("ab") as file:
            file.write(b"\n")
        assert seqs(reader.new(EVERYTHING)) == [2]


def test_a_log_that_comes_into_being_is_followed(log: Path, line: Line) -> None:
    with LogReader(str(log)) as reader:
        assert reader.new(EVERYTHING) == []
        log.write_bytes(line(1))
        assert seqs(reader.new(EVERYTHING)) == [1]


def test_rotation_loses_nothing(log: Path, line: Line) -> None:
    file = LogFile(str(log), max_bytes=2_000, keep=5)
    file.append(line(1), 0)
    with LogReader(str(log)) as reader:
        got = []
        for seq in range(2, 400):
            file.append(line(seq), 0)
            if seq % 17 == 0:
                got += seqs(reader.new(EVERYTHING))
        got += seqs(reader.new(EVERYTHING))
    file.close()

    assert got == list(range(2, 400))


def test_several_rotations_between_two_looks(log: Path, line: Line) -> None:
    file = LogFile(str(log), max_bytes=500, keep=5)
    file.append(line(1), 0)
    with LogReader(str(log)) as reader:
        for seq in range(2, 16):
            file.append(line(seq), 0)
        assert len(os.listdir(log.parent)) >= 3
        assert seqs(reader.new(EVERYTHING)) == list(range(2, 16))
    file.close()


def test_a_deleted_and_recreated_log_is_followed(log: Path, line: Line) -> None:
    log.write_bytes(line(1))
    with LogReader(str(log)) as reader:
        log.unlink()
        assert reader.new(EVERYTHING) == []
        log.write_bytes(line(2))
        assert seqs(reader.new(EVERYTHING)) == [2]


def test_what_was_written_before_the_deletion_is_not_lost(log: Path, line: Line) -> None:
    log.write_bytes(line(1))
    with LogReader(str(log)) as reader:
        with log.open("ab") as file:
            file.write(line(2))
        log.unlink()
        log.write_bytes(line(3))
        assert seqs(reader.new(EVERYTHING)) == [2, 3]


def test_a_truncated_log_is_read_from_its_beginning(log: Path, line: Line) -> None:
    log.write_bytes(line(1) + line(2))
    with LogReader(str(log)) as reader:
        log.write_bytes(line(3))
        assert seqs(reader.new(EVERYTHING)) == [3]


def test_a_reader_that_was_opened_before_a_rotation_reads_every_record_once(log: Path, line: Line) -> None:
    log.write_bytes(line(1) + line(2))
    with LogReader(str(log)) as reader:
        log.rename(log.parent / "hooksd.log.1")
        log.write_bytes(line(3))
        assert seqs(reader.last(10, EVERYTHING)) == [1, 2]
        assert seqs(reader.new(EVERYTHING)) == [3]


def test_rotated_files_lie_where_a_symlink_leads(log: Path, line: Line) -> None:
    disk = log.parent / "disk"
    disk.mkdir()
    log.symlink_to(disk / "real.log")
    (disk / "real.log.1").write_bytes(line(1))
    (disk / "real.log").write_bytes(line(2))

    with LogReader(str(log)) as reader:
        assert seqs(reader.all(EVERYTHING)) == [1, 2]
        (disk / "real.log").rename(disk / "real.log.1")
        (disk / "real.log").write_bytes(line(3))
        assert seqs(reader.new(EVERYTHING)) == [3]


def test_a_file_with_two_names_is_read_once(log: Path, line: Line) -> None:
    log.write_bytes(line(1))
    os.link(log, log.parent / "hooksd.log.1")

    with LogReader(str(log)) as reader:
        assert seqs(reader.all(EVERYTHING)) == [1]
