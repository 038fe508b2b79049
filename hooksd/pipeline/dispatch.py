"""The pipeline as the server sees it: an event in, an outcome out.

What each step means is decided elsewhere: which hooks there are by the snapshot, what comes next and what a reply does
by `model.fold`, how a plan is gone through by `sequence.py`, how one hook is run by `invocation.py`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import contextmanager
from functools import partial

import msgspec

from hooksd.config.plan import PlannedHook, plan_hook
from hooksd.config.snapshot import Snapshot
from hooksd.dialects.base import Caller, Dialect, PayloadRefused, Places
from hooksd.model.errors import ProtocolError
from hooksd.model.events import Event, EventName
from hooksd.model.fold import Fold
from hooksd.model.hooks import Hook
from hooksd.model.outcome import Outcome
from hooksd.model.problems import ProblemKind
from hooksd.model.records import Recorder
from hooksd.outbox.outbox import Outbox
from hooksd.pipeline import dry_run as dry_runs
from hooksd.pipeline.background import DrainSpan, Kind, Work, again, span_of
from hooksd.pipeline.delivery import Delivery
from hooksd.pipeline.detachment import Detachment
from hooksd.pipeline.durable import Frozen
from hooksd.pipeline.execution import Execution
from hooksd.pipeline.executions import Executions, SnapshotStore
from hooksd.pipeline.explain import explain
from hooksd.pipeline.invocation import Call, Invoker, ProcessRunner, new_invocation_id
from hooksd.pipeline.jobs import Jobs
from hooksd.pipeline.missing import missing_guards
from hooksd.pipeline.programmatic import Registry
from hooksd.pipeline.refusals import draining
from hooksd.pipeline.reports import Reporter, started
from hooksd.pipeline.results import Results
from hooksd.pipeline.sequence import NOBODY_WAITS, House, Pass
from hooksd.pipeline.slots import Lane, Slots
from hooksd.pipeline.trace import Trace
from hooksd.process.detached import DetachedHooks
from hooksd.process.exchange_files import ExchangeFiles
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.methods.hooks import HookExplainResult, HookTestParams, HookTestResult, HookTestRun


__all__ = ["DispatchOptions", "Pipeline"]


class DispatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a dispatch may say besides the event; it holds for this event only.

    Attributes:
        timeout_s: Budget of the whole pipeline; when it is spent the rest does not run.
        env: The caller's environment; None for the execution's. Never changed in place.
        cwd: Absolute working directory of the hooks.
        depth: How deep the caller is nested in hooks: its own `HOOKSD_DEPTH`, 0 for an agent.
        traceparent: W3C trace context.
    """

    timeout_s: float | None = None
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    depth: int = 0
    traceparent: str | None = None


NO_OPTIONS = DispatchOptions()

_UNUSABLE = "hooksd.toml is invalid and there is no last good version of it, so no hook runs"


class Pipeline:
    """Runs the hooks of events. Belongs to the loop's thread.

    Args:
        runner: Runs processes.
        store: The configuration.
        record: Takes the records.
        dialects: Every dialect by name.
        daemon_env: The daemon's environment, for hooks of executions without their own. Never changed in place.
        daemon_cwd: The daemon's working directory.
        socket_path: The socket that hooks are told of, None without one.
        exchange: Where the payload and answer files of hooks are made.
        detached: Starts hooks that outlive the daemon.
        outbox: Where durable hooks are kept; without one they run and are told not to be kept.

    Attributes:
        executions: The table of open executions.
        registry: The programmatic hooks.
        results: What recent invocations said.
        slots: What hooks hold and wait for.
        delivery: The durable hooks; it runs what is due once it is started.
        detachment: The detached hooks.
        jobs: What a person can do about them.
    """

    def __init__(
        self,
        *,
        runner: ProcessRunner,
        store: SnapshotStore,
        record: Recorder,
        dialects: Mapping[str, Dialect],
        daemon_env: Mapping[str, str],
        daemon_cwd: str,
        socket_path: str | None,
        exchange: ExchangeFiles,
        detached: DetachedHooks,
        outbox: Outbox | None = None,
    ) -> None:
        self._store = store
        self._record = record
        self._dialects = dialects
        self._daemon_cwd = daemon_cwd
        self._home = daemon_env.get("HOME", "") or os.path.expanduser("~")
        self.registry = Registry(dialects)
        self.results = Results(lambda: store.settings.limits.kept_results)
        self.slots = Slots(store.settings.limits)
        self.executions = Executions(
            store=store, dialects=dialects, record=record, programmatic=lambda: self.registry.hooks
        )
        invoker = Invoker(
            runner=runner,
            dialects=dialects,
            registry=self.registry,
            slots=self.slots,
            exchange=exchange,
            detached=detached,
            daemon_env=daemon_env,
            socket_path=socket_path,
        )
        self.delivery = Delivery(
            outbox=outbox,
            store=store,
            invoker=invoker,
            results=self.results,
            record=record,
            surroundings=self,
        )
        self.detachment = Detachment(detached, outbox, record, self.delivery.told, self.delivery.lane_is_free)
        self.jobs = Jobs(outbox, self.delivery, record)
        self._house = House(
            dialects=dialects,
            executions=self.executions,
            invoker=invoker,
            registry=self.registry,
            results=self.results,
            delivery=self.delivery,
        )

    # ------------------------------------------------------------------------------------------------------------------
    # Events

    def prepare(
        self,
        execution: Execution,
        event: str,
        payload: Mapping[str, object],
        *,
        background: bool = False,
        model: str | None = None,
        profile: str | None = None,
    ) -> Event:
        """Make a checked event of what a caller sent.

        Args:
            execution: Whose event it is.
            event: The agent's own name of it, or the dotted one.
            payload: Its fields.
            background: A tool completion in the background.
            model: The session's model, for this event only.
            profile: The agent's profile, for this event only.

        Raises:
            ProtocolError: -32015 for an unknown event, -32602 for a payload that does not fit.
        """
        dialect = self._dialects[execution.agent]
        native = dialect.native_event(event)
        if native is None:
            raise protocol_error(
                ErrorCode.UNKNOWN_EVENT,
                f"{execution.agent} has no event {event[:200]!r}; it has: {', '.join(dialect.events)}",
            )
        caller = Caller(
            session_id=execution.session_id,
            workspace_path=execution.workspace_path,
            model=execution.model if model is None else model,
            profile=execution.profile if profile is None else profile,
            timestamp=time.time(),
        )
        try:
            made = dialect.event(native, payload, caller, background=background)
        except PayloadRefused as refused:
            raise payload_refused(native, refused) from None
        if made.name is EventName.TURN_FINISH and not made.continued and execution.is_continued(made):
            # The envelope's flag is the caller's or our own count (design.md, table, last row).
            made = msgspec.structs.replace(made, continued=True)
        return made

    def dispatch_now(self, execution: Execution, event: Event) -> Outcome | None:
        """The outcome of an event for which nothing is to be run; None if `dispatch` must be called."""
        snapshot = self._snapshot(execution, event)
        plan = snapshot.plan(event.agent, event.name)
        selected = plan.select(event)
        if (
            (selected and not _is_for_nobody(selected, event))
            or missing_guards(snapshot, event, self.registry)
            or not snapshot.hooks_may_run
            or self.executions.draining
        ):
            return None
        execution.observe(event)
        return Outcome(event=event.native, revision=snapshot.revision)

    async def dispatch(
        self, execution: Execution, event: Event, options: DispatchOptions = NO_OPTIONS
    ) -> Outcome:
        """Run the pipeline of an event.

        Cancelling it ends its hooks and decides nothing.

        Raises:
            ProtocolError: -32011 or -32002 when a close or the shutdown cut it off; -32002 while shutting down; -32013
                for a gate while no hook may run; -32602 for a bad `traceparent`.
        """
        snapshot = self._snapshot(execution, event)
        if event.name is EventName.NOTIFICATION:
            hooks, ids = self._deliver(execution, event, options, snapshot)
            handlers = tuple(map(started, hooks, ids))
            return Outcome(event=event.native, revision=snapshot.revision, handlers=handlers)
        hooks = self._select(snapshot, event)
        sequence = self._pass(execution, event, options, snapshot, hooks)
        execution.observe(event)
        work = Work(Kind.GATE if event.gate else Kind.OBSERVER, span_of(event))
        with self._in_progress(execution, work):
            return await sequence.run(work, snapshot.revision)

    @contextmanager
    def _in_progress(self, execution: Execution | None, work: Work) -> Iterator[None]:
        """Keep what a caller waits for on the books, in its own task; what cuts it off is what the caller is told."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a dispatch must run in a task")
        self.executions.begin(execution, work, task)
        try:
            yield
        except asyncio.CancelledError:
            # Who cut it off cancelled the task once; any further cancellation is the caller's own and goes on.
            if work.cut is not None and task.uncancel() == 0:
                raise again(work.cut) from None
            raise
        finally:
            self.executions.end(execution, work)

    def notify(
        self, execution: Execution, event: Event, options: DispatchOptions = NO_OPTIONS
    ) -> tuple[str, ...]:
        """Start the hooks of an observer event and give their invocation ids; nobody waits for them.

        Raises:
            ProtocolError: -32602 for a gate or a bad `traceparent`, -32002 while shutting down.
        """
        if event.gate:
            raise protocol_error(
                ErrorCode.INVALID_PARAMS,
                f"{event.native} is a gate, whose outcome must be awaited; use hook/dispatch",
                kind="gate",
            )
        return self._deliver(execution, event, options, self._snapshot(execution, event))[1]

    def _snapshot(self, execution: Execution, event: Event) -> Snapshot:
        """What decides: the execution's snapshot, for two kinds of events what is in force now (design rule 3)."""
        if event.background or event.name is EventName.NOTIFICATION:
            return self._store.current(execution.workspace_path, self.registry.hooks)
        return execution.snapshot

    # ------------------------------------------------------------------------------------------------------------------
    # Passes

    def _deliver(
        self, execution: Execution, event: Event, options: DispatchOptions, snapshot: Snapshot
    ) -> tuple[tuple[PlannedHook, ...], tuple[str, ...]]:
        """Start a pass that nobody waits for: the hooks one after another, deliveries beside each other."""
        hooks = tuple(
            planned
            for planned in self._select(snapshot, event)
            # Nothing changes the arguments of an observer's event, so this can be said before any hook runs.
            if (match := planned.matches(event)).matched or match.problem is not None
        )
        execution.observe(event)
        if not hooks and not missing_guards(snapshot, event, self.registry) and snapshot.hooks_may_run:
            return (), ()
        ids = tuple(new_invocation_id() for _ in hooks)
        sequence = self._pass(execution, event, options, snapshot, hooks, ids)
        work = Work(Kind.DELIVERY, span_of(event))
        work.ids.update(dict.fromkeys(ids))
        self.executions.start(execution, work, sequence.run(work, snapshot.revision))
        return hooks, ids

    def _select(self, snapshot: Snapshot, event: Event) -> tuple[PlannedHook, ...]:
        """The hooks that an event has.

        Raises:
            ProtocolError: -32002 while shutting down; -32013 for a gate while no hook may run.
        """
        if self.executions.draining:
            raise draining()
        if not snapshot.hooks_may_run:
            if event.gate:
                raise protocol_error(ErrorCode.CONFIG_INVALID, _UNUSABLE, problems=snapshot.problems)
            return ()
        selected = snapshot.plan(event.agent, event.name).select(event)
        return tuple(planned for planned in selected if self.registry.stands(planned.hook))

    def _pass(
        self,
        execution: Execution,
        event: Event,
        options: DispatchOptions,
        snapshot: Snapshot,
        hooks: tuple[PlannedHook, ...],
        ids: tuple[str, ...] = (),
    ) -> Pass:
        settings = snapshot.settings
        trace = _trace(options)
        fold = Fold(
            event,
            hooks,
            accepts=execution.accepts - NOBODY_WAITS if ids else execution.accepts,
            missing=missing_guards(snapshot, event, self.registry),
            claim=partial(execution.claim, event, settings.limits.stop_continuations),
        )
        if not snapshot.hooks_may_run:
            fold.tell(ProblemKind.NOT_LOADED, _UNUSABLE, "`hooksd validate` shows what is wrong")
        if options.depth > settings.limits.max_depth:
            fold.refuse(
                ProblemKind.TOO_DEEP,
                f"hooks that dispatch events are nested {options.depth} deep; "
                f"the limit is {settings.limits.max_depth} (limits.max_depth)",
                "see whether a hook triggers itself",
            )
        reporter = self._reporter(execution.id, event, snapshot, trace)
        options = self._filled_in(execution, options)
        call = self._call(execution.id, execution.workspace_path, options, snapshot, event, trace)
        return Pass(self._house, execution, event, call, fold, reporter, ids)

    def _reporter(
        self, execution_id: str, event: Event, snapshot: Snapshot, trace: Trace, **more: object
    ) -> Reporter:
        place = {
            "execution_id": execution_id,
            "session_id": event.session_id,
            "agent": event.agent,
            "hook_event": event.native,
            "revision": snapshot.revision,
            "trace_id": trace.trace_id,
            **more,
        }
        return Reporter(self._record, place, reasons=self._store.settings.log.reasons)

    def _filled_in(self, execution: Execution, options: DispatchOptions) -> DispatchOptions:
        if options.env is not None or execution.env is None:
            return options
        return msgspec.structs.replace(options, env=execution.env)

    def _call(
        self,
        execution_id: str,
        workspace: str,
        options: DispatchOptions,
        snapshot: Snapshot,
        event: Event,
        trace: Trace,
    ) -> Call:
        work_area = snapshot.settings.daemon.work_area
        return Call(
            execution_id=execution_id,
            snapshot=snapshot,
            settings=snapshot.settings,
            env=options.env,
            places=Places(
                cwd=options.cwd,
                workspace=workspace,
                work_area=self._home + work_area[1:] if work_area.startswith("~") else work_area,
                daemon_cwd=self._daemon_cwd,
                home=self._home,
            ),
            depth=options.depth,
            trace=trace,
            lane=Lane.GATE if event.gate else Lane.BACKGROUND,
            deadline=None if options.timeout_s is None else time.monotonic() + options.timeout_s,
            budget_s=options.timeout_s or 0.0,
        )

    # ------------------------------------------------------------------------------------------------------------------
    # For further runs of durable hooks (`hooksd.pipeline.delivery.Surroundings`)

    def call_again(self, frozen: Frozen, env: Mapping[str, str] | None, snapshot: Snapshot) -> Call:
        """What a run of a job is made with: what its dispatch said, and the settings of now."""
        options = DispatchOptions(
            env=env, cwd=frozen.cwd, depth=frozen.depth, traceparent=frozen.traceparent or None
        )
        call = self._call(
            frozen.execution_id, frozen.workspace, options, snapshot, frozen.event, _trace(options)
        )
        return msgspec.structs.replace(call, lane=Lane.BACKGROUND)

    def reporter_of(self, call: Call, event: Event, snapshot: Snapshot) -> Reporter:
        """Who writes the records of such a run."""
        return self._reporter(call.execution_id, event, snapshot, call.trace)

    def gates_running(self) -> int:
        """How many hooks of gates run now."""
        return self.slots.gates

    def programmatic_hooks(self) -> tuple[Hook, ...]:
        """The hooks of connected clients now."""
        return self.registry.hooks

    def detached_lanes(self) -> AbstractSet[str]:
        """The lanes of jobs whose hooks run detached now."""
        return self.detachment.lanes()

    # ------------------------------------------------------------------------------------------------------------------
    # Looking, and trying out

    def explain(
        self, execution: Execution, event: Event, options: DispatchOptions = NO_OPTIONS
    ) -> HookExplainResult:
        """What would run for an event; runs nothing."""
        snapshot = self._snapshot(execution, event)
        options = self._filled_in(execution, options)
        call = self._call(execution.id, execution.workspace_path, options, snapshot, event, _trace(options))
        try:
            return explain(snapshot, event, call, self._house.invoker, self.registry.stands)
        except PayloadRefused as refused:
            raise payload_refused(event.native, refused) from None

    async def test(self, params: HookTestParams, depth: int = 0) -> HookTestResult | HookTestRun:
        """Dry run of one handler, of one configured hook, or of what is configured.

        Args:
            params: As sent.
            depth: How deep the caller is nested in hooks.

        Raises:
            ProtocolError: -32015 for an unknown dialect or event, -32602 for anything else that does not fit, -32013
                where no hook may run, -32002 while shutting down.
        """
        if self.executions.draining:
            raise draining()
        event = dry_runs.pretended_event(params, self._dialects)
        described = params.handler()
        planned = [dry_runs.described_hook(params, self._dialects)] if described else []
        options = DispatchOptions(env=params.env, cwd=params.cwd, depth=depth)
        trace = Trace.new()
        with self._in_progress(None, Work(Kind.GATE, DrainSpan.NONE)):
            snapshot = await self._store.open(params.workspace_path, self.registry.hooks)
            if not described:
                planned = self._tested(params, event, snapshot)
            runs = await dry_runs.dry_run(
                planned,
                event,
                self._call("", params.workspace_path, options, snapshot, event, trace),
                self._house.invoker,
                self._reporter("", event, snapshot, trace, dry_run=True),
                self._dialects[event.agent],
                written=not described,
            )
        return runs[0] if described else HookTestResult(results=runs)

    def _tested(self, params: HookTestParams, event: Event, snapshot: Snapshot) -> list[PlannedHook]:
        """The configured hooks that a dry run is about."""
        if not snapshot.hooks_may_run:
            raise protocol_error(ErrorCode.CONFIG_INVALID, _UNUSABLE, problems=snapshot.problems)
        plan = snapshot.plan(event.agent, event.name)
        if params.hook is None:
            return [planned for planned in self._select(snapshot, event) if planned.matches(event).matched]
        selected = {planned.hook.name: planned for planned in plan.select(event)}
        for hook, _ in plan.explain(event):
            if hook.name == params.hook:
                return [selected.get(hook.name) or plan_hook(hook)]
        names = ", ".join(hook.name for hook, _ in plan.explain(event)) or "none"
        raise protocol_error(
            ErrorCode.INVALID_PARAMS,
            f"{event.native} has no hook {params.hook[:300]!r}; it has: {names}",
            kind="unknown_hook",
        )

    # ------------------------------------------------------------------------------------------------------------------
    # The end

    async def drain(self, grace_s: float) -> None:
        """Take nothing new, wait for what is in progress, then cut off the rest. Returns when nothing is in progress.

        Args:
            grace_s: Longest wait. Dispatches that are cut off answer -32002.
        """
        self.executions.stop()
        waited_for: set[asyncio.Future[None]] = {work.when_done() for work in self.executions.works}
        waited_for |= self.delivery.stop()
        if waited_for:
            await asyncio.wait(waited_for, timeout=grace_s)
        await self.aclose()

    async def aclose(self) -> None:
        """As `drain` without a wait."""
        self.executions.stop()
        while self.executions.works:
            works = list(self.executions.works)
            for work in works:
                work.cut_off(draining())
            await asyncio.wait([work.when_done() for work in works])
        await self.delivery.aclose()
        await self.detachment.aclose()


def payload_refused(native: str, refused: PayloadRefused) -> ProtocolError:
    """The error for a payload that does not fit its event."""
    return protocol_error(
        ErrorCode.INVALID_PARAMS,
        f"the payload does not fit {native}: {refused}",
        kind="payload",
        problems=refused.problems,
    )


def _is_for_nobody(selected: Sequence[PlannedHook], event: Event) -> bool:
    """Whether none of the hooks would run, without a word to say about it."""
    return all(
        not (match := planned.matches(event)).matched and match.problem is None for planned in selected
    )


def _trace(options: DispatchOptions) -> Trace:
    if options.traceparent is None:
        return Trace.new()
    try:
        return Trace.parse(options.traceparent)
    except ValueError as error:
        raise protocol_error(ErrorCode.INVALID_PARAMS, f"`traceparent` is not valid: {error}") from None
