"""Records as events, over a real socket."""

from __future__ import annotations

import asyncio


OPEN = {"execution_id": "run", "agent": "bamboo", "session_id": "session", "workspace_path": "/"}
EVENT = {
    "execution_id": "run",
    "event": "PreToolUse",
    "payload": {"tool_name": "Bash", "tool_call_id": "c", "parsed_args": {}},
}
HOOKS = {
    "lifecycle_hooks": {
        "enabled": True,
        "PreToolUse": [{"hooks": [{"type": "command", "command": "exit 0"}]}],
    }
}


async def test_records_are_streamed(start_house):
    house = await start_house(HOOKS)
    watcher, agent = await house.connect(), await house.connect()
    subscribed = (await watcher.ask("events/subscribe", {"kinds": ["hook.*", "execution.*"]}))["result"]
    await agent.ask("hook/dispatch", EVENT | {"execution": OPEN})

    events = [await watcher.answer() for _ in range(2)]

    assert [event["params"]["event"] for event in events] == ["execution.opened", "hook.finished"]
    assert {event["method"] for event in events} == {"events/event"}
    assert {event["params"]["subscription_id"] for event in events} == {subscribed["subscription_id"]}
    assert all(event["params"]["seq"] > subscribed["seq"] for event in events)
    assert (await watcher.ask("events/unsubscribe", {"subscription_id": subscribed["subscription_id"]}))[
        "result"
    ] == {}
    await agent.ask("hook/dispatch", EVENT)
    assert (await watcher.ask("daemon/ping", request_id=9))["id"] == 9


async def test_earlier_records_come_after_the_answer(start_house):
    house = await start_house({})
    client = await house.connect()
    await client.ask("execution/open", OPEN)

    result = (await client.ask("events/subscribe", {"kinds": ["execution.opened"], "since_seq": 0}))["result"]

    event = (await client.answer())["params"]
    assert event["event"] == "execution.opened"
    assert event["seq"] <= result["seq"]


async def test_a_half_closed_subscriber_is_served_on_until_it_is_gone(start_house, until):
    house = await start_house({})
    watcher, agent = await house.connect(), await house.connect()
    await watcher.call("events/subscribe", {"kinds": ["execution.*"]})
    watcher.half_close()
    await watcher.answer()
    for number in range(3):
        await agent.ask("execution/open", OPEN | {"execution_id": f"run-{number}"})
        assert (await watcher.answer())["params"]["execution_id"] == f"run-{number}"

    watcher.close()

    await until(lambda: len(house.listener) == 1)
    assert await until(house.stream_is_idle)


async def test_a_subscriber_that_does_not_read_loses_the_oldest_and_is_told(start_house, until):
    house = await start_house({}, toml="[limits]\nmax_log_field_bytes = 100000\n")
    watcher = await house.connect()
    await watcher.ask("events/subscribe", {"kinds": ["test.*"]})
    count = 4_000
    for number in range(count):
        house.journal("info", "test.record", {"number": number, "text": "x" * 2_000})
        if number % 50 == 0:
            await asyncio.sleep(0)
    numbers, dropped = [], 0
    while not numbers or numbers[-1] < count - 1:
        event = (await watcher.answer())["params"]
        if event["event"] == "events.dropped":
            dropped += event["dropped"]
        else:
            numbers.append(event["number"])

    assert dropped > 0
    assert dropped + len(numbers) == count
    assert numbers == sorted(numbers)


async def test_a_subscriber_that_is_dropped(start_house, until):
    house = await start_house({}, toml="[limits]\nmax_write_buffer_bytes = 1024\n")
    watcher = await house.connect()
    for _ in range(2):
        await watcher.ask("events/subscribe", {"kinds": ["test.*"]})
    for number in range(1_000):
        house.journal("info", "test.record", {"number": number, "text": "x" * 4_000})

    await until(lambda: house.recorded("daemon.connection_dropped"))
    await until(house.stream_is_idle)
    assert not house.recorded("daemon.internal_error")


async def test_too_many_subscribers(start_house):
    house = await start_house({}, max_subscribers=1)
    client = await house.connect()
    await client.ask("events/subscribe")

    await client.call("events/subscribe")
    assert (await client.error())[0] == -32003
