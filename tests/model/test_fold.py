"""The fold: order, short circuit, guards, rewrites, and what the caller cannot carry out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from hooksd.model.decision import Capability, Decision
from hooksd.model.events import Event, EventName
from hooksd.model.fold import Fold, Verdict
from hooksd.model.hooks import (
    Contract,
    Guard,
    GuardAction,
    Hook,
    Mode,
    OnError,
    Programmatic,
    Scope,
    ShellCommand,
)
from hooksd.model.outcome import Continuation, Outcome
from hooksd.model.problems import ConfigProblem, HookProblem, ProblemKind, Severity
from hooksd.model.records import Level
from hooksd.model.reply import MAX_DETAIL_BYTES, Reply
from hooksd.model.report import HandlerReport, Status


ALL = frozenset(Capability)
GUARD = Guard(hooks="*")


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    hook: Hook
    guard: Guard | None = None


def planned(
    name: str = "h", source: str = "s", *, guard: Guard | None = None, scope: Scope = Scope.USER, **more: Any
) -> Planned:
    hook = Hook(
        name=name,
        dialect="bamboo",
        contract=more.pop("contract", Contract.BAMBOO),
        source=source,
        scope=scope,
        event=EventName.TOOL_BEFORE,
        native_event="PreToolUse",
        handler=ShellCommand(command="true", shells=("sh",)),
        timeout_s=1.0,
        **more,
    )
    return Planned(hook=hook, guard=guard)


def event(name: EventName = EventName.TOOL_BEFORE, *, gate: bool = True, arguments: Any = None) -> Event:
    return Event(
        name=name,
        agent="bamboo",
        native="PreToolUse",
        gate=gate,
        session_id="s",
        payload={},
        tool_name="Bash",
        tool_arguments=arguments,
        timestamp=0.0,
    )


def report(hook: Hook, verdict: Verdict) -> HandlerReport:
    return HandlerReport(
        hook=hook.name,
        source=hook.source,
        contract=hook.contract,
        mode=hook.mode,
        status=verdict.status,
        decision=verdict.decision,
        problem=verdict.problem,
    )


def carry_out(
    fold: Fold[Planned], replies: Sequence[Reply], plan: Sequence[Planned]
) -> tuple[Outcome, dict[str, Verdict], list[str]]:
    """Go through a plan whose hooks say `replies`; the outcome, all verdicts, and which hooks ran."""
    says = {id(one): reply for one, reply in zip(plan, replies, strict=True)}
    verdicts: dict[str, Verdict] = {}
    ran: list[str] = []
    reports = []
    while (step := fold.next()) is not None:
        verdict = step.verdict
        if verdict is None:
            ran.append(step.planned.hook.name)
            verdict = fold.add(step.planned, says[id(step.planned)])
        verdicts[step.planned.hook.name] = verdict
        reports.append(report(step.planned.hook, verdict))
    return fold.outcome(reports, 7), verdicts, ran


def run(
    *hooks: tuple[Planned, Reply], on: Event | None = None, accepts: frozenset[Capability] = ALL, **more: Any
) -> tuple[Outcome, dict[str, Verdict], list[str]]:
    plan = [one for one, _ in hooks]
    fold = Fold(on or event(), plan, accepts=accepts, **more)
    return carry_out(fold, [reply for _, reply in hooks], plan)


def block(reason: str | None = "no") -> Reply:
    return Reply(decision=Decision.BLOCK, reason=reason)


ASK = Reply(decision=Decision.ASK)
ALLOW = Reply(decision=Decision.ALLOW)
NONE = Reply()


def failed(kind: ProblemKind = ProblemKind.EXIT_CODE, **more: Any) -> Reply:
    return Reply(failure=HookProblem(kind=kind, message="went wrong", **more))


# ----------------------------------------------------------------------------------------------------------------------
# Order and short circuit


def test_an_empty_plan_decides_nothing() -> None:
    assert run()[0] == Outcome(event="PreToolUse", revision=7)


def test_the_first_block_ends_the_plan() -> None:
    outcome, verdicts, ran = run(
        (planned("a"), Reply(contexts=("one",))),
        (planned("b"), Reply(decision=Decision.BLOCK, reason="stop", contexts=("two",), reminders=("r",))),
        (planned("c", "other"), Reply(contexts=("three",))),
        (planned("d", guard=GUARD), block("later")),
    )

    assert ran == ["a", "b"]
    assert (outcome.decision, outcome.reason, outcome.decided_by) == (Decision.BLOCK, "stop", "b")
    assert (outcome.contexts, outcome.reminders) == (("one", "two"), ("r",))
    assert [handler.status for handler in outcome.handlers] == ["ok", "blocked", "skipped", "skipped"]
    assert verdicts["b"].reason == "stop"
    skipped = verdicts["c"].problem
    assert skipped is not None
    assert skipped.kind is ProblemKind.NOT_RUN
    assert "b blocked" in skipped.message
    assert verdicts["c"].level is Level.INFO


def test_an_ask_ends_the_part_of_its_source_only() -> None:
    outcome, verdicts, ran = run(
        (planned("a"), ASK),
        (planned("b"), block()),
        (planned("c", "other"), ALLOW),
        (planned("d", "other"), Reply(contexts=("late",))),
    )

    assert ran == ["a", "c", "d"]
    assert (outcome.decision, outcome.reason, outcome.decided_by) == (Decision.ASK, None, "a")
    assert outcome.contexts == ("late",)
    assert verdicts["a"].status is Status.OK
    assert verdicts["b"].status is Status.SKIPPED
    assert verdicts["b"].problem is not None
    assert "a asked" in verdicts["b"].problem.message


def test_a_client_called_like_a_source_is_another_source() -> None:
    _, _, ran = run((planned("a", scope=Scope.CLIENT), ASK), (planned("b"), NONE))

    assert ran == ["a", "b"]


def test_guarded_hooks_run_after_an_ask_and_may_block() -> None:
    outcome, _, ran = run((planned("a"), ASK), (planned("b", guard=GUARD), block()), (planned("c"), NONE))

    assert ran == ["a", "b"]
    assert (outcome.decision, outcome.decided_by) == (Decision.BLOCK, "b")


def test_a_guard_that_only_warns_does_not_make_a_hook_run_after_an_ask() -> None:
    guard = Guard(hooks="*", on_failure=GuardAction.WARN)

    assert run((planned("a"), ASK), (planned("b", guard=guard), block()))[2] == ["a"]


@pytest.mark.parametrize(
    ("replies", "decision", "by"),
    [
        ([ALLOW, NONE], Decision.ALLOW, "0"),
        ([NONE, ALLOW, ALLOW], Decision.ALLOW, "1"),
        ([ALLOW, ASK, ALLOW], Decision.ASK, "1"),
        ([ASK, ASK, ALLOW], Decision.ASK, "0"),
        ([ASK, block(), NONE], Decision.BLOCK, "1"),
        ([NONE, NONE], Decision.NONE, None),
    ],
)
def test_the_strictest_decides_and_the_first_of_equals(
    replies: list[Reply], decision: Decision, by: str | None
) -> None:
    outcome, _, _ = run(*((planned(str(at), f"s{at}"), reply) for at, reply in enumerate(replies)))

    assert (outcome.decision, outcome.decided_by) == (decision, by)


@pytest.mark.parametrize("reason", [None, "", " \n"])
def test_a_block_without_a_reason_gets_one(reason: str | None) -> None:
    assert run((planned("a"), block(reason)))[0].reason == "blocked by a"


def test_blank_contexts_are_dropped_and_others_kept_as_they_are() -> None:
    outcome, verdicts, _ = run((planned(), Reply(contexts=(" ", " x ", "\n"), reminders=("",))))

    assert (outcome.contexts, outcome.reminders) == ((" x ",), ())
    assert verdicts["h"].problem is None


def test_background_hooks_are_given_and_nothing_is_awaited() -> None:
    plan = [planned("a"), planned("b", mode=Mode.ASYNC)]
    fold = Fold(event(), plan, accepts=ALL)
    first = fold.next()
    assert first is not None
    fold.add(first.planned, NONE)

    second = fold.next()

    assert second is not None
    assert (second.planned, second.verdict) == (plan[1], None)
    assert fold.next() is None


def test_background_hooks_are_skipped_after_a_block() -> None:
    assert run((planned("a"), block()), (planned("b", mode=Mode.ASYNC), NONE))[2] == ["a"]


# ----------------------------------------------------------------------------------------------------------------------
# Observers


def test_an_observer_runs_every_hook_and_ignores_decisions() -> None:
    outcome, verdicts, ran = run(
        (planned("a"), Reply(decision=Decision.BLOCK, reason="no", contexts=("one",))),
        (planned("b"), ASK),
        (planned("c"), ALLOW),
        (planned("d"), Reply(contexts=("two",))),
        on=event(gate=False),
    )

    assert ran == ["a", "b", "c", "d"]
    assert (outcome.decision, outcome.reason, outcome.decided_by) == (Decision.NONE, None, None)
    assert outcome.contexts == ("one", "two")
    for name, said in (("a", Decision.BLOCK), ("b", Decision.ASK), ("c", Decision.ALLOW)):
        verdict = verdicts[name]
        assert (verdict.status, verdict.decision) == (Status.OK, said)
        assert verdict.problem is not None
        assert verdict.problem.kind is ProblemKind.IGNORED_DECISION
    assert verdicts["d"].problem is None


def test_a_guard_of_all_gates_leaves_observers_alone() -> None:
    outcome, verdicts, _ = run((planned("a", guard=GUARD), failed()), on=event(gate=False))

    assert outcome.decision is Decision.NONE
    assert verdicts["a"].decision is Decision.NONE
    assert verdicts["a"].problem == HookProblem(kind=ProblemKind.EXIT_CODE, message="went wrong")


def test_a_guard_that_names_an_observer_says_that_it_cannot_block() -> None:
    guard = Guard(hooks="*", events=(EventName.TOOL_BEFORE,))
    outcome, verdicts, ran = run(
        (planned("a", guard=guard), failed()), (planned("b"), NONE), on=event(gate=False)
    )

    assert outcome.decision is Decision.NONE
    assert ran == ["a", "b"]
    assert verdicts["a"].status is Status.FAILED
    assert verdicts["a"].problem is not None
    assert "ignored_decision: " in (verdicts["a"].problem.detail or "")


# ----------------------------------------------------------------------------------------------------------------------
# Failures and guards

STATUSES = {
    ProblemKind.TIMEOUT: Status.TIMEOUT,
    ProblemKind.LAUNCH: Status.LAUNCH_ERROR,
    ProblemKind.MISSING_SCRIPT: Status.LAUNCH_ERROR,
    ProblemKind.MISSING_RUNTIME: Status.LAUNCH_ERROR,
    ProblemKind.MISSING_CWD: Status.LAUNCH_ERROR,
    ProblemKind.CANCELLED: Status.CANCELLED,
    ProblemKind.NOT_RUN: Status.SKIPPED,
    ProblemKind.TOO_DEEP: Status.SKIPPED,
    ProblemKind.UNTRUSTED: Status.SKIPPED,
    ProblemKind.CHANGED: Status.SKIPPED,
}


@pytest.mark.parametrize("kind", list(ProblemKind))
def test_a_failure_decides_nothing_by_itself_and_blocks_when_guarded(kind: ProblemKind) -> None:
    open_, verdicts, ran = run((planned("a"), failed(kind)), (planned("b"), ALLOW))
    assert (open_.decision, open_.decided_by, ran) == (Decision.ALLOW, "b", ["a", "b"])
    assert verdicts["a"].status is STATUSES.get(kind, Status.FAILED)
    assert verdicts["a"].decision is Decision.NONE
    assert verdicts["a"].level is Level.WARNING

    closed, verdicts, ran = run((planned("a", guard=GUARD), failed(kind)), (planned("b"), ALLOW))
    assert (closed.decision, closed.decided_by, ran) == (Decision.BLOCK, "a", ["a"])
    assert closed.reason is not None
    assert all(word in closed.reason for word in ("a gave", kind, "went wrong", "guard"))
    assert verdicts["a"].status is STATUSES.get(kind, Status.FAILED)
    assert (verdicts["a"].decision, verdicts["a"].reason) == (Decision.BLOCK, closed.reason)


def test_a_guard_that_warns_leaves_a_failure() -> None:
    guard = Guard(hooks="*", on_failure=GuardAction.WARN)

    assert run((planned("a", guard=guard), failed()))[0].decision is Decision.NONE


@pytest.mark.parametrize(
    ("contract", "word"), [(Contract.CHRYS, "on_error"), (Contract.PROGRAMMATIC, "on_failure")]
)
def test_a_hook_may_fail_closed_by_its_own_configuration(contract: Contract, word: str) -> None:
    outcome, _, _ = run((planned("a", contract=contract, on_error=OnError.BLOCK), failed()))

    assert outcome.decision is Decision.BLOCK
    assert word in (outcome.reason or "")


def test_a_programmatic_hook_that_fails_closed_is_as_good_as_guarded() -> None:
    plan = [
        planned("a"),
        planned(
            "b",
            contract=Contract.PROGRAMMATIC,
            on_error=OnError.BLOCK,
        ),
    ]
    plan[1] = msgspec.structs.replace(
        plan[1],
        hook=msgspec.structs.replace(plan[1].hook, handler=Programmatic(registration_id="r", priority=100)),
    )

    assert run((plan[0], ASK), (plan[1], NONE))[2] == ["a", "b"]


def test_a_failure_that_its_dialect_made_a_block_is_one() -> None:
    reply = Reply(
        decision=Decision.BLOCK,
        reason="on_error",
        failure=HookProblem(kind=ProblemKind.TIMEOUT, message="late"),
    )
    outcome, verdicts, _ = run((planned("a"), reply))

    assert (outcome.decision, outcome.reason) == (Decision.BLOCK, "on_error")
    assert verdicts["a"].status is Status.TIMEOUT


def test_a_hook_that_did_not_load_fails_without_being_run() -> None:
    problem = ConfigProblem(severity=Severity.ERROR, path="x[0]", message="bad pattern", line=3)
    hook = planned("a", guard=GUARD, load_problem=problem)
    outcome, verdicts, ran = run((hook, NONE))

    assert ran == []
    assert outcome.decision is Decision.BLOCK
    assert verdicts["a"].status is Status.FAILED
    assert verdicts["a"].problem is not None
    assert verdicts["a"].problem.kind is ProblemKind.NOT_LOADED
    assert "bad pattern" in verdicts["a"].problem.message


def test_a_spent_budget_skips_the_rest_and_blocks_what_is_guarded() -> None:
    plan = [planned("a"), planned("b"), planned("c", guard=GUARD), planned("d")]
    fold = Fold(event(), plan, accepts=ALL)
    first = fold.next()
    assert first is not None
    fold.add(first.planned, Reply(contexts=("kept",)))
    fold.expire("the budget is spent")

    outcome, verdicts, ran = carry_out(fold, [NONE] * 4, plan)

    assert ran == []
    assert {name: verdict.status for name, verdict in verdicts.items()} == dict.fromkeys(
        "bcd", Status.SKIPPED
    )
    assert verdicts["b"].problem == HookProblem(kind=ProblemKind.NOT_RUN, message="the budget is spent")
    assert (verdicts["b"].decision, verdicts["c"].decision) == (Decision.NONE, Decision.BLOCK)
    assert (outcome.decision, outcome.decided_by, outcome.contexts) == (Decision.BLOCK, "c", ("kept",))
    assert "not_run" in (outcome.reason or "")


def test_what_was_not_reached_can_be_told_without_being_judged() -> None:
    plan = [planned("a"), planned("b"), planned("c")]
    fold = Fold(event(), plan, accepts=ALL)
    fold.next()

    assert fold.rest() == plan[1:]


def test_a_refused_gate_blocks_whatever_its_hooks_say() -> None:
    plan = [planned("a"), planned("b")]
    fold = Fold(event(), plan, accepts=ALL)
    fold.refuse(ProblemKind.TOO_DEEP, "nested 5 deep", "hint")

    outcome, verdicts, ran = carry_out(fold, [NONE] * 2, plan)

    assert ran == []
    assert (outcome.decision, outcome.decided_by) == (Decision.BLOCK, "a")
    assert "nested 5 deep" in (outcome.reason or "")
    assert verdicts["a"].problem == HookProblem(
        kind=ProblemKind.TOO_DEEP, message="nested 5 deep", hint="hint"
    )
    assert verdicts["b"].status is Status.SKIPPED


def test_a_refused_observer_is_skipped() -> None:
    plan = [planned("a"), planned("b")]
    fold = Fold(event(gate=False), plan, accepts=ALL)
    fold.refuse(ProblemKind.TOO_DEEP, "nested 5 deep")

    outcome, verdicts, _ = carry_out(fold, [NONE] * 2, plan)

    assert outcome.decision is Decision.NONE
    for verdict in verdicts.values():
        assert verdict.status is Status.SKIPPED
        assert verdict.problem == HookProblem(kind=ProblemKind.TOO_DEEP, message="nested 5 deep")


def test_a_refused_gate_without_hooks_has_nothing_to_refuse() -> None:
    fold: Fold[Planned] = Fold(event(), [], accepts=ALL)
    fold.refuse(ProblemKind.TOO_DEEP, "nested 5 deep")

    assert carry_out(fold, [], [])[0].decision is Decision.NONE


def test_a_missing_guarded_hook_blocks_a_gate_before_anything_runs() -> None:
    guards = [Guard(hooks="*guard-1"), Guard(hooks="*guard-2")]
    outcome, verdicts, ran = run((planned("a"), NONE), missing=guards)

    assert ran == []
    assert (outcome.decision, outcome.decided_by) == (Decision.BLOCK, None)
    assert "*guard-1" in (outcome.reason or "")
    assert [(problem.kind, problem.hook) for problem in outcome.problems] == [
        (ProblemKind.NO_SUCH_HOOK, "*guard-1"),
        (ProblemKind.NO_SUCH_HOOK, "*guard-2"),
    ]
    assert verdicts["a"].status is Status.SKIPPED


def test_a_missing_guarded_hook_of_an_observer_is_told() -> None:
    outcome, _, ran = run((planned("a"), NONE), on=event(gate=False), missing=[Guard(hooks="*x")])

    assert ran == ["a"]
    assert outcome.decision is Decision.NONE
    assert [problem.kind for problem in outcome.problems] == [ProblemKind.NO_SUCH_HOOK]


def test_other_problems_can_be_told() -> None:
    fold: Fold[Planned] = Fold(event(), [], accepts=ALL)
    fold.tell(ProblemKind.NOT_LOADED, "nothing runs", "fix it")

    assert [problem.message for problem in fold.problems] == ["nothing runs"]
    assert carry_out(fold, [], [])[0].problems == fold.problems


# ----------------------------------------------------------------------------------------------------------------------
# What the caller cannot carry out


def test_an_ask_that_cannot_be_asked_is_a_block() -> None:
    outcome, verdicts, ran = run(
        (planned("a"), ASK), (planned("b", "other"), ALLOW), accepts=ALL - {Capability.ASK}
    )

    assert ran == ["a"]
    assert (outcome.decision, outcome.decided_by) == (Decision.BLOCK, "a")
    assert "cannot ask" in (outcome.reason or "")
    assert (verdicts["a"].status, verdicts["a"].decision) == (Status.BLOCKED, Decision.BLOCK)
    assert verdicts["a"].problem is not None
    assert verdicts["a"].problem.kind is ProblemKind.NOT_APPLICABLE


def test_an_allow_that_means_nothing_is_no_decision() -> None:
    outcome, verdicts, _ = run((planned("a"), ALLOW), accepts=ALL - {Capability.ALLOW})

    assert (outcome.decision, outcome.decided_by) == (Decision.NONE, None)
    assert (verdicts["a"].status, verdicts["a"].decision) == (Status.OK, Decision.ALLOW)
    assert verdicts["a"].problem is not None
    assert verdicts["a"].problem.kind is ProblemKind.NOT_APPLICABLE


@pytest.mark.parametrize("capability", [Capability.CONTEXTS, Capability.REMINDERS])
def test_contexts_and_reminders_that_cannot_be_taken_are_dropped_and_told(capability: Capability) -> None:
    reply = Reply(contexts=("a",), reminders=("b", "c"))
    outcome, verdicts, _ = run((planned(), reply), accepts=ALL - {capability})

    kept = {"contexts": outcome.contexts, "reminders": outcome.reminders}
    assert kept.pop(capability) == ()
    assert all(kept.values())
    problem = verdicts["h"].problem
    assert problem is not None
    assert problem.kind is ProblemKind.NOT_APPLICABLE
    assert capability in problem.message


def test_what_several_rules_have_to_say_is_all_there() -> None:
    reply = Reply(
        decision=Decision.ALLOW,
        contexts=("a",),
        notes=(HookProblem(kind=ProblemKind.INHERITED_PIPE, message="held", detail="own words"),),
    )
    _, verdicts, _ = run((planned(), reply), accepts=frozenset())

    problem = verdicts["h"].problem
    assert problem is not None
    assert problem.kind is ProblemKind.INHERITED_PIPE
    lines = (problem.detail or "").splitlines()
    assert lines[0] == "own words"
    assert [line.split(":")[0] for line in lines[1:]] == ["not_applicable", "not_applicable"]


def test_further_problems_stand_in_the_detail_of_a_failure_and_the_hooks_words_give_way() -> None:
    note = HookProblem(kind=ProblemKind.SUSPICIOUS_EXIT_2, message="looks odd", detail="x")
    reply = Reply(
        failure=HookProblem(kind=ProblemKind.TIMEOUT, message="late", detail="ö" * MAX_DETAIL_BYTES),
        notes=(note,),
    )
    _, verdicts, _ = run((planned(), reply))

    problem = verdicts["h"].problem
    assert problem is not None
    assert problem.kind is ProblemKind.TIMEOUT
    assert len((problem.detail or "").encode()) <= MAX_DETAIL_BYTES
    assert (problem.detail or "").endswith("ö\nsuspicious_exit_2: looks odd")


def test_a_note_alone_is_the_problem_of_a_good_run() -> None:
    note = HookProblem(kind=ProblemKind.INHERITED_PIPE, message="held")
    _, verdicts, _ = run((planned(), Reply(notes=(note,))))

    assert verdicts["h"] == Verdict(status=Status.OK, problem=note, level=Level.WARNING)


# ----------------------------------------------------------------------------------------------------------------------
# Changed arguments


def test_changed_arguments_are_chained() -> None:
    plan = [planned("a"), planned("b"), planned("c")]
    fold = Fold(event(arguments={"x": 1, "y": 1}), plan, accepts=ALL)
    seen = []
    for reply in (
        Reply(arguments_patch={"y": 2, "z": {"deep": 1}}),
        Reply(),
        Reply(arguments_patch={"z": 3}),
    ):
        step = fold.next()
        assert step is not None
        seen.append(fold.arguments)
        fold.add(step.planned, reply)

    assert seen == [None, {"x": 1, "y": 2, "z": {"deep": 1}}, {"x": 1, "y": 2, "z": {"deep": 1}}]
    assert fold.outcome([], 7).arguments == {"x": 1, "y": 2, "z": 3}


def test_arguments_replace_and_a_patch_is_laid_over_them() -> None:
    outcome, _, _ = run(
        (planned("a"), Reply(arguments={"new": 1})),
        (planned("b"), Reply(arguments={"newer": 1, "k": 0}, arguments_patch={"k": 1})),
        on=event(arguments={"old": 1}),
    )

    assert outcome.arguments == {"newer": 1, "k": 1}


def test_arguments_that_come_out_as_they_were_are_not_told() -> None:
    outcome, _, _ = run(
        (planned("a"), Reply(arguments={"x": 2})),
        (planned("b"), Reply(arguments={"x": 1})),
        on=event(arguments={"x": 1}),
    )

    assert outcome.arguments is None


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), (1, 1.0), (1.0, True)])
def test_a_rewrite_to_what_only_python_calls_equal_is_told(before: Any, after: Any) -> None:
    outcome, _, _ = run((planned("a"), Reply(arguments={"x": after})), on=event(arguments={"x": before}))

    assert outcome.arguments is not None
    assert type(outcome.arguments["x"]) is type(after)


def test_a_block_needs_no_arguments() -> None:
    outcome, _, _ = run(
        (planned("a"), Reply(arguments={"x": 2})), (planned("b"), block()), on=event(arguments={"x": 1})
    )

    assert outcome.arguments is None


def test_the_callers_own_arguments_are_never_changed() -> None:
    given = {"x": 1}
    run((planned("a"), Reply(arguments_patch={"x": 2})), on=event(arguments=given))

    assert given == {"x": 1}


@pytest.mark.parametrize(
    ("accepts", "said", "decision"),
    [
        (ALL - {Capability.ARGUMENTS}, Decision.NONE, Decision.ASK),
        (ALL - {Capability.ARGUMENTS}, Decision.ALLOW, Decision.ASK),
        (ALL - {Capability.ARGUMENTS}, Decision.ASK, Decision.ASK),
        (ALL - {Capability.ARGUMENTS}, Decision.BLOCK, Decision.BLOCK),
        (ALL - {Capability.ARGUMENTS, Capability.ASK}, Decision.NONE, Decision.BLOCK),
        (ALL - {Capability.ARGUMENTS, Capability.ASK}, Decision.ASK, Decision.BLOCK),
    ],
)
def test_a_rewrite_that_cannot_be_carried_out_is_never_lost(
    accepts: frozenset[Capability], said: Decision, decision: Decision
) -> None:
    fold = Fold(event(arguments={"x": 1}), [planned("a")], accepts=accepts)
    reply = Reply(
        decision=said, reason="own" if said is Decision.BLOCK else None, arguments={"x": "redacted"}
    )
    step = fold.next()
    assert step is not None

    verdict = fold.add(step.planned, reply)

    outcome = fold.outcome([], 7)
    assert fold.arguments is None
    assert (outcome.decision, outcome.decided_by, outcome.arguments) == (decision, "a", None)
    assert verdict.decision is decision
    assert verdict.problem is not None
    assert verdict.problem.kind is ProblemKind.NOT_APPLICABLE
    if decision is Decision.BLOCK:
        assert "own" in (outcome.reason or "") or "a " in (outcome.reason or "")


def test_a_rewrite_that_an_observer_cannot_carry_out_is_told() -> None:
    outcome, verdicts, _ = run(
        (planned("a"), Reply(arguments={"x": 2})),
        on=event(gate=False, arguments={"x": 1}),
        accepts=ALL - {Capability.ARGUMENTS},
    )

    assert (outcome.decision, outcome.arguments) == (Decision.NONE, None)
    assert verdicts["a"].problem is not None
    assert verdicts["a"].problem.kind is ProblemKind.NOT_APPLICABLE


def test_a_patch_over_arguments_that_are_no_object_is_not_lost() -> None:
    outcome, verdicts, _ = run((planned("a"), Reply(arguments_patch={"x": 2})), on=event(arguments="text"))

    assert outcome.decision is Decision.ASK
    assert verdicts["a"].problem is not None
    assert "no object" in verdicts["a"].problem.message


def test_arguments_mean_nothing_on_other_events() -> None:
    outcome, verdicts, _ = run(
        (planned("a"), Reply(decision=Decision.ALLOW, arguments={"x": 2})), on=event(EventName.TOOL_AFTER)
    )

    assert (outcome.decision, outcome.arguments) == (Decision.ALLOW, None)
    assert verdicts["a"].problem is not None
    assert verdicts["a"].problem.kind is ProblemKind.NOT_APPLICABLE


# ----------------------------------------------------------------------------------------------------------------------
# Continuations

STOP = event(EventName.TURN_FINISH)


def test_a_stop_block_claims_a_continuation() -> None:
    state = Continuation(count=1, limit=5, exhausted=False)
    claims = []

    def claim() -> Continuation:
        claims.append(1)
        return state

    outcome, _, _ = run((planned("a"), NONE), (planned("b"), block()), on=STOP, claim=claim)

    assert (outcome.decision, outcome.continuation, claims) == (Decision.BLOCK, state, [1])


def test_only_a_block_claims_a_continuation() -> None:
    def claim() -> Continuation:
        raise AssertionError

    assert run((planned("a"), ASK), on=STOP, claim=claim)[0].continuation is None
    assert run((planned("a"), block()), on=event(), claim=claim)[0].continuation is None


def test_without_a_counter_a_stop_block_is_carried_out() -> None:
    assert run((planned("a"), block()), on=STOP)[0].decision is Decision.BLOCK


def test_at_the_limit_a_block_is_not_carried_out() -> None:
    state = Continuation(count=5, limit=5, exhausted=True)
    outcome, verdicts, ran = run(
        (planned("a"), Reply(contexts=("one",), reminders=("r",))),
        (planned("b"), block()),
        (planned("c"), NONE),
        on=STOP,
        claim=lambda: state,
    )

    assert ran == ["a", "b"]
    assert outcome == Outcome(
        event="PreToolUse", continuation=state, revision=7, handlers=outcome.handlers, problems=()
    )
    assert (verdicts["b"].status, verdicts["b"].decision) == (Status.BLOCKED, Decision.BLOCK)
    assert verdicts["b"].problem is not None
    assert verdicts["b"].problem.kind is ProblemKind.IGNORED_DECISION


def test_a_caller_that_cannot_go_on_is_not_blocked() -> None:
    outcome, verdicts, ran = run(
        (planned("a"), block()), (planned("b"), NONE), on=STOP, accepts=ALL - {Capability.CONTINUATION}
    )

    assert ran == ["a", "b"]
    assert outcome.decision is Decision.NONE
    assert (verdicts["a"].status, verdicts["a"].decision) == (Status.OK, Decision.BLOCK)
    assert verdicts["a"].problem is not None
    assert verdicts["a"].problem.kind is ProblemKind.NOT_APPLICABLE


def test_a_missing_hook_cannot_block_a_caller_that_cannot_go_on() -> None:
    outcome, _, ran = run(
        (planned("a"), NONE),
        on=STOP,
        accepts=ALL - {Capability.CONTINUATION},
        missing=[Guard(hooks="*x")],
    )

    assert ran == ["a"]
    assert [problem.kind for problem in outcome.problems] == [
        ProblemKind.NO_SUCH_HOOK,
        ProblemKind.NOT_APPLICABLE,
    ]


# ----------------------------------------------------------------------------------------------------------------------
# Properties

RANK = {Decision.NONE: 0, Decision.ALLOW: 1, Decision.ASK: 2, Decision.BLOCK: 3}

replies = st.sampled_from(
    [
        NONE,
        ALLOW,
        ASK,
        block(),
        failed(),
        failed(ProblemKind.TIMEOUT),
        Reply(contexts=("c",)),
        Reply(decision=Decision.BLOCK, reason="r", contexts=("c",)),
        Reply(arguments={"x": 2}),
        Reply(decision=Decision.ALLOW, arguments_patch={"y": 1}),
    ]
)
capabilities = st.frozensets(st.sampled_from(list(Capability)))


@st.composite
def hooks(draw: st.DrawFn, *, guarded: bool | None = None) -> tuple[Planned, Reply]:
    is_guarded = draw(st.booleans()) if guarded is None else guarded
    name = f"h{draw(st.integers(0, 10**9))}"
    source = draw(st.sampled_from(["s1", "s2"]))
    return planned(name, source, guard=GUARD if is_guarded else None), draw(replies)


def unique(given: list[tuple[Planned, Reply]]) -> list[tuple[Planned, Reply]]:
    return [
        (msgspec.structs.replace(one, hook=msgspec.structs.replace(one.hook, name=f"h{at}")), reply)
        for at, (one, reply) in enumerate(given)
    ]


@given(st.lists(hooks(), max_size=6), capabilities, st.booleans())
def test_every_hook_is_judged_once_and_in_order(
    given_hooks: list[tuple[Planned, Reply]], accepts: frozenset[Capability], gate: bool
) -> None:
    plan = unique(given_hooks)
    outcome, verdicts, ran = run(*plan, on=event(gate=gate, arguments={"x": 1}), accepts=accepts)

    names = [one.hook.name for one, _ in plan]
    assert [handler.hook for handler in outcome.handlers] == names
    assert list(verdicts) == names
    assert ran == [name for name in names if name in ran]
    if not gate:
        assert ran == names
        assert outcome.decision is Decision.NONE
    if outcome.decision is Decision.BLOCK:
        assert outcome.reason
        assert ran[-1] == outcome.decided_by
        assert all(verdicts[name].status is Status.SKIPPED for name in names if name not in ran)
    else:
        assert outcome.reason is None
    for name in names:
        if name not in ran:
            assert verdicts[name].problem is not None


@given(st.lists(hooks(guarded=True), max_size=6), capabilities)
def test_a_guarded_plan_is_as_strict_as_its_strictest_hook(
    given_hooks: list[tuple[Planned, Reply]], accepts: frozenset[Capability]
) -> None:
    plan = unique(given_hooks)
    outcome, verdicts, ran = run(*plan, on=event(arguments={"x": 1}), accepts=accepts)

    expected = Decision.NONE
    for one, reply in plan:
        said = reply.decision
        if reply.failure is not None:
            said = Decision.BLOCK
        rewrites = reply.arguments is not None or reply.arguments_patch is not None
        if rewrites and Capability.ARGUMENTS not in accepts and RANK[said] < RANK[Decision.ASK]:
            said = Decision.ASK
        if said is Decision.ASK and Capability.ASK not in accepts:
            said = Decision.BLOCK
        if said is Decision.ALLOW and Capability.ALLOW not in accepts:
            said = Decision.NONE
        expected = max(expected, said, key=RANK.__getitem__)
        if said is Decision.BLOCK:
            assert ran[-1] == one.hook.name
            break
    assert outcome.decision is expected
    assert all(verdicts[name].status is not Status.SKIPPED for name in ran)


@given(st.lists(hooks(guarded=True), max_size=5), hooks(guarded=True), st.integers(0, 5), capabilities)
def test_one_more_guarded_hook_never_makes_a_guarded_plan_more_permissive(
    given_hooks: list[tuple[Planned, Reply]],
    more: tuple[Planned, Reply],
    at: int,
    accepts: frozenset[Capability],
) -> None:
    before = run(*unique(given_hooks), on=event(arguments={"x": 1}), accepts=accepts)[0].decision
    plan = unique([*given_hooks[:at], more, *given_hooks[at:]])
    after = run(*plan, on=event(arguments={"x": 1}), accepts=accepts)[0].decision

    # An allow says more than no decision, and no plan is stricter for being silent.
    assert RANK[after] >= RANK[before]


@given(st.lists(hooks(), min_size=1, max_size=6), capabilities)
def test_a_block_that_is_said_is_decided(
    given_hooks: list[tuple[Planned, Reply]], accepts: frozenset[Capability]
) -> None:
    outcome, verdicts, ran = run(*unique(given_hooks), on=event(arguments={"x": 1}), accepts=accepts)

    blocked = any(verdicts[name].decision is Decision.BLOCK for name in ran)
    assert blocked == (outcome.decision is Decision.BLOCK)


@given(st.lists(hooks(), max_size=6))
def test_contexts_are_those_of_the_hooks_that_ran_in_order(
    given_hooks: list[tuple[Planned, Reply]],
) -> None:
    plan = unique(
        [
            (one, msgspec.structs.replace(reply, contexts=(f"c{at}",)) if not reply.failure else reply)
            for at, (one, reply) in enumerate(given_hooks)
        ]
    )
    outcome, _, ran = run(*plan, on=event(arguments={"x": 1}))

    assert outcome.contexts == tuple(
        context for one, reply in plan if one.hook.name in ran for context in reply.contexts
    )


# ----------------------------------------------------------------------------------------------------------------------
# Chrys' own rules, and hooks that are not for the event as it is now


BAD_ANSWERS = [
    ProblemKind.MALFORMED_OUTPUT,
    ProblemKind.TRUNCATED_OUTPUT,
    ProblemKind.UNKNOWN_DECISION,
    ProblemKind.OVERSIZE_RESULT,
]


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_on_error_of_chrys_is_about_the_run_and_not_about_the_answer(kind: ProblemKind) -> None:
    chrys = {"contract": Contract.CHRYS, "on_error": OnError.BLOCK}
    client = {"contract": Contract.PROGRAMMATIC, "on_error": OnError.BLOCK}

    assert run((planned(**chrys), failed(kind)))[0].decision is Decision.NONE
    assert run((planned(guard=GUARD, **chrys), failed(kind)))[0].decision is Decision.BLOCK
    assert run((planned(**client), failed(kind)))[0].decision is Decision.BLOCK
    assert run((planned(**chrys), failed(ProblemKind.BUSY)))[0].decision is Decision.BLOCK


def test_a_failure_that_is_to_be_ignored_is_told_quietly() -> None:
    _, verdicts, _ = run(
        (planned("ignored", on_error=OnError.IGNORE), failed()),
        (planned("guarded", on_error=OnError.IGNORE, guard=GUARD), failed()),
    )

    assert (verdicts["ignored"].level, verdicts["guarded"].level) == (Level.INFO, Level.WARNING)
    assert verdicts["ignored"].problem is not None


def test_a_hook_that_is_left_out_is_as_if_it_were_not_there() -> None:
    first, second = (
        planned(
            "first", load_problem=ConfigProblem(severity=Severity.ERROR, path="", message="x"), guard=GUARD
        ),
        planned("second"),
    )
    fold = Fold(event(), [first, second], accepts=ALL)

    assert fold.coming is first
    fold.leave_out()
    assert fold.coming is second
    step = fold.next()
    assert step is not None
    assert (step.planned, step.verdict) == (second, None)
    assert fold.coming is None
    assert fold.outcome([], 7).decision is Decision.NONE
