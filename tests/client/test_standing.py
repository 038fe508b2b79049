from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from hooksd_client.errors import Busy
from hooksd_client.standing import Feed, HookReply, Offer, reply_fields


def record(seq: Any, **fields: Any) -> dict[str, Any]:
    return {"seq": seq, "ts": f"t{seq}", "level": "info", "event": "x", **fields}


class TestFeed:
    def test_first_in_first_out(self) -> None:
        feed = Feed({})
        assert not feed.ready
        with pytest.raises(IndexError):
            feed.take()

        feed.put(record(1))
        feed.put(record(2, hook="h"))

        assert feed.ready
        assert feed.take().seq == 1
        assert feed.take().data == record(2, hook="h")
        assert not feed.ready

    def test_it_goes_on_after_the_last_record(self) -> None:
        feed = Feed({"kinds": ["*"], "since_seq": 3})
        assert feed.params() == {"kinds": ["*"], "since_seq": 3}

        feed.put(record(9))

        assert feed.params() == {"kinds": ["*"], "since_seq": 9}

    def test_a_record_without_a_number_is_kept(self) -> None:
        feed = Feed({})
        feed.put(record("odd"))

        assert feed.last_seq is None
        assert feed.take().seq == "odd"

    def test_a_slow_reader_is_told_what_it_lost(self) -> None:
        feed = Feed({}, limit=2)
        for seq in range(1, 6):
            feed.put(record(seq))

        told = feed.take()

        assert (told.event, told.level, told.seq, told.ts) == ("events.dropped", "warning", 4, "t4")
        assert (told.data["dropped"], told.data["where"]) == (3, "client")
        assert [feed.take().seq, feed.take().seq] == [4, 5]

    def test_a_refused_one_gives_what_it_has_and_then_says_so(self, caplog: pytest.LogCaptureFixture) -> None:
        feed = Feed({})
        feed.put(record(1))
        feed.refuse(Busy(-32003, "too many"))

        assert feed.take().seq == 1
        assert feed.ready
        with pytest.raises(Busy):
            feed.take()
        assert "refuses events/subscribe" in caplog.text


def test_an_offer_is_registered_with_the_same_params_every_time() -> None:
    params = {"name": "mine", "events": ["Stop"]}
    offer = Offer(params, print)

    offer.params()["name"] = "other"

    assert offer.params() == params
    assert (offer.name, offer.callback) == ("mine", print)


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        (None, {}),
        ({}, {}),
        (HookReply(), {}),
        (
            HookReply("block", "r", "c", {"a": 1}),
            {"decision": "block", "reason": "r", "additional_context": "c", "arguments": {"a": 1}},
        ),
        ({"decision": "ask", "reason": None}, {"decision": "ask"}),
        (MappingProxyType({"arguments": MappingProxyType({})}), {"arguments": {}}),
    ],
)
def test_reply_fields(answer: Any, fields: dict[str, Any]) -> None:
    assert reply_fields(answer) == fields


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (True, "not bool"),
        ("block", "not str"),
        ({"verdict": "block", 3: 4}, "has no 3, verdict; it may have decision, reason"),
        ({"arguments": 3}, "not iterable"),
    ],
)
def test_answers_that_mean_nothing(answer: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        reply_fields(answer)
