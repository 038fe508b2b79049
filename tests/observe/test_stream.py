import json
import time
from typing import Any

import pytest

from hooksd.model.errors import ProtocolError
from hooksd.observe import stream as module
from hooksd.observe.stream import EventStream, Subscription


def publish(
    stream: EventStream, seq: int, event: str = "hook.finished", execution_id: str | None = None
) -> None:
    line = json.dumps(
        {"seq": seq, "event": event, "execution_id": execution_id}, separators=(",", ":")
    ).encode()
    stream.publish((seq, event, execution_id, line))


def subscribe(stream: EventStream, **options: Any) -> tuple[Subscription, list[None]]:
    calls: list[None] = []
    return stream.subscribe(notify=lambda: calls.append(None), **options), calls


def seqs(subscription: Subscription, limit: int = 10_000) -> list[int]:
    return [json.loads(params)["seq"] for params in subscription.take(limit)]


def test_records_come_as_params_of_the_notification() -> None:
    stream = EventStream(4)
    subscription, _ = subscribe(stream)

    publish(stream, 1, "daemon.ready")

    (params,) = subscription.take()
    assert json.loads(params) == {
        "subscription_id": subscription.subscription_id,
        "seq": 1,
        "event": "daemon.ready",
        "execution_id": None,
    }


def test_the_owner_is_told_once_until_it_has_taken_everything() -> None:
    stream = EventStream(4)
    subscription, calls = subscribe(stream)

    publish(stream, 1)
    publish(stream, 2)
    assert len(calls) == 1
    assert subscription.pending
    assert seqs(subscription, 1) == [1]
    publish(stream, 3)
    assert len(calls) == 1
    assert seqs(subscription) == [2, 3]
    assert not subscription.pending
    publish(stream, 4)

    assert len(calls) == 2


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [
        (None, ["hook.started", "hook.finished", "config.changed", "hookXfinished"]),
        (["*"], ["hook.started", "hook.finished", "config.changed", "hookXfinished"]),
        (["hook.*"], ["hook.started", "hook.finished"]),
        (["hook.finished"], ["hook.finished"]),
        (["*.changed", "hook.s*d"], ["hook.started", "config.changed"]),
        (["[a-z]+", "hook?finished", "h..k.started", ""], []),
    ],
)
def test_only_the_asterisk_is_special_in_kinds(kinds: list[str] | None, wanted: list[str]) -> None:
    stream = EventStream(4)
    subscription, _ = subscribe(stream, kinds=kinds)

    for number, event in enumerate(["hook.started", "hook.finished", "config.changed", "hookXfinished"]):
        publish(stream, number, event)

    assert [json.loads(params)["event"] for params in subscription.take()] == wanted


def test_an_execution_can_be_chosen() -> None:
    stream = EventStream(4)
    subscription, _ = subscribe(stream, execution_id="run-1")

    publish(stream, 1, execution_id="run-1")
    publish(stream, 2, execution_id="run-2")
    publish(stream, 3)

    assert seqs(subscription) == [1]


def test_since_seq_gives_what_is_kept() -> None:
    stream = EventStream(4)
    for number in range(1, 6):
        publish(stream, number, "hook.finished" if number % 2 else "hook.started")

    subscription, calls = subscribe(stream, since_seq=2, kinds=["hook.finished"])

    assert subscription.pending
    assert calls == []
    assert seqs(subscription) == [3, 5]


def test_since_seq_of_now_gives_nothing() -> None:
    stream = EventStream(4)
    publish(stream, 1)

    subscription, _ = subscribe(stream, since_seq=1)

    assert not subscription.pending


def test_since_seq_of_an_earlier_life_gives_everything() -> None:
    stream = EventStream(4)
    publish(stream, 1)
    publish(stream, 2)

    subscription, _ = subscribe(stream, since_seq=500)

    assert seqs(subscription) == [1, 2]


def test_what_is_not_kept_any_more_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT_RECORDS", 3)
    stream = EventStream(4, clock=lambda: 0.0)
    for number in range(1, 11):
        publish(stream, number)

    subscription, _ = subscribe(stream, since_seq=4)

    told, *rest = [json.loads(params) for params in subscription.take()]
    assert told == {
        "subscription_id": subscription.subscription_id,
        "ts": "1970-01-01T00:00:00.000Z",
        "seq": 7,
        "level": "warning",
        "event": "events.dropped",
        "where": "subscription",
        "dropped": 3,
    }
    assert [record["seq"] for record in rest] == [8, 9, 10]


def test_the_recent_records_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT_BYTES", 200)
    stream = EventStream(4)
    for number in range(1, 50):
        publish(stream, number)

    subscription, _ = subscribe(stream, since_seq=0)

    assert len(subscription.take()) < 6


@pytest.mark.parametrize(("name", "value"), [("MAX_QUEUED_RECORDS", 5), ("MAX_QUEUED_BYTES", 5 * 60)])
def test_a_slow_subscriber_loses_the_oldest_and_is_told_how_many(
    monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    monkeypatch.setattr(module, name, value)
    stream = EventStream(4)
    slow, calls = subscribe(stream)
    quick, _ = subscribe(stream)

    got = []
    for number in range(101, 301):
        publish(stream, number)
        got += seqs(quick)

    told, *rest = [json.loads(params) for params in slow.take()]
    assert told["event"] == "events.dropped"
    assert told["dropped"] + len(rest) == 200
    assert told["seq"] == rest[0]["seq"] - 1
    assert rest[-1]["seq"] == 300
    assert 1 <= len(rest) <= 6
    assert len(calls) == 1
    assert got == list(range(101, 301))
    assert slow.take() == []


def test_the_number_of_subscribers_is_bounded() -> None:
    stream = EventStream(2)
    first, _ = subscribe(stream)
    subscribe(stream)

    with pytest.raises(ProtocolError, match="max_subscribers") as caught:
        subscribe(stream)

    assert caught.value.code == -32003
    assert stream.unsubscribe(first.subscription_id)
    subscribe(stream)


def test_many_stars_are_no_trap() -> None:
    stream = EventStream(1)
    subscription, _ = subscribe(stream, kinds=["*" * 100 + "x", "*e" * 50])
    began = time.monotonic()

    publish(stream, 1)
    assert not subscription.pending
    assert time.monotonic() - began < 5


def test_an_ended_subscription_gets_nothing_more() -> None:
    stream = EventStream(4)
    subscription, _ = subscribe(stream)

    assert stream.unsubscribe(subscription.subscription_id)
    assert not stream.unsubscribe(subscription.subscription_id)
    publish(stream, 1)

    assert subscription.take() == []
