"""The daemon: builds every room, and leads them through one life.

No decision about hooks is taken here. The order of things is: directories, lock, socket, log, configuration, serve; and
backwards at the end.

The umask of the process is left as it was found, since a hook's files are to be made as the user expects. Whatever the
daemon makes itself gets its mode explicitly.
"""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import signal
import time
import traceback
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import msgspec

from hooksd import __version__
from hooksd.config.assemble import ConfigPlaces
from hooksd.config.settings import Limits
from hooksd.config.store import ConfigStore
from hooksd.dialects import DIALECTS
from hooksd.model.errors import ServiceError, SocketUnusable
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.records import Level
from hooksd.observe.journal import Journal, LogFormat
from hooksd.observe.last_words import say
from hooksd.observe.log_file import LogFile
from hooksd.observe.metrics import Metrics
from hooksd.observe.stream import EventStream
from hooksd.observe.writer import LogWriter
from hooksd.outbox.jobs import OutboxLimits
from hooksd.outbox.outbox import FILE_NAME, Outbox
from hooksd.pipeline.dispatch import Pipeline
from hooksd.process.descriptor_limit import raise_soft_limit
from hooksd.process.detached import DetachedHooks
from hooksd.process.detached_files import DetachedFiles
from hooksd.process.detached_place import detached_place, own_cgroups
from hooksd.process.exchange_files import ExchangeFiles
from hooksd.process.lookup import find_program, search_path
from hooksd.process.runner import Runner
from hooksd.protocol.methods.daemon import (
    DaemonState,
    DaemonStatusResult,
    HookCounts,
    Latency,
    OutboxCounts,
)
from hooksd.server.incidents import incident
from hooksd.server.listener import Listener
from hooksd.server.methods import Methods
from hooksd.service.directories import prepare_runtime_directory, prepare_state_directory
from hooksd.service.last_resort import LastResort
from hooksd.service.life_cycle import LifeCycle, State
from hooksd.service.lock import DaemonLock, LockInfo
from hooksd.service.memory import return_large_blocks
from hooksd.service.signals import SignalActions, Signals
from hooksd.service.socket import BoundSocket, bind
from hooksd_client import paths


__all__ = ["Daemon", "ServeOptions", "serve"]

_INTERRUPTED = 130
_NO_THREAD = "can't start new thread"
"""What the interpreter says then; it has no exception of its own for that."""

_STDERR = 2

_END_GRACE_S = 1.0
"""After the drain: for the trees of hooks to end, for answers to leave, for the log to be written; each."""

_STUCK_S = 15.0
"""How much longer than the drain the whole end may take before the process gives up on itself."""

_PROTOCOL_STATES = {
    State.STARTING: DaemonState.STARTING,
    State.READY: DaemonState.READY,
    State.DEGRADED: DaemonState.DEGRADED,
    State.DRAINING: DaemonState.DRAINING,
    State.STOPPED: DaemonState.DRAINING,
}


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `hooksd serve` was asked for; None means the default of the platform or of the settings."""

    socket: str | None = None
    config: str | None = None
    state_dir: str | None = None
    log_file: str | None = None
    log_level: Level | None = None
    log_format: LogFormat = "json"
    ready_fd: int | None = None


class _Places(msgspec.Struct, frozen=True, kw_only=True):
    """Every path of this daemon, absolute."""

    socket: str
    state_dir: str
    log_file: str
    cwd: str
    config: ConfigPlaces


def serve(options: ServeOptions) -> int:
    """Run the daemon until it is told to stop.

    Returns:
        The exit status: 0 after SIGTERM or `daemon/shutdown`, 130 after SIGINT.

    Raises:
        AlreadyRunning: Another daemon serves this socket directory.
        ServiceError: Socket, lock, state directory or a descriptor cannot be used, or there is no room for its threads.
    """
    started_at = time.monotonic()
    places = _places(options, dict(os.environ))
    if options.ready_fd is not None:
        _check_ready_fd(options.ready_fd)
    directory = os.path.dirname(places.socket)
    with ExitStack() as stack:
        prepare_runtime_directory(directory)
        lock = DaemonLock.acquire(f"{directory}/daemon.lock")
        stack.callback(lock.release)
        lock.write(LockInfo(pid=os.getpid(), version=__version__, socket=places.socket))
        prepare_state_directory(places.state_dir)
        bound = bind(places.socket)
        stack.callback(bound.close)
        daemon = Daemon(options, places, bound, started_at)
        try:
            return _run(daemon.run())
        except RuntimeError as error:
            if str(error) != _NO_THREAD:
                raise
            raise ServiceError(
                "it needs about a dozen threads and cannot have more; raise `ulimit -u`, or TasksMax= of the service"
            ) from error


def _places(options: ServeOptions, env: Mapping[str, str]) -> _Places:
    try:
        socket_path = paths.socket_path(env, options.socket)
    except paths.SocketPathError as error:
        raise SocketUnusable(error.path, error.reason) from error
    state_dir = os.path.abspath(options.state_dir) if options.state_dir else paths.state_dir(env)
    log_file = options.log_file or paths.log_path(env, state=options.state_dir and state_dir)
    named = options.config or env.get("HOOKSD_CONFIG")
    return _Places(
        socket=socket_path,
        state_dir=state_dir,
        log_file=log_file if log_file == "-" else os.path.abspath(log_file),
        cwd=_working_directory(),
        config=ConfigPlaces(
            settings_path=os.path.abspath(named) if named else paths.config_file(env),
            settings_required=named is not None,
            config_dir=paths.config_dir(env),
            state_dir=state_dir,
            home=paths.home_dir(env),
            env=env,
        ),
    )


def _working_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        # It was removed under us; hooks without a workspace of their own then start at the root.
        return "/"


def _check_ready_fd(descriptor: int) -> None:
    try:
        # Hooks must not hold it open: whoever waits at its other end waits for its end, too.
        os.set_inheritable(descriptor, False)
    except OSError as error:
        raise ServiceError(f"--ready-fd {descriptor} is no open descriptor: {error.strerror}") from error


def _run(main: Coroutine[Any, Any, int]) -> int:
    """Run on uvloop where it is there, else on the stock loop."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


class Daemon:
    """One life, from the loop's first turn to its last.

    Args:
        options: What `serve` was asked for.
        places: Where everything lies.
        bound: The listening socket; the caller closes it after `run`.
        started_at: On the clock of `time.monotonic`.
    """

    def __init__(self, options: ServeOptions, places: _Places, bound: BoundSocket, started_at: float) -> None:
        self._options = options
        self._places = places
        self._bound = bound
        self._started_at = started_at
        self._life = LifeCycle(self._entered)
        self._store = ConfigStore(places.config)
        self._metrics = Metrics()
        self._stream = EventStream(Limits().max_subscribers)
        self._writer = LogWriter(LogFile(places.log_file), self._dropped_line)
        self._journal = Journal(
            write=self._writer.put,
            stream=self._stream,
            metrics=self._metrics,
            level=options.log_level or Level.INFO,
            log_format=options.log_format,
        )
        self._ending = asyncio.Event()
        self._end_now = asyncio.Event()
        self._end_reason = ""
        self._grace_s: float | None = None
        self._reloads: set[asyncio.Task[Any]] = set()
        self._look_is_due = False
        # Made in `run`, on the loop's thread.
        self._runner: Runner
        self._outbox: Outbox
        self._pipeline: Pipeline
        self._listener: Listener
        self._signals: Signals

    # ------------------------------------------------------------------------------------------------------------------
    # What the methods of the protocol see (`hooksd.server.control.DaemonControl`)

    def status(self) -> DaemonStatusResult:
        """The result of `daemon/status` (protocol section 2.12)."""
        config = self._store.status()
        counters = self._metrics.counters()
        slots = self._pipeline.slots
        return DaemonStatusResult(
            pid=os.getpid(),
            version=__version__,
            uptime_s=round(self._uptime_s(), 3),
            socket=self._places.socket,
            state=_PROTOCOL_STATES[self._life.state],
            revision=config.revision,
            sources=config.sources,
            executions=len(self._pipeline.executions),
            hooks=HookCounts(
                running=slots.running,
                queued=sum(slots.queued.values()),
                total=counters.total,
                failed=counters.failed,
                timed_out=counters.timed_out,
                blocked=counters.blocked,
            ),
            outbox=OutboxCounts(
                pending=self._outbox.counts.pending,
                running=self._outbox.counts.running,
                failed=self._outbox.counts.failed,
            ),
            latency_ms={
                hook: Latency(p50=one.p50, p95=one.p95, p99=one.p99)
                for hook, one in self._metrics.latency_ms().items()
            },
            warm={},
            problems=(*config.problems, *self._outbox.problems, *self._log_problems()),
        )

    def shutdown(self, grace_s: float | None = None) -> None:
        """Begin to drain, for at most `grace_s` (None: `limits.drain_s`), then stop; returns at once."""
        self._begin_end("daemon/shutdown", grace_s)

    # ------------------------------------------------------------------------------------------------------------------
    # The life

    async def run(self) -> int:
        """Live. The result is the exit status."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._unexpected)
        self._signals = Signals(
            loop,
            SignalActions(
                drain=lambda number: self._begin_end(number.name),
                stop_now=lambda _: self._end_now.set(),
                reload=self._reload,
                reopen_log=self._writer.reopen,
            ),
        )
        self._writer.start()
        try:
            await self._start(loop)
            await self._ending.wait()
            await self._drain()
        finally:
            self._signals.remove()
            self._close_log()
        return _INTERRUPTED if self._signals.received is signal.SIGINT else 0

    async def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        soft_limit = raise_soft_limit()
        return_large_blocks()
        self._journal(
            Level.INFO,
            "daemon.started",
            {
                "pid": os.getpid(),
                "version": __version__,
                "python": platform.python_version(),
                "loop": type(loop).__module__.partition(".")[0],
                "socket": self._places.socket,
                "state_dir": self._places.state_dir,
                "log_file": self._places.log_file,
            },
        )
        self._store.load()
        self._runner = Runner(
            loop, max_ending=self._limits.max_ending, hook_descriptors=soft_limit, record=self._journal
        )
        exchange = ExchangeFiles(f"{os.path.dirname(self._places.socket)}/exchange")
        if left_over := exchange.sweep():
            self._journal(Level.INFO, "daemon.swept", {"left_over_runs": left_over})
        detached = self._detached_hooks(loop, soft_limit)
        self._outbox = Outbox(
            f"{self._places.state_dir}/{FILE_NAME}", record=self._journal, limits=self._outbox_limits
        )
        self._pipeline = Pipeline(
            runner=self._runner,
            store=self._store,
            record=self._journal,
            dialects=DIALECTS,
            daemon_env=self._places.config.env,
            daemon_cwd=self._places.cwd,
            socket_path=self._places.socket,
            exchange=exchange,
            detached=detached,
            outbox=self._outbox,
        )
        self._use_settings()
        self._store.start(loop, self._record_of_configuration)
        methods = Methods(
            pipeline=self._pipeline,
            store=self._store,
            stream=self._stream,
            control=self,
            record=self._journal,
            dialects=DIALECTS,
        )
        self._listener = Listener(served=methods, record=self._journal, limits=lambda: self._limits)
        await self._listener.start(self._bound.socket)
        self._life.go(State.DEGRADED if self._store.status().state == "degraded" else State.READY)
        if self._options.ready_fd is not None:
            _tell_ready(self._options.ready_fd)
        # First what workers of earlier daemons left behind: what is done must not be started again.
        await self._pipeline.detachment.recover()
        self._pipeline.delivery.start()
        # What is there now stays: the collector need not look at it ever again.
        gc.collect()
        gc.freeze()

    def _detached_hooks(self, loop: asyncio.AbstractEventLoop, soft_limit: int | None) -> DetachedHooks:
        env = self._places.config.env
        detached = DetachedHooks(
            loop,
            DetachedFiles(f"{self._places.state_dir}/detached"),
            detached_place(env, own_cgroups(), partial(find_program, path=search_path(env), cwd="/")),
            most=lambda: self._limits.max_detached,
            daemon_env=env,
            descriptors=soft_limit,
            record=self._journal,
        )
        detached.changed = self._runner.keep_reaping
        self._runner.others = lambda: detached.running
        return detached

    async def _drain(self) -> None:
        self._life.go(State.DRAINING)
        grace_s = self._limits.drain_s if self._grace_s is None else self._grace_s
        last_resort = LastResort(grace_s + _STUCK_S, say)
        await self._drain_pipeline(grace_s)
        await self._runner.aclose(0.0 if self._end_now.is_set() else _END_GRACE_S)
        # Last, so that everybody gets an answer. Until here new clients are told that the daemon is draining.
        await self._listener.aclose(_END_GRACE_S)
        for task in self._reloads:
            task.cancel()
        await asyncio.gather(*self._reloads, return_exceptions=True)
        await self._outbox.aclose()
        await self._store.aclose()
        self._life.go(State.STOPPED)
        last_resort.call_off()

    async def _drain_pipeline(self, grace_s: float) -> None:
        """Let hooks go on until they are done, the time is over, or somebody insists."""
        draining = asyncio.create_task(self._pipeline.drain(grace_s))
        now = asyncio.create_task(self._end_now.wait())
        try:
            await asyncio.wait({draining, now}, return_when=asyncio.FIRST_COMPLETED)
            if draining.done():
                await draining
            else:
                draining.cancel()
                await asyncio.wait({draining})
                await self._pipeline.aclose()
        finally:
            now.cancel()

    def _close_log(self) -> None:
        left = self._writer.close(_END_GRACE_S)
        if left:
            missing = left + self._writer.dropped
            say(f"{missing} records could not be written to {self._places.log_file}")

    # ------------------------------------------------------------------------------------------------------------------
    # What happens meanwhile

    @property
    def _limits(self) -> Limits:
        return self._store.settings.limits

    def _outbox_limits(self) -> OutboxLimits:
        return OutboxLimits(max_jobs=self._limits.max_outbox_jobs, max_bytes=self._limits.max_outbox_bytes)

    def _dropped_line(self, count: int) -> bytes:
        # The journal writes to the writer, and so is made after it.
        return self._journal.dropped_line(count)

    def _uptime_s(self) -> float:
        return time.monotonic() - self._started_at

    def _log_problems(self) -> tuple[ConfigProblem, ...]:
        """What is wrong with the log; nobody can read it there."""
        if self._writer.failure is None:
            return ()
        return (
            ConfigProblem(
                severity=Severity.WARNING,
                path="",
                message=f"the log: {self._writer.failure}; records dropped so far: {self._writer.dropped}",
                hint="make room, or give another place with --log-file; no decision waits for the log",
                file=self._places.log_file,
            ),
        )

    def _record_of_configuration(self, level: Level, event: str, fields: Mapping[str, Any]) -> None:
        """The store's recorder: what it tells may change what holds for the daemon itself."""
        self._journal(level, event, fields)
        if not self._look_is_due:
            # Once the store is done with what it is telling.
            self._look_is_due = True
            asyncio.get_running_loop().call_soon(self._look_at_configuration)

    def _begin_end(self, reason: str, grace_s: float | None = None) -> None:
        """Leave the life for the drain; a second call changes nothing."""
        if not self._ending.is_set():
            self._end_reason = reason
            self._grace_s = grace_s
            self._signals.ending()
            self._ending.set()

    def _entered(self, state: State) -> None:
        fields: dict[str, Any] = {}
        match state:
            case State.READY | State.DEGRADED:
                fields = {"revision": self._store.revision, "uptime_ms": round(self._uptime_s() * 1000)}
            case State.DRAINING:
                fields = {"reason": self._end_reason, "running": self._runner.running}
            case State.STOPPED:
                fields = {
                    "uptime_ms": round(self._uptime_s() * 1000),
                    "log_records_dropped": self._writer.dropped,
                }
            case State.STARTING:
                pass
        event = "daemon.stopping" if state is State.DRAINING else f"daemon.{state}"
        self._journal(Level.WARNING if state is State.DEGRADED else Level.INFO, event, fields)

    def _look_at_configuration(self) -> None:
        self._look_is_due = False
        self._use_settings()
        self._pipeline.delivery.look_again()
        if self._life.is_serving:
            state = State.DEGRADED if self._store.status().state == "degraded" else State.READY
            if state is not self._life.state:
                self._life.go(state)

    def _use_settings(self) -> None:
        settings = self._store.settings
        limits = settings.limits
        self._journal.configure(
            level=self._options.log_level or Level(settings.daemon.log_level),
            max_field_bytes=limits.max_log_field_bytes,
        )
        self._stream.max_subscribers = limits.max_subscribers
        self._runner.max_ending = limits.max_ending
        self._pipeline.slots.limits = limits

    def _reload(self) -> None:
        if not self._life.is_serving:
            return
        task = asyncio.get_running_loop().create_task(self._store.reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    def _unexpected(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception that nobody caught."""
        error = context.get("exception")
        if isinstance(error, Exception):
            incident(error, self._journal, "the event loop")
            if os.environ.get("HOOKSD_DEBUG") == "1":
                traceback.print_exception(error)
        else:
            # A message of asyncio's own; what it is about comes after it, in angle brackets.
            message = str(context.get("message", "")).partition("<")[0]
            self._journal(Level.ERROR, "daemon.internal_error", {"what": message})


def _tell_ready(descriptor: int) -> None:
    """A line end, then the end of the descriptor, as s6 and others want it. Whoever waited may have gone."""
    with suppress(BrokenPipeError):
        os.write(descriptor, b"\n")
    if descriptor > _STDERR:
        os.close(descriptor)
    else:
        # A free number below 3 would be taken by the next thing that is opened.
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, descriptor)
        os.close(null)
