"""Looking behind the shims of version managers (pyenv, nodenv).

On such a machine `python3` on the PATH is a shell script that finds out which version is meant and then starts it: that
takes 100 to 200 ms at each run of a hook, ten times what the interpreter itself needs. Where hooksd picks the
interpreter, it finds out the same by the same rules, from the same files, at each run. Whenever something is not plain
(several versions, a version that is not installed under that very name, `system`, hooks of plugins), the shim stays.

The one difference for the hook: a shim also exports the version it chose and puts its directory first on the PATH, so
that a hook which changes to the directory of another project keeps it there.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

import msgspec

from hooksd.process.lookup import find_program


__all__ = ["behind_shim"]

MAX_SHIM_BYTES = 2_048
"""A shim is a script of a few lines; more is something else."""

MAX_VERSION_BYTES = 1_024


class _Manager(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    variable: str
    local_file: str


MANAGERS = (
    _Manager(name="pyenv", variable="PYENV_VERSION", local_file=".python-version"),
    _Manager(name="nodenv", variable="NODENV_VERSION", local_file=".node-version"),
)

CHANGE_THE_RULES = ("DIR", "HOOK_PATH", "ROOT")
"""Variables of a manager, after its name, that make it look elsewhere; `ROOT` only if it is not the shim's own."""


def behind_shim(program: str, *, cwd: str, env: Mapping[str, str]) -> str:
    """The program that a shim would start in this directory with this environment; any other program as it is."""
    directory, name = posixpath.split(program)
    root, last = posixpath.split(directory)
    if last != "shims":
        return program
    manager = _manager_of(program)
    if manager is None or _has_rules_of_its_own(manager, root, env):
        return program
    version = env.get(manager.variable) or _version_in_files(manager, root, cwd)
    if not version or version in (".", "..") or "/" in version:
        return program
    found = posixpath.join(root, "versions", version, "bin", name)
    return find_program(found, path="", cwd=cwd) or program


def _manager_of(program: str) -> _Manager | None:
    text = _read(program, MAX_SHIM_BYTES)
    if text is None or not text.startswith("#!") or len(text) >= MAX_SHIM_BYTES:
        return None
    for manager in MANAGERS:
        if f'{manager.name}" exec "$program" "$@"' in text:
            return manager
    return None


def _has_rules_of_its_own(manager: _Manager, root: str, env: Mapping[str, str]) -> bool:
    for suffix in CHANGE_THE_RULES:
        value = env.get(f"{manager.name.upper()}_{suffix}")
        if value and not (suffix == "ROOT" and posixpath.normpath(value) == root):
            return True
    return False


def _version_in_files(manager: _Manager, root: str, cwd: str) -> str | None:
    """The one version in the nearest local file, else in the global one; None if it names none or several."""
    directory = cwd
    while True:
        text = _read(posixpath.join(directory, manager.local_file), MAX_VERSION_BYTES)
        parent = posixpath.dirname(directory)
        if text is not None or parent == directory:
            break
        directory = parent
    if text is None:
        text = _read(posixpath.join(root, "version"), MAX_VERSION_BYTES)
    words = (text or "").split()
    return words[0] if len(words) == 1 else None


def _read(path: str, limit: int) -> str | None:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
