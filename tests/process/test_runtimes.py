from __future__ import annotations

import os

import pytest

from hooksd.model.hooks import Argv, Programmatic, Script, ShellCommand
from hooksd.model.problems import ProblemKind
from hooksd.model.run import LaunchFailure
from hooksd.process.runtimes import Resolved, resolve


@pytest.fixture
def bin_dir(tmp_path):
    """Makes programs that may be run, in a directory of their own."""
    directory = tmp_path / "bin"
    directory.mkdir()

    def make(*names: str) -> str:
        for name in names:
            (directory / name).write_text("#!/bin/sh\n")
            (directory / name).chmod(0o755)
        return str(directory)

    return make


@pytest.fixture
def script(tmp_path):
    """Writes a script and gives its path."""

    def write(text: str = "", name: str = "hook.sh") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def lines(found: Resolved | LaunchFailure) -> tuple[tuple[str, ...], ...]:
    assert isinstance(found, Resolved)
    assert found.candidates.first == next(iter(found.candidates))
    return tuple(found.candidates)


def failure(found: Resolved | LaunchFailure) -> LaunchFailure:
    assert isinstance(found, LaunchFailure)
    assert found.hint
    return found


# --- command lines


COMMAND = ShellCommand(command="echo  $HOME", shells=("bash", "sh"))


def test_shells_in_order(bin_dir):
    path = bin_dir("sh", "bash")
    assert lines(resolve(COMMAND, cwd="/", env={"PATH": path})) == (
        (f"{path}/bash", "-c", "echo  $HOME"),
        (f"{path}/sh", "-c", "echo  $HOME"),
    )


def test_only_the_first_is_looked_for_before_it_is_needed(bin_dir):
    path = bin_dir("bash")
    found = resolve(COMMAND, cwd="/", env={"PATH": path})
    bin_dir("sh")
    assert lines(found) == ((f"{path}/bash", "-c", "echo  $HOME"), (f"{path}/sh", "-c", "echo  $HOME"))


def test_what_is_gone_when_it_is_needed_is_looked_for_elsewhere(bin_dir, tmp_path):
    path = bin_dir("tool")
    (tmp_path / "more").mkdir()
    found = resolve(Argv(argv=("tool",)), cwd="/", env={"PATH": f"{path}:{tmp_path}/more"})
    os.rename(f"{path}/tool", tmp_path / "more" / "tool")
    assert lines(found) == ((f"{path}/tool",), (f"{tmp_path}/more/tool",))


def test_a_shell_that_is_not_there_is_left_out(bin_dir):
    path = bin_dir("sh")
    assert lines(resolve(COMMAND, cwd="/", env={"PATH": path})) == ((f"{path}/sh", "-c", "echo  $HOME"),)


def test_the_settings_shell_replaces_the_dialects(bin_dir):
    path = bin_dir("sh", "bash", "dash")
    found = resolve(COMMAND, cwd="/", env={"PATH": path}, shell=f"{path}/dash")
    assert lines(found) == ((f"{path}/dash", "-c", "echo  $HOME"),)
    missing = failure(resolve(COMMAND, cwd="/", env={"PATH": path}, shell="/nowhere/zsh"))
    assert "/nowhere/zsh" in missing.message
    assert "hooksd.toml" in missing.message


def test_the_users_shell(bin_dir):
    path = bin_dir("sh", "zsh", "fish")
    command = ShellCommand(command="x", shells=("$SHELL", "sh"))
    for shell, options in (("zsh", ("-f",)), ("fish", ("--no-config",)), ("sh", ())):
        found = resolve(command, cwd="/", env={"PATH": path, "SHELL": f"{path}/{shell}"})
        assert found.candidates.first == (f"{path}/{shell}", *options, "-c", "x")
    assert lines(resolve(command, cwd="/", env={"PATH": path})) == ((f"{path}/sh", "-c", "x"),)


def test_no_shell_at_all():
    missing = failure(resolve(COMMAND, cwd="/", env={"PATH": "/nowhere"}))
    assert missing.kind is ProblemKind.MISSING_RUNTIME
    assert "bash, sh" in missing.message
    assert missing.detail == "PATH=/nowhere"
    assert "/nowhere" not in missing.message + missing.hint


# --- argument vectors


def test_a_program_on_the_path(bin_dir):
    path = bin_dir("tool")
    found = resolve(Argv(argv=("tool", "a b")), cwd="/", env={"PATH": path})
    assert lines(found) == ((f"{path}/tool", "a b"),)
    assert found.script_path is None


def test_a_program_below_the_working_directory(bin_dir):
    path = bin_dir("tool")
    assert lines(resolve(Argv(argv=("./tool",)), cwd=path, env={})) == ((f"{path}/./tool",),)


def test_a_program_that_is_not_on_the_path():
    missing = failure(resolve(Argv(argv=("tool",)), cwd="/", env={"PATH": "/nowhere"}))
    assert (missing.kind, missing.detail) == (ProblemKind.MISSING_RUNTIME, "PATH=/nowhere")
    assert "program tool" in missing.message


def test_a_program_that_does_not_exist():
    missing = failure(resolve(Argv(argv=("/nonexistent/hook-binary",)), cwd="/", env={}))
    assert missing.kind is ProblemKind.MISSING_RUNTIME
    assert missing.message == "the program /nonexistent/hook-binary does not exist"


def test_a_program_that_may_not_be_run(script, tmp_path):
    found = failure(resolve(Argv(argv=(script(),)), cwd="/", env={}))
    assert (found.kind, found.message) == (
        ProblemKind.LAUNCH,
        f"the program {tmp_path}/hook.sh is not executable",
    )
    assert "chmod +x" in found.hint
    found = failure(resolve(Argv(argv=("./",)), cwd=str(tmp_path), env={}))
    assert found.message.endswith("is a directory")


# --- scripts


def sh(path: str, **fields: object) -> Script:
    return Script(path=path, runtimes=(("bash",), ("sh",)), **fields)


def test_runtimes_in_order_with_their_options(bin_dir, script):
    path = bin_dir("bun", "node")
    handler = Script(path=script(name="a.js"), runtimes=(("node",), ("bun", "run")), arguments=("x",))
    found = resolve(handler, cwd="/", env={"PATH": path})
    assert lines(found) == (
        (f"{path}/node", handler.path, "x"),
        (f"{path}/bun", "run", handler.path, "x"),
    )
    assert found.script_path == handler.path


def test_a_relative_script(bin_dir, script, tmp_path):
    path = bin_dir("bash")
    script()
    for handler, cwd in ((sh("hook.sh"), str(tmp_path)), (sh("hook.sh", base=str(tmp_path)), "/")):
        assert resolve(handler, cwd=cwd, env={"PATH": path}).script_path == f"{tmp_path}/hook.sh"
    assert resolve(sh("../hook.sh"), cwd=path, env={"PATH": path}).script_path == f"{path}/../hook.sh"


@pytest.mark.parametrize(
    ("first_line", "program"),
    [
        ("#!/usr/bin/env dash\n", ("dash",)),
        ("#!/usr/bin/env -S dash -e\n", ("dash", "-e")),
        ("#!/bin/dash-is-not-here/dash -u\n", ("dash", "-u")),
        ("#!/usr/bin/env zsh\r\n", ("zsh", "-f")),
        ("#!/usr/bin/env bash\n", ("bash",)),
    ],
)
def test_the_shell_of_the_first_line_comes_first(bin_dir, script, first_line, program):
    path = bin_dir("bash", "sh", "dash", "zsh")
    handler = sh(script(first_line), shebang_shell=True)
    candidates = lines(resolve(handler, cwd="/", env={"PATH": path}))
    name, *options = program
    assert candidates[0] == (f"{path}/{name}", *options, handler.path)
    assert candidates[-1] == (f"{path}/sh", handler.path)
    assert len(set(candidates)) == len(candidates)


def test_the_place_that_the_first_line_names(bin_dir, script):
    path = bin_dir("bash", "ksh")
    handler = sh(script(f"#!{path}/ksh -e\n"), shebang_shell=True)
    assert resolve(handler, cwd="/", env={"PATH": "/bin"}).candidates.first == (
        f"{path}/ksh",
        "-e",
        handler.path,
    )


@pytest.mark.parametrize("first_line", ["", "#!/usr/bin/python3\n", "#!/usr/bin/env ksh\n", "echo\n"])
def test_else_the_dialects_runtimes(bin_dir, script, first_line):
    path = bin_dir("bash")
    handler = sh(script(first_line), shebang_shell=True)
    assert lines(resolve(handler, cwd="/", env={"PATH": path})) == ((f"{path}/bash", handler.path),)


def test_a_script_that_cannot_be_read_is_left_to_its_runtime(bin_dir, script, monkeypatch):
    path = bin_dir("bash")
    handler = sh(script("#!/bin/zsh"), shebang_shell=True)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Root may read all of them.
    monkeypatch.setattr("builtins.open", refuse)
    assert lines(resolve(handler, cwd="/", env={"PATH": path})) == ((f"{path}/bash", handler.path),)


def test_a_missing_script(tmp_path):
    missing = failure(resolve(sh("gone.sh"), cwd=str(tmp_path), env={"PATH": "/bin"}))
    assert missing.kind is ProblemKind.MISSING_SCRIPT
    assert f"{tmp_path}/gone.sh is not accessible: No such file or directory" in missing.message
    assert "'gone.sh'" in missing.message
    missing = failure(resolve(sh("/gone.sh"), cwd=str(tmp_path), env={}))
    assert missing.message == "the script /gone.sh is not accessible: No such file or directory"
    assert failure(resolve(sh("/a\0b"), cwd="/", env={})).kind is ProblemKind.MISSING_SCRIPT


def test_a_script_that_is_no_file(tmp_path):
    missing = failure(resolve(sh(str(tmp_path)), cwd="/", env={}))
    assert (missing.kind, missing.message) == (
        ProblemKind.MISSING_SCRIPT,
        f"the script {tmp_path} is not a file",
    )


def test_no_runtime_at_all(script):
    handler = Script(path=script(), runtimes=(("node",), ("bun", "run"), ("bun", "x")))
    missing = failure(resolve(handler, cwd="/", env={"PATH": "/nowhere"}))
    assert missing.kind is ProblemKind.MISSING_RUNTIME
    assert handler.path in missing.message
    assert missing.message.endswith("tried node, bun")
    assert missing.detail == "PATH=/nowhere"


def test_the_order_of_the_checks(script, tmp_path):
    gone = str(tmp_path / "gone")
    refused = sh(script(), refusal="batch files require Windows")
    nothing = {"PATH": "/nowhere"}
    # The file, the refusal, the working directory, the runtime.
    missing = sh("/gone.bat", refusal="batch files require Windows")
    assert resolve(missing, cwd=gone, env=nothing).kind is ProblemKind.MISSING_SCRIPT
    found = resolve(refused, cwd=gone, env=nothing)
    assert (found.kind, "require Windows" in found.message) == (ProblemKind.LAUNCH, True)
    assert resolve(sh(script()), cwd=gone, env=nothing).kind is ProblemKind.MISSING_CWD
    assert resolve(sh(script()), cwd="/", env=nothing).kind is ProblemKind.MISSING_RUNTIME
    # A relative script is missing because its directory is.
    assert resolve(sh("hook.sh"), cwd=gone, env=nothing).kind is ProblemKind.MISSING_CWD
    for handler in (COMMAND, Argv(argv=("tool",))):
        found = failure(resolve(handler, cwd=gone, env=nothing))
        assert found.kind is ProblemKind.MISSING_CWD
        assert gone in found.message


def test_a_programmatic_hook_has_no_process():
    with pytest.raises(TypeError, match="in its client"):
        resolve(Programmatic(registration_id="r", priority=100), cwd="/", env={})


def test_real_runtimes_are_found():
    found = resolve(COMMAND, cwd="/", env={"PATH": os.environ["PATH"]})
    assert os.access(found.candidates.first[0], os.X_OK)
