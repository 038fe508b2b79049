"""One run of one hook: from holding a slot to the reply, through a process or a connected client.

What the reply does to the dispatch is the fold's business; what is told about the run, that of `reports.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec

from hooksd.config.plan import PlannedHook
from hooksd.config.settings import EnvSettings, Settings
from hooksd.config.snapshot import Snapshot
from hooksd.dialects.base import Dialect, HookFiles, HookInput, PayloadRefused, Places
from hooksd.dialects.translate import translated_reply
from hooksd.model.events import Event
from hooksd.model.hooks import Contract, Hook, Mode, Script
from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.model.reply import Reply
from hooksd.model.run import LaunchFailure, ProcessResult, Spawn
from hooksd.pipeline.pinned import PinGate, withheld_reply
from hooksd.pipeline.programmatic import Registry
from hooksd.pipeline.slots import Busy, Lane, Permit, Slots, Turn
from hooksd.pipeline.trace import Trace
from hooksd.process.detached import DetachedHooks
from hooksd.process.environment import EnvironmentRules, Marks, hook_environment
from hooksd.process.exchange_files import ExchangeFiles
from hooksd.process.runtimes import Resolved, resolve


__all__ = ["Call", "Invocation", "Invoker", "ProcessRunner", "new_invocation_id"]

_MAX_RULES = 8
"""Compiled `[env]` tables kept: one for each version of the settings that some open execution has."""

MAX_PARALLEL = 4
"""Background hooks of one document in one execution, where it says nothing (Chrys dialect 1.3)."""

_BACKGROUND = frozenset({Mode.ASYNC, Mode.FIRE_AND_FORGET})


class ProcessRunner(Protocol):
    """What the pipeline needs of the process room."""

    async def run(self, spawn: Spawn) -> ProcessResult:
        """Run a process to its result. Cancelling it ends the whole tree in the background and raises at once."""
        ...


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What all invocations of one dispatch share.

    Attributes:
        execution_id: Goes into `HOOKSD_EXECUTION_ID`.
        snapshot: The one that decides.
        settings: Its settings.
        env: The caller's environment; None for the daemon's own.
        places: Directories that a working directory is chosen from.
        depth: How deep the dispatch is nested, 0 for an agent's own.
        trace: Goes into `TRACEPARENT`.
        lane: Which slots its hooks take.
        deadline: When its budget is spent, on the clock of `time.monotonic`; None without one.
        budget_s: What that budget was.
    """

    execution_id: str
    snapshot: Snapshot
    settings: Settings
    env: Mapping[str, str] | None
    places: Places
    depth: int
    trace: Trace
    lane: Lane
    deadline: float | None = None
    budget_s: float = 0.0

    def left_s(self) -> float | None:
        """What is left of the budget; never negative, None without one."""
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)


class Invocation:
    """One run as far as it has come. Filled in by `Invoker.run`; whole once that has returned.

    Attributes:
        id: Its name, and the mark of its descendants.
        planned: The hook.
        event: What it is told, with the arguments as earlier hooks left them.
        queued_s: How long it waited for a slot.
        duration_s: From holding the slot to the reply.
        cwd: Its working directory, "" while not chosen.
        command: The command line that ran or was tried first.
        environment: The names of its variables.
        bounded_by_budget: Its deadline is the end of the dispatch's budget, not the end of its own time.
        result: What its process did; None for a programmatic hook, or one that never got so far.
        reply: What it said.
        starting: Awaited when all is ready, right before the process is started; what it raises ends the run.
        about: Set for a hook that is to be detached: what is kept with its run.
        worker: The pid of its worker, once it is detached: it runs on, and there is no result.
    """

    __slots__ = (
        "about",
        "bounded_by_budget",
        "command",
        "cwd",
        "duration_s",
        "environment",
        "event",
        "id",
        "planned",
        "queued_s",
        "reply",
        "result",
        "starting",
        "worker",
    )

    def __init__(self, invocation_id: str, planned: PlannedHook, event: Event) -> None:
        self.id = invocation_id
        self.planned = planned
        self.event = event
        self.queued_s = 0.0
        self.duration_s = 0.0
        self.cwd = ""
        self.command: tuple[str, ...] = ()
        self.environment: tuple[str, ...] = ()
        self.bounded_by_budget = False
        self.result: ProcessResult | None = None
        self.reply = Reply()
        self.starting: Callable[[], Awaitable[None]] | None = None
        self.about: bytes | None = None
        self.worker: int | None = None


def new_invocation_id() -> str:
    """A name that cannot be guessed and is never given twice."""
    return f"inv-{os.urandom(12).hex()}"


class Invoker:
    """Runs hooks.

    Args:
        runner: Runs processes.
        dialects: Every dialect by name.
        registry: Calls programmatic hooks.
        slots: What a hook must hold to run.
        daemon_env: The daemon's own environment, taken where a caller gives none. Never changed in place.
        socket_path: Goes into `HOOKSD_SOCKET`.
        exchange: Where the files of contracts that have some are made.
        detached: Starts hooks that outlive the daemon.
    """

    def __init__(
        self,
        *,
        runner: ProcessRunner,
        dialects: Mapping[str, Dialect],
        registry: Registry,
        slots: Slots,
        exchange: ExchangeFiles,
        detached: DetachedHooks,
        daemon_env: Mapping[str, str],
        socket_path: str | None,
    ) -> None:
        self._runner = runner
        self._dialects = dialects
        self._registry = registry
        self._slots = slots
        self._exchange = exchange
        self._detached = detached
        self._daemon_env = daemon_env
        self._socket_path = socket_path
        self._rules: dict[int, tuple[EnvSettings, EnvironmentRules]] = {}
        self._pins = PinGate()

    async def run(self, call: Call, invocation: Invocation) -> Reply:
        """Run a hook and fill in its invocation; every failure is a reply.

        Its own deadline starts when it holds its slot, and covers everything up to the reply (protocol section 5).
        Cancelling it ends the process and everything it started.
        """
        permit: Permit | None = None
        if invocation.about is None:
            got = await self._permit(call, invocation)
            if isinstance(got, Busy):
                hint = "raise the limit in hooksd.toml, or let hooks end sooner"
                return _refused(
                    invocation, HookProblem(kind=ProblemKind.BUSY, message=got.message, hint=hint)
                )
            permit = got
        elif (refusal := self._detached.refusal()) is not None:
            problem = HookProblem(kind=refusal.kind, message=refusal.message, hint=refusal.hint)
            return _refused(invocation, problem)
        began_at = time.monotonic()
        try:
            reply = await self._run(call, invocation, began_at)
        except PayloadRefused as refused:
            # The dispatch was checked; what is left is an event that no envelope can hold, such as one nested too deeply.
            message = f"the event cannot be told to this hook: {refused}"
            reply = Reply(failure=HookProblem(kind=ProblemKind.LAUNCH, message=message))
        finally:
            invocation.duration_s = time.monotonic() - began_at
            if permit is not None:
                self._slots.release(permit)
        invocation.reply = _told_of_budget(reply, call) if invocation.bounded_by_budget else reply
        return invocation.reply

    async def _permit(self, call: Call, invocation: Invocation) -> Permit | Busy:
        """A slot; a detached hook takes none."""
        turns = _turns(call, invocation.planned)
        asked_at = time.monotonic()
        permit = self._slots.acquire_now(call.lane, call.depth, turns)
        if permit is not None:
            return permit
        got = await self._slots.acquire(call.lane, call.depth, turns, budget_s=call.left_s())
        invocation.queued_s = time.monotonic() - asked_at
        return got

    async def _run(self, call: Call, invocation: Invocation, now: float) -> Reply:
        hook, event = invocation.planned.hook, invocation.event
        deadline = None if hook.timeout_s is None else now + hook.timeout_s
        if call.deadline is not None and (deadline is None or call.deadline < deadline):
            deadline = call.deadline
            invocation.bounded_by_budget = True
        dialect = self._dialects[hook.dialect]
        cwd = self.place(call, invocation)
        if hook.contract is Contract.PROGRAMMATIC:
            reply = await self._registry.invoke(hook, event, cwd, now if deadline is None else deadline)
            return self._for_agent(reply, event, hook)
        if hook.withheld is not None:
            return withheld_reply(hook, hook.withheld, event)
        resolved, given, env = self.prepare(call, invocation)
        if invocation.starting is not None:
            await invocation.starting()
        # Last, so that as little as possible can happen between the check and the start.
        if hook.pins is not None:
            stopped = await self._pins.stop(hook, hook.pins, event, cwd, deadline)
            if stopped is not None:
                return stopped
        if isinstance(resolved, LaunchFailure):
            invocation.result = ProcessResult(launch_failure=resolved)
        else:
            limits = call.settings.limits
            chrys = hook.contract is Contract.CHRYS
            kept_bytes = limits.chrys_output_bytes if chrys else limits.bamboo_output_bytes
            spawn = Spawn(
                candidates=resolved.candidates,
                cwd=cwd,
                env=env,
                stdin=given.stdin,
                stdout_limit_bytes=kept_bytes,
                stderr_limit_bytes=kept_bytes,
                deadline=deadline,
                kill_grace_s=limits.kill_grace_ms / 1000,
                mark=invocation.id,
                keep_tail=chrys,
            )
            if invocation.about is not None:
                outcome = await self._detach(spawn, given.files, hook, invocation.about)
                invocation.command = resolved.candidates.first
                if isinstance(outcome, int):
                    invocation.worker = outcome
                    return Reply()
                invocation.result = ProcessResult(launch_failure=outcome)
            elif given.files is None:
                invocation.result = await self._runner.run(spawn)
            else:
                invocation.result = await self._exchanged(
                    spawn, given.files, hook, limit_bytes=limits.result_file_bytes
                )
            invocation.command = invocation.result.argv or resolved.candidates.first
        return self._for_agent(dialect.interpret(invocation.result, event, hook), event, hook)

    def _for_agent(self, reply: Reply, event: Event, hook: Hook) -> Reply:
        """What a hook said, as the agent takes it, which may be of another dialect."""
        return translated_reply(reply, event, hook, self._dialects[event.agent].channel(event))

    async def _detach(
        self, spawn: Spawn, files: HookFiles | None, hook: Hook, about: bytes
    ) -> int | LaunchFailure:
        """Start a process that outlives the daemon; the pid of its worker."""
        payload = None
        if files is not None:
            where, payload = self._detached.files, files.payload
            _point_to(spawn, files, hook, where.payload_path(spawn.mark), where.answer_path(spawn.mark))
        return await self._detached.start(spawn, payload, about)

    async def _exchanged(
        self, spawn: Spawn, files: HookFiles, hook: Hook, *, limit_bytes: int
    ) -> ProcessResult:
        """Run a process that is given its payload, and answers, in files; they are removed whatever happens."""
        try:
            exchange = self._exchange.create(files.payload)
        except OSError as error:
            failure = LaunchFailure(
                kind=ProblemKind.LAUNCH,
                message=f"the files for payload and answer cannot be made: {error.strerror}",
                hint="see whether the disk of the daemon's runtime directory is full or read-only",
            )
            return ProcessResult(launch_failure=failure)
        try:
            _point_to(spawn, files, hook, exchange.payload_path, exchange.answer_path)
            result = await self._runner.run(spawn)
            if result.exit_code != 0:
                return result
            answer = exchange.read_answer(limit_bytes)
        finally:
            exchange.remove()
        if isinstance(answer, bytes):
            return msgspec.structs.replace(result, answer=answer)
        return msgspec.structs.replace(result, answer_fault=answer)

    def prepare(
        self, call: Call, invocation: Invocation
    ) -> tuple[Resolved | LaunchFailure, HookInput, dict[str, str]]:
        """What would be started: command lines, input, environment. Reads the disk, starts nothing."""
        hook, event = invocation.planned.hook, invocation.event
        dialect = self._dialects[hook.dialect]
        cwd = self.place(call, invocation)
        handler = hook.handler
        if handler is None:
            raise TypeError(f"{hook.name} did not load; it has nothing to run")
        shell, uv = call.settings.shell.command, call.settings.runtimes.uv
        if isinstance(handler, Script):
            # The contract's variables name the script's path, and finding that needs the environment's PATH.
            env = self._environment(call, invocation, HookInput(stdin=None, env=()))
            resolved = resolve(handler, cwd=cwd, env=env, shell=shell, uv=uv)
            script_path = resolved.script_path if isinstance(resolved, Resolved) else None
            given = dialect.input(event, hook, cwd, script_path=script_path)
            env = self._environment(call, invocation, given)
        else:
            given = dialect.input(event, hook, cwd, script_path=None)
            env = self._environment(call, invocation, given)
            resolved = resolve(handler, cwd=cwd, env=env, shell=shell)
        files = given.files
        named = () if files is None else (files.payload_variable, files.answer_variable)
        invocation.environment = tuple(dict.fromkeys((*env, *named)))
        return resolved, given, env

    def place(self, call: Call, invocation: Invocation) -> str:
        """Choose the working directory of an invocation."""
        if not invocation.cwd:
            hook = invocation.planned.hook
            dialect = self._dialects[hook.dialect]
            invocation.cwd = dialect.working_directory(invocation.event, hook, call.places)
        return invocation.cwd

    def _environment(self, call: Call, invocation: Invocation, given: HookInput) -> dict[str, str]:
        hook = invocation.planned.hook
        own = self._dialects[hook.dialect].own_environment(invocation.event, hook, call.places)
        return hook_environment(
            self._daemon_env if call.env is None else call.env,
            daemon=call.env is None,
            rules=self._rules_of(call.settings.env),
            hook=hook.name,
            without=given.without,
            contract=given.env,
            own=own,
            marks=Marks(
                invocation_id=invocation.id,
                execution_id=call.execution_id,
                socket=self._socket_path,
                depth=call.depth + 1,
                traceparent=call.trace.traceparent,
            ),
        )

    def _rules_of(self, settings: EnvSettings) -> EnvironmentRules:
        # By identity, since the table holds a mapping and cannot be hashed; it is kept, so its id stays its own.
        found = self._rules.get(id(settings))
        if found is None:
            if len(self._rules) >= _MAX_RULES:
                del self._rules[next(iter(self._rules))]
            found = settings, EnvironmentRules(settings.deny, settings.allow_for)
            self._rules[id(settings)] = found
        return found[1]


def _refused(invocation: Invocation, problem: HookProblem) -> Reply:
    invocation.reply = Reply(failure=problem)
    return invocation.reply


def _point_to(spawn: Spawn, files: HookFiles, hook: Hook, payload_path: str, answer_path: str) -> None:
    """Tell a process where its files are; the hook's own `env` may say otherwise."""
    own = {name for name, _ in hook.env}
    for name, path in ((files.payload_variable, payload_path), (files.answer_variable, answer_path)):
        if name not in own:
            spawn.env[name] = path


def _turns(call: Call, planned: PlannedHook) -> tuple[Turn, ...]:
    """What bounds a hook besides the slots."""
    hook = planned.hook
    serial = (Turn.serial(hook.name),) if planned.serial else ()
    if hook.contract is not Contract.CHRYS or hook.mode not in _BACKGROUND:
        return serial
    most = call.snapshot.document_settings(hook).max_parallel_hooks
    return (*serial, Turn.shared(call.execution_id, hook.source, MAX_PARALLEL if most is None else most))


def _told_of_budget(reply: Reply, call: Call) -> Reply:
    """Say so when it was not the hook's own time that ran out."""
    failure = reply.failure
    if failure is None or failure.kind is not ProblemKind.TIMEOUT:
        return reply
    return msgspec.structs.replace(
        reply,
        failure=msgspec.structs.replace(
            failure,
            message=f"the budget of the dispatch ({call.budget_s:g} s) was spent while it ran",
            hint="give the dispatch a longer `timeout_ms`, or make the hook faster",
        ),
    )
