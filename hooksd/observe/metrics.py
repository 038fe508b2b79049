"""Counters and latency digests, fed from the records of invocations; what `daemon/status` tells.

Memory is bounded whatever happens: a digest is a histogram with logarithmic buckets, and only so many hooks have one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec


__all__ = ["MAX_HOOKS", "Counters", "Digest", "Latency", "Metrics"]

MAX_HOOKS = 1_024
"""Hooks with a digest of their own; the one that finished least recently gives way."""

_STEPS = 16
"""Buckets per doubling: a percentile is at most 2.2 % off."""
_LOWEST_MS = 2.0**-10
"""Durations below a microsecond are not told apart."""
_HIGHEST_MS = 2.0**40
"""Nor those above 34 years."""
_OFFSET = 10 * _STEPS
"""Puts the lowest duration into bucket 0."""


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of the durations of one hook, in milliseconds."""

    p50: float
    p95: float
    p99: float


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """What has finished since the daemon started."""

    total: int
    failed: int
    timed_out: int
    blocked: int


class Digest:
    """The distribution of durations in milliseconds: a histogram with logarithmic buckets, at most 800.

    Attributes:
        last: The number of the last run that was counted, over all hooks.
    """

    __slots__ = ("_buckets", "_highest", "_lowest", "last")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._lowest = math.inf
        self._highest = 0.0
        self.last = 0

    def add(self, duration_ms: float) -> None:
        """Count one duration; what is out of range is taken as 0."""
        if _LOWEST_MS <= duration_ms <= _HIGHEST_MS:
            bucket = int(math.log2(duration_ms) * _STEPS + _OFFSET)
        else:
            bucket, duration_ms = 0, 0.0
        buckets = self._buckets
        buckets[bucket] = buckets.get(bucket, 0) + 1
        if duration_ms < self._lowest:
            self._lowest = duration_ms
        if duration_ms > self._highest:
            self._highest = duration_ms

    def percentile(self, fraction: float) -> float:
        """The duration that this fraction of the runs did not exceed; 0 when there were none."""
        rank = max(1, math.ceil(fraction * sum(self._buckets.values())))
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                middle = math.exp2((bucket + 0.5 - _OFFSET) / _STEPS)
                return round(min(max(middle, self._lowest), self._highest), 3)
        return 0.0

    def latency(self) -> Latency:
        """The three percentiles that are told."""
        return Latency(p50=self.percentile(0.5), p95=self.percentile(0.95), p99=self.percentile(0.99))


class Metrics:
    """Counts `hook.finished` records."""

    def __init__(self) -> None:
        self._total = 0
        self._failed = 0
        self._timed_out = 0
        self._blocked = 0
        self._digests: dict[str, Digest] = {}

    def finished(self, fields: Mapping[str, Any]) -> None:
        """Take the fields of a `hook.finished` record; one that is not complete is passed over."""
        try:
            hook, duration, status = fields["hook"], fields["duration_ms"], fields["status"]
        except KeyError:
            return
        # Compared, not looked up: the hash of an enumeration's member is computed in Python.
        if status != "ok":
            if status == "blocked":
                self._blocked += 1
            elif status == "timeout":
                self._timed_out += 1
            elif status in {"failed", "launch_error"}:
                self._failed += 1
        self._total += 1
        digest = self._digests.get(hook) or self._new_digest(hook)
        digest.last = self._total
        digest.add(duration)

    def _new_digest(self, hook: str) -> Digest:
        if len(self._digests) >= MAX_HOOKS:
            del self._digests[min(self._digests, key=lambda name: self._digests[name].last)]
        digest = self._digests[hook] = Digest()
        return digest

    def counters(self) -> Counters:
        """What was counted so far."""
        return Counters(
            total=self._total, failed=self._failed, timed_out=self._timed_out, blocked=self._blocked
        )

    def latency_ms(self) -> dict[str, Latency]:
        """The percentiles of every hook that is kept."""
        return {hook: digest.latency() for hook, digest in self._digests.items()}
