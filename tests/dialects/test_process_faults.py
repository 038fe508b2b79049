from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hooksd.dialects.process_faults import exit_code_fault, head, inherited_pipe_note, process_fault, tail
from hooksd.model.problems import ProblemKind
from hooksd.model.reply import MAX_DETAIL_BYTES
from hooksd.model.run import LaunchFailure, ProcessResult


def test_an_exit_code_is_no_fault_of_the_process() -> None:
    assert process_fault(ProcessResult(exit_code=3), 1.0) is None
    assert process_fault(ProcessResult(exit_code=0), None) is None


def test_launch_failure() -> None:
    failure = LaunchFailure(
        kind=ProblemKind.MISSING_RUNTIME, message="no node", hint="install it", detail="PATH=/x"
    )
    fault = process_fault(ProcessResult(launch_failure=failure), 1.0)
    assert fault is not None
    assert (fault.kind, fault.message, fault.hint, fault.detail) == (
        ProblemKind.MISSING_RUNTIME,
        "no node",
        "install it",
        "PATH=/x",
    )
    bare = LaunchFailure(kind=ProblemKind.LAUNCH, message="no")
    fault = process_fault(ProcessResult(launch_failure=bare), 1.0)
    assert fault is not None
    assert fault.detail is None


@pytest.mark.parametrize(
    ("timeout_s", "words"), [(60.0, "within 60 s"), (0.025, "within 0.025 s"), (None, "deadline")]
)
def test_timeout(timeout_s: float | None, words: str) -> None:
    fault = process_fault(ProcessResult(timed_out=True, stderr=b"working on it\n"), timeout_s)
    assert fault is not None
    assert fault.kind is ProblemKind.TIMEOUT
    assert words in fault.message
    assert fault.detail == "working on it"


@pytest.mark.parametrize(
    ("number", "name", "has_hint"),
    [(9, "SIGKILL", True), (11, "SIGSEGV", True), (15, "SIGTERM", False), (99, "signal 99", False)],
)
def test_signal(number: int, name: str, has_hint: bool) -> None:
    fault = process_fault(ProcessResult(signal=number, stderr=b"x"), 1.0)
    assert fault is not None
    assert (fault.kind, fault.message) == (ProblemKind.SIGNAL, f"was ended by {name}")
    assert (fault.hint is not None) == has_hint
    assert fault.detail == "x"


def test_exit_code() -> None:
    fault = exit_code_fault(ProcessResult(exit_code=7, stderr=b"problem on stderr"))
    assert (fault.kind, fault.message, fault.hint, fault.detail) == (
        ProblemKind.EXIT_CODE,
        "exited with code 7",
        None,
        "problem on stderr",
    )


def test_command_not_found_shows_the_path_but_only_in_the_detail() -> None:
    stderr = b"bash: line 1: node-of-homebrew: command not found\n"
    fault = exit_code_fault(ProcessResult(exit_code=127, stderr=stderr, search_path="/usr/bin:/bin"))
    assert fault.detail == "PATH=/usr/bin:/bin\nbash: line 1: node-of-homebrew: command not found"
    assert "a command was not found" in fault.message
    assert "/usr/bin" not in fault.message + str(fault.hint)
    assert "PATH" not in str(exit_code_fault(ProcessResult(exit_code=127, stderr=stderr)).detail)


@pytest.mark.parametrize(
    ("code", "stderr"),
    [
        (126, b"bash: ./dos.sh: /bin/sh^M: bad interpreter: No such file or directory"),
        (127, b"bash: line 1: ./dos.sh: cannot execute: required file not found"),
        (126, b"/bin/bash\r: bad interpreter: No such file or directory"),
    ],
)
def test_carriage_return_in_the_first_line(code: int, stderr: bytes) -> None:
    fault = exit_code_fault(ProcessResult(exit_code=code, stderr=stderr))
    assert fault.hint is not None
    assert "carriage return" in fault.hint
    assert fault.detail is not None
    assert "dos.sh" in fault.detail or "bash" in fault.detail


def test_not_executable() -> None:
    fault = exit_code_fault(ProcessResult(exit_code=126, stderr=b"bash: ./a.sh: Permission denied"))
    assert "could not be executed" in fault.message
    assert fault.hint is not None
    assert "chmod +x" in fault.hint


def test_inherited_pipe() -> None:
    assert inherited_pipe_note(ProcessResult(exit_code=0)) is None
    note = inherited_pipe_note(ProcessResult(exit_code=0, inherited_pipe=True))
    assert note is not None
    assert note.kind is ProblemKind.INHERITED_PIPE
    assert note.hint is not None


@pytest.mark.parametrize("cut", [head, tail])
def test_blank_output_gives_no_detail(cut: object) -> None:
    assert callable(cut)
    assert cut(b"") is None
    assert cut(b" \n\t") is None


def test_head_and_tail_are_bounded_and_cut_between_characters() -> None:
    data = ("ä" * 3000 + "end").encode()
    assert head(data) == "ä" * (MAX_DETAIL_BYTES // 2)
    assert tail(data) == "ä" * ((MAX_DETAIL_BYTES - 3) // 2) + "end"


@given(st.binary(max_size=6000))
def test_any_output_gives_a_bounded_text(data: bytes) -> None:
    for text in (head(data), tail(data)):
        assert text is None or 0 < len(text.encode()) <= MAX_DETAIL_BYTES
