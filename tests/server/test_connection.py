"""Connections over real Unix sockets: protocol section 1, sentence by sentence."""

from __future__ import annotations

import asyncio
import json

from hooksd.config.settings import Limits
from hooksd.server import connection as connection_module


def encoded(method, params=None, **more):
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}, **more}).encode()


# ----------------------------------------------------------------------------------------------------------------------
# Lines


async def test_a_request_is_answered(start_server):
    client = await (await start_server()).connect()

    assert await client.ask("echo", {"value": [1]}, request_id="a") == {
        "jsonrpc": "2.0",
        "id": "a",
        "result": {"value": [1]},
    }


async def test_ids_are_kept_as_sent(start_server):
    client = await (await start_server()).connect()
    for request_id in (0, -1, 2**80, "", "é\n", None, "1"):
        answer = await client.ask("echo", request_id=request_id)
        assert answer["id"] == request_id
        assert type(answer["id"]) is type(request_id)


async def test_crlf_and_blank_lines(start_server):
    client = await (await start_server()).connect()
    await client.send(b"\n\r\n  \n" + encoded("echo", id=1) + b"\r\n\n" + encoded("echo", id=2) + b"\n")

    assert [(await client.answer())["id"] for _ in range(2)] == [1, 2]


async def test_a_message_in_single_bytes(start_server):
    client = await (await start_server()).connect()
    for byte in encoded("echo", {"value": "é"}, id=1) + b"\n":
        await client.send(bytes([byte]))

    assert (await client.answer())["result"] == {"value": "é"}


async def test_no_raw_line_break_in_an_answer(start_server):
    client = await (await start_server()).connect()

    answer = await client.ask("echo", {"value": "a\nb\r\u2028c"})

    assert answer["result"] == {"value": "a\nb\r\u2028c"}


async def test_answers_of_one_read_leave_in_one_write(start_server):
    client = await (await start_server()).connect()
    await client.send(b"".join(encoded("echo", id=number) + b"\n" for number in range(100)))

    await client.line()
    # What one receive of ours brought holds all of them: they were one write.
    assert client._held.count(b"\n") == 99


# ----------------------------------------------------------------------------------------------------------------------
# Bad messages


async def test_bad_json_is_answered_and_the_connection_goes_on(start_server):
    client = await (await start_server()).connect()
    for line in (b"nonsense", b'{"jsonrpc":', b"\xff\xfe", b"[" * 100_000, b"'x'"):
        await client.send(line + b"\n")
        code, _, request_id = await client.error()
        assert (code, request_id) == (-32700, None)

    assert (await client.ask("echo"))["result"] == {"value": None}


async def test_json_that_is_no_request(start_server):
    client = await (await start_server()).connect()
    for line, request_id in (
        (b"1", None),
        (b'"x"', None),
        (b"null", None),
        (b"{}", None),
        (b'{"jsonrpc":"1.0","method":"echo","id":4}', 4),
        (b'{"method":"echo","id":4}', 4),
        (b'{"jsonrpc":"2.0","id":4}', 4),
        (b'{"jsonrpc":"2.0","method":1,"id":"x"}', "x"),
        (b'{"jsonrpc":"2.0","method":"echo","id":1.5}', None),
        (b'{"jsonrpc":"2.0","method":"echo","id":true}', None),
        (b'{"jsonrpc":"2.0","method":"echo","id":[]}', None),
        (b'{"jsonrpc":"2.0","method":"echo","id":9,"params":"bar"}', 9),
        (b'{"jsonrpc":"2.0","method":"echo","params":null}', None),
    ):
        await client.send(line + b"\n")
        code, _, got = await client.error()
        assert (code, got) == (-32600, request_id), line

    assert (await client.ask("echo"))["result"] == {"value": None}


async def test_unknown_method(start_server):
    client = await (await start_server()).connect()
    await client.call("hook/relay")

    code, message, request_id = await client.error()

    assert (code, request_id) == (-32601, 1)
    assert "'hook/relay'" in message


async def test_bad_params_name_the_field(start_server):
    client = await (await start_server()).connect()
    for params, field in (({"valeu": 1}, "params.valeu"), ({"name": 1}, "params.name"), ([1], "params")):
        await client.call("echo", params)
        code, message, request_id = await client.error()
        assert (code, request_id) == (-32602, 1)
        assert f"`{field}`" in message


async def test_errors_of_methods(start_server):
    server = await start_server()
    client = await server.connect()

    answer = await client.ask("refuse")
    assert answer["error"] == {
        "code": -32010,
        "message": "no",
        "data": {"kind": "execution_conflict", "detail": "agent"},
    }
    assert (await client.ask("refuse_later"))["error"]["code"] == -32011


async def test_an_internal_error_has_an_incident_and_tells_nothing_else(start_server):
    server = await start_server()
    client = await server.connect()
    for method in ("boom", "boom_later", "unencodable"):
        answer = await client.ask(method)
        assert answer["error"]["code"] == -32603
        record = server.recorded("daemon.internal_error")[-1]
        assert record["incident"] == answer["error"]["data"]["detail"]
        assert record["method"] == method
        assert "secret" not in json.dumps([answer, record])
        assert "Traceback" not in json.dumps(answer)
    assert any("_boom" in frame for frame in server.recorded("daemon.internal_error")[0]["where"])


# ----------------------------------------------------------------------------------------------------------------------
# Notifications and batches


async def test_a_notification_has_no_answer(start_server):
    server = await start_server()
    client = await server.connect()
    await client.notify("echo", {"name": "first"})
    for method in ("refuse", "refuse_later", "boom_later", "unknown"):
        await client.notify(method)

    assert (await client.ask("echo", {"name": "second"}))["id"] == 1
    assert server.served.started == ["first", "second"]


async def test_what_a_notification_failed_of_is_recorded(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.notify("refuse_later")
    await client.notify("unknown")

    await until(lambda: len(server.recorded("daemon.notification_failed")) == 2)
    failed = {record["method"]: record["code"] for record in server.recorded("daemon.notification_failed")}
    assert failed == {"refuse_later": -32011, "unknown": -32601}


async def test_a_batch(start_server):
    server = await start_server()
    client = await server.connect()
    server.served.door("w").set()
    members = [
        encoded("echo", {"value": 1}, id=1),
        encoded("echo", {"value": 2}),
        encoded("wait", {"name": "w"}, id=2),
        b"1",
        b"[]",
        encoded("unknown", id=3),
        b'{"foo": "boo"}',
    ]
    await client.send(b"[" + b",".join(members) + b"]\n")

    answers = await client.answer()

    assert sorted((str(one["id"]), one.get("error", {}).get("code")) for one in answers) == [
        ("1", None),
        ("2", None),
        ("3", -32601),
        ("None", -32600),
        ("None", -32600),
        ("None", -32600),
    ]


async def test_a_batch_is_answered_when_its_last_member_is(start_server):
    server = await start_server()
    client = await server.connect()
    await client.send(b"[" + encoded("wait", {"name": "w"}, id=1) + b"," + encoded("echo", id=2) + b"]\n")
    assert (await client.ask("echo", request_id=3))["id"] == 3

    server.served.door("w").set()

    assert {one["id"] for one in await client.answer()} == {1, 2}


async def test_an_empty_batch(start_server):
    client = await (await start_server()).connect()
    await client.send(b"[ ]\n")

    assert (await client.error())[::2] == (-32600, None)


async def test_a_batch_of_notifications_has_no_answer(start_server):
    server = await start_server()
    client = await server.connect()
    server.served.door("w").set()
    await client.send(b"[" + encoded("echo") + b"," + encoded("wait", {"name": "w"}) + b"]\n")

    assert (await client.ask("echo", request_id=7))["id"] == 7


# ----------------------------------------------------------------------------------------------------------------------
# Order


async def test_requests_run_side_by_side_and_answers_come_as_they_are_ready(start_server):
    server = await start_server()
    client = await server.connect()
    for name in ("a", "b"):
        await client.call("wait", {"name": name}, request_id=name)
    assert (await client.ask("echo", request_id="c"))["id"] == "c"

    server.served.door("b").set()
    assert (await client.answer())["id"] == "b"
    server.served.door("a").set()
    assert (await client.answer())["id"] == "a"


async def test_requests_start_in_the_order_of_their_arrival(start_server):
    server = await start_server()
    client = await server.connect()
    methods = ["wait", "echo", "gate", "echo", "wait", "echo"]
    names = [f"{number}" for number in range(len(methods))]
    for name in names:
        server.served.door(name).set()
    await client.send(
        b"".join(
            encoded(method, {"name": name}, id=name) + b"\n"
            for method, name in zip(methods, names, strict=True)
        )
    )
    for _ in methods:
        await client.line()

    assert server.served.started == names


async def test_a_request_that_names_an_execution_waits_for_its_open(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.call("open", {"execution_id": "x", "name": "open"}, request_id=1)
    await client.call("echo", {"execution_id": "x", "name": "after"}, request_id=2)
    await client.call("wait", {"execution_id": "x", "name": "after too"}, request_id=3)
    await client.call("echo", {"execution_id": "y", "name": "other"}, request_id=4)
    assert (await client.answer())["id"] == 4
    assert server.served.started == ["open", "other"]

    server.served.door("open").set()
    server.served.door("after too").set()

    assert [(await client.answer())["id"] for _ in range(3)] == [1, 2, 3]
    assert server.served.started == ["open", "other", "after", "after too"]


async def test_opens_and_closes_of_one_execution_come_one_after_another(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.send(
        b"".join(
            encoded(method, {"execution_id": "x", "name": name}, id=name) + b"\n"
            for method, name in (("open", "a"), ("open", "b"), ("echo", "c"), ("open", "d"), ("echo", "e"))
        )
    )
    await until(lambda: server.served.started == ["a"])
    server.served.door("a").set()
    assert (await client.answer())["id"] == "a"
    await until(lambda: server.served.started == ["a", "b"])
    server.served.door("b").set()
    assert [(await client.answer())["id"] for _ in range(2)] == ["b", "c"]
    server.served.door("d").set()
    assert [(await client.answer())["id"] for _ in range(2)] == ["d", "e"]

    assert server.served.started == ["a", "b", "c", "d", "e"]


async def test_only_the_opening_part_of_a_request_is_waited_for(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.call("open_gate", {"execution_id": "x", "name": "g"}, request_id=1)
    await client.call("echo", {"execution_id": "x", "name": "after"}, request_id=2)
    server.served.door("g opened").set()

    assert (await client.answer())["id"] == 2
    server.served.door("g").set()
    assert (await client.answer())["id"] == 1


async def test_an_open_of_another_connection_is_not_waited_for(start_server, until):
    server = await start_server()
    first, second = await server.connect(), await server.connect()
    await first.call("open", {"execution_id": "x", "name": "open"})
    await until(lambda: server.served.started)

    assert (await second.ask("echo", {"execution_id": "x"}))["id"] == 1
    server.served.door("open").set()
    await first.line()


# ----------------------------------------------------------------------------------------------------------------------
# Cancelling


async def test_a_cancelled_request_answers_so(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.call("wait", {"name": "w"}, request_id="one")
    await until(lambda: server.served.started)
    await client.notify("cancel", {"value": "one"})

    code, _, request_id = await client.error()

    assert (code, request_id) == (-32800, "one")
    assert server.served.cancelled == ["w"]


async def test_a_request_is_cancelled_before_it_had_its_first_turn(start_server):
    server = await start_server()
    client = await server.connect()
    await client.send(
        encoded("wait", {"name": "w"}, id=1)
        + b"\n"
        + encoded("cancel", {"value": 1})
        + b"\n"
        + encoded("echo", id=2)
        + b"\n"
    )

    answers = [await client.answer() for _ in range(2)]

    assert {one["id"]: one.get("error", {}).get("code") for one in answers} == {1: -32800, 2: None}


async def test_a_request_that_waits_for_an_open_is_cancelled(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.call("open", {"execution_id": "x", "name": "open"}, request_id=1)
    await until(lambda: server.served.started)
    await client.call("wait", {"execution_id": "x", "name": "never"}, request_id=2)
    await client.call("echo", {"execution_id": "x", "name": "later"}, request_id=3)
    await client.notify("cancel", {"value": 2})
    assert (await client.error())[::2] == (-32800, 2)

    server.served.door("open").set()

    assert [(await client.answer())["id"] for _ in range(2)] == [1, 3]
    assert "never" not in server.served.started


async def test_a_cancelled_open_lets_the_next_one_start(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.call("open", {"execution_id": "x", "name": "open"}, request_id=1)
    await client.call("echo", {"execution_id": "x"}, request_id=2)
    await client.notify("cancel", {"value": 1})

    assert {(await client.answer())["id"] for _ in range(2)} == {1, 2}


async def test_to_cancel_what_is_not_in_progress_is_no_error(start_server):
    server = await start_server()
    client = await server.connect()
    await client.notify("cancel", {"value": 5})
    await client.notify("cancel", {"value": "5"})

    assert (await client.ask("echo"))["id"] == 1
    assert server.records == []


async def test_an_id_that_is_used_twice_is_answered_twice(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.call("wait", {"name": "a"}, request_id=1)
    await client.call("wait", {"name": "b"}, request_id=1)
    await until(lambda: len(server.served.started) == 2)
    server.served.door("a").set()
    assert (await client.answer())["result"] == {"waited": "a"}
    await client.notify("cancel", {"value": 1})

    assert (await client.error())[::2] == (-32800, 1)


# ----------------------------------------------------------------------------------------------------------------------
# Size


async def test_a_message_of_the_limit_works_and_a_longer_one_is_refused(start_server):
    client = await (await start_server(limits=Limits(max_message_bytes=2_000))).connect()
    fitting = encoded("echo", {"value": "x" * 1_000}, id=1)
    fitting += b" " * (2_000 - len(fitting))
    await client.send(fitting + b"\n")
    assert (await client.answer())["id"] == 1

    await client.send(b" " + fitting + b"\n" + encoded("echo", id=2) + b"\n")

    code, message, request_id = await client.error()
    assert (code, request_id) == (-32001, None)
    assert "2000" in message
    assert "max_message_bytes" in message
    assert (await client.answer())["id"] == 2


async def test_200_kb_simply_work(start_server):
    client = await (await start_server()).connect()
    value = "é" * 100_000

    assert (await client.ask("echo", {"value": value}))["result"] == {"value": value}


async def test_16_mib_work_and_17_are_refused(start_server):
    """What they cost is measured in `tests/e2e/test_memory.py`, where nothing else runs in the process."""
    server = await start_server()
    client = await server.connect()
    frame = encoded("echo", {"value": "@"}, id=1)
    fits = frame.replace(b"@", b"x" * (16 * 2**20 - len(frame) + 1))
    assert len(fits) == 16 * 2**20

    async def exchange(line):
        sending = asyncio.ensure_future(client.send(line + b"\n"))
        answer = await client.line()
        await sending
        return answer

    for _ in range(2):
        assert len(await exchange(fits)) > 16_000_000
        answer = json.loads(await exchange(b"x" * (17 * 2**20)))
        assert (answer["id"], answer["error"]["code"]) == (None, -32001)


# ----------------------------------------------------------------------------------------------------------------------
# Clients that misbehave, and those that only look like it


async def test_half_a_line_and_silence_harm_nobody(start_server):
    server = await start_server()
    silent, halved, other = await server.connect(), await server.connect(), await server.connect()
    await halved.send(encoded("echo", id=1)[:20])

    assert (await other.ask("echo"))["id"] == 1
    await halved.send(encoded("echo", id=1)[20:] + b"\n")
    assert (await halved.answer())["id"] == 1
    assert (await silent.ask("echo"))["id"] == 1


async def test_a_client_that_closed_its_sending_side_gets_its_answers(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.send(
        encoded("gate", {"name": "g"}, id=1)
        + b"\n"
        + encoded("wait", {"name": "w"}, id=2)
        + b"\n"
        + encoded("echo", id=3)
    )
    client.half_close()
    assert (await client.answer())["id"] == 3  # the last line had no end
    await until(lambda: server.served.events == ["half_closed"])
    server.served.door("g").set()
    assert (await client.answer())["id"] == 1
    server.served.door("w").set()
    assert (await client.answer())["id"] == 2

    assert await client.line() == b""
    await until(lambda: server.served.events == ["half_closed", "gone"])


async def test_a_client_that_closed_its_sending_side_without_a_request(start_server):
    client = await (await start_server()).connect()
    client.half_close()

    assert await client.line() == b""


async def test_a_half_closed_client_gets_a_batch_and_an_answer_at_once(start_server):
    client = await (await start_server()).connect()
    await client.send(b"[" + encoded("echo", id=1) + b"]")
    client.half_close()

    assert [one["id"] for one in await client.answer()] == [1]
    assert await client.line() == b""


async def test_what_only_a_client_waits_for_is_cancelled_when_it_is_gone(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.call("gate", {"name": "g"}, request_id=1)
    await client.call("wait", {"name": "w"}, request_id=2)
    await until(lambda: len(server.served.started) == 2)
    client.close()

    await until(lambda: server.served.cancelled == ["g"])
    server.served.door("w").set()
    await until(lambda: server.served.ended == ["w"])
    await until(lambda: server.served.events == ["half_closed", "gone"])


async def test_a_client_that_goes_after_it_closed_its_sending_side(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.call("gate", {"name": "g"}, request_id=1)
    await client.call("wait", {"name": "w"}, request_id=2)
    client.half_close()
    await until(lambda: len(server.served.started) == 2 and server.served.events == ["half_closed"])
    assert server.served.cancelled == []

    client.close()

    await until(lambda: server.served.cancelled == ["g"])
    await until(lambda: len(server.listener) == 0)
    server.served.door("w").set()
    await until(lambda: server.served.ended == ["w"])


async def test_what_only_a_client_waits_for_does_not_begin_when_it_is_gone(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.call("open_gate", {"execution_id": "x", "name": "g"}, request_id=1)
    await client.call("gate", {"execution_id": "x", "name": "h"}, request_id=2)
    await client.notify("echo", {"execution_id": "x", "name": "e"})
    client.close()
    await until(lambda: "gone" in server.served.events)
    server.served.door("g opened").set()

    await until(lambda: server.served.started == ["e"])
    assert server.served.cancelled == []


async def test_events_of_a_client_that_left_at_once_count(start_server, until):
    server = await start_server()
    client = await server.connect()
    for number in range(50):
        await client.notify("echo", {"name": str(number)})
    client.close()

    await until(lambda: len(server.served.started) == 50)


async def test_a_client_that_does_not_read_is_dropped_and_delays_nobody(start_server, until):
    limit = 2_000_000
    server = await start_server(limits=Limits(max_write_buffer_bytes=limit))
    client, other = await server.connect(), await server.connect()
    await client.call("gate", {"name": "g"}, request_id="gate")
    await until(lambda: server.served.started)
    await client.call("big", {"value": limit // 2}, request_id="fits")
    assert (await other.ask("echo"))["id"] == 1
    assert server.records == []
    await client.call("big", {"value": limit}, request_id="too much")

    await until(lambda: server.recorded("daemon.connection_dropped"))
    assert server.recorded("daemon.connection_dropped")[0]["why"] == "max_write_buffer_bytes"
    assert server.recorded("daemon.connection_dropped")[0]["limit"] == limit
    await until(lambda: server.served.cancelled == ["g"])
    assert (await other.ask("echo"))["id"] == 1


async def test_a_client_that_asks_and_asks_without_reading_is_not_read_any_more(start_server, until):
    """Answers are held up to half of the limit, requests in the socket: memory is bounded, nothing is lost."""
    server = await start_server(limits=Limits(max_write_buffer_bytes=4_000_000))
    client, other = await server.connect(), await server.connect()
    total = 40_000
    question = encoded("echo", {"value": "x" * 500}, id=1) + b"\n"
    sending = asyncio.ensure_future(client.send(question * total))

    await until(lambda: server.served.connections and not server.served.connections[0].writable)
    stuck = await settled(lambda: len(server.served.started))
    assert stuck < total
    assert (await other.ask("echo"))["id"] == 1
    for _ in range(total):
        assert (await client.answer())["id"] == 1
    await sending
    assert server.records == []


async def settled(number):
    """The value of something that has stopped growing."""
    before, same = number(), 0
    while same < 20:
        await asyncio.sleep(0.005)
        now = number()
        same = same + 1 if now == before else 0
        before = now
    return before


async def test_a_client_that_reads_nothing_for_long_is_dropped(start_server, until, monkeypatch):
    monkeypatch.setattr(connection_module, "STALL_S", 0.05)
    server = await start_server(limits=Limits(max_write_buffer_bytes=4_000_000))
    client = await server.connect()
    for number in range(2):
        await client.call("big", {"value": 1_300_000}, request_id=number)

    await until(lambda: server.recorded("daemon.connection_dropped"))
    assert server.recorded("daemon.connection_dropped")[0]["why"] == "stalled_s"


async def test_answers_are_held_back_for_a_half_closed_client_that_reads_late(start_server, until):
    """What was read and not handled goes on when the client reads, until it has everything."""
    server = await start_server(limits=Limits(max_write_buffer_bytes=2_000_000))
    client = await server.connect()
    await client.ask("echo")
    connection = server.served.connections[0]
    count = 12
    await client.send(
        b"".join(encoded("big", {"value": 300_000}, id=number) + b"\n" for number in range(count))
    )
    client.half_close()
    await until(lambda: not connection.writable)
    assert connection._transport.get_write_buffer_size() < 2_000_000

    assert [json.loads(await client.line())["id"] for _ in range(count)] == list(range(count))
    assert await client.line() == b""
    assert server.records == []


async def test_what_a_gone_client_left_unread_in_its_own_turns(start_server, until, monkeypatch):
    monkeypatch.setattr(connection_module, "MAX_TURN_MESSAGES", 1)
    server = await start_server(limits=Limits(max_write_buffer_bytes=4_000_000))
    client = await server.connect()
    await client.call("gate", {"name": "g"}, request_id="g")
    for number in range(2):
        await client.call("big", {"value": 1_300_000}, request_id=number)
    await client.send(b"".join(encoded("echo", {"name": str(number)}) + b"\n" for number in range(50)))
    await until(lambda: server.served.started)
    client.close()

    await until(lambda: len(server.served.started) == 51)
    await until(lambda: len(server.listener) == 0)


async def test_a_batch_that_grows_too_big_after_its_client_has_gone(start_server, until):
    server = await start_server(limits=Limits(max_write_buffer_bytes=1_000_000))
    client = await server.connect()
    names = ["x" * 600_000, "y" * 600_000]
    members = [encoded("wait", {"name": name}, id=name[0]) for name in names]
    await client.send(b"[" + b",".join(members) + b"]\n")
    await until(lambda: len(server.served.started) == 2)
    client.close()
    await until(lambda: len(server.listener) == 0)
    for name in names:
        server.served.door(name).set()

    await until(lambda: server.served.ended == names)
    assert server.records == []


async def test_a_client_that_reads_slowly_is_not_dropped(start_server, until, monkeypatch):
    monkeypatch.setattr(connection_module, "STALL_S", 0.2)
    server = await start_server(limits=Limits(max_write_buffer_bytes=4_000_000))
    client = await server.connect()
    await client.ask("echo")
    connection = server.served.connections[0]
    for number in range(2):
        await client.call("big", {"value": 1_300_000}, request_id=number)
    first = await until(lambda: connection._stall)
    assert await asyncio.get_running_loop().sock_recv(client.socket, 400_000)

    await until(lambda: connection._stall is not first)

    assert server.records == []
    assert len(await client.line()) > 500_000
    await client.line()
    await until(lambda: connection._stall is None)


async def test_a_connection_that_cannot_be_watched_is_served_all_the_same(start_server, until, monkeypatch):
    def watch(self, fd, gone):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("hooksd.server.hangup_epoll.EpollHangupWatch.watch", watch)
    server = await start_server()
    client = await server.connect()
    await client.call("wait", {"name": "w"})
    client.half_close()
    await until(lambda: server.recorded("daemon.hangup_not_watched"))
    server.served.door("w").set()

    assert (await client.answer())["result"] == {"waited": "w"}
    assert await client.line() == b""


async def test_a_client_that_is_held_up_and_then_gone_is_noticed(start_server, until):
    server = await start_server(limits=Limits(max_write_buffer_bytes=4_000_000))
    client = await server.connect()
    await client.call("gate", {"name": "g"}, request_id="g")
    for number in range(2):
        await client.call("big", {"value": 1_300_000}, request_id=number)
    await client.notify("echo", {"name": "last"})
    await until(lambda: server.served.started)
    client.close()

    await until(lambda: server.served.cancelled == ["g"])
    await until(lambda: "last" in server.served.started)
    await until(lambda: len(server.listener) == 0)


# ----------------------------------------------------------------------------------------------------------------------
# Many requests without an answer


async def test_requests_over_the_limit_wait_and_start_in_order(start_server, until, monkeypatch):
    monkeypatch.setattr(connection_module, "MAX_UNANSWERED", 4)
    server = await start_server()
    client = await server.connect()
    names = [str(number) for number in range(10)]
    await client.send(b"".join(encoded("wait", {"name": name}, id=name) + b"\n" for name in names))
    await client.call("echo", {"name": "echo"}, request_id="echo")
    await until(lambda: server.served.started == names[:4])

    for name in names:
        server.served.door(name).set()

    answers = {(await client.answer())["id"] for _ in range(11)}
    assert answers == {*names, "echo"}
    assert server.served.started == [*names, "echo"]


async def test_a_batch_over_the_limit_and_what_comes_after_it(start_server, until, monkeypatch):
    monkeypatch.setattr(connection_module, "MAX_UNANSWERED", 2)
    server = await start_server()
    client = await server.connect()
    members = [encoded("wait", {"name": str(number)}, id=number) for number in range(6)]
    await client.send(b"[" + b",".join(members) + b"]\n" + encoded("echo", {"name": "echo"}, id="e") + b"\n")
    for number in range(6):
        await until(lambda number=number: str(number) in server.served.started)
        server.served.door(str(number)).set()

    first, second = await client.answer(), await client.answer()

    answers, echo = (first, second) if isinstance(first, list) else (second, first)
    assert echo["id"] == "e"
    assert sorted(one["id"] for one in answers) == list(range(6))
    assert server.served.started == [*(str(number) for number in range(6)), "echo"]


async def test_what_waits_is_started_also_after_the_end_of_the_stream(start_server, until, monkeypatch):
    monkeypatch.setattr(connection_module, "MAX_UNANSWERED", 1)
    server = await start_server()
    client = await server.connect()
    for name in ("a", "b", "c"):
        await client.call("wait", {"name": name}, request_id=name)
    client.half_close()
    for name in ("a", "b", "c"):
        await until(lambda name=name: name in server.served.started)
        server.served.door(name).set()
        assert (await client.answer())["id"] == name

    assert await client.line() == b""


async def test_a_client_that_owes_us_an_answer_is_read_on(start_server, until, monkeypatch):
    monkeypatch.setattr(connection_module, "MAX_UNANSWERED", 2)
    server = await start_server()
    client = await server.connect()
    await client.ask("echo")
    connection = server.served.connections[0]
    for name in ("a", "b", "c"):
        await client.call("wait", {"name": name}, request_id=name)
    await until(lambda: server.served.started[1:] == ["a", "b"])
    responses = []
    connection.on_response = responses.append

    connection.owe(1)
    code, message, request_id = await client.error()
    assert (code, request_id) == (-32003, "c")
    assert "have no answer yet" in message
    await client.send(b'[{"jsonrpc":"2.0","id":"invoke-1","result":{}}]\n')
    await until(lambda: responses)
    await client.send(b"[" + encoded("echo", id="d") + b"]\n")
    assert [one["error"]["code"] for one in await client.answer()] == [-32003]
    connection.owe(-1)
    for name in ("a", "b"):
        server.served.door(name).set()
        await client.line()


async def test_a_batch_whose_answers_are_more_than_can_be_held(start_server, until):
    server = await start_server(limits=Limits(max_write_buffer_bytes=2_000_000))
    client = await server.connect()
    members = [encoded("big", {"value": 300_000}, id=number) for number in range(10)]
    await client.send(b"[" + b",".join(members) + b"]\n")

    await until(lambda: server.recorded("daemon.connection_dropped"))
    assert len(server.recorded("daemon.connection_dropped")) == 1
    assert await client.line() == b""


async def test_a_flood_of_one_client_leaves_turns_to_the_others(start_server, until, monkeypatch):
    monkeypatch.setattr(connection_module, "MAX_TURN_MESSAGES", 3)
    server = await start_server()
    flood, other = await server.connect(), await server.connect()
    names = [str(number) for number in range(100)]
    await other.ask("echo", {"name": "warm"})
    await flood.send(b"".join(encoded("echo", {"name": name}, id=name) + b"\n" for name in names))
    await other.ask("echo", {"name": "other"})
    for name in names:
        assert (await flood.answer())["id"] == name

    assert [name for name in server.served.started if name.isdigit()] == names
    assert server.served.started.index("other") < 102


async def test_one_that_is_owed_an_answer_within_its_turn(start_server, until, monkeypatch):
    monkeypatch.setattr(connection_module, "MAX_TURN_MESSAGES", 1)
    server = await start_server()
    client = await server.connect()
    await client.send(
        b"".join(
            encoded("owe", {"value": value}, id=number) + b"\n" for number, value in enumerate((1, -1, 0))
        )
    )

    assert [(await client.answer())["id"] for _ in range(3)] == [0, 1, 2]


async def test_lines_after_the_turn_of_a_half_closed_client_are_handled(start_server, until, monkeypatch):
    monkeypatch.setattr(connection_module, "MAX_TURN_MESSAGES", 1)
    server = await start_server()
    client = await server.connect()
    await client.send(b"\n".join(encoded("echo", id=number) for number in range(5)))
    client.half_close()

    assert [(await client.answer())["id"] for _ in range(5)] == list(range(5))
    assert await client.line() == b""


async def test_an_answer_nobody_asked_for_is_recorded(start_server, until):
    server = await start_server()
    client = await server.connect()
    await client.send(b'{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":2,"error":{}}\n')

    await until(lambda: len(server.recorded("daemon.unexpected_response")) == 2)
    assert (await client.ask("echo"))["id"] == 1
