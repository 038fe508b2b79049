"""Every way in which a start can fail, made to happen for real where the test's user can."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import suppress

import pytest

from hooksd.model.problems import ProblemKind
from hooksd.model.run import LaunchFailure
from hooksd.process.descriptor_limit import HookLimit
from hooksd.process.launch import launch
from hooksd.process.launch_failures import failure_of


@pytest.fixture
def fails(helpers):
    """Launches, and expects a failure that leaves nothing behind."""

    def run(*argv: str, **changes: object) -> LaunchFailure:
        before = helpers.descriptors(), helpers.children()
        outcome = launch(helpers.spawn(*argv, **changes), HookLimit(None))
        assert isinstance(outcome, LaunchFailure), outcome
        assert (helpers.descriptors(), helpers.children()) == before
        assert outcome.hint
        return outcome

    return run


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_a_missing_program(fails):
    failure = fails("/nonexistent/hook")
    assert failure.kind is ProblemKind.MISSING_RUNTIME
    assert failure.message == "the program /nonexistent/hook does not exist"


def test_a_directory_deleted_since_it_was_looked_at(fails, tmp_path):
    failure = fails("/bin/true", cwd=str(tmp_path / "gone"))
    assert failure.kind is ProblemKind.MISSING_CWD
    assert failure.message == f"the working directory {tmp_path}/gone does not exist"


def test_both_missing_tells_the_directory(fails, tmp_path):
    assert fails("/nonexistent/hook", cwd=str(tmp_path / "gone")).kind is ProblemKind.MISSING_CWD


def test_a_working_directory_that_is_a_file(fails, tmp_path):
    failure = fails("/bin/true", cwd=executable(tmp_path / "file", ""))
    assert (failure.kind, failure.message.endswith("is not a directory")) == (ProblemKind.MISSING_CWD, True)


def test_a_script_without_a_first_line(fails, tmp_path):
    failure = fails(executable(tmp_path / "hook", "echo hello\n"))
    assert failure.kind is ProblemKind.LAUNCH
    assert f"{tmp_path}/hook cannot be started: Exec format error" in failure.message
    assert "#!" in failure.hint


def test_an_interpreter_that_is_not_there(fails, tmp_path):
    failure = fails(executable(tmp_path / "hook", "#!/nowhere/lua -e\n"))
    assert failure.kind is ProblemKind.MISSING_RUNTIME
    assert failure.message.endswith("the interpreter that it needs does not: /nowhere/lua -e")


def test_a_first_line_with_a_carriage_return(fails, tmp_path):
    failure = fails(executable(tmp_path / "hook", "#!/bin/sh\r\nexit 0\r\n"))
    assert failure.kind is ProblemKind.MISSING_RUNTIME
    assert "carriage return" in failure.message
    assert "Unix line ends" in failure.hint


def test_a_program_for_a_loader_that_is_not_there(tmp_path, helpers, monkeypatch):
    """The kernel says "not there" about the loader, which only the program itself names."""
    error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/bin/true")
    assert failure_of(error, ("/bin/true",), helpers.spawn("/bin/true")).message.endswith(
        "that it needs does not"
    )
    monkeypatch.setattr("builtins.open", lambda *_, **__: (_ for _ in ()).throw(PermissionError()))
    assert failure_of(error, ("/bin/true",), helpers.spawn("/bin/true")).message.endswith(
        "that it needs does not"
    )


def test_a_file_that_is_not_executable(fails, tmp_path):
    (tmp_path / "hook").write_text("#!/bin/sh\n")
    failure = fails(str(tmp_path / "hook"))
    assert (failure.kind, failure.hint) == (
        ProblemKind.LAUNCH,
        f"make it executable: chmod +x {tmp_path}/hook",
    )
    assert fails(str(tmp_path)).message == f"the program {tmp_path} is a directory"


def test_too_long_arguments(fails):
    failure = fails("/bin/true", "x" * 300_000)
    assert (failure.kind, failure.message) == (
        ProblemKind.LAUNCH,
        "/bin/true cannot be started: Argument list too long",
    )
    assert "stdin" in failure.hint


def test_a_circle_of_links(fails, tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "a")
    failure = fails(str(tmp_path / "a"))
    assert failure.kind is ProblemKind.LAUNCH
    assert "links" in failure.hint


def test_a_file_that_is_being_written(fails, tmp_path):
    path = executable(tmp_path / "hook", "")
    with open("/bin/true", "rb") as true, open(path, "r+b") as being_written:
        being_written.write(true.read())
        being_written.flush()
        failure = fails(path)
    assert "Text file busy" in failure.message
    assert "being written" in failure.hint


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"candidates": (("/bin/echo", "a\0b"),)}, "the command"),
        ({"candidates": (("/bin/echo", "\ud800"),)}, "the command"),
        ({"cwd": "/tmp\0"}, "the working directory"),
        ({"env": {"SECRET_A": "x\0hidden"}}, "the environment variable 'SECRET_A'"),
        ({"env": {"B": "\udfff"}}, "the environment variable 'B'"),
        ({"env": {"C=D": "x"}}, "the environment variable 'C=D'"),
    ],
)
def test_what_no_process_can_be_given(fails, changes, what):
    failure = fails("/bin/true", **changes)
    assert failure.kind is ProblemKind.LAUNCH
    assert failure.message.startswith(what)
    assert "hidden" not in failure.message


def test_a_bad_value_that_nothing_is_found_to_be_wrong_with(helpers):
    failure = failure_of(ValueError("odd"), ("/bin/true",), helpers.spawn("/bin/true"))
    assert failure.message == "the command cannot be given to a process: odd"


@pytest.mark.parametrize("free", range(9))
def test_no_descriptor_left(fails, helpers, free):
    """Whichever of the descriptors is the one too many."""
    taken = []
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for descriptor in taken[-free:] if free else ():
            os.close(descriptor)
            taken.remove(descriptor)
        spawn = helpers.spawn("/bin/true", stdin=b"x")
        outcome = launch(spawn, HookLimit(None))
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    if isinstance(outcome, LaunchFailure):
        assert outcome.kind is ProblemKind.LAUNCH
        assert "Too many open files" in outcome.message
        assert "LimitNOFILE" in outcome.hint
        assert free < 8
    else:
        outcome.abort()
        assert free >= 6


def test_no_process_left(fails, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    # The limit of processes does not bind root.
    monkeypatch.setattr("subprocess.Popen", refuse)
    failure = fails("/bin/true")
    assert (failure.kind, "TasksMax" in failure.hint) == (ProblemKind.LAUNCH, True)
