"""What a connection must know of a method to carry a request to it and the answer back.

A handler is a plain function of the connection and the params. It returns the result, which is then answered in the same
read, or a `Step`: something to wait for, whose own result is again one of both.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from hooksd.protocol.methods.base import Method


__all__ = ["Entry", "MethodTable", "Served", "Step"]

P = TypeVar("P", bound=msgspec.Struct)
C = TypeVar("C")


class Step:
    """A part of a request that has to wait.

    Attributes:
        coroutine: Not yet started; its result is the result of the request, or the next step.
        changes: The execution that this step opens or closes: later requests of the same connection that name it wait
            for the end of the step.
        for_client: Nobody else has anything of it: it is cancelled when the client is gone.
    """

    __slots__ = ("changes", "coroutine", "for_client")

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], *, changes: str | None = None, for_client: bool = False
    ) -> None:
        self.coroutine = coroutine
        self.changes = changes
        self.for_client = for_client


class Entry(Generic[C]):
    """One line of the method table.

    Attributes:
        method: The method.
        handle: See the module; the first argument is the connection.
        names_execution: Whether the params have an `execution_id` that is ordered after its open or close.
        decoder: Of the params.
        decode: Its `decode`, looked up once.
    """

    __slots__ = ("decode", "decoder", "handle", "method", "names_execution")

    def __init__(
        self, method: Method, handle: Callable[[C, Any], Any], *, names_execution: bool = False
    ) -> None:
        self.method = method
        self.handle = handle
        self.names_execution = names_execution
        self.decoder: msgspec.json.Decoder[msgspec.Struct] = msgspec.json.Decoder(method.params)
        self.decode: Callable[[msgspec.Raw], Any] = self.decoder.decode


MethodTable = Mapping[str, Entry[C]]


class Served(Protocol[C]):
    """What is served to connections of a type: the methods, and what they keep for each connection."""

    @property
    def table(self) -> MethodTable[C]:
        """The methods."""
        ...

    def half_closed(self, connection: C) -> None:
        """The client of a connection sends nothing any more; called once for each."""
        ...

    def gone(self, connection: C) -> None:
        """It takes nothing any more either; called once for each, after `half_closed`."""
        ...
