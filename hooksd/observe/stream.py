"""The event stream: the records of the log, as they happen, for those who subscribed (protocol section 2.11).

The stream never writes to a connection. Each subscription has a bounded queue; its owner is told once that something
waits, and takes as much as its connection can carry. What a slow owner does not take in time is lost, oldest first,
and it is told how many.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from hooksd.model.records import Level
from hooksd.model.star_patterns import StarPatterns
from hooksd.observe.record_text import timestamp
from hooksd.protocol.errors import ErrorCode, protocol_error


__all__ = [
    "MAX_QUEUED_BYTES",
    "MAX_QUEUED_RECORDS",
    "RECENT_RECORDS",
    "EventStream",
    "Subscription",
]

RECENT_RECORDS = 1_024
"""Records that a new subscription can still have by `since_seq`."""
RECENT_BYTES = 4 * 1024 * 1024
"""And how many bytes of them."""
MAX_QUEUED_RECORDS = 1_024
"""Records that wait for one subscriber."""
MAX_QUEUED_BYTES = 4 * 1024 * 1024
"""And how many bytes of them."""


Entry = tuple[int, str, object, bytes]
"""A record: its number, kind, execution (None without one) and JSON object."""


class Subscription:
    """One subscriber's view of the stream.

    Attributes:
        subscription_id: What the client knows it by.
        notify: See `EventStream.subscribe`.
    """

    def __init__(
        self,
        subscription_id: str,
        kinds: Sequence[str],
        execution_id: str | None,
        notify: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self.subscription_id = subscription_id
        self._prefix = b'{"subscription_id":' + msgspec.json.encode(subscription_id) + b","
        self._kinds = StarPatterns(kinds)
        self._wanted: dict[str, bool] = {}
        self._execution_id = execution_id
        self.notify = notify
        self._queue: deque[Entry] = deque()
        self._bytes = 0
        self._clock = clock
        self._dropped = 0
        self._dropped_seq = 0

    @property
    def pending(self) -> bool:
        """Whether `take` would give something."""
        return bool(self._queue) or self._dropped > 0

    def take(self, limit: int = 64) -> list[bytes]:
        """The next records, at most `limit`, each as the complete `params` object of an `events/event` in JSON."""
        taken = []
        if self._dropped:
            told = {
                "ts": timestamp(self._clock()),
                "seq": self._dropped_seq,
                "level": Level.WARNING,
                "event": "events.dropped",
                "where": "subscription",
                "dropped": self._dropped,
            }
            taken.append(self._prefix + msgspec.json.encode(told)[1:])
            self._dropped = 0
        while self._queue and len(taken) < limit:
            entry = self._queue.popleft()
            self._bytes -= len(entry[3])
            taken.append(self._prefix + entry[3][1:])
        return taken

    def offer(self, entry: Entry) -> bool:
        """Queue a record if it is wanted; whether now something waits where nothing did. The stream calls this."""
        if not self.wants(entry):
            return False
        idle = not self.pending
        self._queue.append(entry)
        self._bytes += len(entry[3])
        while len(self._queue) > MAX_QUEUED_RECORDS or self._bytes > MAX_QUEUED_BYTES:
            self._drop(self._queue.popleft())
        return idle

    def missed(self, count: int, seq: int) -> None:
        """Tell the subscriber of records up to `seq` that are not there any more."""
        self._dropped += count
        self._dropped_seq = seq

    def wants(self, entry: Entry) -> bool:
        """Whether the record passes the filters."""
        _, event, execution_id, _ = entry
        if self._execution_id is not None and execution_id != self._execution_id:
            return False
        wanted = self._wanted.get(event)
        if wanted is None:
            # Kinds of records are constants of the daemon, so this stays small.
            wanted = self._wanted[event] = self._kinds.fits(event)
        return wanted

    def _drop(self, entry: Entry) -> None:
        self._bytes -= len(entry[3])
        self.missed(1, entry[0])


class EventStream:
    """All subscriptions, and the recent records for those who come late."""

    def __init__(self, max_subscribers: int, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.max_subscribers = max_subscribers
        self._subscriptions: dict[str, Subscription] = {}
        self._recent: deque[Entry] = deque()
        self._recent_bytes = 0
        self._next_id = itertools.count(1)

    def subscribe(
        self,
        *,
        notify: Callable[[], None],
        kinds: Sequence[str] | None = None,
        execution_id: str | None = None,
        since_seq: int | None = None,
    ) -> Subscription:
        """Open a subscription.

        Args:
            notify: Called when a record waits and none did before, except for the records of `since_seq`: look at
                `pending` after subscribing. It must return at once; it must not call back into the stream.
            kinds: Patterns of record kinds, only `*` is special; None for all.
            execution_id: Only records of this execution.
            since_seq: First give what is still kept after this number. A number that was not reached yet comes from an
                earlier life of the daemon: everything that is kept is given.

        Raises:
            ProtocolError: -32003 when `limits.max_subscribers` is reached.
        """
        if len(self._subscriptions) >= self.max_subscribers:
            raise protocol_error(
                ErrorCode.BUSY,
                f"there are already {len(self._subscriptions)} subscriptions, limits.max_subscribers is {self.max_subscribers}",
                kind="too_many_subscribers",
            )
        subscription = Subscription(
            f"sub-{next(self._next_id)}", kinds or ("*",), execution_id, notify, self._clock
        )
        if since_seq is not None:
            self._replay(subscription, since_seq if since_seq <= self.seq else 0)
        self._subscriptions[subscription.subscription_id] = subscription
        return subscription

    def unsubscribe(self, subscription_id: str) -> bool:
        """End a subscription; False if there is none of that id."""
        return self._subscriptions.pop(subscription_id, None) is not None

    def publish(self, entry: Entry) -> None:
        """Take a record; the numbers ascend."""
        recent = self._recent
        recent.append(entry)
        self._recent_bytes += len(entry[3])
        while len(recent) > RECENT_RECORDS or self._recent_bytes > RECENT_BYTES:
            self._recent_bytes -= len(recent.popleft()[3])
        if self._subscriptions:
            for subscription in self._subscriptions.values():
                if subscription.offer(entry):
                    subscription.notify()

    @property
    def seq(self) -> int:
        """The number of the last record that was published, 0 before the first."""
        return self._recent[-1][0] if self._recent else 0

    def _replay(self, subscription: Subscription, since_seq: int) -> None:
        first = self._recent[0][0] if self._recent else self.seq + 1
        if first > since_seq + 1:
            subscription.missed(first - since_seq - 1, first - 1)
        for entry in self._recent:
            if entry[0] > since_seq:
                subscription.offer(entry)
