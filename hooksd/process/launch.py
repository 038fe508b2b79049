"""Starting one process: pipes, the child, its stdin. Blocking; called in the threads of `spawn_pool.py`.

`subprocess.Popen` is the quickest way that was measured (it uses `vfork`, `setsid` and `close_range`), as long as it is
given no `preexec_fn`. Everything here is all or nothing: a launch that fails leaves no descriptor and no child.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack, suppress

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
    with ExitStack() as ours, ExitStack() as theirs:
        try:
            stdout, child_stdout = _pipe(ours, theirs)
            stderr, child_stderr = _pipe(ours, theirs)
            child_stdin, stdin, rest = _stdin(spawn.stdin, ours, theirs)
        except OSError as error:
            return failure_of(error, (), spawn)
        failure: LaunchFailure | None = None
        for argv in spawn.candidates:
            try:
                with limit.around_spawn(child_stdin):
                    popen = subprocess.Popen(
                        argv,
                        stdin=child_stdin,
                        stdout=child_stdout,
                        stderr=child_stderr,
                        cwd=spawn.cwd,
                        env=spawn.env,
                        start_new_session=True,
                        close_fds=True,
                    )
                limit.after_spawn(popen.pid, child_stdin)
            except (OSError, ValueError) as error:
                failure = failure_of(error, argv, spawn)
                if failure.kind is not ProblemKind.MISSING_RUNTIME:
                    return failure
                continue
            ours.pop_all()
            return Launched(popen, argv, stdout, stderr, stdin, rest)
        if failure is not None and len(spawn.candidates) == 1:
            return failure
        programs = ", ".join(dict.fromkeys(argv[0] for argv in spawn.candidates))
        return LaunchFailure(
            kind=ProblemKind.MISSING_RUNTIME,
            message=f"none of the programs is there any more; tried {programs}",
            hint="install one of them",
        )


def _pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    """A pipe from the child to us. Only our end does not block: the flag belongs to the end, not to the pipe."""
    read, write = os.pipe()
    ours.callback(os.close, read)
    theirs.callback(os.close, write)
    os.set_blocking(read, False)
    return read, write


def _stdin(data: bytes | None, ours: ExitStack, theirs: ExitStack) -> tuple[int, int | None, memoryview]:
    """The child's stdin with as much in it as fits. Nothing reads yet, so no write can fail for want of a reader."""
    rest = memoryview(data or b"")
    if data is None:
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        theirs.callback(os.close, null)
        return null, None, rest
    read, write = os.pipe()
    theirs.callback(os.close, read)
    with ExitStack() as unless_kept:
        unless_kept.callback(os.close, write)
        os.set_blocking(write, False)
        with suppress(BlockingIOError):
            while rest:
                rest = rest[os.write(write, rest) :]
        if not rest:
            return read, None, rest
        unless_kept.pop_all()
    ours.callback(os.close, write)
    return read, write, rest
