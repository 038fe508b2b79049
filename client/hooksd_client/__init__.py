"""The client library of hooksd: standard library only, Python 3.9 and later.

`Client` is the blocking client, `AsyncClient` the one for asyncio; both have the same verbs. Everything here is loaded
when it is first used, so that a program that only needs `hooksd_client.wire` or `.paths` pays for nothing else.
"""

from __future__ import annotations


__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hooksd_client.aio import AsyncClient
    from hooksd_client.aio_handles import AsyncEventStream, AsyncExecution, AsyncRegistration
    from hooksd_client.calls import execution_params
    from hooksd_client.client import Client
    from hooksd_client.errors import (
        Busy,
        ClientClosed,
        ClientError,
        ConfigurationInvalid,
        ConnectionLost,
        DaemonNotReachable,
        Draining,
        ExecutionConflict,
        InternalError,
        InvalidParams,
        InvalidRequest,
        MessageTooLarge,
        MethodNotFound,
        NoAnswer,
        NotPermitted,
        ParseError,
        ProtocolViolation,
        RequestCancelled,
        RequestFailed,
        RequestTimeout,
        StaleRevision,
        UnknownEvent,
        UnknownExecution,
        Untrusted,
    )
    from hooksd_client.handles import EventStream, Execution, Registration
    from hooksd_client.paths import SocketPathError
    from hooksd_client.results import EventRecord, HandlerReport, OpenedExecution, Outcome, Status
    from hooksd_client.standing import HookCall, HookReply

__all__ = [
    "AsyncClient",
    "AsyncEventStream",
    "AsyncExecution",
    "AsyncRegistration",
    "Busy",
    "Client",
    "ClientClosed",
    "ClientError",
    "ConfigurationInvalid",
    "ConnectionLost",
    "DaemonNotReachable",
    "Draining",
    "EventRecord",
    "EventStream",
    "Execution",
    "ExecutionConflict",
    "HandlerReport",
    "HookCall",
    "HookReply",
    "InternalError",
    "InvalidParams",
    "InvalidRequest",
    "MessageTooLarge",
    "MethodNotFound",
    "NoAnswer",
    "NotPermitted",
    "OpenedExecution",
    "Outcome",
    "ParseError",
    "ProtocolViolation",
    "Registration",
    "RequestCancelled",
    "RequestFailed",
    "RequestTimeout",
    "SocketPathError",
    "StaleRevision",
    "Status",
    "UnknownEvent",
    "UnknownExecution",
    "Untrusted",
    "__version__",
    "execution_params",
]

_MODULES = {
    "AsyncClient": "aio",
    "AsyncEventStream": "aio_handles",
    "AsyncExecution": "aio_handles",
    "AsyncRegistration": "aio_handles",
    "Client": "client",
    "EventRecord": "results",
    "EventStream": "handles",
    "Execution": "handles",
    "HandlerReport": "results",
    "HookCall": "standing",
    "HookReply": "standing",
    "OpenedExecution": "results",
    "Outcome": "results",
    "Registration": "handles",
    "SocketPathError": "paths",
    "Status": "results",
    "execution_params": "calls",
}
"""Where the names of `__all__` are; those that are not here are errors."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # not for those who need no name of here

    value = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
