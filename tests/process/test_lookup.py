from __future__ import annotations

import os

import pytest

from hooksd.model.problems import ProblemKind
from hooksd.process.lookup import directory_failure, find_program, search_path


@pytest.fixture
def tools(tmp_path):
    """`one/tool` may be run; `two/tool` may not; `three/tool` is a directory."""
    for name, mode in (("one", 0o755), ("two", 0o644)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text("#!/bin/sh\n")
        (tmp_path / name / "tool").chmod(mode)
    (tmp_path / "three" / "tool").mkdir(parents=True)
    return tmp_path


def test_the_first_that_can_be_run(tools):
    path = os.pathsep.join(str(tools / name) for name in ("none", "three", "two", "one"))
    assert find_program("tool", path=path, cwd="/") == str(tools / "one" / "tool")
    assert find_program("other", path=path, cwd="/") is None


def test_relative_and_empty_directories_are_the_hooks(tools):
    assert find_program("tool", path="one", cwd=str(tools)) == str(tools / "one" / "tool")
    assert find_program("tool", path=":/nowhere", cwd=str(tools / "one")) == str(tools / "one" / "tool")
    assert find_program("tool", path=f"{tools}/one/", cwd="/") == str(tools / "one" / "tool")


def test_a_path_is_not_looked_up(tools):
    assert find_program("one/tool", path="", cwd=str(tools)) == str(tools / "one" / "tool")
    assert find_program("./tool", path="/", cwd=str(tools / "one")) == f"{tools}/one/./tool"
    assert find_program("two/tool", path="", cwd=str(tools)) is None
    assert find_program("/bin/sh", path="", cwd="/nowhere") == "/bin/sh"


def test_names_that_cannot_be():
    assert find_program("", path="/bin", cwd="/") is None
    assert find_program("a\0b", path="/bin", cwd="/") is None
    assert find_program("x" * 5000, path="/bin", cwd="/") is None
    assert find_program("sh", path="/bin\0", cwd="/") is None


def test_search_path():
    assert search_path({"PATH": ""}) == ""
    assert search_path({}) == os.defpath


def test_a_directory_that_can_be_used(tmp_path):
    assert directory_failure(str(tmp_path)) is None


@pytest.mark.parametrize("where", ["gone", "file/below"])
def test_a_directory_that_is_not_there(tmp_path, where):
    (tmp_path / "file").touch()
    failure = directory_failure(str(tmp_path / where))
    assert failure.kind is ProblemKind.MISSING_CWD
    assert failure.message == f"the working directory {tmp_path / where} does not exist"
    assert failure.hint


def test_a_directory_that_is_none(tmp_path):
    failure = directory_failure(__file__)
    assert (failure.kind, failure.message) == (
        ProblemKind.MISSING_CWD,
        f"the working directory {__file__} is not a directory",
    )


@pytest.mark.parametrize(
    ("path", "why"), [("/a\0b", "null"), ("/" + "x" * 300, "too long"), ("/\ud800", "surrogates")]
)
def test_a_directory_that_cannot_be(path, why):
    failure = directory_failure(path)
    assert failure.kind is ProblemKind.MISSING_CWD
    assert why in failure.message


def test_a_directory_that_may_not_be_entered(tmp_path, monkeypatch):
    # Root may enter all of them.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    failure = directory_failure(str(tmp_path))
    assert failure.kind is ProblemKind.LAUNCH
    assert str(tmp_path) in failure.message
    assert failure.hint.startswith("give the daemon's user")
