"""Finding programs on a PATH, and saying what is the matter with a directory.

There is no cache: one lookup costs a few microseconds per directory of the PATH, and a cache would have to find out by
the same system calls whether somebody installed a better program since.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from hooksd.model.problems import ProblemKind
from hooksd.model.run import LaunchFailure


__all__ = ["directory_failure", "find_program", "search_path"]


def search_path(env: Mapping[str, str]) -> str:
    """The PATH that programs of a hook are looked up on; the system's default where the environment has none."""
    return env.get("PATH", os.defpath)


def find_program(program: str, *, path: str, cwd: str) -> str | None:
    """The absolute path of an executable regular file, as a shell in `cwd` would find it; None if there is none.

    A name with a slash in it is not looked up. Empty and relative directories of the PATH are relative to `cwd`.
    """
    if not program:
        return None
    if "/" in program:
        candidate = os.path.join(cwd, program)
        return candidate if _is_executable(candidate) else None
    for directory in path.split(os.pathsep):
        # `join` takes as long as the look itself, which happens some ten times for every hook.
        plain = directory.startswith("/") and not directory.endswith("/")
        candidate = f"{directory}/{program}" if plain else os.path.join(cwd, directory, program)
        if _is_executable(candidate):
            return candidate
    return None


def directory_failure(cwd: str) -> LaunchFailure | None:
    """Why a hook cannot be started in `cwd`; None if it can."""
    try:
        mode = os.stat(cwd).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return LaunchFailure(
            kind=ProblemKind.MISSING_CWD,
            message=f"the working directory {cwd} does not exist",
            hint="create it again, or open the execution with the workspace that it works in now",
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return LaunchFailure(
            kind=ProblemKind.MISSING_CWD,
            message=f"the working directory {cwd!r} cannot be used: {reason}",
            hint="correct the path or the permissions of the directories that lead to it",
        )
    if not stat.S_ISDIR(mode):
        return LaunchFailure(
            kind=ProblemKind.MISSING_CWD,
            message=f"the working directory {cwd} is not a directory",
            hint="name the directory that the hooks shall run in",
        )
    if not os.access(cwd, os.X_OK):
        return LaunchFailure(
            kind=ProblemKind.LAUNCH,
            message=f"the working directory {cwd} cannot be entered: Permission denied",
            hint=f"give the daemon's user the right to enter it (chmod u+x {cwd})",
        )
    return None


def _is_executable(candidate: str) -> bool:
    try:
        return os.access(candidate, os.X_OK) and stat.S_ISREG(os.stat(candidate).st_mode)
    except (OSError, ValueError):
        # A ValueError is a NUL, or text that no file name can hold: nothing of that name is there.
        return False
