import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hooksd.observe import writer as module
from hooksd.observe.log_file import LogFile
from hooksd.observe.writer import LogWriter


Make = Callable[..., LogWriter]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setattr(module, "_RETRY_S", 0.05)
    made: list[LogWriter] = []

    def make_writer(path: Path | str, **options: int) -> LogWriter:
        writer = LogWriter(LogFile(str(path), **options), lambda count: b"dropped %d\n" % count)
        made.append(writer)
        writer.start()
        return writer

    yield make_writer
    for writer in made:
        writer.close(5)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_lines_are_written_in_order_soon_after_they_are_put(make: Make, log: Path) -> None:
    writer = make(log)

    for number in range(1_000):
        writer.put(b"%d\n" % number)
    until(lambda: log.exists() and log.read_bytes().endswith(b"999\n"))

    assert [int(line) for line in log.read_bytes().split()] == list(range(1_000))
    assert (writer.dropped, writer.failure) == (0, None)


def test_closing_writes_what_waits(make: Make, log: Path) -> None:
    writer = make(log)
    writer.put(b"one\n")

    assert writer.close(5) == 0
    assert log.read_bytes() == b"one\n"


def test_every_line_is_in_the_files_after_rotation_under_load(make: Make, log: Path) -> None:
    writer = make(log, max_bytes=20_000, keep=100)

    for number in range(20_000):
        writer.put(b"%06d xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n" % number)
        if number % 1_000 == 0:
            until(lambda: not writer._queue)
    assert writer.close(10) == 0

    files = sorted(
        log.parent.iterdir(), key=lambda path: -int(path.suffix[1:]) if path.suffix != ".log" else 1
    )
    numbers = [int(line[:6]) for path in files for line in path.read_bytes().splitlines()]
    assert len(files) > 10
    assert numbers == list(range(20_000))
    assert all(path.stat().st_size <= 40_000 + 1 for path in files)


def test_a_renamed_log_is_left_and_a_new_one_begun(make: Make, log: Path) -> None:
    writer = make(log)
    writer.put(b"one\n")
    until(log.exists)
    log.rename(log.with_suffix(".1"))

    writer.put(b"two\n")
    until(log.exists)
    writer.close(5)

    assert log.read_bytes() == b"two\n"
    assert log.with_suffix(".1").read_bytes() == b"one\n"


def test_reopen_opens_the_file_anew(make: Make, log: Path) -> None:
    writer = make(log)
    writer.put(b"one\n")
    until(lambda: log.exists() and log.read_bytes() == b"one\n")
    descriptor = writer._file._descriptor

    writer.reopen()
    until(lambda: writer._file._descriptor != descriptor)
    writer.put(b"two\n")
    writer.close(5)

    assert log.read_bytes() == b"one\ntwo\n"


def test_a_full_disk_stalls_nobody_and_is_told(make: Make, capfd: pytest.CaptureFixture[str]) -> None:
    writer = make("/dev/full")
    writer.put(b"one\n")
    until(lambda: writer.failure is not None)
    for _ in range(100):
        writer.put(b"two\n")

    assert "No space left" in str(writer.failure)
    started = time.monotonic()
    assert writer.close(5) == 101
    assert time.monotonic() - started < 4
    # Told once, not with every attempt.
    assert capfd.readouterr().err == ("hooksd: the log /dev/full: No space left on device; trying again\n")


def test_a_rotation_that_fails_is_told_and_nothing_is_lost(
    make: Make, log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (log.parent / "hooksd.log.1" / "in").mkdir(parents=True)
    writer = make(log, max_bytes=100, keep=2)

    for number in range(10):
        writer.put(b"%020d\n" % number)
        until(lambda: not writer._queue and not writer._pending)

    assert str(writer.failure) == "cannot rotate: Is a directory"
    assert capfd.readouterr().err.count("cannot rotate") == 1
    writer.close(5)
    assert [int(line) for line in log.read_bytes().split()] == list(range(10))


def test_a_fault_of_ours_ends_no_log(
    make: Make, log: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    append = LogFile.append
    faults = [RuntimeError("oops")]

    def faulty(self: LogFile, data: bytes, wait_s: float) -> None:
        if faults:
            raise faults.pop()
        append(self, data, wait_s)

    monkeypatch.setattr(LogFile, "append", faulty)
    writer = make(log)
    writer.put(b"one\n")
    until(lambda: writer.failure is not None)
    assert writer.failure == "internal error: RuntimeError: oops"
    writer.put(b"two\n")
    assert writer.close(5) == 0

    assert log.read_bytes() == b"two\n"
    assert writer.dropped == 1
    assert "RuntimeError" in capfd.readouterr().err


def test_when_the_sink_works_again_nothing_is_missing(make: Make, tmp_path: Path) -> None:
    log = tmp_path / "later" / "hooksd.log"
    log.parent.write_text("a file where the directory should be")
    writer = make(log)
    writer.put(b"one\n")
    until(lambda: writer.failure is not None)
    writer.put(b"two\n")

    log.parent.unlink()
    until(log.exists)
    writer.close(5)

    assert log.read_bytes() == b"one\ntwo\n"
    assert writer.failure is None


def test_what_does_not_fit_is_dropped_and_told_at_its_place(
    make: Make, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED_LINES", 10)
    os.mkfifo(log)  # without a reader nothing is taken
    writer = make(log)
    writer.put(b"first\n")
    until(lambda: writer.failure is not None and not writer._queue)
    for number in range(25):
        writer.put(b"%d\n" % number)
    assert writer.dropped == 15

    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    until(lambda: not writer._queue)
    writer.put(b"last\n")
    writer.close(5)

    got = os.read(reader, 1 << 16).split(b"\n")
    os.close(reader)
    assert got == [b"first", *(b"%d" % number for number in range(10)), b"dropped 15", b"last", b""]


def test_what_was_dropped_is_told_at_the_end_at_the_latest(
    make: Make, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED_BYTES", 50)
    monkeypatch.setattr(module, "_GATHER_S", 0.2)
    writer = make(log)
    for _ in range(10):
        writer.put(b"0123456789abcdefghi\n")

    assert writer.close(5) == 0

    assert log.read_bytes().splitlines() == [b"0123456789abcdefghi"] * 3 + [b"dropped 7"]


def test_a_reader_that_is_slow_gets_everything(make: Make, log: Path) -> None:
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    writer = make(log)
    for number in range(5_000):
        writer.put(b"%04d 0123456789012345678901234567890123456789\n" % number)
    until(lambda: writer.failure is not None)

    data = b""
    deadline = time.monotonic() + 20
    while not data.endswith(b"4999 0123456789012345678901234567890123456789\n"):
        assert time.monotonic() < deadline
        try:
            data += os.read(reader, 4_096)
        except BlockingIOError:
            time.sleep(0.001)
    os.close(reader)

    # A line that was cut when the pipe was full is repeated as a whole.
    whole = [line for line in data.split(b"\n") if len(line) == 45]
    assert [int(line[:4]) for line in whole] == list(range(5_000))


def test_a_sink_that_hangs_delays_the_end_only_so_long(log: Path) -> None:
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    writer = LogWriter(LogFile(str(log)), lambda count: b"")
    writer.start()
    for _ in range(5_000):
        writer.put(b"0123456789012345678901234567890123456789\n")

    started = time.monotonic()
    left = writer.close(5)

    assert time.monotonic() - started < 4
    assert left > 1_000
    os.close(reader)
