"""Starting one process: pipes, the child, its stdin. Blocking; called in the threads of `spawn_pool.py`.

`subprocess.Popen` is the quickest way that was measured (it uses `vfork`, `setsid` and `close_range`), as long as it is
given no `preexec_fn`. Everything here is all or nothing: a launch that fails leaves no descriptor and no child.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

from hooksd.model.problems import ProblemKind
from hooksd.model.run import LaunchFailure, Spawn
from hooksd.process.descriptor_limit import HookLimit
from hooksd.process.launch_failures import failure_of


__all__ = ["Launched", "launch"]


class Launched:
    """A running process and our ends of its pipes. Whoever takes it must close the descriptors and reap the process.

    Attributes:
        popen: Must be kept, and the process reaped through it: a `Popen` that is dropped may reap the pid later, when
            it already means another process.
        argv: The candidate that could be started.
        stdout: Our end, not blocking.
        stderr: Our end, not blocking.
        stdin: Our end, not blocking; None when all that the process reads is in the pipe already.
        stdin_rest: What did not fit the pipe.
    """

    __slots__ = ("argv", "popen", "stderr", "stdin", "stdin_rest", "stdout")

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        argv: tuple[str, ...],
        stdout: int,
        stderr: int,
        stdin: int | None,
        stdin_rest: memoryview,
    ) -> None:
        self.popen = popen
        self.argv = argv
        self.stdout = stdout
        self.stderr = stderr
        self.stdin = stdin
        self.stdin_rest = stdin_rest

    def abort(self) -> None:
        """Kill and reap it, close everything: for when nobody is there to take it."""
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
        for descriptor in (self.stdout, self.stderr, self.stdin):
            if descriptor is not None:
                os.close(descriptor)


def launch(spawn: Spawn, limit: HookLimit) -> Launched | LaunchFailure:
    """Start the first candidate that is there.

    The process leads a session and a group of its own and has exactly the descriptors 0, 1 and 2. Its signal mask is
    that of the calling thread, which therefore must block nothing.
    """
    ours: list[int] = []
    theirs: list[int] = []
    launched: Launched | None = None
    try:
        try:
            stdout, stderr = _output(ours, theirs), _output(ours, theirs)
            stdin, rest = _input(spawn.stdin, ours, theirs)
        except OSError as error:
            return failure_of(error, (), spawn)
        outcome = _start(spawn, limit, theirs)
        if isinstance(outcome, LaunchFailure):
            return outcome
        popen, argv = outcome
        launched = Launched(popen, argv, stdout, stderr, stdin, rest)
        return launched
    finally:
        for descriptor in theirs if launched is not None else theirs + ours:
            os.close(descriptor)


def _start(
    spawn: Spawn, limit: HookLimit, theirs: list[int]
) -> tuple[subprocess.Popen[bytes], tuple[str, ...]] | LaunchFailure:
    stdout, stderr, stdin = theirs
    missing: dict[str, LaunchFailure] = {}
    for argv in spawn.candidates:
        try:
            with limit.around_spawn(stdin):
                popen = subprocess.Popen(
                    argv,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    cwd=spawn.cwd,
                    env=spawn.env,
                    start_new_session=True,
                    close_fds=True,
                )
        except (OSError, ValueError) as error:
            failure = failure_of(error, argv, spawn)
            if failure.kind is not ProblemKind.MISSING_RUNTIME:
                return failure
            missing.setdefault(argv[0], failure)
            continue
        limit.after_spawn(popen.pid, stdin)
        return popen, argv
    if len(missing) == 1:
        return next(iter(missing.values()))
    return LaunchFailure(
        kind=ProblemKind.MISSING_RUNTIME,
        message=f"none of the programs is there any more; tried {', '.join(missing)}",
        hint="install one of them",
    )


def _output(ours: list[int], theirs: list[int]) -> int:
    """A pipe from the child to us. Only our end does not block: the flag belongs to the end, not to the pipe."""
    read, write = os.pipe()
    ours.append(read)
    theirs.append(write)
    os.set_blocking(read, False)
    return read


def _input(data: bytes | None, ours: list[int], theirs: list[int]) -> tuple[int | None, memoryview]:
    """The child's stdin with as much in it as fits. Nothing reads yet, so no write can fail for want of a reader."""
    rest = memoryview(data or b"")
    if data is None:
        theirs.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        return None, rest
    read, write = os.pipe()
    theirs.append(read)
    ours.append(write)
    os.set_blocking(write, False)
    with suppress(BlockingIOError):
        while rest:
            rest = rest[os.write(write, rest) :]
    if rest:
        return write, rest
    ours.remove(write)
    os.close(write)
    return None, rest
