"""Slots: lanes that do not wait for each other, order, bounds, turns."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given, strategies as st

from hooksd.config.settings import Limits
from hooksd.pipeline import slots as module
from hooksd.pipeline.slots import Busy, Lane, Permit, Slots, Turn


A = (Turn.serial("a"),)
B = (Turn.serial("b"),)


def slots(**limits: float) -> Slots:
    return Slots(
        msgspec.structs.replace(
            Limits(), **{"max_running_gates": 1, "max_running_background": 1, "max_queue_s": 5, **limits}
        )
    )


async def settle() -> None:
    """Let every task come as far as it can without time passing."""
    for _ in range(5):
        await asyncio.sleep(0)


async def waiting(
    made: Slots, lane: Lane, depth: int = 0, turns: tuple[Turn, ...] = ()
) -> asyncio.Task[Permit | Busy]:
    task = asyncio.ensure_future(made.acquire(lane, depth, turns))
    await settle()
    return task


async def test_gates_never_wait_behind_observers_nor_depths_behind_each_other() -> None:
    made = slots()

    held = [made.acquire_now(lane, depth) for lane in Lane for depth in (0, 1)]

    assert None not in held
    assert made.running == 4
    assert made.acquire_now(Lane.GATE, 0) is None


async def test_the_first_to_come_is_the_first_to_be_served() -> None:
    made = slots()
    first = made.acquire_now(Lane.GATE, 0)
    assert first is not None
    tasks = [await waiting(made, Lane.GATE) for _ in range(3)]
    assert made.queued == {Lane.GATE: 3, Lane.BACKGROUND: 0}

    held = first
    for task in tasks:
        made.release(held)
        await settle()
        assert [task.done() for task in tasks].count(True) == tasks.index(task) + 1
        got = task.result()
        assert isinstance(got, Permit)
        held = got

    made.release(held)
    assert made.running == 0
    assert made.queued[Lane.GATE] == 0


async def test_the_queue_is_bounded_for_each_lane() -> None:
    made = slots(max_queued=1)
    for lane in Lane:
        assert made.acquire_now(lane, 0) is not None
    background = await waiting(made, Lane.BACKGROUND)

    refused = await made.acquire(Lane.BACKGROUND, 0)
    gate = await waiting(made, Lane.GATE)

    assert isinstance(refused, Busy)
    assert "limits.max_queued" in refused.message
    assert not gate.done()
    for task in (background, gate):
        task.cancel()
    await settle()


@pytest.mark.parametrize(("queue_s", "budget_s"), [(0.02, None), (5, 0.02), (0.02, 5)])
async def test_the_wait_is_bounded_by_the_queue_and_by_the_budget(
    queue_s: float, budget_s: float | None
) -> None:
    made = slots(max_queue_s=queue_s)
    held = made.acquire_now(Lane.GATE, 0)
    assert held is not None

    refused = await made.acquire(Lane.GATE, 0, budget_s=budget_s)

    assert isinstance(refused, Busy)
    assert "0.02 s" in refused.message
    assert "limits.max_running_gates" in refused.message
    made.release(held)
    assert made.running == 0


async def test_a_serial_hook_never_runs_twice_at_a_time() -> None:
    made = slots(max_running_gates=4)
    first = made.acquire_now(Lane.GATE, 0, A)
    assert first is not None
    assert made.acquire_now(Lane.GATE, 0, A) is None
    second = await waiting(made, Lane.GATE, 0, A)
    third = await waiting(made, Lane.GATE, 1, A)

    assert made.acquire_now(Lane.GATE, 0, B) is not None
    assert made.acquire_now(Lane.GATE, 0) is not None
    assert not second.done()

    made.release(first)
    await settle()
    assert second.done()
    assert not third.done()
    got = second.result()
    assert isinstance(got, Permit)
    made.release(got)
    got = await third
    assert isinstance(got, Permit)
    made.release(got)
    again = made.acquire_now(Lane.GATE, 0, A)
    assert again is not None


async def test_a_serial_hook_that_does_not_end_makes_the_next_one_fail() -> None:
    made = slots(max_running_gates=4, max_queue_s=0.02)
    first = made.acquire_now(Lane.GATE, 0, A)
    assert first is not None

    refused = await made.acquire(Lane.GATE, 0, A)

    assert isinstance(refused, Busy)
    assert "serial" in refused.message
    assert made.running == 1
    made.release(first)
    assert made.acquire_now(Lane.GATE, 0, A) is not None


async def test_a_serial_hook_without_a_slot_gives_its_turn_back() -> None:
    made = slots(max_queue_s=0.02)
    held = made.acquire_now(Lane.GATE, 0)
    assert held is not None

    assert isinstance(await made.acquire(Lane.GATE, 0, A), Busy)

    made.release(held)
    assert made.acquire_now(Lane.GATE, 0, A) is not None


async def test_what_shares_turns_runs_no_more_at_once_than_its_document_says() -> None:
    made = slots(max_running_background=9)
    turns = (Turn.shared("run-1", "chrys", 2),)
    held = [made.acquire_now(Lane.BACKGROUND, 0, turns) for _ in range(2)]
    third = await waiting(made, Lane.BACKGROUND, 0, turns)

    assert None not in held
    assert made.acquire_now(Lane.BACKGROUND, 0, turns) is None
    assert not third.done()
    assert made.acquire_now(Lane.BACKGROUND, 0, (Turn.shared("run-2", "chrys", 2),)) is not None
    assert made.acquire_now(Lane.BACKGROUND, 0, (Turn.shared("run-1", "other", 2),)) is not None

    assert held[0] is not None
    made.release(held[0])
    assert isinstance(await third, Permit)


async def test_who_waits_for_a_shared_turn_in_vain_is_told_the_setting() -> None:
    made = slots(max_running_background=9, max_queue_s=0.02)
    turns = (Turn.shared("run-1", "chrys", 1),)
    assert made.acquire_now(Lane.BACKGROUND, 0, turns) is not None

    refused = await made.acquire(Lane.BACKGROUND, 0, turns)

    assert isinstance(refused, Busy)
    assert "max_parallel_hooks of chrys" in refused.message


@pytest.mark.parametrize("turns", [(), A, (*A, *B)], ids=["none", "one", "two"])
async def test_cancelling_a_wait_leaves_nothing_held(turns: tuple[Turn, ...]) -> None:
    made = slots()
    held = made.acquire_now(Lane.GATE, 0, turns)
    assert held is not None
    task = await waiting(made, Lane.GATE, 0, turns)

    task.cancel()
    made.release(held)
    await settle()

    assert task.cancelled()
    assert made.running == 0
    assert made.queued[Lane.GATE] == 0
    assert made.acquire_now(Lane.GATE, 0, turns) is not None


@pytest.mark.parametrize("turns", [(), A, (*A, *B)], ids=["none", "one", "two"])
async def test_a_slot_that_comes_together_with_the_cancellation_is_passed_on(turns: tuple[Turn, ...]) -> None:
    made = slots()
    held = made.acquire_now(Lane.GATE, 0, turns)
    assert held is not None
    task = await waiting(made, Lane.GATE, 0, turns)
    other = await waiting(made, Lane.GATE, 0, turns)

    made.release(held)
    task.cancel()
    got = await other

    assert task.cancelled()
    assert isinstance(got, Permit)
    made.release(got)
    assert made.running == 0


async def test_cancelling_while_a_turn_is_held_gives_it_back() -> None:
    made = slots()
    held = made.acquire_now(Lane.GATE, 0)
    assert held is not None
    task = await waiting(made, Lane.GATE, 0, A)

    task.cancel()
    await settle()
    made.release(held)

    assert made.acquire_now(Lane.GATE, 0, A) is not None


async def test_one_that_has_given_up_is_passed_over() -> None:
    made = slots(max_queue_s=0.02)
    held = made.acquire_now(Lane.GATE, 0)
    assert held is not None
    assert isinstance(await made.acquire(Lane.GATE, 0), Busy)
    made.limits = msgspec.structs.replace(made.limits, max_queue_s=5)
    next_one = await waiting(made, Lane.GATE)

    made.release(held)

    assert isinstance(await next_one, Permit)


async def test_a_limit_that_was_raised_counts_at_once() -> None:
    made = slots()
    held = made.acquire_now(Lane.BACKGROUND, 0)
    assert held is not None
    tasks = [await waiting(made, Lane.BACKGROUND) for _ in range(3)]

    made.limits = msgspec.structs.replace(made.limits, max_running_background=3)
    await settle()

    assert [task.done() for task in tasks] == [True, True, False]
    assert made.running == made.limits.max_running_background
    made.release(held)
    assert isinstance(await tasks[2], Permit)


async def test_one_that_need_not_wait_does_not() -> None:
    made = slots(max_queued=1)

    assert isinstance(await made.acquire(Lane.GATE, 0), Permit)


async def test_a_slot_that_comes_together_with_the_end_of_the_wait_is_kept() -> None:
    made = slots()
    held = made.acquire_now(Lane.GATE, 0)
    assert held is not None
    task = await waiting(made, Lane.GATE)
    pool = made._pools[Lane.GATE, 0]
    (turn,) = pool.waiting

    made.release(held)
    module._give_up(pool, turn)

    assert isinstance(await task, Permit)


steps = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "serial", "shared", "release", "cancel", "settle"]), st.integers(0, 5)
    ),
    max_size=40,
)


@given(steps)
def test_whatever_happens_nothing_is_held_twice_or_lost(given_steps: list[tuple[str, int]]) -> None:
    async def simulate() -> None:
        made = slots(max_running_gates=3)
        tasks: list[tuple[asyncio.Task[Permit | Busy], tuple[Turn, ...]]] = []
        held: list[Permit] = []

        def collect() -> None:
            for entry in [one for one in tasks if one[0].done()]:
                tasks.remove(entry)
                if not entry[0].cancelled():
                    got = entry[0].result()
                    assert isinstance(got, Permit)
                    held.append(got)
            assert len(held) <= made.limits.max_running_gates
            turns = [turn for permit in held for turn in permit.turns]
            assert all(turns.count(turn) <= turn.most for turn in turns)

        for step, number in given_steps:
            if step in {"acquire", "serial", "shared"}:
                wanted = {
                    "acquire": (),
                    "serial": (Turn.serial(f"s{number % 2}"),),
                    "shared": (Turn.serial("s0"), Turn.shared("e", "source", 2)),
                }[step]
                tasks.append((asyncio.ensure_future(made.acquire(Lane.GATE, 0, wanted)), wanted))
            elif step == "release" and held:
                made.release(held.pop(number % len(held)))
            elif step == "cancel" and tasks:
                tasks[number % len(tasks)][0].cancel()
            else:
                await settle()
                collect()
        for _ in range(len(given_steps) + 1):
            await settle()
            collect()
            while held:
                made.release(held.pop())
        assert (tasks, made.running, made.queued[Lane.GATE], made._turns) == ([], 0, 0, {})

    asyncio.run(simulate())
