"""From a handler to command lines: which shell or runtime runs a hook on this machine, in this environment.

What a hook may run with is told by its dialect in the `Handler`; here it is only found out what is there. The order of
checks of a script is that of the Bamboo reference (Bamboo dialect 3.2): the file, then whether it can run on this
system at all, then the working directory, then the runtimes.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Iterator, Mapping

import msgspec

from hooksd.model.hooks import Argv, Handler, Programmatic, Script, ShellCommand
from hooksd.model.problems import ProblemKind
from hooksd.model.run import LaunchFailure
from hooksd.process import shebang
from hooksd.process.launch_failures import not_executable
from hooksd.process.lookup import directory_failure, find_program, search_path
from hooksd.process.shims import behind_shim


__all__ = ["Candidates", "Resolved", "resolve"]

NO_START_UP_FILES = {"zsh": ("-f",), "csh": ("-f",), "tcsh": ("-f",), "fish": ("--no-config",)}
"""Options that keep a shell from reading start-up files although it is not interactive."""


class Candidates:
    """Command lines to try in order; each begins with the absolute path of a program.

    Only the first is looked for at once, since it nearly always is the one that runs. The others are looked for afresh
    whenever somebody comes to them, in his thread.

    Attributes:
        first: The first one.
    """

    __slots__ = ("_all", "first")

    def __init__(self, first: tuple[str, ...], all_: Callable[[], Iterator[tuple[str, ...]]]) -> None:
        self.first = first
        self._all = all_

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        yield self.first
        given = {self.first}
        for line in self._all():
            if line not in given:
                given.add(line)
                yield line


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler comes to.

    Attributes:
        candidates: What to start.
        script_path: The absolute path of the script, None for a command.
    """

    candidates: Candidates
    script_path: str | None = None


def resolve(
    handler: Handler, *, cwd: str, env: Mapping[str, str], shell: str = "auto", uv: bool = False
) -> Resolved | LaunchFailure:
    """Find out what runs a handler.

    Args:
        handler: Any but a programmatic one.
        cwd: The absolute working directory of the hook.
        env: The complete environment of the hook; its PATH is searched.
        shell: `[shell] command`: a shell that replaces the dialect's own choice for command lines, or `auto`.
        uv: `[runtimes] uv`: scripts that prefer it are run by `uv run` where there is one.
    """
    match handler:
        case ShellCommand():
            return _shell_command(handler, cwd, env, shell)
        case Argv():
            return _argv(handler, cwd, env)
        case Script():
            return _script(handler, cwd, env, uv=uv)
        case Programmatic():
            pass
    raise TypeError("a programmatic hook runs in its client, not in a process")


def _shell_command(
    handler: ShellCommand, cwd: str, env: Mapping[str, str], shell: str
) -> Resolved | LaunchFailure:
    if failure := directory_failure(cwd):
        return failure
    if shell != "auto":
        shells: tuple[str, ...] = (shell,)
    else:
        named = (env.get("SHELL", "") if name == "$SHELL" else name for name in handler.shells)
        shells = tuple(name for name in named if name)
    path = search_path(env)

    def lines() -> Iterator[tuple[str, ...]]:
        for name in shells:
            if program := find_program(name, path=path, cwd=cwd):
                yield (
                    program,
                    *NO_START_UP_FILES.get(posixpath.basename(program), ()),
                    "-c",
                    handler.command,
                )

    if first := next(lines(), None):
        return Resolved(candidates=Candidates(first, lines))
    where = "`[shell] command` of hooksd.toml" if shell != "auto" else "the hook's dialect"
    return _missing_runtime(
        f"there is no shell to run the command with; tried {', '.join(shells)} ({where})",
        "install one of them, or name a shell with its full path in hooksd.toml: [shell] command",
        path,
    )


def _argv(handler: Argv, cwd: str, env: Mapping[str, str]) -> Resolved | LaunchFailure:
    if failure := directory_failure(cwd):
        return failure
    program, *arguments = handler.argv
    path = search_path(env)

    def lines() -> Iterator[tuple[str, ...]]:
        if found := find_program(program, path=path, cwd=cwd):
            yield (found, *arguments)

    if first := next(lines(), None):
        return Resolved(candidates=Candidates(first, lines))
    if "/" in program:
        absolute = os.path.join(cwd, program)
        if os.path.exists(absolute):
            return not_executable(absolute)
        return _missing_runtime(
            f"the program {absolute} does not exist", "correct the path, or install the program", None
        )
    return _missing_runtime(
        f"the program {program} is not on the PATH of the hook",
        "install it, give its full path, or let the agent pass a PATH that has it (`env` of execution/open)",
        path,
    )


def _script(handler: Script, cwd: str, env: Mapping[str, str], *, uv: bool) -> Resolved | LaunchFailure:
    if not os.path.isabs(handler.path) and handler.base is None and (failure := directory_failure(cwd)):
        # The script is missing only because the directory is.
        return failure
    script = os.path.join(cwd, handler.base or "", handler.path)
    if failure := _script_failure(script, handler.path):
        return failure
    if handler.refusal is not None:
        return LaunchFailure(kind=ProblemKind.LAUNCH, message=f"{script}: {handler.refusal}")
    if failure := directory_failure(cwd):
        return failure
    path = search_path(env)
    prefixes = (("uv", "run"), *handler.runtimes) if uv and handler.prefers_uv else handler.runtimes
    if handler.shebang_shell and (named := _shebang_shell(script)):
        # Where the first line names a place that this machine has no shell in, the same shell may lie elsewhere.
        elsewhere = (posixpath.basename(named[0]), *named[1:])
        prefixes = (named, elsewhere, *prefixes)

    def lines() -> Iterator[tuple[str, ...]]:
        for name, *options in prefixes:
            if program := find_program(name, path=path, cwd=cwd):
                yield (behind_shim(program, cwd=cwd, env=env), *options, script, *handler.arguments)

    if first := next(lines(), None):
        return Resolved(candidates=Candidates(first, lines), script_path=script)
    tried = dict.fromkeys(name for name, *_ in prefixes)
    return _missing_runtime(
        f"nothing to run the script {script} with; tried {', '.join(tried)}",
        "install one of them, or let the agent pass a PATH that has it (`env` of execution/open)",
        path,
    )


def _script_failure(script: str, written: str) -> LaunchFailure | None:
    try:
        mode = os.stat(script).st_mode
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        how = "" if os.path.isabs(written) else f" (written as {written!r}, relative to its directory)"
        return LaunchFailure(
            kind=ProblemKind.MISSING_SCRIPT,
            message=f"the script {script} is not accessible: {reason}{how}",
            hint="create the script, or correct its path in the hook's configuration",
        )
    if not stat.S_ISREG(mode):
        return LaunchFailure(
            kind=ProblemKind.MISSING_SCRIPT,
            message=f"the script {script} is not a file",
            hint="name a script file, not a directory or a device",
        )
    return None


def _shebang_shell(script: str) -> tuple[str, ...] | None:
    try:
        with open(script, "rb", buffering=0) as file:
            named = shebang.shell_of(file.read(shebang.READ_BYTES))
    except OSError:
        # The shell that runs it says this better than we could: it has to read all of the file.
        return None
    if named is None:
        return None
    return (named[0], *NO_START_UP_FILES.get(posixpath.basename(named[0]), ()), *named[1:])


def _missing_runtime(message: str, hint: str, path: str | None) -> LaunchFailure:
    detail = None if path is None else f"PATH={path}"
    return LaunchFailure(kind=ProblemKind.MISSING_RUNTIME, message=message, hint=hint, detail=detail)
