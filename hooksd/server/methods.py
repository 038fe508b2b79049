"""The method table: nothing but translation between the protocol and the rooms that do the work.

A method answers at once where it can; where it must wait it gives a `Step`. A method that is not here (`hook/relay`)
answers -32601.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from hooksd import __version__
from hooksd.config.store import ConfigStore
from hooksd.model.events import Event
from hooksd.model.outcome import Outcome
from hooksd.model.records import Recorder
from hooksd.observe.stream import EventStream
from hooksd.pipeline.dispatch import DispatchOptions, Pipeline
from hooksd.pipeline.execution import Execution
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.methods import METHODS
from hooksd.protocol.methods.base import EMPTY, Empty, NoParams
from hooksd.protocol.methods.config import ConfigShowParams, ConfigValidateParams, ConfigWriteParams
from hooksd.protocol.methods.daemon import (
    PROTOCOL_VERSION,
    CancelParams,
    DaemonPingResult,
    DaemonShutdownParams,
    DaemonStatusResult,
    InitializeParams,
    InitializeResult,
    ServerInfo,
)
from hooksd.protocol.methods.events import (
    EventsSubscribeParams,
    EventsSubscribeResult,
    EventsUnsubscribeParams,
)
from hooksd.protocol.methods.executions import (
    ExecutionCloseParams,
    ExecutionDrainParams,
    ExecutionDrainResult,
    ExecutionListResult,
    ExecutionOpenParams,
    ExecutionOpenResult,
)
from hooksd.protocol.methods.hooks import (
    HookDispatchParams,
    HookExplainResult,
    HookNotifyResult,
    HookResultParams,
    HookResultResult,
    HookTestParams,
)
from hooksd.protocol.methods.outbox import OutboxDiscardParams, OutboxListParams, OutboxRetryParams
from hooksd.protocol.methods.programmatic import (
    HookRegisterParams,
    HookRegisterResult,
    HookUnregisterParams,
)
from hooksd.protocol.methods.trust import TrustGrantParams, TrustRevokeParams, TrustShowParams
from hooksd.server.connection import Connection
from hooksd.server.control import DaemonControl
from hooksd.server.peer import parse_depth
from hooksd.server.programmatic import ProgrammaticClient
from hooksd.server.subscriptions import Subscriptions
from hooksd.server.table import Entry, MethodTable, Step


__all__ = ["Methods"]

_PONG: Final = DaemonPingResult()
_NOTHING_RAN: Final = ExecutionDrainResult(finished=(), cancelled=(), still_running=())

_ORDERED: Final = {
    "execution/open",
    "execution/close",
    "execution/drain",
    "hook/dispatch",
    "hook/notify",
    "hook/explain",
}
"""Methods whose requests name an execution: they wait for an earlier open or close of it."""


class Methods:
    """The methods, and what each connected client has of them.

    Args:
        pipeline: Runs events.
        store: The configuration.
        stream: The records, as they happen.
        control: The daemon itself.
        record: Takes the records.
        dialects: The names of the dialects that are known.

    Attributes:
        table: For the listener.
    """

    def __init__(
        self,
        *,
        pipeline: Pipeline,
        store: ConfigStore,
        stream: EventStream,
        control: DaemonControl,
        record: Recorder,
        dialects: Iterable[str],
    ) -> None:
        self._pipeline = pipeline
        self._prepare = pipeline.prepare
        self._executions = pipeline.executions
        self._store = store
        self._stream = stream
        self._control = control
        self._record = record
        self._dialects = tuple(dialects)
        self._clients: dict[Connection, ProgrammaticClient] = {}
        self._subscriptions: dict[Connection, Subscriptions] = {}
        handlers: dict[str, Callable[[Connection, Any], Any]] = {
            "initialize": self._initialize,
            "execution/open": self._open,
            "execution/close": self._close,
            "execution/drain": self._drain,
            "execution/list": self._list,
            "hook/dispatch": self._dispatch,
            "hook/notify": self._notify,
            "hook/explain": self._explain,
            "hook/result": self._result,
            "hook/test": self._test,
            "hook/register": self._register,
            "hook/unregister": self._unregister,
            "config/show": self._show,
            "config/validate": self._validate,
            "config/reload": self._reload,
            "config/write": self._write,
            "trust/list": self._trust_list,
            "trust/show": self._trust_show,
            "trust/grant": self._trust_grant,
            "trust/revoke": self._trust_revoke,
            "outbox/list": self._outbox_list,
            "outbox/retry": self._outbox_retry,
            "outbox/discard": self._outbox_discard,
            "events/subscribe": self._subscribe,
            "events/unsubscribe": self._unsubscribe,
            "daemon/status": self._status,
            "daemon/ping": self._ping,
            "daemon/shutdown": self._shutdown,
            "$/cancel": self._cancel,
        }
        self.table: MethodTable[Connection] = {
            name: Entry(METHODS[name], handler, names_execution=name in _ORDERED)
            for name, handler in handlers.items()
        }

    # ------------------------------------------------------------------------------------------------------------------
    # For the listener

    def half_closed(self, connection: Connection) -> None:
        """A client sends nothing any more: it cannot be called."""
        client = self._clients.pop(connection, None)
        if client is not None:
            self._pipeline.registry.lost(client)
            client.lost()

    def gone(self, connection: Connection) -> None:
        """A client is gone: what was bound to it goes too."""
        self.half_closed(connection)
        subscriptions = self._subscriptions.pop(connection, None)
        if subscriptions is not None:
            subscriptions.close()
        self._executions.connection_lost(connection)

    # ------------------------------------------------------------------------------------------------------------------
    # Executions

    def _open(self, connection: Connection, params: ExecutionOpenParams) -> ExecutionOpenResult | Step:
        execution = self._executions.open_now(params, connection)
        if execution is None:
            return self._opening(connection, params, self._executions.opened)
        return self._executions.opened(execution)

    def _opening(
        self, connection: Connection, params: ExecutionOpenParams, then: Callable[[Execution], object]
    ) -> Step:
        """Open an execution for which something must be read, and go on with it."""

        async def opening() -> object:
            execution = await self._executions.open(params, connection)
            if connection.gone:
                self._executions.connection_lost(connection)  # again: it was gone before this was bound to it
            return then(execution)

        return Step(opening(), changes=params.execution_id)

    def _close(self, _: Connection, params: ExecutionCloseParams) -> Step:
        closing = self._executions.close(params.execution_id, _seconds(params.grace_ms))
        return Step(closing, changes=params.execution_id)

    def _drain(self, _: Connection, params: ExecutionDrainParams) -> ExecutionDrainResult | Step:
        if not self._executions.get(params.execution_id).works:
            return _NOTHING_RAN  # as at the end of most turns
        return Step(self._executions.drain(params.execution_id, params.scope, _seconds(params.grace_ms)))

    def _list(self, _: Connection, __: NoParams) -> ExecutionListResult:
        return self._executions.list()

    # ------------------------------------------------------------------------------------------------------------------
    # Events

    def _with_execution(
        self,
        connection: Connection,
        params: HookDispatchParams,
        then: Callable[[Connection, HookDispatchParams, Execution], object],
    ) -> object:
        """Do something with the execution of an event, which the event may open."""
        if params.execution is None:
            return then(connection, params, self._executions.get(params.execution_id))
        execution = self._executions.open_now(params.execution, connection)
        if execution is None:
            return self._opening(
                connection, params.execution, lambda opened: then(connection, params, opened)
            )
        return then(connection, params, execution)

    def _dispatch(self, connection: Connection, params: HookDispatchParams) -> object:
        if params.execution is None:  # a short way for what is asked all the time
            return self._dispatch_to(connection, params, self._executions.get(params.execution_id))
        return self._with_execution(connection, params, self._dispatch_to)

    def _dispatch_to(
        self, connection: Connection, params: HookDispatchParams, execution: Execution
    ) -> Outcome | Step:
        # Not by `_event`: this is the way that is gone all the time.
        event = self._prepare(
            execution,
            params.event,
            params.payload,
            background=params.background,
            model=params.model,
            profile=params.profile,
        )
        outcome = self._pipeline.dispatch_now(execution, event)
        if outcome is not None:
            return outcome
        options = self._options(connection, params, execution)
        return Step(self._pipeline.dispatch(execution, event, options), for_client=event.gate)

    def _notify(self, connection: Connection, params: HookDispatchParams) -> object:
        return self._with_execution(connection, params, self._notify_to)

    def _notify_to(
        self, connection: Connection, params: HookDispatchParams, execution: Execution
    ) -> HookNotifyResult:
        event = self._event(execution, params)
        options = self._options(connection, params, execution)
        return HookNotifyResult(
            accepted=True, invocation_ids=self._pipeline.notify(execution, event, options)
        )

    def _explain(self, connection: Connection, params: HookDispatchParams) -> object:
        return self._with_execution(connection, params, self._explain_to)

    def _explain_to(
        self, connection: Connection, params: HookDispatchParams, execution: Execution
    ) -> HookExplainResult:
        event = self._event(execution, params)
        return self._pipeline.explain(execution, event, self._options(connection, params, execution))

    def _event(self, execution: Execution, params: HookDispatchParams) -> Event:
        return self._prepare(
            execution,
            params.event,
            params.payload,
            background=params.background,
            model=params.model,
            profile=params.profile,
        )

    def _options(
        self, connection: Connection, params: HookDispatchParams, execution: Execution
    ) -> DispatchOptions:
        depth = connection.depth
        if depth is None:
            env = params.env if params.env is not None else execution.env
            depth = parse_depth((env or {}).get("HOOKSD_DEPTH", "")) or 0
        return DispatchOptions(
            timeout_s=_seconds(params.timeout_ms),
            env=params.env,
            cwd=params.cwd,
            depth=depth,
            traceparent=params.traceparent,
        )

    def _result(self, _: Connection, params: HookResultParams) -> HookResultResult:
        return self._pipeline.results.get(params.invocation_id)

    def _test(self, connection: Connection, params: HookTestParams) -> Step:
        depth = connection.depth
        if depth is None:
            depth = parse_depth((params.env or {}).get("HOOKSD_DEPTH", "")) or 0
        return Step(self._pipeline.test(params, depth), for_client=True)

    # ------------------------------------------------------------------------------------------------------------------
    # Programmatic hooks

    def _client(self, connection: Connection) -> ProgrammaticClient:
        client = self._clients.get(connection)
        if client is None:
            client = self._clients[connection] = ProgrammaticClient(connection, self._record)
        return client

    def _register(self, connection: Connection, params: HookRegisterParams) -> HookRegisterResult:
        client = self._client(connection)
        return HookRegisterResult(registration_id=self._pipeline.registry.register(params, client))

    def _unregister(self, connection: Connection, params: HookUnregisterParams) -> Empty:
        client = self._client(connection)
        self._pipeline.registry.unregister(params.registration_id, client)
        return EMPTY

    # ------------------------------------------------------------------------------------------------------------------
    # Configuration

    def _show(self, _: Connection, params: ConfigShowParams) -> Step:
        return Step(self._store.show(params.workspace_path))

    def _validate(self, _: Connection, params: ConfigValidateParams) -> Step:
        return Step(self._store.validate(params.dialect, params.content, params.path))

    def _reload(self, _: Connection, __: NoParams) -> Step:
        return Step(self._store.reload())

    def _write(self, _: Connection, params: ConfigWriteParams) -> Step:
        return Step(self._store.write(params.source, params.expected_revision, params.content))

    # ------------------------------------------------------------------------------------------------------------------
    # Trust

    def _trust_list(self, _: Connection, __: NoParams) -> Step:
        return Step(self._store.trust.list_projects())

    def _trust_show(self, _: Connection, params: TrustShowParams) -> Step:
        return Step(self._store.trust.show(params.dir))

    def _trust_grant(self, connection: Connection, params: TrustGrantParams) -> Step:
        if connection.depth:
            raise protocol_error(
                ErrorCode.NOT_PERMITTED,
                "a hook, or a program that a hook started, cannot grant trust; "
                f"a person can: `hooksd trust grant {shlex.quote(params.dir)}`",
            )
        return Step(self._store.trust.grant(params.dir, params.digest))

    def _trust_revoke(self, _: Connection, params: TrustRevokeParams) -> Step:
        return Step(self._store.trust.revoke(params.dir))

    # ------------------------------------------------------------------------------------------------------------------
    # Durable jobs

    def _outbox_list(self, _: Connection, params: OutboxListParams) -> Step:
        return Step(self._pipeline.jobs.list(params), for_client=True)

    def _outbox_retry(self, _: Connection, params: OutboxRetryParams) -> Step:
        return Step(self._pipeline.jobs.retry(params))

    def _outbox_discard(self, _: Connection, params: OutboxDiscardParams) -> Step:
        return Step(self._pipeline.jobs.discard(params))

    # ------------------------------------------------------------------------------------------------------------------
    # Records

    def _subscriber(self, connection: Connection) -> Subscriptions:
        subscriptions = self._subscriptions.get(connection)
        if subscriptions is None:
            subscriptions = self._subscriptions[connection] = Subscriptions(connection, self._stream)
        return subscriptions

    def _subscribe(self, connection: Connection, params: EventsSubscribeParams) -> EventsSubscribeResult:
        return self._subscriber(connection).subscribe(params)

    def _unsubscribe(self, connection: Connection, params: EventsUnsubscribeParams) -> Empty:
        self._subscriber(connection).unsubscribe(params.subscription_id)
        return EMPTY

    # ------------------------------------------------------------------------------------------------------------------
    # The daemon

    def _initialize(self, connection: Connection, params: InitializeParams) -> InitializeResult:
        if params.client is not None:
            connection.client_name = params.client.name
        return InitializeResult(
            protocol_version=PROTOCOL_VERSION,
            server=ServerInfo(name="hooksd", version=__version__),
            dialects=self._dialects,
            methods=tuple(self.table),
            limits=msgspec.structs.asdict(self._store.settings.limits),
        )

    def _ping(self, _: Connection, __: NoParams) -> DaemonPingResult:
        return _PONG

    def _status(self, _: Connection, __: NoParams) -> DaemonStatusResult:
        return self._control.status()

    def _shutdown(self, _: Connection, params: DaemonShutdownParams) -> Empty:
        # After this read, so that the answer leaves first.
        asyncio.get_running_loop().call_soon(self._control.shutdown, _seconds(params.grace_ms))
        return EMPTY

    def _cancel(self, connection: Connection, params: CancelParams) -> Empty:
        connection.cancel(params.id)
        return EMPTY


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
