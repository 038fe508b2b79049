"""Requests without a connection around them: what only happens within one turn of the loop."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from hooksd.protocol.jsonrpc import Request
from hooksd.protocol.methods.base import Method, MethodKind
from hooksd.server.requests import Requests
from hooksd.server.table import Entry, Step


class Params(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: str = ""


class Harness:
    """Requests with the methods `now`, `gate` and `open`, and everything that comes out of them."""

    def __init__(self):
        self.log = []
        self.answers = []
        self.records = []
        handlers = {
            "now": lambda _, params: self.log.append("now"),
            "gate": lambda _, params: Step(self._wait("gate"), for_client=True),
            "open": lambda _, params: Step(self._wait("open"), changes=params.execution_id),
        }
        table = {
            name: Entry(
                Method(
                    name=name, kind=MethodKind.REQUEST, params=Params, result=None, summary="", section=""
                ),
                handler,
                names_execution=True,
            )
            for name, handler in handlers.items()
        }
        self.requests = Requests(
            None,
            table,
            send=lambda line: self.answers.append(json.loads(line)),
            ended=lambda: self.log.append("ended"),
            record=lambda level, event, fields: self.records.append(event),
        )

    async def _wait(self, name):
        self.log.append(name)
        await asyncio.sleep(3600)

    def start(self, method, request_id, execution_id=""):
        params = msgspec.Raw(json.dumps({"execution_id": execution_id}).encode())
        answer = self.requests.start(Request(jsonrpc="2.0", method=method, id=request_id, params=params))
        if answer is not None:
            self.answers.append(json.loads(answer))

    def codes(self):
        return {answer["id"]: answer.get("error", {}).get("code") for answer in self.answers}


@pytest.fixture
async def harness():
    return Harness()


async def turns(harness):
    for _ in range(10):
        await asyncio.sleep(0)


async def test_cancelled_before_the_first_turn(harness):
    harness.start("gate", 1)
    harness.requests.cancel(1)
    await turns(harness)

    assert harness.codes() == {1: -32800}
    assert harness.log == ["ended"]
    assert not harness.requests.unanswered


async def test_the_client_is_gone_before_the_first_turn(harness):
    harness.start("gate", 1)
    harness.requests.client_gone()
    await turns(harness)

    assert harness.log == ["ended"]
    assert not harness.requests.unanswered


async def test_an_open_that_is_cancelled_before_its_first_turn_holds_nobody_up(harness):
    harness.start("open", 1, "x")
    harness.start("now", 2, "x")
    harness.requests.cancel(1)
    await turns(harness)

    assert harness.codes() == {1: -32800, 2: None}
    assert harness.log == ["ended", "now", "ended"]
    harness.start("now", 3, "x")
    assert harness.codes()[3] is None


async def test_one_that_waits_for_an_open_is_cancelled_in_the_turn_in_which_that_ends(harness):
    harness.start("open", 1, "x")
    await turns(harness)
    harness.start("now", 2, "x")
    await turns(harness)
    harness.requests.cancel(2)
    harness.requests.cancel(1)
    await turns(harness)

    assert harness.codes() == {1: -32800, 2: -32800}
    assert "now" not in harness.log


async def test_the_end_of_the_loop_is_no_answer(harness):
    harness.start("gate", 1)
    await turns(harness)
    (flight,) = harness.requests.unanswered
    flight.task.cancel()
    await asyncio.wait([flight.task])

    assert harness.answers == []
    assert flight.task.cancelled()
    assert not harness.requests.unanswered


async def test_what_was_answered_at_once_started_before_what_came_later(harness):
    harness.start("now", 1)
    harness.start("gate", 2)
    harness.start("now", 3)

    assert harness.codes() == {1: None}
    await turns(harness)
    assert harness.log == ["now", "gate", "now", "ended"]
    harness.requests.cancel(2)
    await turns(harness)
