"""What only the blocking connection has: threads that read for each other, and interrupts."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hooksd_client import Client, calls
from hooksd_client.connection import Connection
from hooksd_client.deadline import Deadline
from hooksd_client.errors import ClientClosed, ConnectionLost, RequestTimeout


NEVER = float("inf")


@pytest.fixture
def ends() -> Iterator[tuple[Connection, socket.socket]]:
    """A connection and the other end of its socket."""
    mine, theirs = socket.socketpair()
    connection = Connection(mine)
    yield connection, theirs
    connection.lose(ClientClosed())
    theirs.close()


def ping(connection: Connection, timeout_s: float = NEVER) -> None:
    connection.call(calls.ping(), Deadline(timeout_s, "the answer"))


def read_lines(sock: socket.socket, count: int) -> list[Any]:
    found = bytearray()
    ends = 0
    while ends < count:
        data = sock.recv(1 << 20)
        assert data, "the connection has ended"
        ends += data.count(b"\n")
        found += data
    return [json.loads(line) for line in bytes(found).split(b"\n")[:-1]]


def answer(sock: socket.socket, *ids: int) -> None:
    sock.sendall(b"".join(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % number for number in ids))


def test_a_thread_that_has_its_answer_hands_the_reading_on(
    ends: tuple[Connection, socket.socket], background: Any
) -> None:
    connection, theirs = ends
    first = background(ping, connection)
    read_lines(theirs, 1)
    second = background(ping, connection)
    read_lines(theirs, 1)

    answer(theirs, 1)
    assert first() is None
    answer(theirs, 2)

    assert second() is None


def test_a_thread_reads_the_answers_of_others(
    ends: tuple[Connection, socket.socket], background: Any
) -> None:
    connection, theirs = ends
    first = background(ping, connection)
    read_lines(theirs, 1)
    second = background(ping, connection)
    read_lines(theirs, 1)

    answer(theirs, 2)
    assert second() is None
    answer(theirs, 1)

    assert first() is None


def test_a_thread_that_gives_up_hands_the_reading_on(
    ends: tuple[Connection, socket.socket], background: Any
) -> None:
    connection, theirs = ends
    first = background(ping, connection, 0.2)
    read_lines(theirs, 1)
    second = background(ping, connection)
    read_lines(theirs, 1)

    with pytest.raises(RequestTimeout):
        first()
    answer(theirs, 1, 2)

    assert second() is None


def test_a_thread_that_waits_for_another_to_read_gives_up_in_time(
    ends: tuple[Connection, socket.socket], background: Any
) -> None:
    connection, theirs = ends
    first = background(ping, connection)
    read_lines(theirs, 1)

    with pytest.raises(RequestTimeout):
        ping(connection, 0.05)

    assert read_lines(theirs, 2)[1]["params"] == {"id": 2}
    answer(theirs, 1)
    assert first() is None


def test_an_end_is_told_to_all_threads(ends: tuple[Connection, socket.socket], background: Any) -> None:
    connection, theirs = ends
    threads = [background(ping, connection) for _ in range(4)]
    read_lines(theirs, 4)

    theirs.close()

    for result in threads:
        with pytest.raises(ConnectionLost, match="the daemon closed it; the request may have been run"):
            result()
    with pytest.raises(ConnectionLost, match="was not run"):
        ping(connection)
    assert connection.lost


def test_a_reset_is_an_end(ends: tuple[Connection, socket.socket], background: Any) -> None:
    """A Unix socket that is closed with something unread in it resets the connection."""
    connection, theirs = ends
    waiting = background(ping, connection)
    select.select([theirs], [], [], 10)

    theirs.close()

    with pytest.raises(ConnectionLost, match="reset"):
        waiting()


def test_a_limit_longer_than_one_wait_for_the_socket(
    ends: tuple[Connection, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hooksd_client.connection.MAX_POLL_S", 0.01)
    connection, _ = ends

    with pytest.raises(RequestTimeout):
        ping(connection, 0.1)


def test_losing_it_wakes_the_reader(ends: tuple[Connection, socket.socket], background: Any) -> None:
    connection, theirs = ends
    reader = background(ping, connection)
    read_lines(theirs, 1)

    connection.lose(ClientClosed())
    connection.lose(ConnectionLost("later"))

    with pytest.raises(ClientClosed):
        reader()
    with pytest.raises(ClientClosed):
        ping(connection)


def test_a_dead_connection_is_noticed_before_anything_is_sent(ends: tuple[Connection, socket.socket]) -> None:
    connection, theirs = ends
    theirs.close()

    with pytest.raises(ConnectionLost) as caught:
        ping(connection)

    assert not caught.value.may_have_run
    assert isinstance(caught.value.__cause__, OSError)
    assert connection.lost


def test_a_daemon_that_does_not_read(ends: tuple[Connection, socket.socket]) -> None:
    """A line that is cut off cannot be followed by another one."""
    connection, _ = ends

    with pytest.raises(RequestTimeout):
        connection.call(calls.raw("x", {"text": "x" * 5_000_000}), Deadline(0.05, "the answer"))

    with pytest.raises(ConnectionLost, match="a line was cut off by a time limit; the request was not run"):
        ping(connection)


def test_a_slow_daemon_gets_a_big_line_whole(ends: tuple[Connection, socket.socket], background: Any) -> None:
    connection, theirs = ends
    text = "x" * 5_000_000
    big = background(connection.call, calls.raw("x", {"text": text}), Deadline(NEVER, "x"))

    assert read_lines(theirs, 1)[0]["params"] == {"text": text}
    answer(theirs, 1)

    assert big() == {}


def test_a_daemon_that_closes_while_a_line_goes_out(
    ends: tuple[Connection, socket.socket], background: Any
) -> None:
    connection, theirs = ends
    big = background(connection.call, calls.raw("x", {"text": "x" * 5_000_000}), Deadline(NEVER, "x"))
    theirs.recv(1)

    theirs.close()

    with pytest.raises(ConnectionLost) as caught:
        big()
    assert not caught.value.may_have_run


def test_an_interrupt_cancels_the_call_and_leaves_the_connection_usable(
    ends: tuple[Connection, socket.socket],
) -> None:
    connection, theirs = ends

    def interrupt() -> None:
        read_lines(theirs, 1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        ping(connection)
    thread.join()

    assert read_lines(theirs, 1)[0] == {"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": 1}}
    answer(theirs, 1, 2)
    ping(connection)


def test_an_answer_to_an_invocation_that_comes_too_late(
    ends: tuple[Connection, socket.socket], background: Any
) -> None:
    """The connection ends while the callback runs: nobody is there to be told."""
    connection, theirs = ends
    from hooksd_client.standing import Offer

    running, go_on = threading.Event(), threading.Event()

    def slow(_call: Any) -> None:
        running.set()
        go_on.wait(10)

    registering = background(
        connection.call, connection.session.stand(Offer({"name": "n"}, slow)), Deadline(NEVER, "x")
    )
    read_lines(theirs, 1)
    theirs.sendall(b'{"jsonrpc":"2.0","id":1,"result":{"registration_id":"r"}}\n')
    registering()
    waiting = background(ping, connection)
    read_lines(theirs, 1)
    theirs.sendall(
        b'{"jsonrpc":"2.0","id":7,"method":"hook/invoke","params":{"registration_id":"r","envelope":{},"deadline_ms":1}}\n'
    )
    assert running.wait(10)
    theirs.close()
    with pytest.raises(ConnectionLost):
        waiting()

    go_on.set()

    for thread in threading.enumerate():
        if thread.name == "hooksd-client-hook":
            thread.join(10)
            assert not thread.is_alive()


def test_many_threads_at_once(daemon: Any) -> None:
    """Every answer reaches the thread that asked."""
    daemon.on(
        "hook/dispatch",
        lambda peer, asked: peer.send(
            {"id": asked["id"], "result": {"event": asked["params"]["event"], "decision": "none"}}
        ),
    )
    wrong: list[str] = []

    def work(client: Client, number: int) -> None:
        for turn in range(30):
            event = f"{number}-{turn}"
            found = client.dispatch("run-1", event, {"text": "x" * (turn * 700)}).event
            if found != event:
                wrong.append(found)

    with Client(daemon.path) as client:
        threads = [threading.Thread(target=work, args=(client, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

    assert wrong == []
    assert len(daemon.asked("hook/dispatch", 240)) == 240
    assert len(daemon.peers) == 1
