"""One invocation from its spawn to its decision: when a result is decided, and what it says.

A result is decided when the hook itself has exited *and* what it wrote has been read, or at the deadline. A descendant
that holds a pipe cannot delay it: at the exit everything that the hook wrote is in the pipes already; only if a pipe is
still held, late bytes get a short grace (`bash` process substitutions write after the exit).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from hooksd.model.problems import ProblemKind
from hooksd.model.run import LaunchFailure, ProcessResult, Spawn
from hooksd.process.exits import WatchExit
from hooksd.process.launch import Launched
from hooksd.process.live import LiveProcess, StatusLost
from hooksd.process.output import is_whole_answer
from hooksd.process.readiness import Readiness
from hooksd.process.trees import Trees


__all__ = ["Invocation"]

COMMAND_NOT_FOUND = 127
"""What a shell exits with when it does not find a command."""

LATE_BYTES_S = 0.05
"""How long a pipe that is held after the exit is still read. Normal hooks never wait for it."""


class Invocation:
    """Runs on the loop. `result` is done exactly once; a process that is still alive then is handed to `abandon`."""

    __slots__ = (
        "_abandon",
        "_deadline",
        "_late",
        "_live",
        "_loop",
        "_ready",
        "_started_at",
        "_status",
        "_trees",
        "_watch_exit",
        "launching",
        "result",
        "spawn",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        spawn: Spawn,
        ready: Readiness,
        watch_exit: WatchExit,
        trees: Trees,
        abandon: Callable[[LiveProcess, Spawn], None],
    ) -> None:
        self._loop = loop
        self._ready = ready
        self._watch_exit = watch_exit
        self._trees = trees
        self._abandon = abandon
        self._started_at = time.monotonic()
        self._live: LiveProcess | None = None
        self._status: int | None = None
        self._late: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.spawn = spawn
        self.launching = True
        self.result: asyncio.Future[ProcessResult] = loop.create_future()
        if spawn.deadline is not None:
            # The loop's own clock may be another one than the deadline's.
            self._deadline = loop.call_later(
                max(0.0, spawn.deadline - self._started_at), self._deadline_passed
            )

    def launched(self, outcome: Launched | LaunchFailure) -> None:
        """What became of the spawn. It may come after the result: then the process is abandoned at once."""
        self.launching = False
        if isinstance(outcome, LaunchFailure):
            self._decide(ProcessResult(launch_failure=outcome))
            return
        self._live = LiveProcess(
            self._ready, outcome, self.spawn, self._watch_exit, self._trees, self._progress
        )
        if self.result.done():
            self._give_up()

    def failed(self, error: BaseException) -> None:
        """The spawn raised what no spawn should: a fault of ours, for the caller to see."""
        self.launching = False
        self._stop_timers()
        if self.result.done():
            self._loop.call_exception_handler({"message": "a hook could not be started", "exception": error})
        else:
            self.result.set_exception(error)

    def cancel(self) -> None:
        """The caller does not want it any more; `result` is cancelled unless it is done."""
        self.result.cancel()
        self._stop_timers()
        self._give_up()

    def _progress(self) -> None:
        live = self._live
        if live is None or not live.exited:
            return
        if self._status is None:
            live.close_stdin()
            live.stdout.drain()
            live.stderr.drain()
            try:
                self._status = live.reap()
            except StatusLost:
                live.close_pipes()
                self._live = None
                self._decide(ProcessResult(launch_failure=_status_lost()))
                return
        if not live.pipes_open:
            self._decide_exited()
        elif self._late is None:
            if not live.stdout.kept.truncated and is_whole_answer(live.stdout.kept.value()):
                self._decide_exited()
            else:
                self._late = self._loop.call_later(LATE_BYTES_S, self._decide_exited)

    def _deadline_passed(self) -> None:
        if self._status is not None:
            self._decide_exited()
            return
        if (live := self._live) is not None:
            live.stdout.drain()
            live.stderr.drain()
        self._decide(self._told(timed_out=True))
        self._give_up()

    def _decide_exited(self) -> None:
        live, status = self._live, self._status
        if live is None or status is None:
            return
        held = live.pipes_open
        live.close_pipes()
        self._live = None
        self._decide(
            self._told(
                live,
                exit_code=status if status >= 0 else None,
                signal=-status if status < 0 else None,
                inherited_pipe=held,
                left_running=self._trees.survivors(live.pid, self.spawn.mark),
            )
        )

    def _told(
        self,
        live: LiveProcess | None = None,
        *,
        exit_code: int | None = None,
        signal: int | None = None,
        timed_out: bool = False,
        inherited_pipe: bool = False,
        left_running: int = 0,
    ) -> ProcessResult:
        live = live or self._live
        duration_s = time.monotonic() - self._started_at
        if live is None:
            return ProcessResult(timed_out=timed_out, duration_s=duration_s)
        stdout, stderr = live.stdout.kept, live.stderr.kept
        return ProcessResult(
            argv=live.argv,
            pid=live.pid,
            exit_code=exit_code,
            signal=signal,
            timed_out=timed_out,
            stdout=stdout.value(),
            stderr=stderr.value(),
            stdout_bytes=stdout.total,
            stderr_bytes=stderr.total,
            stdout_truncated=stdout.truncated,
            stderr_truncated=stderr.truncated,
            inherited_pipe=inherited_pipe,
            left_running=left_running,
            duration_s=duration_s,
            search_path=self.spawn.env.get("PATH") if exit_code == COMMAND_NOT_FOUND else None,
        )

    def _decide(self, result: ProcessResult) -> None:
        self._stop_timers()
        if not self.result.done():
            self.result.set_result(result)

    def _stop_timers(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        live, self._live = self._live, None
        if live is None:
            return
        if self._status is not None:
            # It has exited and is reaped: the answer was only waiting for late bytes.
            live.close_pipes()
        else:
            self._abandon(live, self.spawn)


def _status_lost() -> LaunchFailure:
    return LaunchFailure(
        kind=ProblemKind.LAUNCH,
        message="the hook ran, but its exit status was lost: something in the daemon waits for children that are not its own",
        hint="please report this; the hook's answer is not used",
    )
