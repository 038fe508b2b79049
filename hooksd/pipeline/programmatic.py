"""Programmatic hooks: connected clients that offer themselves as hooks (protocol section 2.8).

A registration becomes one `Hook` for each of its events. It is part of the snapshots that are made while it stands. A
client that takes it out takes it out everywhere; one whose connection is lost leaves it in the plans of the executions
that have it, where it fails.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Protocol

from hooksd.dialects.base import Dialect
from hooksd.dialects.name_patterns import check_name_pattern
from hooksd.model.errors import ProtocolError
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import Contract, Hook, Mode, NamePattern, OnError, Programmatic, Scope
from hooksd.model.problems import ConfigProblem, HookProblem, ProblemKind, Severity
from hooksd.model.reply import MAX_DETAIL_BYTES, Reply
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.methods.programmatic import FailureAction, HookRegisterParams, RegistrationMode


__all__ = ["MAX_REGISTRATIONS", "HookClient", "Registry"]

MAX_REGISTRATIONS = 1_024
"""Standing registrations of all clients together; every one takes part in every dispatch of its events."""

MAX_REMEMBERED = 4_096
"""Registrations that were taken out and that open executions may still have. Of one that is forgotten again an old
execution says that its connection is lost, which errs on the strict side."""

_TOOL_EVENTS = frozenset({EventName.TOOL_BEFORE, EventName.TOOL_AFTER, EventName.TOOL_ERROR})


class HookClient(Protocol):
    """A connected client that can be called."""

    @property
    def name(self) -> str:
        """What it called itself in `initialize`, "" if nothing."""
        ...

    @property
    def closed(self) -> bool:
        """Whether its connection is gone."""
        ...

    async def invoke(self, registration_id: str, envelope: dict[str, Any], deadline_ms: int) -> Any:
        """Send `hook/invoke` and give the result object as it came. Cancelled when the time is over.

        Raises:
            ProtocolError: The client answered with an error.
            ConnectionError: The connection was lost before there was an answer.
        """
        ...


class Registry:
    """All registrations. Belongs to the loop's thread.

    Attributes:
        hooks: The hooks of all standing registrations, in the order of registration. Another object after every
            change, the same one otherwise.
    """

    __slots__ = ("_clients", "_dialects", "_taken_out", "hooks")

    def __init__(self, dialects: Mapping[str, Dialect]) -> None:
        self.hooks: tuple[Hook, ...] = ()
        self._dialects = dialects
        self._clients: dict[str, HookClient] = {}
        self._taken_out: OrderedDict[str, None] = OrderedDict()

    def register(self, params: HookRegisterParams, client: HookClient) -> str:
        """Add a client's hook, and give the id of the registration.

        Raises:
            ProtocolError: -32015 for an unknown dialect or event, -32602 for a bad pattern or a combination that could
                have no effect, -32003 at `MAX_REGISTRATIONS`.
        """
        if len(self._clients) >= MAX_REGISTRATIONS:
            raise protocol_error(
                ErrorCode.BUSY,
                f"{MAX_REGISTRATIONS} programmatic hooks are registered, which is the limit",
                kind="max_registrations",
            )
        registration_id = f"reg-{secrets.token_hex(8)}"
        hooks = _hooks(params, client.name or "-", registration_id, self._dialects)
        self._clients[registration_id] = client
        self.hooks += hooks
        return registration_id

    def unregister(self, registration_id: str, client: HookClient | None = None) -> None:
        """Take a registration out everywhere, open executions included.

        Args:
            registration_id: What `register` gave.
            client: Who asks; None for the daemon itself.

        Raises:
            ProtocolError: -32602, there is none of that id; -32016, another client's.
        """
        owner = self._clients.get(registration_id)
        if owner is None:
            raise protocol_error(
                ErrorCode.INVALID_PARAMS,
                f"there is no registration {registration_id!r}; it was taken out, or its connection is lost",
                kind="unknown_registration",
            )
        if client is not None and owner is not client:
            raise protocol_error(
                ErrorCode.NOT_PERMITTED, f"the registration {registration_id!r} belongs to another connection"
            )
        self._remove({registration_id})
        self._taken_out[registration_id] = None
        if len(self._taken_out) > MAX_REMEMBERED:
            self._taken_out.popitem(last=False)

    def lost(self, client: HookClient) -> None:
        """A client's connection is gone: its hooks are in no new snapshot, and fail where they are."""
        ids = {registration_id for registration_id, owner in self._clients.items() if owner is client}
        if ids:
            self._remove(ids)

    @property
    def all_stand(self) -> bool:
        """Whether no client has taken a hook out that some snapshot may have."""
        return not self._taken_out

    def stands(self, hook: Hook) -> bool:
        """Whether a hook of some snapshot is still there: false only for a programmatic one that was taken out."""
        return not (
            self._taken_out
            and isinstance(hook.handler, Programmatic)
            and hook.handler.registration_id in self._taken_out
        )

    async def invoke(self, hook: Hook, event: Event, cwd: str, deadline: float) -> Reply:
        """Call a programmatic hook; every failure is a reply.

        Args:
            hook: One of `hooks`, now or earlier.
            event: What it is told.
            cwd: The effective working directory, which some envelopes contain.
            deadline: On the clock of `time.monotonic`.
        """
        handler = hook.handler
        client = self._clients.get(handler.registration_id) if isinstance(handler, Programmatic) else None
        if client is None or client.closed or not isinstance(handler, Programmatic):
            return _lost(hook)
        dialect = self._dialects[hook.dialect]
        left_s = max(deadline - time.monotonic(), 0.0)
        try:
            async with asyncio.timeout(left_s):
                answer = await client.invoke(
                    handler.registration_id, dialect.envelope(event, cwd), int(left_s * 1000)
                )
        except TimeoutError:
            return _failed(ProblemKind.TIMEOUT, f"the client did not answer within {left_s:.3g} s")
        except ConnectionError:
            return _lost(hook)
        except RecursionError:
            return _failed(ProblemKind.LAUNCH, "the event is nested too deeply to be told to a client")
        except ProtocolError as error:
            return _failed(
                ProblemKind.MALFORMED_OUTPUT,
                f"the client answered with the error {error.code} instead of a result",
                detail=error.message[:MAX_DETAIL_BYTES].encode()[:MAX_DETAIL_BYTES].decode(errors="ignore"),
            )
        return dialect.interpret_object(answer, event, hook)

    def _remove(self, ids: set[str]) -> None:
        for registration_id in ids:
            del self._clients[registration_id]
        self.hooks = tuple(
            hook
            for hook in self.hooks
            if not (isinstance(hook.handler, Programmatic) and hook.handler.registration_id in ids)
        )


def _hooks(
    params: HookRegisterParams, client: str, registration_id: str, dialects: Mapping[str, Dialect]
) -> tuple[Hook, ...]:
    dialect = dialects.get(params.agent)
    if dialect is None:
        raise protocol_error(
            ErrorCode.UNKNOWN_EVENT,
            f"there is no dialect {params.agent!r}; there are: {', '.join(sorted(dialects))}",
            kind="unknown_dialect",
        )
    observer = params.mode is RegistrationMode.OBSERVER
    if observer and params.on_failure is FailureAction.BLOCK:
        raise protocol_error(
            ErrorCode.INVALID_PARAMS,
            '`on_failure: "block"` has no effect on an observer, which nothing waits for; use `mode: "control"`',
        )
    match = None if params.matcher is None else _pattern(params.matcher)
    natives: dict[EventName, str] = {}
    for given in params.events:
        native = dialect.native_event(given)
        if native is None:
            raise protocol_error(
                ErrorCode.UNKNOWN_EVENT,
                f"{params.agent} has no event {given!r}; it has: {', '.join(dialect.events)}",
            )
        # One incoming event is one normalised event, and a hook gets it once.
        natives.setdefault(dialect.events[native], native)
    return tuple(
        Hook(
            name=f"programmatic:client:{client}:{params.name}",
            dialect=dialect.name,
            contract=Contract.PROGRAMMATIC,
            source=client,
            scope=Scope.CLIENT,
            event=event,
            native_event=native,
            handler=Programmatic(registration_id=registration_id, priority=params.priority),
            match=match if event in _TOOL_EVENTS else None,
            mode=Mode.ASYNC if observer else Mode.BLOCKING,
            timeout_s=params.timeout_ms / 1000,
            on_error=OnError.BLOCK if params.on_failure is FailureAction.BLOCK else OnError.WARN,
        )
        for event, native in natives.items()
    )


def _pattern(matcher: str) -> NamePattern:
    faults = check_name_pattern(matcher)
    if faults:
        raise protocol_error(
            ErrorCode.INVALID_PARAMS,
            f"the matcher {matcher[:200]!r} is not taken: {faults[0].message}",
            problems=[
                ConfigProblem(
                    severity=Severity.ERROR,
                    path="matcher",
                    message=fault.message,
                    column=fault.offset + 1,
                    hint=fault.hint,
                )
                for fault in faults
            ],
        )
    return NamePattern(pattern=matcher)


def _failed(kind: ProblemKind, message: str, hint: str | None = None, detail: str | None = None) -> Reply:
    return Reply(failure=HookProblem(kind=kind, message=message, hint=hint, detail=detail))


def _lost(hook: Hook) -> Reply:
    return _failed(
        ProblemKind.LOST_CONNECTION,
        f"the client {hook.source!r} that this hook lives in is gone",
        hint="restart it; executions that are opened after it has registered again have the hook",
    )
