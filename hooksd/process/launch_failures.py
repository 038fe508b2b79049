"""Why a process could not be started, in words that tell what to do. Looks at files, starts nothing."""

from __future__ import annotations

import errno
import os

from hooksd.model.problems import ProblemKind
from hooksd.model.run import LaunchFailure, Spawn
from hooksd.process import shebang
from hooksd.process.lookup import directory_failure


__all__ = ["failure_of", "not_executable"]

HINTS = {
    errno.EMFILE: "raise the daemon's limit of open files (LimitNOFILE=, ulimit -n), or run fewer hooks at once",
    errno.ENFILE: "the whole machine has too many files open; raise fs.file-max or close programs",
    errno.EAGAIN: "the user or the service may not have more processes; raise `ulimit -u` or TasksMax=",
    errno.ENOMEM: "the machine has too little memory left to start a process",
    errno.E2BIG: "shorten the command or the hook's environment; payloads belong on stdin",
    errno.ENOEXEC: "the file has no `#!` line and is no program for this machine; add one, or name its interpreter",
    errno.ELOOP: "its symbolic links lead in a circle; correct them",
    errno.ETXTBSY: "the file is being written; close it, or replace it by renaming a new file onto it",
}

NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR})


def failure_of(error: OSError | ValueError, argv: tuple[str, ...], spawn: Spawn) -> LaunchFailure:
    """What to tell about an error of `pipe` (then `argv` is empty) or `Popen`.

    `missing_runtime` means that the next candidate may be tried; nothing else does.
    """
    if isinstance(error, OSError):
        return _os_error(error, argv, spawn)
    return _bad_value(error, argv, spawn)


def not_executable(program: str) -> LaunchFailure:
    """The program is there, but the daemon's user may not run it."""
    if os.path.isdir(program):
        message, hint = f"the program {program} is a directory", "name an executable file"
    else:
        message, hint = f"the program {program} is not executable", f"make it executable: chmod +x {program}"
    return LaunchFailure(kind=ProblemKind.LAUNCH, message=message, hint=hint)


def _os_error(error: OSError, argv: tuple[str, ...], spawn: Spawn) -> LaunchFailure:
    number = error.errno or 0
    if not argv:
        return LaunchFailure(
            kind=ProblemKind.LAUNCH,
            message=f"the hook's pipes cannot be made: {error.strerror}",
            hint=HINTS.get(number),
        )
    program = argv[0]
    # The child reports a failed chdir with the directory as the file; it may have vanished a moment ago.
    if error.filename == spawn.cwd and (failure := directory_failure(spawn.cwd)):
        return failure
    if number in NOT_THERE:
        return _not_there(program, spawn.cwd)
    if number == errno.EACCES:
        return not_executable(os.path.join(spawn.cwd, program))
    return LaunchFailure(
        kind=ProblemKind.LAUNCH,
        message=f"{program} cannot be started: {error.strerror}",
        hint=HINTS.get(number),
    )


def _not_there(program: str, cwd: str) -> LaunchFailure:
    path = os.path.join(cwd, program)
    if not os.path.exists(path):
        return LaunchFailure(
            kind=ProblemKind.MISSING_RUNTIME,
            message=f"the program {program} does not exist",
            hint="correct the path, or install the program",
        )
    interpreter = _interpreter(path)
    if interpreter.endswith("\r"):
        return LaunchFailure(
            kind=ProblemKind.MISSING_RUNTIME,
            message=f"{program} has a first line that ends with a carriage return, so its interpreter is not found",
            hint="save the file with Unix line ends",
        )
    return LaunchFailure(
        kind=ProblemKind.MISSING_RUNTIME,
        message=f"{program} exists, but the interpreter that it needs does not"
        + (f": {interpreter}" if interpreter else ""),
        hint="install the interpreter, or correct the first line of the file",
    )


def _interpreter(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            start = file.read(shebang.READ_BYTES)
    except OSError:
        return ""
    if not start.startswith(b"#!"):
        return ""
    return start[2:].split(b"\n", 1)[0].decode("utf-8", "replace").strip(" \t")


def _bad_value(error: ValueError, argv: tuple[str, ...], spawn: Spawn) -> LaunchFailure:
    """Name what holds the NUL byte, or the text that no file system encoding can carry; never its value."""
    if any(_is_bad(word) for word in argv):
        what = "the command"
    elif _is_bad(spawn.cwd):
        what = "the working directory"
    else:
        bad = [name for name, value in spawn.env.items() if _is_bad(name) or _is_bad(value) or "=" in name]
        what = f"the environment variable {bad[0]!r}" if bad else "the command"
    return LaunchFailure(
        kind=ProblemKind.LAUNCH,
        message=f"{what} cannot be given to a process: {_reason(error)}",
        hint="take NUL characters, unpaired surrogates and `=` in names of variables out",
    )


def _is_bad(text: str) -> bool:
    try:
        return b"\0" in os.fsencode(text)
    except UnicodeEncodeError:
        return True


def _reason(error: ValueError) -> str:
    # A UnicodeEncodeError carries the text itself in its message.
    return error.reason if isinstance(error, UnicodeEncodeError) else str(error)
