"""Programmatic hooks: registration, calls, every way of failing, taking out and losing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hooksd.dialects import DIALECTS
from hooksd.model.decision import Decision
from hooksd.model.errors import ProtocolError
from hooksd.model.hooks import Hook, Mode, NamePattern, OnError
from hooksd.model.problems import ProblemKind
from hooksd.model.report import Status
from hooksd.pipeline import programmatic
from hooksd.pipeline.programmatic import Registry
from hooksd.protocol.errors import ErrorCode
from hooksd.protocol.methods.programmatic import FailureAction, HookRegisterParams, RegistrationMode


Bench = Any
"""The class is in conftest.py, which cannot be imported."""


class Client:
    """A connected client whose answers a test chooses."""

    def __init__(self, answer: Callable[[], Any] = dict, name: str = "c") -> None:
        self.name = name
        self.closed = False
        self.answer = answer
        self.calls: list[tuple[str, dict[str, Any], int]] = []

    async def invoke(self, registration_id: str, envelope: dict[str, Any], deadline_ms: int) -> Any:
        self.calls.append((registration_id, envelope, deadline_ms))
        answer = self.answer()
        return await answer if asyncio.isfuture(answer) else answer


def params(**more: Any) -> HookRegisterParams:
    return HookRegisterParams(**{"events": ("PreToolUse",), "name": "p", **more})


def registry() -> Registry:
    return Registry(DIALECTS)


# ----------------------------------------------------------------------------------------------------------------------
# Registering


def test_a_registration_is_a_hook_for_each_of_its_events() -> None:
    made = registry()
    made.register(
        params(
            events=("PreToolUse", "tool.before", "Stop", "session.end"),
            matcher="^Bash$",
            priority=7,
            timeout_ms=1500,
            on_failure=FailureAction.BLOCK,
        ),
        Client(name=""),
    )

    assert [(hook.event, hook.native_event) for hook in made.hooks] == [
        ("tool.before", "PreToolUse"),
        ("turn.finish", "Stop"),
        ("session.end", "SessionEnd"),
    ]
    assert {hook.name for hook in made.hooks} == {"programmatic:client:-:p"}
    assert [hook.match for hook in made.hooks] == [NamePattern(pattern="^Bash$"), None, None]
    assert {(hook.timeout_s, hook.on_error, hook.mode) for hook in made.hooks} == {
        (1.5, OnError.BLOCK, Mode.BLOCKING)
    }


@pytest.mark.parametrize(
    ("given", "code", "told"),
    [
        (params(agent="nobody"), ErrorCode.UNKNOWN_EVENT, "nobody"),
        (params(events=("PreToolUse", "Nope")), ErrorCode.UNKNOWN_EVENT, "Nope"),
        (params(matcher="["), ErrorCode.INVALID_PARAMS, "matcher"),
        (
            params(mode=RegistrationMode.OBSERVER, on_failure=FailureAction.BLOCK),
            ErrorCode.INVALID_PARAMS,
            "observer",
        ),
    ],
)
def test_what_cannot_work_is_refused(given: HookRegisterParams, code: ErrorCode, told: str) -> None:
    made = registry()

    with pytest.raises(ProtocolError, match=told) as raised:
        made.register(given, Client())

    assert raised.value.code == code
    assert made.hooks == ()


def test_a_bad_matcher_is_located() -> None:
    with pytest.raises(ProtocolError) as raised:
        registry().register(params(matcher="ab(?=c)"), Client())

    assert [problem.path for problem in raised.value.problems] == ["matcher"]
    assert raised.value.problems[0].column == 3


def test_registrations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programmatic, "MAX_REGISTRATIONS", 2)
    made = registry()
    client = Client()
    first = made.register(params(name="1"), client)
    made.register(params(name="2"), client)

    with pytest.raises(ProtocolError) as raised:
        made.register(params(name="3"), client)

    assert raised.value.code == ErrorCode.BUSY
    made.unregister(first, client)
    made.register(params(name="3"), client)


def test_only_its_own_client_takes_a_registration_out() -> None:
    made = registry()
    client = Client()
    registration = made.register(params(), client)

    for wrong, who, code in (
        ("reg-none", client, ErrorCode.INVALID_PARAMS),
        (registration, Client(), ErrorCode.NOT_PERMITTED),
    ):
        with pytest.raises(ProtocolError) as raised:
            made.unregister(wrong, who)
        assert raised.value.code == code
    made.unregister(registration)
    with pytest.raises(ProtocolError):
        made.unregister(registration, client)


def test_the_hooks_are_the_same_object_until_they_change() -> None:
    made = registry()
    client, other = Client(), Client()
    registration = made.register(params(), client)
    before = made.hooks
    made.lost(other)
    assert made.hooks is before

    made.register(params(name="q"), other)
    assert [hook.name[-1] for hook in made.hooks] == ["p", "q"]
    made.unregister(registration, client)
    assert [hook.name[-1] for hook in made.hooks] == ["q"]
    assert [made.stands(hook) for hook in before] == [False]
    made.lost(other)
    assert made.hooks == ()


def test_what_was_taken_out_is_forgotten_only_far_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programmatic, "MAX_REMEMBERED", 2)
    made = registry()
    client = Client()
    hooks: list[Hook] = []
    for _ in range(3):
        registration = made.register(params(), client)
        hooks += made.hooks
        made.unregister(registration, client)

    assert [made.stands(hook) for hook in hooks] == [True, False, False]


# ----------------------------------------------------------------------------------------------------------------------
# Calling


async def test_a_client_gets_the_envelope_and_its_answer_counts(bench: Bench) -> None:
    bench.configure(PreToolUse="touch ran")
    pipeline = await bench.start()
    answer = {"decision": "block", "reason": "because", "additional_context": "context"}
    client = Client(lambda: answer)
    registration = pipeline.registry.register(params(timeout_ms=4000), client)

    outcome = await bench.dispatch("PreToolUse")

    assert (outcome.decision, outcome.reason) == (Decision.BLOCK, "because")
    assert (outcome.decided_by, outcome.contexts) == ("programmatic:client:c:p", ("context",))
    ((called, envelope, deadline_ms),) = client.calls
    assert called == registration
    assert envelope["hook_event_name"] == "PreToolUse"
    assert envelope["tool_input"] == {"command": "pwd"}
    assert envelope["workspace_path"] == str(bench.workspace)
    assert 3000 < deadline_ms <= 4000
    report = outcome.handlers[0]
    assert (report.contract, report.source, report.exit_code, report.pid) == ("programmatic", "c", None, None)


async def test_the_matcher_chooses(bench: Bench) -> None:
    pipeline = await bench.start()
    client = Client(lambda: {"decision": "block"})
    pipeline.registry.register(params(matcher="^Write$"), client)

    assert (await bench.dispatch("PreToolUse")).handlers == ()
    assert client.calls == []


def error() -> Any:
    raise ProtocolError(-32000, "own words", kind="x")


def lost() -> Any:
    raise ConnectionResetError


def never() -> Any:
    return asyncio.get_running_loop().create_future()


def deep() -> Any:
    raise RecursionError


FAILURES: list[Any] = [
    (deep, ProblemKind.LAUNCH, Status.LAUNCH_ERROR),
    (error, ProblemKind.MALFORMED_OUTPUT, Status.FAILED),
    (lost, ProblemKind.LOST_CONNECTION, Status.FAILED),
    (never, ProblemKind.TIMEOUT, Status.TIMEOUT),
    (lambda: None, ProblemKind.MALFORMED_OUTPUT, Status.FAILED),
    (lambda: "text", ProblemKind.MALFORMED_OUTPUT, Status.FAILED),
    (lambda: ["block"], ProblemKind.MALFORMED_OUTPUT, Status.FAILED),
    (lambda: {"decision": "maybe"}, ProblemKind.UNKNOWN_DECISION, Status.FAILED),
    (lambda: {"arguments": 1}, ProblemKind.MALFORMED_OUTPUT, Status.FAILED),
]


@pytest.mark.parametrize("on_failure", list(FailureAction))
@pytest.mark.parametrize(("answer", "kind", "status"), FAILURES)
async def test_every_failure_is_told_and_blocks_where_that_is_asked_for(
    bench: Bench, answer: Callable[[], Any], kind: ProblemKind, status: Status, on_failure: FailureAction
) -> None:
    pipeline = await bench.start()
    pipeline.registry.register(params(timeout_ms=50, on_failure=on_failure), Client(answer))

    outcome = await bench.dispatch("PreToolUse")

    blocks = on_failure is FailureAction.BLOCK
    assert outcome.decision is (Decision.BLOCK if blocks else Decision.NONE)
    report = outcome.handlers[0]
    assert report.status is status
    assert report.problem is not None
    assert report.problem.kind is kind
    if blocks:
        assert kind in (outcome.reason or "")
        assert "on_failure" in (outcome.reason or "")
    assert "own words" not in repr(bench.records)


async def test_a_hook_that_fails_closed_runs_after_an_ask(bench: Bench) -> None:
    pipeline = await bench.start()
    pipeline.registry.register(params(), Client(lambda: {"decision": "ask"}))
    pipeline.registry.register(params(name="q"), Client(lambda: {"decision": "block"}))
    pipeline.registry.register(
        params(name="r", on_failure=FailureAction.BLOCK), Client(lambda: {"decision": "block"})
    )

    outcome = await bench.dispatch("PreToolUse")

    assert outcome.decided_by == "programmatic:client:c:r"
    assert [report.status for report in outcome.handlers] == [Status.OK, Status.SKIPPED, Status.BLOCKED]


async def test_the_budget_of_the_dispatch_bounds_the_call(bench: Bench) -> None:
    pipeline = await bench.start()
    pipeline.registry.register(params(), Client(never))

    outcome = await bench.dispatch("PreToolUse", timeout_s=0.05)

    assert outcome.handlers[0].status is Status.TIMEOUT
    assert outcome.handlers[0].problem is not None
    assert "budget" in outcome.handlers[0].problem.message


async def test_changed_arguments_reach_later_hooks_and_the_answer(bench: Bench) -> None:
    bench.configure(PreToolUse="cat > stdin")
    pipeline = await bench.start()
    pipeline.registry.register(params(), Client(lambda: {"arguments": {"command": "ls"}}))
    seen = Client(dict)
    pipeline.registry.register(params(name="late", priority=200), seen)
    execution = await bench.open(accepts=("ask", "arguments"))

    outcome = await bench.dispatch("PreToolUse", execution=execution)

    assert outcome.arguments == {"command": "ls"}
    assert '"tool_input":{"command":"ls"}' in (bench.workspace / "stdin").read_text()
    assert seen.calls[0][1]["payload"]["parsed_args"] == {"command": "ls"}
    kept = pipeline.results.get(outcome.handlers[0].invocation_id)
    assert (kept.arguments_before, kept.arguments_after) == ({"command": "pwd"}, {"command": "ls"})


async def test_a_rewrite_that_the_agent_cannot_carry_out_is_asked_about(bench: Bench) -> None:
    bench.configure(PreToolUse="cat > stdin")
    pipeline = await bench.start()
    pipeline.registry.register(params(), Client(lambda: {"arguments": {"command": "redacted"}}))

    outcome = await bench.dispatch("PreToolUse")

    assert (outcome.decision, outcome.arguments) == (Decision.ASK, None)
    assert outcome.decided_by == "programmatic:client:c:p"
    assert '"command":"pwd"' in (bench.workspace / "stdin").read_text()


# ----------------------------------------------------------------------------------------------------------------------
# In and out of snapshots


async def test_a_hook_is_in_the_executions_that_are_opened_while_it_stands(bench: Bench) -> None:
    pipeline = await bench.start()
    before = await bench.open("before")
    client = Client(lambda: {"decision": "block"})
    registration = pipeline.registry.register(params(), client)
    during = await bench.open("during")

    assert (await bench.dispatch("PreToolUse", execution=before)).handlers == ()
    assert (await bench.dispatch("PreToolUse", execution=during)).decision is Decision.BLOCK

    pipeline.registry.unregister(registration, client)
    assert (await bench.dispatch("PreToolUse", execution=during)).handlers == ()
    assert (await bench.dispatch("PreToolUse", execution=await bench.open("after"))).handlers == ()


async def test_after_a_lost_connection_it_stays_in_its_executions_and_fails(bench: Bench) -> None:
    pipeline = await bench.start()
    client = Client(lambda: {"decision": "block"})
    pipeline.registry.register(params(), client)
    during = await bench.open("during")
    pipeline.registry.lost(client)

    outcome = await bench.dispatch("PreToolUse", execution=during)
    after = await bench.dispatch("PreToolUse", execution=await bench.open("after"))

    assert outcome.handlers[0].problem is not None
    assert outcome.handlers[0].problem.kind is ProblemKind.LOST_CONNECTION
    assert after.handlers == ()


async def test_a_connection_that_is_closed_but_not_yet_lost_fails_too(bench: Bench) -> None:
    pipeline = await bench.start()
    client = Client()
    pipeline.registry.register(params(), client)
    execution = await bench.open()
    client.closed = True

    outcome = await bench.dispatch("PreToolUse", execution=execution)

    assert outcome.handlers[0].problem is not None
    assert outcome.handlers[0].problem.kind is ProblemKind.LOST_CONNECTION
    assert client.calls == []


async def test_one_that_is_taken_out_while_it_waits_its_turn_is_left_out(bench: Bench) -> None:
    bench.configure(PreToolUse="touch began; until [ -e go ]; do sleep 0.02; done")
    pipeline = await bench.start()
    client = Client(lambda: {"decision": "block"})
    registration = pipeline.registry.register(params(priority=200), client)
    dispatch = asyncio.ensure_future(bench.dispatch("PreToolUse"))
    await bench.until((bench.workspace / "began").exists)

    pipeline.registry.unregister(registration, client)
    (bench.workspace / "go").touch()
    outcome = await dispatch

    assert (outcome.decision, len(outcome.handlers), client.calls) == (Decision.NONE, 1, [])


async def test_a_client_may_have_nothing_to_say(bench: Bench) -> None:
    pipeline = await bench.start()
    pipeline.registry.register(params(), Client(dict))

    outcome = await bench.dispatch("PreToolUse")

    assert (outcome.decision, outcome.handlers[0].status) == (Decision.NONE, Status.OK)
