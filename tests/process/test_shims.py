from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from hooksd.model.hooks import Script
from hooksd.process.runtimes import resolve
from hooksd.process.shims import behind_shim


SHIM = """#!/usr/bin/env bash
set -e
program="${0##*/}"
export PYENV_ROOT="ROOT"
exec "ROOT/libexec/pyenv" exec "$program" "$@"
"""


@pytest.fixture
def root(tmp_path):
    """A pyenv with two versions, of which 3.12.1 is the global one."""
    root = tmp_path / "pyenv"
    for version in ("3.11.7", "3.12.1"):
        program(root / "versions" / version / "bin" / "python3", "#!/bin/sh\n")
    program(root / "shims" / "python3", SHIM.replace("ROOT", str(root)))
    (root / "version").write_text("3.12.1\n")
    (tmp_path / "project" / "src").mkdir(parents=True)
    return root


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def version(root, cwd, env=None):
    """What is found behind the shim, as a version; None when the shim stays."""
    shim = str(root / "shims" / "python3")
    found = behind_shim(shim, cwd=str(cwd), env=env or {})
    return None if found == shim else found.removeprefix(f"{root}/versions/").removesuffix("/bin/python3")


def test_the_global_version(root, tmp_path):
    assert version(root, tmp_path) == "3.12.1"
    assert version(root, "/") == "3.12.1"


def test_the_nearest_local_file(root, tmp_path):
    (tmp_path / ".python-version").write_text("gone\n")
    (tmp_path / "project" / ".python-version").write_text("3.11.7")
    assert version(root, tmp_path / "project" / "src") == "3.11.7"
    assert version(root, tmp_path / "project") == "3.11.7"
    assert version(root, tmp_path) is None


def test_the_variable_comes_first(root, tmp_path):
    (tmp_path / ".python-version").write_text("3.12.1")
    assert version(root, tmp_path, {"PYENV_VERSION": "3.11.7"}) == "3.11.7"
    assert version(root, tmp_path, {"PYENV_VERSION": "", "PYENV_ROOT": f"{root}/"}) == "3.12.1"


@pytest.mark.parametrize(
    "text", ["", "system\n", "3.11.7\n3.12.1\n", "3.11", "../..", "..", ".", "/bin", "3.11.7 # new", "\0"]
)
def test_what_is_not_plain_is_left_to_the_shim(root, tmp_path, text):
    (tmp_path / ".python-version").write_text(text)
    assert version(root, tmp_path) is None


@pytest.mark.parametrize("name", ["PYENV_DIR", "PYENV_HOOK_PATH", "PYENV_ROOT"])
def test_other_rules_are_left_to_the_shim(root, tmp_path, name):
    assert version(root, tmp_path, {name: "/elsewhere"}) is None


def test_without_any_version_file(root, tmp_path):
    (root / "version").unlink()
    assert version(root, tmp_path) is None


def test_what_is_no_shim(root, tmp_path):
    for text in ("#!/bin/sh\necho pyenv\n", "\x7fELF", SHIM + "#" * 3000):
        program(root / "shims" / "python3", text)
        assert version(root, tmp_path) is None
    assert behind_shim("/usr/bin/python3", cwd="/", env={}) == "/usr/bin/python3"
    assert behind_shim("/nowhere/shims/python3", cwd="/", env={}) == "/nowhere/shims/python3"


def test_a_script_runs_by_what_is_behind_the_shim(root, tmp_path):
    (tmp_path / "hook.py").write_text("")
    handler = Script(path=str(tmp_path / "hook.py"), runtimes=(("python3",),))
    found = resolve(handler, cwd=str(tmp_path), env={"PATH": f"{root}/shims"})
    assert tuple(found.candidates) == ((f"{root}/versions/3.12.1/bin/python3", handler.path),)


@pytest.mark.skipif(
    "/shims/" not in (shutil.which("python3") or ""),
    reason="python3 on the PATH is no shim of a version manager",
)
def test_the_real_shim_agrees(tmp_path):
    shim = shutil.which("python3")
    ask = [shim, "-c", "import sys; print(sys.executable)"]
    told = subprocess.run(ask, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()
    found = behind_shim(shim, cwd=str(tmp_path), env=dict(os.environ))
    assert found in (told, shim)
    assert os.path.realpath(found if found != shim else told) == os.path.realpath(told)
