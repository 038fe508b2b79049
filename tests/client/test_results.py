from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from hooksd_client import results
from hooksd_client.errors import ProtocolViolation


REPORT = {
    "hook": "h",
    "status": "failed",
    "exit_code": 1,
    "problem": {"kind": "exit_code", "message": "m", "new": 1},
}
PROBLEM = {"severity": "error", "path": "p", "message": "m", "line": 3}


def test_an_outcome_with_everything() -> None:
    outcome = results.Outcome.from_answer(
        {
            "event": "Stop",
            "decision": "ask",
            "reason": None,
            "contexts": ["a", "b"],
            "arguments": {"x": 1},
            "continuation": {"count": 1, "limit": 5, "exhausted": False},
            "revision": 7,
            "handlers": [REPORT],
            "problems": [{"kind": "no_such_hook", "message": "m", "hook": "g"}],
            "something_new": {"deep": True},
        }
    )

    assert outcome == results.Outcome(
        "Stop",
        "ask",
        contexts=("a", "b"),
        arguments={"x": 1},
        continuation=results.Continuation(1, 5),
        revision=7,
        handlers=(
            results.HandlerReport("h", "failed", exit_code=1, problem=results.HookProblem("exit_code", "m")),
        ),
        problems=(results.DispatchProblem("no_such_hook", "m", hook="g"),),
    )
    assert (outcome.asks, outcome.blocked) == (True, False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        outcome.decision = "none"  # type: ignore[misc]


def test_nested_results() -> None:
    status = results.Status.from_answer(
        {
            "pid": 1,
            "version": "1",
            "state": "ready",
            "sources": [
                {
                    "name": "n",
                    "dialect": "d",
                    "scope": "user",
                    "path": "/p",
                    "state": "loaded",
                    "problems": [PROBLEM],
                }
            ],
            "hooks": {"total": 3},
            "latency_ms": {"h": {"p50": 1.5}},
            "outbox": None,
        }
    )
    explanation = results.Explanation.from_answer(
        {"plan": [{"hook": "h", "runs_as": [["sh", "-c", "x"], []]}]}
    )
    found = results.InvocationResult.from_answer({"report": REPORT, "source": {"path": "/p", "line": 2}})

    assert status.sources[0].problems == (results.ConfigProblem("error", "p", "m", line=3),)
    assert status.hooks == results.HookCounts(total=3)
    assert status.latency_ms == {"h": results.Latency(p50=1.5)}
    assert status.outbox is None
    assert explanation.plan[0].runs_as == (("sh", "-c", "x"), ())
    assert found.source == results.HookPlace("/p", 2)


def test_defaults_are_nobody_else_s() -> None:
    first, second = results.Welcome(1, results.ServerInfo("a")), results.Welcome(1, results.ServerInfo("a"))

    first.limits["x"] = 1.0

    assert second.limits == {}


@pytest.mark.parametrize(
    ("cls", "answer", "message"),
    [
        (results.Outcome, None, "Outcome must be an object, not NoneType"),
        (results.Outcome, [], "Outcome must be an object, not list"),
        (results.Outcome, {"event": "e"}, "Outcome without the field `decision`"),
        (
            results.Outcome,
            {"event": "e", "decision": "none", "contexts": 5},
            r"Outcome\.contexts cannot be read",
        ),
        (
            results.Outcome,
            {"event": "e", "decision": "none", "handlers": [5]},
            "HandlerReport must be an object",
        ),
        (
            results.Outcome,
            {"event": "e", "decision": "none", "handlers": [{}]},
            "HandlerReport without the field `hook`",
        ),
        (results.Welcome, {"protocol_version": 1, "server": 5}, "ServerInfo must be an object"),
        (
            results.Status,
            {"pid": 1, "version": "1", "state": "s", "latency_ms": 5},
            r"Status\.latency_ms cannot be read",
        ),
    ],
)
def test_what_cannot_be_read(cls: Any, answer: Any, message: str) -> None:
    with pytest.raises(ProtocolViolation, match=message):
        cls.from_answer(answer)


def test_a_record_keeps_all_of_itself() -> None:
    told = {"seq": 1, "ts": "t", "level": "info", "event": "hook.finished", "data": "its own", "hook": "h"}

    record = results.EventRecord.from_record(told)

    assert (record.seq, record.ts, record.level, record.event) == (1, "t", "info", "hook.finished")
    assert record.data == told


@pytest.mark.parametrize("cls", [kind for kind in vars(results).values() if dataclasses.is_dataclass(kind)])
def test_every_result_is_frozen_public_and_takes_its_own_fields(cls: Any) -> None:
    assert cls.__dataclass_params__.frozen
    assert cls.__name__ in results.__all__
