"""What a client keeps up over connections: the hooks it offers and the event streams it reads.

Pure. The ids that the daemon gives belong to one connection, so they live in `session.py`; what is here is asked for
again on the next one.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable, ClassVar, Deque, Dict, Mapping, Optional, Union

from hooksd_client.errors import RequestFailed
from hooksd_client.results import EventRecord


__all__ = [
    "MAX_QUEUED_RECORDS",
    "Feed",
    "HookCall",
    "HookCallback",
    "HookReply",
    "Offer",
    "Standing",
    "reply_fields",
]

MAX_QUEUED_RECORDS = 10_000
"""Records that wait in the client for a reader; the oldest go first, and the reader is told how many."""

_logger = logging.getLogger("hooksd_client")

_REPLY_FIELDS = ("decision", "reason", "additional_context", "arguments")


@dataclass(frozen=True)
class HookCall:
    """One call of a programmatic hook.

    Attributes:
        name: The name the hook was registered with.
        envelope: The event, as a hook of the registered agent's dialect gets it.
        deadline_ms: How long the daemon waits for the answer, in milliseconds from now; a later one is not used.
    """

    name: str
    envelope: Mapping[str, Any]
    deadline_ms: int


@dataclass(frozen=True)
class HookReply:
    """What a programmatic hook answers; everything is optional (protocol section 2.8).

    Attributes:
        decision: `allow`, `ask` or `block`.
        reason: Why, above all of a block.
        additional_context: Text for the model.
        arguments: The tool's arguments instead of those that it was called with; all of them.
    """

    decision: Optional[str] = None
    reason: Optional[str] = None
    additional_context: Optional[str] = None
    arguments: Optional[Mapping[str, Any]] = None


HookAnswer = Union[HookReply, Mapping[str, Any], None]
HookCallback = Callable[[HookCall], Any]
"""A programmatic hook. It answers a `HookReply`, the same as a mapping, or None for nothing to say; for `AsyncClient`
it may also be a coroutine function that does."""


class Standing(ABC):
    """What is asked for again on every connection.

    Attributes:
        refused: What the daemon said instead of renewing it on a later connection; None as long as it stands.
    """

    METHOD: ClassVar[str]
    WITHDRAW: ClassVar[str]
    KEY: ClassVar[str]

    def __init__(self) -> None:
        self.refused: Optional[RequestFailed] = None

    @abstractmethod
    def params(self) -> Dict[str, Any]:
        """Of its `METHOD`."""

    def refuse(self, refused: RequestFailed) -> None:
        """Take it that the daemon does not renew it; the call that needed the connection has nothing to do with it."""
        self.refused = refused
        _logger.warning("hooksd refuses %s on a new connection: %s", self.METHOD, refused)


class Offer(Standing):
    """A programmatic hook of this client.

    Attributes:
        name: Its own name, the last part of the name that the daemon tells.
        callback: What is called.
    """

    METHOD: ClassVar[str] = "hook/register"
    WITHDRAW: ClassVar[str] = "hook/unregister"
    KEY: ClassVar[str] = "registration_id"

    def __init__(self, params: Mapping[str, Any], callback: HookCallback) -> None:
        super().__init__()
        self._params = params
        self.name: str = str(params["name"])
        self.callback: HookCallback = callback

    def params(self) -> Dict[str, Any]:
        """As it was registered."""
        return dict(self._params)


class Feed(Standing):
    """The records of one subscription, until somebody takes them.

    Attributes:
        last_seq: The number of the newest record that is known; None before the first connection.
    """

    METHOD: ClassVar[str] = "events/subscribe"
    WITHDRAW: ClassVar[str] = "events/unsubscribe"
    KEY: ClassVar[str] = "subscription_id"

    def __init__(self, params: Mapping[str, Any], limit: int = MAX_QUEUED_RECORDS) -> None:
        super().__init__()
        self._params = params
        self._limit = limit
        self._records: Deque[Mapping[str, Any]] = deque()
        self._lost = 0
        self.last_seq: Optional[int] = None

    def params(self) -> Dict[str, Any]:
        """As it was made; on a later connection from the last record that came."""
        if self.last_seq is None:
            return dict(self._params)
        return {**self._params, "since_seq": self.last_seq}

    def put(self, record: Mapping[str, Any]) -> None:
        """Take a record that came."""
        seq = record.get("seq")
        if isinstance(seq, int):
            self.last_seq = seq
        if len(self._records) >= self._limit:
            self._records.popleft()
            self._lost += 1
        self._records.append(record)

    @property
    def ready(self) -> bool:
        """Whether `take` has something to say."""
        return bool(self._records) or self.refused is not None

    def take(self) -> EventRecord:
        """The oldest record; after a loss first an `events.dropped` that tells how many.

        Raises:
            RequestFailed: There is none, and none will come: the daemon has refused to renew the subscription.
            IndexError: There is none yet.
        """
        if not self._records and self.refused is not None:
            raise self.refused
        if self._lost:
            first = self._records[0]
            told = {"event": "events.dropped", "level": "warning", "where": "client", "dropped": self._lost}
            self._lost = 0
            return EventRecord.from_record({"seq": first.get("seq", 0), "ts": first.get("ts", ""), **told})
        return EventRecord.from_record(self._records.popleft())


def reply_fields(answer: HookAnswer) -> Dict[str, Any]:
    """The result of `hook/invoke` for what a callback answered.

    Raises:
        TypeError: It answered something else.
        ValueError: It answered a mapping with a key that means nothing.
    """
    if answer is None:
        return {}
    if isinstance(answer, HookReply):
        fields = {name: getattr(answer, name) for name in _REPLY_FIELDS}
    elif isinstance(answer, Mapping):
        unknown = sorted(str(key) for key in answer if key not in _REPLY_FIELDS)
        if unknown:
            raise ValueError(
                f"a hook's answer has no {', '.join(unknown)}; it may have {', '.join(_REPLY_FIELDS)}"
            )
        fields = dict(answer)
    else:
        raise TypeError(f"a hook answers a HookReply, a mapping or None, not {type(answer).__name__}")
    return {
        name: dict(value) if name == "arguments" else value
        for name, value in fields.items()
        if value is not None
    }
