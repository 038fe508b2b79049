"""A connected client as the pipeline calls it; the rest is tried over a socket in `test_methods.py`."""

from __future__ import annotations

import asyncio
import json

import pytest

from hooksd.model.errors import ProtocolError
from hooksd.protocol.jsonrpc import parse
from hooksd.server.programmatic import ProgrammaticClient


class FakeConnection:
    """What a client needs of a connection."""

    def __init__(self):
        self.client_name = "me"
        self.gone = False
        self.half_closed = False
        self.on_response = None
        self.owed = 0
        self.sent = []

    def owe(self, difference):
        self.owed += difference

    def send(self, line):
        self.sent.append(json.loads(line))


@pytest.fixture
async def connection():
    return FakeConnection()


@pytest.fixture
def records():
    return []


@pytest.fixture
def client(connection, records):
    return ProgrammaticClient(connection, lambda level, event, fields: records.append((event, fields)))


async def called(client, connection):
    call = asyncio.ensure_future(client.invoke("reg", {"a": 1}, 500))
    await asyncio.sleep(0)
    assert connection.owed == 1
    return call, connection.sent[-1]["id"]


async def test_an_answer(client, connection):
    call, call_id = await called(client, connection)
    assert connection.sent == [
        {
            "jsonrpc": "2.0",
            "id": call_id,
            "method": "hook/invoke",
            "params": {"registration_id": "reg", "envelope": {"a": 1}, "deadline_ms": 500},
        }
    ]
    connection.on_response(parse(b'{"jsonrpc":"2.0","id":"%s","result":{"b":[2]}}' % call_id.encode()))

    assert await call == {"b": [2]}
    assert connection.owed == 0
    assert client.name == "me"


async def test_an_error(client, connection):
    call, call_id = await called(client, connection)
    error = b'{"code":7,"message":"no","data":{"x":1}}'
    connection.on_response(parse(b'{"jsonrpc":"2.0","id":"%s","error":%s}' % (call_id.encode(), error)))

    with pytest.raises(ProtocolError) as caught:
        await call
    assert (caught.value.code, caught.value.message) == (7, "no")


async def test_a_second_answer_is_recorded(client, connection, records):
    call, call_id = await called(client, connection)
    for _ in range(2):
        connection.on_response(parse(b'{"jsonrpc":"2.0","id":"%s","result":{}}' % call_id.encode()))
    await call
    connection.on_response(parse(b'{"jsonrpc":"2.0","id":17,"result":{}}'))

    assert records == [("daemon.unexpected_response", {"client": "me"})] * 2


async def test_a_call_of_a_client_that_is_gone(client, connection):
    for attribute in ("half_closed", "gone"):
        setattr(connection, attribute, True)
        with pytest.raises(ConnectionError):
            await client.invoke("reg", {}, 1)
        setattr(connection, attribute, False)
    assert connection.sent == []


async def test_calls_in_progress_of_a_client_that_is_lost(client, connection):
    answered, call_id = await called(client, connection)
    lost = asyncio.ensure_future(client.invoke("reg", {}, 500))
    await asyncio.sleep(0)
    connection.on_response(parse(b'{"jsonrpc":"2.0","id":"%s","result":{}}' % call_id.encode()))
    client.lost()

    assert await answered == {}
    with pytest.raises(ConnectionError):
        await lost
    assert connection.owed == 0


async def test_a_call_that_is_given_up(client, connection):
    call, _ = await called(client, connection)
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    assert connection.owed == 0
