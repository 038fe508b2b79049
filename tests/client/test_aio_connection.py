"""What only the asyncio connection has: cancellation, lines that wait, callbacks in the loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hooksd_client import AsyncClient, ClientClosed, ConnectionLost, HookReply, RequestTimeout, calls
from hooksd_client.aio_connection import AsyncConnection
from hooksd_client.deadline import Deadline
from hooksd_client.session import Session


NEVER = Deadline(float("inf"), "the answer")
BIG = "x" * 5_000_000


@pytest.fixture
async def ends() -> AsyncIterator[tuple[AsyncConnection, socket.socket]]:
    """A connection and the other end of its socket."""
    mine, theirs = socket.socketpair()
    theirs.setblocking(False)
    connection = AsyncConnection(mine)
    yield connection, theirs
    connection.lose(ClientClosed())
    await connection.ended()
    theirs.close()


async def read_lines(sock: socket.socket, count: int) -> list[Any]:
    loop = asyncio.get_running_loop()
    found = bytearray()
    ends = 0
    while ends < count:
        data = await asyncio.wait_for(loop.sock_recv(sock, 1 << 20), 10)
        assert data, "the connection has ended"
        ends += data.count(b"\n")
        found += data
    return [json.loads(line) for line in bytes(found).split(b"\n")[:-1]]


def answer(sock: socket.socket, *ids: int) -> None:
    sock.send(b"".join(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % number for number in ids))


def start(connection: AsyncConnection, call: Any = None) -> asyncio.Task[Any]:
    return asyncio.get_running_loop().create_task(connection.call(call or calls.raw("x", {}), NEVER))


async def test_cancelling_a_task_cancels_its_request(ends: tuple[AsyncConnection, socket.socket]) -> None:
    connection, theirs = ends
    first, second = start(connection), start(connection)
    await read_lines(theirs, 2)

    first.cancel()

    with pytest.raises(asyncio.CancelledError):
        await first
    assert await read_lines(theirs, 1) == [{"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": 1}}]
    answer(theirs, 1, 2)
    assert await second == {}


async def test_an_answer_and_a_cancellation_at_once(ends: tuple[AsyncConnection, socket.socket]) -> None:
    """The answer is read in the same turn of the loop in which the task is cancelled, and cancelled it is."""
    connection, theirs = ends
    task = start(connection)
    await read_lines(theirs, 1)
    answer(theirs, 1)
    task.cancel()
    connection._readable()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _answered(start(connection), theirs, 2) == {}


async def test_a_line_that_does_not_fit_goes_out_later(ends: tuple[AsyncConnection, socket.socket]) -> None:
    connection, theirs = ends
    tasks = [start(connection, calls.raw("x", {"text": BIG, "n": number})) for number in range(2)]
    await asyncio.sleep(0)

    lines = await read_lines(theirs, 2)
    answer(theirs, 1, 2)

    assert [line["params"]["n"] for line in lines] == [0, 1]
    assert await asyncio.gather(*tasks) == [{}, {}]
    assert await _answered(start(connection), theirs, 3) == {}


async def _answered(task: asyncio.Task[Any], sock: socket.socket, number: int) -> Any:
    await read_lines(sock, 1)
    answer(sock, number)
    return await asyncio.wait_for(task, 10)


async def test_a_line_that_was_given_up_still_goes_out_whole(
    ends: tuple[AsyncConnection, socket.socket],
) -> None:
    """What follows it could not be read otherwise."""
    connection, theirs = ends
    with pytest.raises(RequestTimeout):
        await connection.call(calls.raw("x", {"text": BIG}), Deadline(0.05, "the answer"))

    first, cancel = await read_lines(theirs, 2)

    assert first["params"] == {"text": BIG}
    assert cancel["params"] == {"id": 1}


async def test_a_daemon_that_closes_while_a_line_goes_out(
    ends: tuple[AsyncConnection, socket.socket],
) -> None:
    connection, theirs = ends
    task = start(connection, calls.raw("x", {"text": BIG}))
    await asyncio.sleep(0)

    theirs.close()

    with pytest.raises(ConnectionLost):
        await task
    assert connection.lost


async def test_a_writer_that_meets_the_end_first(ends: tuple[AsyncConnection, socket.socket]) -> None:
    connection, theirs = ends
    task = start(connection, calls.raw("x", {"text": BIG}))
    await asyncio.sleep(0)
    theirs.close()

    connection._writable()

    with pytest.raises(ConnectionLost, match="may have been run"):
        await task


async def test_a_dead_connection_is_noticed_before_anything_is_sent(
    ends: tuple[AsyncConnection, socket.socket],
) -> None:
    """The loop has not seen the end yet when the request is made."""
    connection, theirs = ends
    theirs.close()

    with pytest.raises(ConnectionLost) as caught:
        await connection.call(calls.ping(), NEVER)

    assert not caught.value.may_have_run
    with pytest.raises(ConnectionLost, match="was not run"):
        await connection.call(calls.ping(), NEVER)
    with pytest.raises(ConnectionLost):
        await connection.news(NEVER)


async def test_a_reset_is_an_end(ends: tuple[AsyncConnection, socket.socket]) -> None:
    """A Unix socket that is closed with something unread in it resets the connection."""
    connection, theirs = ends
    task = start(connection)
    await asyncio.sleep(0)
    select.select([theirs], [], [], 10)

    theirs.close()

    with pytest.raises(ConnectionLost, match="reset"):
        await task


async def test_nothing_to_read_or_no_room_is_no_error(ends: tuple[AsyncConnection, socket.socket]) -> None:
    """A loop may call for nothing."""
    connection, theirs = ends
    connection._readable()
    task = start(connection, calls.raw("x", {"text": BIG}))
    await asyncio.sleep(0)
    connection._writable()

    await read_lines(theirs, 1)
    answer(theirs, 1)

    assert await task == {}


async def test_a_socket_that_takes_nothing_now(ends: tuple[AsyncConnection, socket.socket]) -> None:
    connection, theirs = ends
    with contextlib.suppress(BlockingIOError):
        while True:
            connection._socket.send(b" " * 65_536)  # white space before a message means nothing
    task = start(connection)
    await asyncio.sleep(0)

    (line,) = await read_lines(theirs, 1)
    answer(theirs, 1)

    assert line["id"] == 1
    assert await task == {}


async def test_waiting_for_news_ends_in_time(ends: tuple[AsyncConnection, socket.socket]) -> None:
    connection, _ = ends

    with pytest.raises(RequestTimeout):
        await connection.news(Deadline(0.01, "a record"))


async def test_a_coroutine_function_is_a_hook_too(daemon: Any) -> None:
    async def hook(call: Any) -> HookReply:
        await asyncio.sleep(0)
        return HookReply(decision="block", reason=call.envelope["why"])

    async with AsyncClient(daemon.path) as client:
        await client.register_hook(hook, events=["Stop"], name="mine")
        told = await asyncio.to_thread(daemon.peer().invoke, envelope={"why": "so"})

    assert told["result"] == {"decision": "block", "reason": "so"}


async def test_a_hook_that_runs_is_cancelled_when_the_connection_ends(daemon: Any) -> None:
    running, cancelled = asyncio.Event(), asyncio.Event()

    async def hook(_call: Any) -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with AsyncClient(daemon.path) as client:
        await client.register_hook(hook, events=["Stop"], name="mine")
        asking = asyncio.get_running_loop().run_in_executor(None, daemon.peer().invoke)
        await running.wait()
    daemon.peer().answers.put({})
    await asking

    assert cancelled.is_set()


async def test_a_hook_that_will_not_be_cancelled_has_nobody_to_answer(daemon: Any) -> None:
    running = asyncio.Event()

    async def hook(_call: Any) -> None:
        running.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async with AsyncClient(daemon.path) as client:
        await client.register_hook(hook, events=["Stop"], name="mine")
        asking = asyncio.get_running_loop().run_in_executor(None, daemon.peer().invoke)
        await running.wait()
    daemon.peer().answers.put({"nobody": "answered"})

    assert await asking == {"nobody": "answered"}


async def test_a_registration_that_went_with_its_connection_is_made_again(
    daemon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another task has made a new connection before the answer was looked at; which turn of the loop does is not ours."""
    has = Session.has
    answers = iter([False])
    monkeypatch.setattr(
        Session, "has", lambda self, standing: next(answers, None) is None and has(self, standing)
    )

    async with AsyncClient(daemon.path) as client:
        await client.register_hook(lambda call: None, events=["Stop"], name="mine")

    assert daemon.methods() == ["hook/register", "hook/register"]


async def test_a_client_that_is_closed_by_its_own_hook(daemon: Any) -> None:
    closed = asyncio.Event()

    async with AsyncClient(daemon.path) as client:

        async def hook(_call: Any) -> None:
            try:
                await client.close()
            finally:
                closed.set()

        await client.register_hook(hook, events=["Stop"], name="mine")
        asking = asyncio.get_running_loop().run_in_executor(None, daemon.peer().invoke)
        await asyncio.wait_for(closed.wait(), 10)
    daemon.peer().answers.put({})
    await asking


async def test_a_dispatch_when_the_daemon_was_restarted_behind_a_busy_loop(daemon: Any) -> None:
    """Nothing was sent on the old connection, so even what is never repeated goes to the new one."""
    async with AsyncClient(daemon.path) as client:
        await client.ping()
        daemon.stop()
        daemon.start()

        assert (await client.dispatch("run-1", "Stop")).blocked

    assert daemon.methods() == ["daemon/ping", "hook/dispatch"]


async def test_only_one_connection_is_made_for_many_tasks(daemon: Any) -> None:
    async with AsyncClient(daemon.path, name="agent") as client:
        await asyncio.gather(*(client.ping() for _ in range(20)))

    assert daemon.methods() == ["initialize", *["daemon/ping"] * 20]
    assert len(daemon.peers) == 1


async def test_a_connection_made_for_a_task_that_was_cancelled_is_not_kept(daemon: Any) -> None:
    daemon.hold("initialize")
    async with AsyncClient(daemon.path, name="agent") as client:
        task = asyncio.get_running_loop().create_task(client.ping())
        await asyncio.to_thread(daemon.asked, "initialize")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        daemon.on("initialize", {"protocol_version": 1, "server": {"name": "hooksd"}})
        await client.ping()

    assert len(daemon.peers) == 2


async def test_closing_while_a_connection_is_made(daemon: Any) -> None:
    daemon.hold("initialize")
    client = AsyncClient(daemon.path, name="agent")
    task = asyncio.get_running_loop().create_task(client.ping())
    await asyncio.to_thread(daemon.asked, "initialize")

    await client.close()

    with pytest.raises(ClientClosed):
        await task
