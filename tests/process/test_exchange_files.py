"""Payload and answer files: private, read by path after the exit, and gone whatever happens."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from pathlib import Path

import pytest

from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.process import exchange_files
from hooksd.process.exchange_files import LOCK, Exchange, ExchangeFiles
from hooksd.process.removal import MAX_AT_ONCE


@pytest.fixture
def files(tmp_path: Path) -> ExchangeFiles:
    return ExchangeFiles(str(tmp_path / "a" / "exchange"))


@pytest.fixture
def exchange(files: ExchangeFiles) -> Exchange:
    return files.create(b"payload")


def mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def refused(exchange: Exchange, limit_bytes: int = 100) -> HookProblem:
    found = exchange.read_answer(limit_bytes)
    assert isinstance(found, HookProblem)
    return found


def test_both_files_are_private_whatever_the_umask(files: ExchangeFiles, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        exchange = files.create(b"payload")
    finally:
        os.umask(before)

    assert Path(exchange.payload_path).read_bytes() == b"payload"
    assert Path(exchange.answer_path).read_bytes() == b""
    assert mode(exchange.payload_path) == mode(exchange.answer_path) == 0o600
    assert mode(exchange.directory) == mode(str(tmp_path / "a" / "exchange")) == 0o700


def test_names_are_never_given_twice(files: ExchangeFiles) -> None:
    assert files.create(b"").directory != files.create(b"").directory


def test_a_large_payload_is_whole(files: ExchangeFiles) -> None:
    data = os.urandom(3_000_000)

    assert Path(files.create(data).payload_path).read_bytes() == data


def test_nothing_is_left_when_they_cannot_be_made(
    files: ExchangeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = files.create(b"")
    made.remove()
    parent = os.path.dirname(made.directory)

    def full(_descriptor: int, _data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exchange_files.os, "write", full)

    with pytest.raises(OSError, match="No space left"):
        files.create(b"payload")
    assert os.listdir(parent) == []


def test_what_the_hook_wrote_is_read(exchange: Exchange) -> None:
    Path(exchange.answer_path).write_bytes(b"{}")

    assert exchange.read_answer(100) == b"{}"


def test_what_it_renamed_onto_the_path_is_read(exchange: Exchange) -> None:
    other = Path(exchange.answer_path + ".tmp")
    other.write_bytes(b"new")
    other.rename(exchange.answer_path)

    assert exchange.read_answer(100) == b"new"


def test_a_file_that_it_removed_is_an_empty_answer(exchange: Exchange) -> None:
    os.unlink(exchange.answer_path)

    assert exchange.read_answer(100) == b""


def test_131_exactly_the_limit_is_read_and_130_one_byte_more_is_not(exchange: Exchange) -> None:
    Path(exchange.answer_path).write_bytes(b"x" * 101)

    assert exchange.read_answer(101) == b"x" * 101
    problem = refused(exchange, 100)
    assert problem.kind is ProblemKind.OVERSIZE_RESULT
    assert "more than 100 bytes (limits.result_file_bytes)" in problem.message


def test_a_symlink_in_its_place_is_refused(exchange: Exchange, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"{}")
    os.unlink(exchange.answer_path)
    os.symlink(secret, exchange.answer_path)

    problem = refused(exchange)

    assert problem.kind is ProblemKind.MALFORMED_OUTPUT
    assert problem.message == "the result file is a symbolic link, and was not read"
    exchange.remove()
    assert secret.exists()


def test_a_pipe_in_its_place_is_refused_and_not_waited_for(exchange: Exchange) -> None:
    os.unlink(exchange.answer_path)
    os.mkfifo(exchange.answer_path)

    assert refused(exchange).message == "the result file is no regular file, and was not read"


def test_so_are_sockets_directories_and_what_cannot_be_opened(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.unlink(exchange.answer_path)
    os.mkdir(exchange.answer_path)
    assert "no regular file" in refused(exchange).message
    os.rmdir(exchange.answer_path)
    here = os.getcwd()
    os.chdir(exchange.directory)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("answer.json")
    finally:
        os.chdir(here)
    assert refused(exchange).message.startswith("the result file cannot be read: ")


def test_a_fault_while_reading_is_told(exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int, _size: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(exchange_files.os, "read", fail)

    assert refused(exchange).message == "the result file cannot be read: Input/output error, and was not read"


def test_everything_goes(exchange: Exchange) -> None:
    exchange.remove()

    assert not os.path.exists(exchange.directory)
    exchange.remove()


def test_what_the_hook_left_beside_them_goes_too(exchange: Exchange, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    directory = Path(exchange.directory)
    (directory / "answer.json.tmp").touch()
    (directory / "sub").mkdir()
    (directory / "sub" / "x").touch()
    (directory / "link").symlink_to(outside)
    os.unlink(exchange.answer_path)
    os.mkdir(exchange.answer_path)

    exchange.remove()

    assert os.listdir(directory.parent) == []
    assert (outside / "kept").exists()


@pytest.mark.parametrize("mode", [0, 0o500])
def test_a_hook_that_shuts_the_directory_does_not_keep_its_payload(mode: int, own: Path) -> None:
    exchange = ExchangeFiles(str(own / "exchange")).create(b"secret")
    os.chmod(exchange.directory, mode)

    exchange.remove()

    assert os.listdir(own / "exchange") == []


def test_a_hook_that_shuts_the_directory_of_all_runs_harms_no_other(own: Path) -> None:
    files = ExchangeFiles(str(own / "exchange"))
    first = files.create(b"secret")
    os.chmod(own / "exchange", 0)
    second = files.create(b"secret")
    os.chmod(own / "exchange", 0)

    first.remove()
    second.remove()

    assert os.listdir(own / "exchange") == []


def test_the_payload_goes_at_once_however_much_else_there_is(exchange: Exchange) -> None:
    for number in range(2 * MAX_AT_ONCE):
        Path(exchange.directory, f"{number}").touch()
    os.chmod(exchange.directory, 0o500)

    exchange.remove()

    assert not os.path.exists(exchange.directory)
    assert not os.path.exists(f"{exchange.directory}.gone/payload.json")


def test_after_that_nothing_can_be_put_there_again(exchange: Exchange) -> None:
    exchange.remove()

    with pytest.raises(FileNotFoundError):
        Path(exchange.answer_path).write_bytes(b"late")


def test_a_sweep_removes_what_earlier_daemons_left(files: ExchangeFiles, tmp_path: Path) -> None:
    assert files.sweep() == 0
    first, second = files.create(b"1"), files.create(b"2")
    stray = Path(first.directory).parent / "stray"
    stray.touch()

    assert files.sweep() == 3
    assert os.listdir(stray.parent) == []
    assert not os.path.exists(second.directory)


def test_what_a_worker_holds_a_lock_on_stays(files: ExchangeFiles) -> None:
    held, free = files.create(b"1"), files.create(b"2")
    locks = [
        os.open(os.path.join(one.directory, LOCK), os.O_CREAT | os.O_RDWR, 0o600) for one in (held, free)
    ]
    try:
        fcntl.flock(locks[0], fcntl.LOCK_EX)

        assert files.sweep() == 1
        assert os.path.exists(held.payload_path)
        assert not os.path.exists(free.directory)
    finally:
        for lock in locks:
            os.close(lock)
    assert files.sweep() == 1
