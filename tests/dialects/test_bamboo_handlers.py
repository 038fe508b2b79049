"""Runtimes and runners; the numbers are those of the reference's own cases (Bamboo dialect 8)."""

from __future__ import annotations

import pytest

from hooksd.dialects.bamboo_handlers import (
    EXTENSIONS,
    RunnerMismatch,
    command_handler,
    runners_for,
    script_extension,
    script_handler,
    trim,
)
from hooksd.model.hooks import Script, ShellCommand


POWERSHELL = ("-NoLogo", "-NoProfile", "-NonInteractive", "-File")


def script(path: str, runner: str = "auto", *, windows: bool = False) -> Script:
    extension = script_extension(path, windows=windows)
    assert extension is not None
    return script_handler(path, extension, runner, windows=windows)


def test_commands_go_to_bash_else_sh() -> None:
    assert command_handler(" exit 2 ") == ShellCommand(command=" exit 2 ", shells=("bash", "sh"))


@pytest.mark.parametrize(
    ("path", "runner", "runtimes"),
    [
        pytest.param("a.js", "auto", (("node",), ("bun", "run")), id="case_18_js"),
        pytest.param("a.mjs", "bun", (("bun", "run"),), id="case_18_mjs_bun"),
        pytest.param("a.cjs", "node", (("node",),), id="cjs_node"),
        pytest.param("a.py", "auto", (("python3",), ("python",)), id="case_18_py"),
        pytest.param("a.py", "python", (("python3",), ("python",)), id="py_python"),
        pytest.param("a.sh", "auto", (("bash",), ("sh",)), id="case_18_sh"),
        pytest.param("a.sh", "bash", (("bash",),), id="case_19_sh_bash_has_no_sh"),
        pytest.param("a.ps1", "auto", (("pwsh", *POWERSHELL), ("powershell", *POWERSHELL)), id="case_18_ps1"),
        pytest.param(
            "a.ps1", "powershell", (("pwsh", *POWERSHELL), ("powershell", *POWERSHELL)), id="ps1_explicit"
        ),
    ],
)
def test_runtimes(path: str, runner: str, runtimes: tuple[tuple[str, ...], ...]) -> None:
    handler = script(path, runner)
    assert handler.runtimes == runtimes
    assert handler.refusal is None
    assert handler.path == path
    assert handler.base is None


def test_the_first_line_chooses_the_shell_only_for_runner_auto() -> None:
    assert script("a.sh").shebang_shell
    assert not script("a.sh", "bash").shebang_shell
    assert not script("a.py").shebang_shell


@pytest.mark.parametrize("runner", ["auto", "cmd"])
@pytest.mark.parametrize("path", ["a.bat", "a.cmd"])
def test_case_20_batch_files_require_windows(path: str, runner: str) -> None:
    here = script(path, runner)
    assert here.runtimes == ()
    assert here.refusal is not None
    assert "require Windows" in here.refusal
    there = script(path, runner, windows=True)
    assert there.refusal is None
    assert there.runtimes == (("cmd.exe", "/D", "/C", "call"),)


def test_windows_tries_other_runtimes() -> None:
    assert script("a.py", windows=True).runtimes == (("python3",), ("python",), ("py", "-3"))
    assert script("a.sh", windows=True).runtimes == (("bash",),)
    assert not script("a.sh", windows=True).shebang_shell
    assert script_extension("C:\\hooks.d\\GUARD.PY", windows=True) == "py"


@pytest.mark.parametrize(
    ("path", "runner"),
    [
        ("a.py", "node"),
        ("a.py", "bun"),
        ("a.js", "python"),
        ("a.sh", "cmd"),
        ("a.ps1", "bash"),
        ("a.bat", "powershell"),
    ],
)
def test_case_18_an_incompatible_runner_cannot_execute(path: str, runner: str) -> None:
    with pytest.raises(RunnerMismatch, match="cannot execute"):
        script(path, runner)


@pytest.mark.parametrize(
    ("path", "extension"),
    [
        ("guard.js", "js"),
        ("GUARD.PY", "py"),
        ("a.js/", "js"),
        ("dir.d/a.tar.sh", "sh"),
        ("..py", "py"),
        (".sh", None),
        ("dir/.sh", None),
        ("a.py x", None),
        ("a.", None),
        ("a", None),
        ("a.rb", None),
        ("dir.py/a", None),
        ("a.\u212as1", None),
    ],
)
def test_extension_is_the_last_suffix(path: str, extension: str | None) -> None:
    assert script_extension(path, windows=False) == extension


def test_runners_for_every_extension() -> None:
    assert runners_for("js") == ("auto", "node", "bun")
    assert all(len(runners_for(extension)) > 1 for extension in EXTENSIONS)


def test_trim_is_rust_s() -> None:
    assert trim("\u2003 \t\r\n a \u3000\x85") == "a"
    assert trim("\x1ca\x1f") == "\x1ca\x1f"
    assert trim("\ufeffa") == "\ufeffa"
    assert trim("\u200ba") == "\u200ba"
