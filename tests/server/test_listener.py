"""Who is let in, how many, and how connections end with the listener."""

from __future__ import annotations

import asyncio
import os
import resource
import socket

import pytest

from hooksd.server import listener as listener_module
from hooksd.server.peer import Peer


async def test_our_own_user_is_let_in_and_known(start_server):
    server = await start_server()
    client = await server.connect()
    await client.ask("echo")

    assert server.served.connections[0].peer == Peer(uid=os.geteuid(), pid=os.getpid())
    assert len(server.listener) == 1
    assert server.records == []


@pytest.mark.parametrize("uid", [0, os.geteuid()])
async def test_root_is_let_in(start_server, monkeypatch, uid):
    monkeypatch.setattr(listener_module, "peer_of", lambda _: Peer(uid=uid, pid=1))

    assert (await (await (await start_server()).connect()).ask("echo"))["id"] == 1


async def test_anybody_else_is_refused_with_one_record(start_server, until, monkeypatch):
    """Only one thing cannot be had in a test: another user."""
    monkeypatch.setattr(listener_module, "peer_of", lambda _: Peer(uid=54_321, pid=77))
    server = await start_server()
    client = await server.connect()

    assert await client.line() == b""
    assert await until(lambda: server.records)
    assert [(event, fields) for _, event, fields in server.records] == [
        ("daemon.connection_refused", {"why": "uid", "uid": 54_321, "pid": 77})
    ]
    assert len(server.listener) == 0
    assert server.served.events == []


async def test_who_cannot_be_known_is_refused(start_server, until, monkeypatch):
    def unknown(_):
        raise OSError(92, "Protocol not available")

    monkeypatch.setattr(listener_module, "peer_of", unknown)
    server = await start_server()
    client = await server.connect()

    assert await client.line() == b""
    assert server.recorded("daemon.connection_refused") == [
        {"why": "credentials", "error": "Protocol not available"}
    ]


async def test_too_many_connections(start_server, until):
    server = await start_server(max_connections=2)
    first, second = await server.connect(), await server.connect()
    await first.ask("echo")
    await second.ask("echo")
    third = await server.connect()

    assert await third.line() == b""
    assert server.recorded("daemon.connection_refused")[0]["why"] == "max_connections"
    first.close()
    await until(lambda: len(server.listener) == 1)
    assert (await (await server.connect()).ask("echo"))["id"] == 1


def test_connections_leave_descriptors_for_hooks(monkeypatch):
    for soft, limit in ((64, 32), (1, 1), (1 << 20, listener_module.MAX_CONNECTIONS), (-1, 4_096)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert listener_module._default_limit() == limit


async def test_the_socket_stays_with_its_owner(start_server, socket_path):
    server = await start_server()
    server.listener.stop_accepting()
    server.listener.stop_accepting()
    await asyncio.sleep(0)

    assert os.path.exists(server.path)


async def test_what_was_written_leaves_before_the_end(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.ask("echo")
    # More than the socket holds, so that most of it waits in the connection.
    await client.call("big", {"value": 3_000_000})
    await until(lambda: not server.served.connections[0].writable)
    closing = asyncio.ensure_future(server.listener.aclose(10.0))

    assert len(await client.line()) > 3_000_000
    assert await client.line() == b""
    await closing


async def test_a_client_that_does_not_read_does_not_keep_the_listener_open(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.ask("echo")
    await client.call("big", {"value": 3_000_000})
    await until(lambda: not server.served.connections[0].writable)

    await server.listener.aclose(0.05)

    assert len(server.listener) == 0
    assert server.served.events == ["half_closed", "gone"]


async def test_answers_that_come_after_the_end_are_lost(start_server, until, caplog):
    server = await start_server()
    client = await server.connect()
    names = [str(number) for number in range(20)]
    for name in names:
        await client.call("wait", {"name": name}, request_id=name)
    await until(lambda: len(server.served.started) == len(names))
    closing = asyncio.ensure_future(server.listener.aclose(10.0))
    await asyncio.sleep(0)
    for name in names:
        server.served.door(name).set()
    await closing

    await until(lambda: len(server.served.ended) == len(names))
    assert await client.line() == b""
    assert caplog.records == []


async def test_nobody_is_let_in_after_the_end(start_server):
    server = await start_server()
    await server.listener.aclose(1.0)
    await server.listener.aclose(1.0)

    # The socket itself still listens: it is its owner's to close.
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        client.connect(server.path)
    assert len(server.listener) == 0
