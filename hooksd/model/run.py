"""One run of a hook's process: what is to be started, and what came of it. Pure data."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hooksd.model.problems import HookProblem, ProblemKind


__all__ = ["LaunchFailure", "ProcessResult", "Spawn"]


class Spawn(msgspec.Struct, frozen=True, kw_only=True):
    """A process that is ready to be started; every path is decided.

    Attributes:
        candidates: Command lines to try in order, at least one. Only "the program is not there" moves on to the next,
            which may be looked for only then, in the thread that starts the process.
        cwd: Absolute working directory.
        env: The complete environment.
        stdin: What the process reads; None gives it the null device.
        stdout_limit_bytes: How much of stdout is kept; the rest is read, counted and dropped.
        stderr_limit_bytes: The same for stderr.
        deadline: Absolute, on the clock of `time.monotonic`; None for none.
        kill_grace_s: From SIGTERM to SIGKILL when the tree must be ended.
        mark: The invocation id; the process has it in `HOOKSD_INVOCATION_ID`, by which its descendants are known.
        keep_tail: Keep the first third and the last two thirds of a stream (Chrys) instead of its beginning.
    """

    candidates: Iterable[tuple[str, ...]]
    cwd: str
    env: dict[str, str]
    stdin: bytes | None
    stdout_limit_bytes: int
    stderr_limit_bytes: int
    deadline: float | None
    kill_grace_s: float
    mark: str
    keep_tail: bool = False


class LaunchFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why no process came to be. `kind` is one of launch, missing_script, missing_runtime, missing_cwd, busy (detached).

    `detail` holds what helps but must not be logged, such as the PATH that was searched: it becomes the `detail` of
    the `HookProblem`.
    """

    kind: ProblemKind
    message: str
    hint: str | None = None
    detail: str | None = None


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one process did, as far as it was seen when the result was decided.

    Exactly one of these holds: `launch_failure` is set; `timed_out`; `exit_code` is set; `signal` is set.

    Attributes:
        launch_failure: Set when nothing was started; all else is then at its default.
        argv: The command line that ran.
        pid: Its process id.
        exit_code: Its exit code, None after a signal or a timeout.
        signal: The signal that ended it, None otherwise.
        timed_out: The deadline passed before it had exited; what it wrote until then is kept.
        stdout: What was kept of stdout.
        stderr: What was kept of stderr.
        stdout_bytes: How much it wrote to stdout in all.
        stderr_bytes: How much it wrote to stderr in all.
        stdout_truncated: More was written than kept.
        stderr_truncated: More was written than kept.
        inherited_pipe: The process had exited but a descendant still held stdout or stderr.
        left_running: How many descendants were alive after a normal exit.
        duration_s: From just before the spawn to the decision.
        search_path: The PATH it ran with, if the exit code says that a command was not found (127); else None.
        answer: What is in its result file; empty where its contract has none, and after a run that failed.
        answer_fault: Why its result file was not read, None if it was.
    """

    launch_failure: LaunchFailure | None = None
    argv: tuple[str, ...] = ()
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    inherited_pipe: bool = False
    left_running: int = 0
    duration_s: float = 0.0
    search_path: str | None = None
    answer: bytes = b""
    answer_fault: HookProblem | None = None
