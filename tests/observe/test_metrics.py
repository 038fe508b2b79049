import math

import pytest
from hypothesis import given, strategies as st

from hooksd.model.report import Status
from hooksd.observe.metrics import MAX_HOOKS, Digest, Metrics


def finished(metrics: Metrics, hook: str, duration_ms: float = 1.0, status: str = "ok") -> None:
    metrics.finished({"hook": hook, "duration_ms": duration_ms, "status": status})


@given(st.lists(st.floats(0.001, 1e7), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_a_percentile_is_at_most_four_percent_off(durations: list[float], fraction: float) -> None:
    digest = Digest()
    for duration in durations:
        digest.add(duration)

    exact = sorted(durations)[max(1, math.ceil(fraction * len(durations))) - 1]

    assert digest.percentile(fraction) == pytest.approx(exact, rel=0.04, abs=0.001)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True)))
def test_any_number_can_be_added_and_memory_is_bounded(durations: list[float]) -> None:
    digest = Digest()
    for duration in durations:
        digest.add(duration)

    latency = digest.latency()

    assert 0 <= latency.p50 <= latency.p95 <= latency.p99 < math.inf


def test_an_empty_digest_says_nothing() -> None:
    assert Digest().latency().p99 == 0.0


def test_one_run_is_its_own_percentile() -> None:
    digest = Digest()
    digest.add(12.345)

    assert digest.latency().p50 == 12.345
    assert digest.latency().p99 == 12.345


def test_counts() -> None:
    metrics = Metrics()
    for status in ("ok", "blocked", "failed", "launch_error", "timeout", "cancelled"):
        finished(metrics, "h", status=status)

    counters = metrics.counters()

    assert (counters.total, counters.failed, counters.timed_out, counters.blocked) == (6, 2, 1, 1)


@pytest.mark.parametrize("missing", ["hook", "duration_ms", "status"])
def test_a_record_that_is_not_complete_is_passed_over(missing: str) -> None:
    metrics = Metrics()
    fields = {"hook": "h", "duration_ms": 1.0, "status": "ok"}
    del fields[missing]

    metrics.finished(fields)

    assert metrics.counters().total == 0
    assert metrics.latency_ms() == {}


def test_a_status_may_be_a_word_or_the_member() -> None:
    metrics = Metrics()
    for status in Status:
        finished(metrics, "h", status=status)

    counters = metrics.counters()

    assert (counters.total, counters.failed, counters.timed_out, counters.blocked) == (8, 2, 1, 1)


def test_only_so_many_hooks_have_a_digest_and_the_one_not_seen_longest_goes() -> None:
    metrics = Metrics()
    for number in range(MAX_HOOKS):
        finished(metrics, f"h{number}")
    finished(metrics, "h0")

    finished(metrics, "new")

    latency = metrics.latency_ms()
    assert len(latency) == MAX_HOOKS
    assert "h0" in latency
    assert "new" in latency
    assert "h1" not in latency
