"""Detached hooks: started through a worker that outlives the daemon, and seen to their end by whichever daemon lives then.

A worker is a child of the daemon until that ends; it is announced as owned, so that nobody takes it for an orphan, and
its hook has an invocation id of its own, so that no tree that is ended includes it. What a hook's end means is the
business of whoever set `ended`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from hooksd.model.problems import ProblemKind
from hooksd.model.records import Level, Recorder
from hooksd.model.run import LaunchFailure, ProcessResult, Spawn
from hooksd.process import exits_pidfd, ownership
from hooksd.process.detached_files import DetachedFiles, Opened
from hooksd.process.detached_place import DetachedPlace, Keeping
from hooksd.process.launch_failures import failure_of
from hooksd.process.lookup import directory_failure


__all__ = ["DetachedEnd", "DetachedHooks"]

LOOK_S: Final = 2.0
"""Pause between looks at workers whose exits the system does not tell us: those of earlier daemons, and all without pidfd."""

WORKER: Final = os.path.join(os.path.dirname(__file__), "detached_worker.py")

_FOR_WORKERS: Final = ("PATH", "HOME", "LANG", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
"""Of the daemon's environment. `systemd-run` needs the last two; the hook's own is in its order."""


class DetachedEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a detached hook ended.

    Attributes:
        run_id: The invocation id.
        about: What its starter wanted to know at its end.
        result: Of the hook's process; None if its worker was killed, so that nobody knows.
    """

    run_id: str
    about: bytes
    result: ProcessResult | None


class _Running(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that this daemon started, and the lock that it holds together with it."""

    about: bytes
    spawn: Spawn
    pid: int
    lock: int

    @property
    def run_id(self) -> str:
        return self.spawn.mark


class _Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that is looked at now and then."""

    about: bytes
    spawn: Spawn | None = None
    pid: int | None = None
    """If it is a child of ours."""


class DetachedHooks:
    """Starts detached hooks and tells of their ends. Belongs to the loop's thread.

    Args:
        loop: Its loop.
        files: Where their files lie.
        place: How their workers are started.
        most: Asked before each start: how many may run at once (`limits.max_detached`).
        daemon_env: The daemon's own environment, some of which workers need.
        descriptors: The soft limit of open files that hooks get; None for the daemon's.
        record: Takes the records about what this system cannot do.

    Attributes:
        ended: Called on the loop when one has ended. Set it before the first `start` or `recover`.
        changed: Called on the loop when a worker was started, and when it is gone: what its hook left behind may be a
            child of the daemon from now on, all the more when the worker was killed.
        files: As given.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        files: DetachedFiles,
        place: DetachedPlace,
        *,
        most: Callable[[], int],
        daemon_env: Mapping[str, str] | None = None,
        descriptors: int | None = None,
        record: Recorder | None = None,
    ) -> None:
        self._loop = loop
        self.files = files
        self._place = place
        self._most = most
        self._env = {name: value for name in _FOR_WORKERS if (value := (daemon_env or {}).get(name))}
        self._descriptors = descriptors
        self._record = record
        self._running: dict[str, Callable[[], None]] = {}
        """What stops the watch, by invocation id; those that are being started included."""
        self._looked_at: dict[str, _Looked] = {}
        self._abouts: dict[str, bytes] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._look: asyncio.TimerHandle | None = None
        self._closed = False
        self.ended: Callable[[DetachedEnd], None] = _nobody
        self.changed: Callable[[], None] = _nothing
        if place.limitation:
            self._limited(place.limitation)

    @property
    def running(self) -> int:
        """Detached hooks that run, as far as this daemon knows; those of earlier daemons included."""
        return len(self._running) + len(self._looked_at)

    def abouts(self) -> Mapping[str, bytes]:
        """What is kept with those that run, by invocation id; what is being started is among them."""
        return self._abouts

    def refusal(self) -> LaunchFailure | None:
        """Why none can be started now; None if one can."""
        if self._closed:
            return LaunchFailure(
                kind=ProblemKind.LAUNCH,
                message="the daemon is shutting down and starts no hook any more",
                hint="dispatch the event again when it is back",
            )
        if self.running >= self._most():
            return LaunchFailure(
                kind=ProblemKind.BUSY,
                message=f"{self._most()} detached hooks run already (limits.max_detached)",
                hint="see which of them never end, or raise the limit in hooksd.toml",
            )
        return None

    # ------------------------------------------------------------------------------------------------------------------
    # Starting

    async def start(self, spawn: Spawn, payload: bytes | None, about: bytes) -> int | LaunchFailure:
        """Start a worker for a hook.

        Once begun it is carried out, whether or not anybody waits for it.

        Args:
            spawn: What is started; its `mark` is the invocation id. Its deadline, stdin and limits mean nothing here.
            payload: What is put at `files.payload_path`; None for no such file.
            about: Comes back with the end, from this daemon or a later one. No secrets, and at most some KiB.

        Returns:
            The worker's pid; or why there is none, and then nothing is left behind.
        """
        refusal = self.refusal()
        if refusal is not None:
            return refusal
        # Counted from now on.
        self._running[spawn.mark] = _nothing
        self._abouts[spawn.mark] = about
        starting = self._task(self._start(spawn, payload, about))
        return await asyncio.shield(starting)

    async def _start(self, spawn: Spawn, payload: bytes | None, about: bytes) -> int | LaunchFailure:
        try:
            outcome = await self._loop.run_in_executor(None, self._launch, spawn, payload, about)
        except BaseException:
            self._forget(spawn.mark)
            raise
        if isinstance(outcome, LaunchFailure):
            self._forget(spawn.mark)
            return outcome
        self._watch(outcome)
        self.changed()
        return outcome.pid

    def _forget(self, run_id: str) -> None:
        del self._running[run_id], self._abouts[run_id]

    def _launch(self, spawn: Spawn, payload: bytes | None, about: bytes) -> _Running | LaunchFailure:
        """In a thread."""
        failure = directory_failure(spawn.cwd)
        if failure is not None:
            return failure
        order = {
            "commands": [list(command) for command in spawn.candidates],
            "env": spawn.env,
            "cwd": spawn.cwd,
            "descriptors": self._descriptors,
        }
        run_id = spawn.mark
        try:
            opened = self.files.create(run_id, about=about, order=order, payload=payload)
        except OSError as error:
            return LaunchFailure(
                kind=ProblemKind.LAUNCH,
                message=f"the files of a detached hook cannot be made: {error.strerror}",
                hint="see whether the disk of the daemon's state directory is full or read-only",
            )
        try:
            pid = self._spawn(run_id, opened)
        except OSError as error:
            os.close(opened.lock)
            self.files.forget(run_id)
            return LaunchFailure(
                kind=ProblemKind.LAUNCH,
                message=f"the worker of a detached hook cannot be started: {error.strerror}",
                hint="see whether the machine, or this user, has room for another process",
            )
        finally:
            os.close(opened.log)
        return _Running(about=about, spawn=spawn, pid=pid, lock=opened.lock)

    def _spawn(self, run_id: str, opened: Opened) -> int:
        worker = (sys.executable, "-I", "-S", WORKER, opened.directory)
        command = self._place.command(run_id, worker)
        pid = os.posix_spawn(
            command[0],
            command,
            self._env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, opened.log, 1),
                (os.POSIX_SPAWN_DUP2, opened.log, 2),
                (os.POSIX_SPAWN_DUP2, opened.lock, 3),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
        ownership.own(pid)
        return pid

    # ------------------------------------------------------------------------------------------------------------------
    # Ends

    def _watch(self, running: _Running) -> None:
        try:
            descriptor = os.pidfd_open(running.pid) if exits_pidfd.is_possible() else -1
        except OSError:
            descriptor = -1
        if descriptor < 0:
            # Our own hold on the lock would hide that the worker has let go of it.
            os.close(running.lock)
            del self._running[running.run_id]
            self._looked_at[running.run_id] = _Looked(
                about=running.about, spawn=running.spawn, pid=running.pid
            )
            self._keep_looking()
            return

        def stop() -> None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
            os.close(running.lock)

        self._running[running.run_id] = stop
        self._loop.add_reader(descriptor, self._exited, running)

    def _exited(self, running: _Running) -> None:
        stop = self._running.pop(running.run_id, None)
        if stop is None:
            # The watch was stopped a moment ago.
            return
        stop()
        _reap(running.pid)
        self.changed()
        self._task(self._see_to_end(running))

    async def _see_to_end(self, running: _Running) -> None:
        found, begun = await self._loop.run_in_executor(None, self._end_of, running.run_id)
        if found is None and not begun and self._place.keeping is Keeping.SCOPE:
            # What stands before the worker failed: the user's manager cannot be asked.
            self._place = DetachedPlace(keeping=Keeping.NOTHING)
            self._limited(
                "the user's service manager gives no scope to detached hooks, so they may end when hooksd is stopped; "
                "see `systemd-run --user --scope true`"
            )
            payload = await self._loop.run_in_executor(None, self._taken_back, running.run_id)
            again = await self.start(running.spawn, payload, running.about)
            if isinstance(again, LaunchFailure):
                self._tell(running.run_id, running.about, ProcessResult(launch_failure=again))
            return
        await self._loop.run_in_executor(None, self.files.remove, running.run_id)
        self._tell(running.run_id, running.about, _result(found, running.spawn))

    def _end_of(self, run_id: str) -> tuple[dict[str, Any] | None, bool]:
        return self.files.end(run_id), self.files.has_begun(run_id)

    def _taken_back(self, run_id: str) -> bytes | None:
        payload = self.files.payload(run_id)
        self.files.forget(run_id)
        return payload

    def _tell(self, run_id: str, about: bytes, result: ProcessResult | None) -> None:
        self._abouts.pop(run_id, None)
        self.ended(DetachedEnd(run_id=run_id, about=about, result=result))

    # ------------------------------------------------------------------------------------------------------------------
    # Those of earlier daemons

    async def recover(self) -> tuple[int, int]:
        """Tell of what ended while no daemon lived, watch what still runs, and remove old logs.

        Returns:
            How many had ended, and how many run.
        """
        leftovers = await self._loop.run_in_executor(None, self.files.leftovers)
        ended = 0
        for leftover in leftovers:
            if leftover.run_id in self._abouts:
                continue
            self._looked_at[leftover.run_id] = _Looked(about=leftover.about)
            self._abouts[leftover.run_id] = leftover.about
            if not leftover.alive:
                ended += 1
                await self._see_to_looked_at(leftover.run_id)
        await self._loop.run_in_executor(None, self.files.prune_logs)
        self._keep_looking()
        return ended, len(self._looked_at)

    def _keep_looking(self) -> None:
        if self._looked_at and self._look is None and not self._closed:
            self._look = self._loop.call_later(LOOK_S, self._look_again)

    def _look_again(self) -> None:
        self._task(self._look_at_all())

    async def _look_at_all(self) -> None:
        for run_id in tuple(self._looked_at):
            if not await self._loop.run_in_executor(None, self.files.is_alive, run_id):
                await self._see_to_looked_at(run_id)
        self._look = None
        self._keep_looking()

    async def _see_to_looked_at(self, run_id: str) -> None:
        found, _ = await self._loop.run_in_executor(None, self._end_of, run_id)
        looked = self._looked_at.pop(run_id)
        if looked.pid is not None:
            _reap(looked.pid)
            self.changed()
        await self._loop.run_in_executor(None, self.files.remove, run_id)
        self._tell(run_id, looked.about, _result(found, looked.spawn))

    # ------------------------------------------------------------------------------------------------------------------
    # The end

    async def aclose(self) -> None:
        """Stop watching; the workers live on. What is being started is waited for."""
        self._closed = True
        if self._look is not None:
            self._look.cancel()
            self._look = None
        while self._tasks:
            await asyncio.wait(self._tasks)
        for stop in self._running.values():
            stop()
        self._running.clear()

    def _task(self, coroutine: Any) -> asyncio.Task[Any]:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _limited(self, message: str) -> None:
        if self._record is not None:
            self._record(Level.WARNING, "daemon.limited", {"message": message})


def _result(found: dict[str, Any] | None, spawn: Spawn | None) -> ProcessResult | None:
    """What a worker left behind, as the result of its hook's process."""
    if found is None:
        return None
    failure = found.get("failure")
    if failure is not None:
        return ProcessResult(launch_failure=_failure(failure, spawn))
    try:
        return ProcessResult(
            argv=tuple(found["command"]),
            pid=found["pid"],
            exit_code=found["exit_code"],
            signal=found["signal"],
            duration_s=found["duration_s"],
        )
    except KeyError:
        return None


def _failure(told: dict[str, Any], spawn: Spawn | None) -> LaunchFailure:
    if spawn is None or told.get("errno") is None:
        message = f"the detached hook could not be started: {told.get('why')}"
        return LaunchFailure(kind=ProblemKind.LAUNCH, message=message)
    number = told["errno"]
    error = OSError(number, os.strerror(number), told.get("file"))
    return failure_of(error, tuple(told["command"]), spawn)


def _reap(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
    ownership.disown(pid)


def _nobody(_: DetachedEnd) -> None:
    """Nobody wants to know."""


def _nothing() -> None:
    """It is only being started: there is nothing to stop yet."""
