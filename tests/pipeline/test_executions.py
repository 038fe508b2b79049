"""The table of executions: identity, bounds, idleness, ownership."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from typing import Any

import msgspec
import pytest

from hooksd.config.settings import Limits, Settings
from hooksd.dialects import DIALECTS
from hooksd.model.decision import Capability
from hooksd.model.errors import ProtocolError
from hooksd.model.records import Level
from hooksd.pipeline import executions
from hooksd.pipeline.background import DrainSpan, Kind, Work
from hooksd.pipeline.executions import Executions
from hooksd.protocol.errors import ErrorCode
from hooksd.protocol.methods.executions import BoundTo, DrainScope, ExecutionOpenParams


class FakeSnapshot:
    revision = 3
    digest = "d"
    sources = ()
    problems = ()


class Store:
    """A store in which nothing ever has to be read, unless a test says so."""

    def __init__(self, **limits: float) -> None:
        self.settings = msgspec.structs.replace(
            Settings(), limits=msgspec.structs.replace(Limits(), **limits)
        )
        self.snapshot = FakeSnapshot()
        self.must_read = False
        self.may_go_on = asyncio.Event()

    def try_open(self, workspace: str, programmatic: tuple[Any, ...]) -> Any:
        return None if self.must_read else self.snapshot

    async def open(self, workspace: str, programmatic: tuple[Any, ...]) -> Any:
        await self.may_go_on.wait()
        return self.snapshot

    def current(self, workspace: str, programmatic: tuple[Any, ...]) -> Any:
        raise AssertionError


class Table:
    """Executions over a fake store, and the records they made."""

    def __init__(self, **limits: float) -> None:
        self.store = Store(**limits)
        self.records: list[tuple[Level, str, dict[str, Any]]] = []
        self.executions = Executions(
            store=self.store,
            dialects=DIALECTS,
            record=lambda level, kind, fields: self.records.append((level, kind, dict(fields))),
            programmatic=tuple,
        )

    def open(self, execution_id: str = "run-1", owner: object = None, **more: Any) -> Any:
        return self.executions.open_now(params(execution_id, **more), owner)

    def ids(self) -> list[str]:
        return [one.execution_id for one in self.executions.list().executions]

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [fields for _, found, fields in self.records if found == kind]


@pytest.fixture
async def table() -> Any:
    made = Table()
    yield made
    made.executions.stop()


def params(execution_id: str = "run-1", **more: Any) -> ExecutionOpenParams:
    return ExecutionOpenParams(
        **{
            "execution_id": execution_id,
            "agent": "bamboo",
            "session_id": "s-1",
            "workspace_path": "/",
            **more,
        }
    )


# ----------------------------------------------------------------------------------------------------------------------
# Identity


async def test_opening_again_gives_the_same_execution_and_snapshot(table: Table) -> None:
    first = table.open(env={"A": "1"}, model="m", profile="p", accepts=("ask",))
    table.store.snapshot = FakeSnapshot()

    again = table.open()

    assert again is first
    assert (first.env, first.model, first.profile, first.accepts) == (
        {"A": "1"},
        "m",
        "p",
        {Capability.ASK},
    )
    assert len(table.told("execution.opened")) == 1


async def test_what_may_differ_is_replaced(table: Table) -> None:
    execution = table.open(env={"A": "1"}, model="m")
    snapshot = execution.snapshot

    table.open(env={"B": "2"}, model="n", profile="q", accepts=("contexts", "allow"))

    assert (execution.env, execution.model, execution.profile) == ({"B": "2"}, "n", "q")
    assert execution.accepts == {Capability.CONTEXTS, Capability.ALLOW}
    assert execution.snapshot is snapshot


@pytest.mark.parametrize(
    ("field", "value"), [("agent", "chrys"), ("session_id", "s-2"), ("workspace_path", "/tmp")]
)
async def test_another_identity_is_a_conflict_that_names_the_field(
    table: Table, field: str, value: str
) -> None:
    table.open()

    with pytest.raises(ProtocolError, match=field) as raised:
        table.open(**{field: value})

    assert (raised.value.code, raised.value.detail) == (ErrorCode.EXECUTION_CONFLICT, field)


async def test_an_unknown_agent_is_refused(table: Table) -> None:
    with pytest.raises(ProtocolError, match="nobody") as raised:
        table.open(agent="nobody")

    assert raised.value.code == ErrorCode.UNKNOWN_EVENT
    assert len(table.executions) == 0


async def test_what_an_agent_can_carry_out_is_by_default_what_its_dialect_says(table: Table) -> None:
    assert table.open().accepts == DIALECTS["bamboo"].accepts


async def test_two_that_open_at_once_share_one(table: Table) -> None:
    table.store.must_read = True
    assert table.open() is None
    opening = [asyncio.ensure_future(table.executions.open(params())) for _ in range(2)]
    await asyncio.sleep(0)
    table.store.may_go_on.set()

    first, second = await asyncio.gather(*opening)

    assert first is second
    assert await table.executions.open(params()) is first


async def test_the_answer_of_an_open(table: Table) -> None:
    there = table.executions.opened(table.open())
    gone = table.executions.opened(table.open("run-2", workspace_path="/not/there"))

    assert (there.execution_id, there.revision, there.digest, there.problems) == ("run-1", 3, "d", ())
    assert [problem.path for problem in gone.problems] == ["workspace_path"]


async def test_an_unknown_execution_is_refused_everywhere(table: Table) -> None:
    table.open()
    await table.executions.close("run-1")

    with pytest.raises(ProtocolError) as got:
        table.executions.get("run-1")
    with pytest.raises(ProtocolError) as closed:
        await table.executions.close("run-1")
    with pytest.raises(ProtocolError) as drained:
        await table.executions.drain("run-1", DrainScope.TURN)

    assert {one.value.code for one in (got, closed, drained)} == {ErrorCode.UNKNOWN_EXECUTION}
    assert len(table.told("execution.closed")) == 1


async def test_the_list_tells_when_they_were_used(table: Table) -> None:
    began = time.time()
    table.open("a")
    table.open("b")
    table.executions.get("a")

    first, second = table.executions.list().executions

    assert (first.execution_id, second.execution_id) == ("a", "b")
    assert (first.agent, first.session_id, first.workspace_path, first.revision) == ("bamboo", "s-1", "/", 3)
    assert began - 1 <= first.opened_at <= time.time()
    assert abs(first.last_used_at - time.time()) < 5
    assert first.last_used_at >= second.last_used_at
    assert first.running == 0


# ----------------------------------------------------------------------------------------------------------------------
# Bounds


def begin(table: Table, execution: Any, kind: Kind = Kind.DELIVERY) -> Work:
    work = Work(kind, DrainSpan.TURN)
    task = asyncio.ensure_future(asyncio.Event().wait())
    table.executions.begin(execution, work, task)
    return work


def end(table: Table, execution: Any, work: Work) -> None:
    work.task.cancel()
    table.executions.end(execution, work)


async def test_the_longest_idle_one_makes_room() -> None:
    table = Table(max_executions=3)
    for name in "abc":
        table.open(name)
    table.executions.get("a")

    table.open("d")

    assert table.ids() == ["a", "c", "d"]
    ((level, _, fields),) = [one for one in table.records if one[1] == "execution.dropped"]
    assert (level, fields["execution_id"], fields["why"]) == (Level.WARNING, "b", "max_executions")
    table.executions.stop()


async def test_one_that_runs_something_is_never_dropped() -> None:
    table = Table(max_executions=2)
    busy = table.open("a")
    table.open("b")
    work = begin(table, busy)
    other = begin(table, busy)

    table.open("c")
    assert table.ids() == ["a", "c"]
    blocked = begin(table, table.executions.get("c"))
    with pytest.raises(ProtocolError, match="max_executions") as raised:
        table.open("d")
    assert raised.value.code == ErrorCode.BUSY

    end(table, busy, work)
    with pytest.raises(ProtocolError):
        table.open("d")
    end(table, busy, other)
    table.open("d")
    assert table.ids() == ["c", "d"]
    end(table, table.executions.get("c"), blocked)
    table.executions.stop()


async def test_idle_ones_expire_and_used_ones_do_not() -> None:
    table = Table(execution_idle_s=0.4)
    busy = table.open("busy")
    work = begin(table, busy)
    table.open("idle")
    used = table.open("used")
    deadline = time.monotonic() + 10
    while "idle" in table.ids():
        assert time.monotonic() < deadline
        table.executions.get("used")
        await asyncio.sleep(0.02)

    assert table.ids() == ["busy", "used"]
    assert [fields["execution_id"] for fields in table.told("execution.dropped")] == ["idle"]

    end(table, busy, work)
    while len(table.executions):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    assert used.id == "used"
    table.executions.stop()


async def test_ten_thousand_are_cheap_and_the_last_costs_what_the_first_did() -> None:
    table = Table(max_executions=10_000)
    table.executions._record = lambda *_: None
    given = [params(f"execution-{number:06}") for number in range(10_500)]

    def cost(part: list[ExecutionOpenParams]) -> float:
        times = []
        for one in part:
            began = time.perf_counter()
            table.executions.open_now(one)
            times.append(time.perf_counter() - began)
        return sorted(times)[len(times) // 2]

    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for one in given[:2000]:
        table.executions.open_now(one)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    first = cost(given[2000:2500])
    cost(given[2500:9500])
    last = cost(given[9500:10_000])
    full = cost(given[10_000:])

    assert (after - before) / 2000 <= 4096
    # A scan would cost hundreds of times more; the factor leaves room for a busy machine.
    assert last < 20 * first
    assert full < 40 * first
    assert len(table.executions) == 10_000
    table.executions.stop()


# ----------------------------------------------------------------------------------------------------------------------
# Connections


async def test_what_is_bound_to_a_connection_goes_with_it(table: Table) -> None:
    one, other = object(), object()
    table.open("bound", one, bound_to=BoundTo.CONNECTION)
    table.open("free", one)
    table.open("others", other, bound_to=BoundTo.CONNECTION)

    table.executions.connection_lost(one)
    table.executions.connection_lost(one)

    assert table.ids() == ["free", "others"]
    assert [fields["why"] for fields in table.told("execution.closed")] == ["connection_lost"]
    assert table.executions._bound.keys() == {other}
    await table.executions.close("others")
    assert table.executions._bound == {}


async def test_the_last_to_open_it_owns_it(table: Table) -> None:
    one, other = object(), object()
    table.open("a", one, bound_to=BoundTo.CONNECTION)
    table.open("a", other, bound_to=BoundTo.CONNECTION)
    table.executions.connection_lost(one)
    assert table.ids() == ["a"]

    table.open("a", other)
    table.executions.connection_lost(other)

    assert table.ids() == ["a"]


async def test_a_lost_connection_cuts_off_its_gates_and_leaves_the_rest(table: Table) -> None:
    owner = object()
    execution = table.open("a", owner, bound_to=BoundTo.CONNECTION)
    gate, delivery = begin(table, execution, Kind.GATE), begin(table, execution)

    table.executions.connection_lost(owner)

    assert gate.cut is not None
    assert gate.cut.code == ErrorCode.UNKNOWN_EXECUTION
    assert delivery.cut is None
    for work in (gate, delivery):
        end(table, execution, work)
    assert table.ids() == []


# ----------------------------------------------------------------------------------------------------------------------
# Drains by kind


async def test_a_drain_leaves_what_nobody_waits_for_at_all(table: Table) -> None:
    execution = table.open()
    work = begin(table, execution, Kind.FORGOTTEN)
    work.ids["inv-1"] = None

    result = await table.executions.drain("run-1", DrainScope.SESSION)

    assert result.still_running == ("inv-1",)
    assert work.cut is None
    end(table, execution, work)


async def test_cutting_off_twice_cancels_once(table: Table) -> None:
    execution = table.open()
    work = begin(table, execution)
    first = ProtocolError(-1, "first", kind="x")

    work.cut_off(first)
    work.cut_off(ProtocolError(-2, "second", kind="x"))

    assert work.cut is first
    assert work.task.cancelling() == 1
    end(table, execution, work)
    work.finish()
    assert work.when_done().done()
    work.finish()


async def test_an_environment_that_is_given_again_stays_the_same_object(table: Table) -> None:
    execution = table.open(env={"A": "1"})
    env = execution.env

    table.open(env={"A": "1"})
    assert execution.env is env
    table.open(env={"A": "2"})
    assert execution.env == {"A": "2"}


async def test_a_limit_that_was_lowered_is_seen_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "LONGEST_LOOK_S", 0.05)
    table = Table()
    table.open()
    table.store.settings = msgspec.structs.replace(
        table.store.settings, limits=msgspec.structs.replace(Limits(), execution_idle_s=0.1)
    )
    deadline = time.monotonic() + 10

    while len(table.executions):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    table.executions.stop()


async def test_nothing_is_opened_while_shutting_down(table: Table) -> None:
    table.open()
    table.executions.stop()

    for name in ("run-1", "run-2"):
        with pytest.raises(ProtocolError) as raised:
            table.open(name)
        assert raised.value.code == ErrorCode.DRAINING
