"""What runs a Chrys script, by its suffix."""

from __future__ import annotations

import pytest

from hooksd.dialects.chrys_handlers import command_handler, script_handler, shell_handler


PYTHON = (("python3",), ("python",))
SHELLS = (("bash",), ("sh",))


@pytest.mark.parametrize(
    ("path", "runtimes"),
    [
        ("x.py", PYTHON),
        ("x.PY", PYTHON),
        ("x.sh", SHELLS),
        ("x.bash", SHELLS),
        ("x.Zsh", SHELLS),
        ("x.ps1", (("pwsh", "-NoProfile", "-File"), ("powershell", "-NoProfile", "-File"))),
        ("x.js", (("node",),)),
        ("x.mjs", (("node",),)),
        ("x.ts", (("npx", "tsx"),)),
        ("x.rb", (("ruby",),)),
        ("x.pl", (("perl",),)),
        ("x", PYTHON),
        ("x.exe", PYTHON),
        ("x.bat", PYTHON),
        ("x.sh.txt", PYTHON),
        ("dir.sh/x", PYTHON),
    ],
)
def test_interpreters(path: str, runtimes: tuple[tuple[str, ...], ...]) -> None:
    script = script_handler(path, ["a"], "/hooks")

    assert (script.path, script.base, script.arguments) == (path, "/hooks", ("a",))
    assert script.runtimes == runtimes
    assert script.shebang_shell is (runtimes is SHELLS or runtimes == SHELLS)
    assert script.prefers_uv is (runtimes == PYTHON)


def test_programs_and_lines() -> None:
    assert command_handler(["a", "b"], ["c"]).argv == ("a", "b", "c")
    assert shell_handler("x").shells == ("$SHELL", "/bin/sh")
