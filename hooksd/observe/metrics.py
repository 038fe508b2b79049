"""Counters and latency digests, fed from the records of invocations; what `daemon/status` tells.

Memory is bounded whatever happens: a digest is a histogram with logarithmic buckets, and only so many hooks have one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from hooksd.model.report import Status


__all__ = ["MAX_HOOKS", "Counters", "Digest", "Latency", "Metrics"]

MAX_HOOKS = 1_024
"""Hooks with a digest of their own; the one that finished least recently gives way."""

_STEPS = 16
"""Buckets per doubling: a percentile is at most 1/32 (3 %) off."""
_OFFSET = 16
"""Doublings below 1 ms that are told apart: down to 15 ns."""


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
    """The distribution of durations in milliseconds: a histogram with logarithmic buckets, at most about 1,000.

    Attributes:
        last: The number of the last run that was counted, over all hooks.
    """

    __slots__ = ("_buckets", "_count", "_highest", "_lowest", "last")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._count = 0
        self._lowest = math.inf
        self._highest = 0.0
        self.last = 0

    def add(self, duration_ms: float) -> None:
        """Count one duration; what is negative or not finite is taken as 0."""
        if not 0 <= duration_ms < math.inf:
            duration_ms = 0.0
        mantissa, exponent = math.frexp(duration_ms)
        # The mantissa is in [0.5, 1), and 0 for 0.
        bucket = (
            (exponent + _OFFSET) * _STEPS + int((mantissa - 0.5) * (2 * _STEPS)) if exponent > -_OFFSET else 0
        )
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        self._count += 1
        if duration_ms < self._lowest:
            self._lowest = duration_ms
        if duration_ms > self._highest:
            self._highest = duration_ms

    def percentile(self, fraction: float) -> float:
        """The duration that this fraction of the runs did not exceed; 0 when there were none."""
        if not self._count:
            return 0.0
        rank = max(1, math.ceil(fraction * self._count))
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                break
        exponent, step = divmod(bucket, _STEPS)
        middle = math.ldexp(0.5 + (step + 0.5) / (2 * _STEPS), exponent - _OFFSET)
        return round(min(max(middle, self._lowest), self._highest), 3)

    def latency(self) -> Latency:
        """The three percentiles that are told."""
        return Latency(p50=self.percentile(0.5), p95=self.percentile(0.95), p99=self.percentile(0.99))


class Metrics:
    """Counts `hook.finished` records."""

    def __init__(self) -> None:
        self._total = 0
        self._by_status: dict[object, int] = dict.fromkeys(Status, 0)
        self._digests: dict[str, Digest] = {}

    def observe(self, event: str, fields: Mapping[str, Any]) -> None:
        """Take a record; all but complete `hook.finished` ones are passed over."""
        if event != "hook.finished":
            return
        hook, duration, status = fields.get("hook"), fields.get("duration_ms"), fields.get("status")
        if (
            not isinstance(hook, str)
            or not isinstance(duration, (int, float))
            or status not in self._by_status
        ):
            return
        self._total += 1
        self._by_status[status] += 1
        digest = self._digests.get(hook)
        if digest is None:
            digest = self._new_digest(hook)
        digest.last = self._total
        digest.add(duration)

    def _new_digest(self, hook: str) -> Digest:
        if len(self._digests) >= MAX_HOOKS:
            del self._digests[min(self._digests, key=lambda name: self._digests[name].last)]
        digest = self._digests[hook] = Digest()
        return digest

    def counters(self) -> Counters:
        """What was counted so far."""
        by = self._by_status
        return Counters(
            total=self._total,
            failed=by[Status.FAILED] + by[Status.LAUNCH_ERROR],
            timed_out=by[Status.TIMEOUT],
            blocked=by[Status.BLOCKED],
        )

    def latency_ms(self) -> dict[str, Latency]:
        """The percentiles of every hook that is kept."""
        return {hook: digest.latency() for hook, digest in self._digests.items()}
