"""A hook's process as the loop sees it, from the spawn until it is reaped."""

from __future__ import annotations

import os
from collections.abc import Callable

from hooksd.model.run import Spawn
from hooksd.process import ownership
from hooksd.process.exits import WatchExit
from hooksd.process.launch import Launched
from hooksd.process.output import Kept, KeptEnds, KeptHead
from hooksd.process.readiness import Readiness
from hooksd.process.streams import Feeder, Reader
from hooksd.process.trees import Tree, Trees


__all__ = ["LiveProcess", "StatusLost"]


class StatusLost(Exception):
    """Somebody else in the daemon reaped the process: how it ended is not known, and must not pass for success."""


class LiveProcess:
    """The process and our ends of its pipes.

    Whoever has it now sets `on_progress`, which is called on the loop when the process has exited and when a stream has
    ended. Its owner must call `reap` once it has exited, and `close_pipes`.
    """

    __slots__ = (
        "_popen",
        "_stdin",
        "argv",
        "exited",
        "on_progress",
        "pid",
        "stderr",
        "stdout",
        "tree",
    )

    def __init__(
        self,
        ready: Readiness,
        launched: Launched,
        spawn: Spawn,
        watch_exit: WatchExit,
        trees: Trees,
        on_progress: Callable[[], None],
    ) -> None:
        self._popen = launched.popen
        self.pid = launched.popen.pid
        self.argv = launched.argv
        self.exited = False
        self.on_progress = on_progress
        self.tree: Tree = trees.tree(self.pid, spawn.mark)
        # First: when this fails, as it does without a descriptor and without a thread, nothing else is on the loop yet.
        watch_exit(launched.popen, self._has_exited)
        ownership.own(self.pid)
        self.stdout = Reader(
            ready, launched.stdout, _kept(spawn, spawn.stdout_limit_bytes), self._stream_ended
        )
        self.stderr = Reader(
            ready, launched.stderr, _kept(spawn, spawn.stderr_limit_bytes), self._stream_ended
        )
        self._stdin = None if launched.stdin is None else Feeder(ready, launched.stdin, launched.stdin_rest)

    @property
    def pipes_open(self) -> bool:
        """Whether somebody holds stdout or stderr, as far as was read."""
        return self.stdout.open or self.stderr.open

    def reap(self) -> int:
        """Take the status of a process that has exited: its exit code, or the negative number of a signal.

        Raises:
            StatusLost: It is not to be had.
        """
        ownership.disown(self.pid)
        if self._popen.returncode is None:
            # Not `Popen.poll`: where the status is lost, it answers 0.
            try:
                _, status = os.waitpid(self.pid, 0)
            except ChildProcessError:
                self._popen.returncode = -1
                raise StatusLost from None
            self._popen.returncode = os.waitstatus_to_exitcode(status)
        return self._popen.returncode

    def close_pipes(self) -> None:
        """Close our ends."""
        self.stdout.close()
        self.stderr.close()
        self.close_stdin()

    def close_stdin(self) -> None:
        """Stop feeding."""
        if self._stdin is not None:
            self._stdin.close()
            self._stdin = None

    def _has_exited(self) -> None:
        self.exited = True
        self.on_progress()

    def _stream_ended(self) -> None:
        self.on_progress()


def _kept(spawn: Spawn, limit: int) -> Kept:
    return KeptEnds(limit) if spawn.keep_tail else KeptHead(limit)
