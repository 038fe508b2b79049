"""Executions: the runs of agents, each bound to one snapshot from its opening to its close.

The table is bounded and never searched: executions that run nothing stand in the order of their last use, so that the
longest idle one is found, and the 10,000th opened, in the time of the first.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from hooksd.config.settings import Settings
from hooksd.config.snapshot import Snapshot
from hooksd.dialects.base import Dialect
from hooksd.model.hooks import Hook
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.records import Level, Recorder
from hooksd.pipeline.background import Drained, DrainSpan, Grace, Kind, Work, drain
from hooksd.pipeline.execution import Execution
from hooksd.pipeline.refusals import draining, execution_closed, unknown_execution
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.methods.executions import (
    BoundTo,
    DrainScope,
    ExecutionDrainResult,
    ExecutionListResult,
    ExecutionOpenParams,
    ExecutionOpenResult,
    OpenExecution,
)


__all__ = ["DEFAULT_SESSION_GRACE_S", "Executions", "SnapshotStore"]

DEFAULT_SESSION_GRACE_S = 5.0
"""Longest wait of a session drain whose caller names none (protocol section 2.5)."""

LONGEST_LOOK_S = 600.0
"""Longest time between two looks for executions that have been idle too long."""


class SnapshotStore(Protocol):
    """What the pipeline needs of the configuration (`config.store.ConfigStore`)."""

    @property
    def settings(self) -> Settings:
        """The settings in force now."""
        ...

    def current(self, workspace: str, programmatic: tuple[Hook, ...]) -> Snapshot:
        """What is in force now, without a look at the sources."""
        ...

    def try_open(self, workspace: str, programmatic: tuple[Hook, ...]) -> Snapshot | None:
        """The snapshot in force if nothing has to be read, after a look at every source."""
        ...

    async def open(self, workspace: str, programmatic: tuple[Hook, ...]) -> Snapshot:
        """The same, after reading what has changed."""
        ...


class Executions:
    """The table of open executions. Belongs to the loop's thread.

    Args:
        store: Where snapshots come from.
        dialects: Every dialect by name.
        record: Takes the records.
        programmatic: The hooks of connected clients now.
    """

    def __init__(
        self,
        *,
        store: SnapshotStore,
        dialects: Mapping[str, Dialect],
        record: Recorder,
        programmatic: Callable[[], tuple[Hook, ...]],
    ) -> None:
        self._store = store
        self._dialects = dialects
        self._record = record
        self._programmatic = programmatic
        self._open: dict[str, Execution] = {}
        self._idle: OrderedDict[str, Execution] = OrderedDict()
        """Those that run nothing, the longest unused first."""
        self._bound: dict[object, dict[str, Execution]] = {}
        """Those that must not outlive a connection, by it."""
        self._expiry: asyncio.TimerHandle | None = None
        self.works: set[Work] = set()
        """What is in progress, of all executions."""
        self.draining = False
        """Set once the daemon shuts down: nothing is opened any more."""

    def __len__(self) -> int:
        return len(self._open)

    # ------------------------------------------------------------------------------------------------------------------
    # Opening

    def open_now(self, params: ExecutionOpenParams, owner: object | None = None) -> Execution | None:
        """Open an execution, or give the one that is open, if that needs no reading; None if it does.

        Args:
            params: As sent; the same identity always gives the same execution.
            owner: The connection that asks; an execution `bound_to` it goes with it.

        Raises:
            ProtocolError: -32010 with another identity, -32015 for an agent that is not known, -32003 at the limit,
                -32002 while shutting down.
        """
        execution = self._known(params, owner)
        if execution is not None:
            return execution
        snapshot = self._store.try_open(params.workspace_path, self._programmatic())
        return None if snapshot is None else self._add(params, snapshot, owner)

    async def open(self, params: ExecutionOpenParams, owner: object | None = None) -> Execution:
        """As `open_now`, reading what has changed."""
        execution = self._known(params, owner)
        if execution is not None:
            return execution
        snapshot = await self._store.open(params.workspace_path, self._programmatic())
        # Somebody else may have opened it in the meantime.
        return self._known(params, owner) or self._add(params, snapshot, owner)

    def _known(self, params: ExecutionOpenParams, owner: object | None) -> Execution | None:
        if self.draining:
            raise draining()
        execution = self._open.get(params.execution_id)
        if execution is None:
            return None
        for field in ("agent", "session_id", "workspace_path"):
            has, wants = getattr(execution, field), getattr(params, field)
            if has != wants:
                raise protocol_error(
                    ErrorCode.EXECUTION_CONFLICT,
                    f"execution {params.execution_id!r} is open with {field} {has!r}, not {wants!r}; "
                    "close it first, or use another execution_id",
                    detail=field,
                )
        execution.update(params)
        self._bind(execution, params, owner)
        self._use(execution)
        return execution

    def _add(self, params: ExecutionOpenParams, snapshot: Snapshot, owner: object | None) -> Execution:
        dialect = self._dialects.get(params.agent)
        if dialect is None:
            known = ", ".join(sorted(self._dialects))
            raise protocol_error(
                ErrorCode.UNKNOWN_EVENT,
                f"there is no dialect {params.agent!r}; there are: {known}",
                kind="unknown_dialect",
            )
        self._make_room()
        execution = Execution(params, snapshot, dialect)
        self._open[execution.id] = self._idle[execution.id] = execution
        self._bind(execution, params, owner)
        self._arm()
        self._tell(Level.INFO, "execution.opened", execution)
        return execution

    def _bind(self, execution: Execution, params: ExecutionOpenParams, owner: object | None) -> None:
        new_owner = owner if params.bound_to is BoundTo.CONNECTION else None
        if new_owner is execution.owner:
            return
        self._unbind(execution)
        execution.owner = new_owner
        if new_owner is not None:
            self._bound.setdefault(new_owner, {})[execution.id] = execution

    def _unbind(self, execution: Execution) -> None:
        if execution.owner is not None:
            bound = self._bound[execution.owner]
            del bound[execution.id]
            if not bound:
                del self._bound[execution.owner]

    def _make_room(self) -> None:
        limit = self._store.settings.limits.max_executions
        while len(self._open) >= limit:
            if not self._idle:
                raise protocol_error(
                    ErrorCode.BUSY,
                    f"{limit} executions are open and every one runs hooks (limits.max_executions); close some first",
                    kind="max_executions",
                )
            oldest = next(iter(self._idle.values()))
            self._forget(oldest)
            self._tell(Level.WARNING, "execution.dropped", oldest, why="max_executions", limit=limit)

    def opened(self, execution: Execution) -> ExecutionOpenResult:
        """The answer of `execution/open`."""
        snapshot = execution.snapshot
        return ExecutionOpenResult(
            execution_id=execution.id,
            revision=snapshot.revision,
            digest=snapshot.digest,
            sources=snapshot.sources,
            problems=(*snapshot.problems, *_workspace_problems(execution.workspace_path)),
        )

    # ------------------------------------------------------------------------------------------------------------------
    # Using

    def get(self, execution_id: str) -> Execution:
        """An open execution, which counts as a use of it.

        Raises:
            ProtocolError: -32011, there is none.
        """
        try:
            execution = self._open[execution_id]
        except KeyError:
            raise unknown_execution(execution_id) from None
        self._use(execution)
        return execution

    def list(self) -> ExecutionListResult:
        """The answer of `execution/list`, in the order of opening."""
        epoch = time.time() - time.monotonic()
        return ExecutionListResult(
            executions=tuple(
                OpenExecution(
                    execution_id=execution.id,
                    agent=execution.agent,
                    session_id=execution.session_id,
                    workspace_path=execution.workspace_path,
                    revision=execution.snapshot.revision,
                    opened_at=execution.opened_at,
                    last_used_at=epoch + execution.last_used,
                    running=sum(len(work.ids) for work in execution.works or ()),
                )
                for execution in self._open.values()
            )
        )

    def begin(self, execution: Execution | None, work: Work, task: asyncio.Task[Any]) -> None:
        """Something is in progress: its execution is not idle until `end`, and the shutdown waits for it.

        Args:
            execution: Whose it is; None for a dry run, which belongs to none.
            work: What it is.
            task: What carries it out.
        """
        work.task = task
        self.works.add(work)
        if execution is None:
            return
        if execution.works is None:
            execution.works = set()
        execution.works.add(work)
        if self._open.get(execution.id) is execution:
            self._idle.pop(execution.id, None)

    def start(self, execution: Execution, work: Work, coroutine: Coroutine[Any, Any, object]) -> None:
        """Let the daemon itself carry out a work: it survives the client, and is kept until it has ended."""
        task = asyncio.get_running_loop().create_task(coroutine)
        # Not in the coroutine: a task that is cancelled before its first step never gets there.
        task.add_done_callback(lambda _: self.end(execution, work))
        self.begin(execution, work, task)

    def end(self, execution: Execution | None, work: Work) -> None:
        """The counterpart of `begin`."""
        work.finish()
        self.works.discard(work)
        if execution is None:
            return
        if execution.works is not None:
            execution.works.discard(work)
            if execution.works:
                return
            execution.works = None
        if self._open.get(execution.id) is execution:
            execution.last_used = time.monotonic()
            self._idle[execution.id] = execution
            self._arm()

    def _use(self, execution: Execution) -> None:
        execution.last_used = time.monotonic()
        if execution.works is None:
            self._idle.move_to_end(execution.id)

    # ------------------------------------------------------------------------------------------------------------------
    # Ending

    async def drain(
        self, execution_id: str, scope: DrainScope, grace_s: float | None = None
    ) -> ExecutionDrainResult:
        """Wait for asynchronous hooks of an execution; no gate is cut off.

        Args:
            execution_id: An open execution.
            scope: Those of the turn, or all.
            grace_s: Longest wait. Default: a turn waits as long as it takes; a session for each hook as long as its
                document says, else `DEFAULT_SESSION_GRACE_S`.

        Raises:
            ProtocolError: -32011, there is no such execution.
        """
        execution = self.get(execution_id)
        if scope is DrainScope.TURN:
            spans, grace = {DrainSpan.TURN}, _same_for_all(grace_s)
        else:
            spans, grace = {DrainSpan.TURN, DrainSpan.SESSION}, _session_grace(grace_s)
        works = [
            work
            for work in execution.works or ()
            if work.span in spans and work.kind not in {Kind.GATE, Kind.OBSERVER}
        ]
        return _drain_result(await drain(works, grace, execution_closed(execution_id)))

    async def close(self, execution_id: str, grace_s: float | None = None) -> ExecutionDrainResult:
        """Forget an execution: its gates are cut off at once, everything else is drained.

        Raises:
            ProtocolError: -32011, there is no such execution.
        """
        execution = self._open.get(execution_id)
        if execution is None:
            raise unknown_execution(execution_id)
        self._forget(execution)
        error = execution_closed(execution_id)
        works = list(execution.works or ())
        gates = [work for work in works if work.kind is Kind.GATE]
        cancelled = tuple(id_ for work in gates for id_ in work.ids)
        for work in gates:
            work.cut_off(error)
        others = [work for work in works if work.kind is not Kind.GATE]
        drained = await drain(others, _session_grace(grace_s), error)
        self._tell(Level.INFO, "execution.closed", execution)
        return ExecutionDrainResult(
            finished=drained.finished,
            cancelled=cancelled + drained.cancelled,
            still_running=drained.still_running,
        )

    def connection_lost(self, owner: object) -> None:
        """Close the executions that are bound to a connection; what it did not wait for goes on."""
        for execution in list(self._bound.get(owner, {}).values()):
            self._forget(execution)
            for work in execution.works or ():
                if work.kind is Kind.GATE:
                    work.cut_off(execution_closed(execution.id))
            self._tell(Level.INFO, "execution.closed", execution, why="connection_lost")

    def stop(self) -> None:
        """Open nothing any more and let nothing expire: the daemon shuts down."""
        self.draining = True
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def _forget(self, execution: Execution) -> None:
        del self._open[execution.id]
        self._idle.pop(execution.id, None)
        self._unbind(execution)

    def _arm(self) -> None:
        """See to it that the longest idle execution expires in time."""
        if self._expiry is None and self._idle and not self.draining:
            oldest = next(iter(self._idle.values()))
            left_s = oldest.last_used + self._store.settings.limits.execution_idle_s - time.monotonic()
            # Once a second at most, however many expire one after another; and soon enough for a limit that was lowered.
            wait_s = min(max(left_s, 1.0), LONGEST_LOOK_S)
            self._expiry = asyncio.get_running_loop().call_later(wait_s, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        idle_s = self._store.settings.limits.execution_idle_s
        until = time.monotonic() - idle_s
        while self._idle:
            oldest = next(iter(self._idle.values()))
            if oldest.last_used > until:
                break
            self._forget(oldest)
            self._tell(Level.INFO, "execution.dropped", oldest, why="execution_idle_s", limit=idle_s)
        self._arm()

    def _tell(self, level: Level, kind: str, execution: Execution, **more: Any) -> None:
        self._record(
            level,
            kind,
            {
                "execution_id": execution.id,
                "session_id": execution.session_id,
                "agent": execution.agent,
                "revision": execution.snapshot.revision,
                **more,
            },
        )


def _same_for_all(grace_s: float | None) -> Grace:
    return lambda _: grace_s


def _session_grace(grace_s: float | None) -> Grace:
    """What the caller of a session drain says holds for all; else what is said for each hook."""
    if grace_s is not None:
        return _same_for_all(grace_s)
    return lambda work: DEFAULT_SESSION_GRACE_S if work.grace_s is None else work.grace_s


def _drain_result(drained: Drained) -> ExecutionDrainResult:
    return ExecutionDrainResult(
        finished=drained.finished, cancelled=drained.cancelled, still_running=drained.still_running
    )


def _workspace_problems(path: str) -> tuple[ConfigProblem, ...]:
    if not path or os.path.isdir(path):
        return ()
    return (
        ConfigProblem(
            severity=Severity.WARNING,
            path="workspace_path",
            message=f"the workspace {path} does not exist or is no directory; hooks that run in it will fail",
            hint="create it before the first event, or name another one",
        ),
    )
