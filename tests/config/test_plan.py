from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, strategies as st

from hooksd.config.layer import LoadedSource
from hooksd.config.plan import MATCHED, MAX_REMEMBERED_NAME, MAX_REMEMBERED_NAMES, Plan, plan_hook
from hooksd.config.settings import GuardSettings, Settings
from hooksd.config.snapshot import Snapshot
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import ArgumentTest, GuardAction, Hook, Mode, Scope, ToolFilter


MakeHook = Callable[..., Hook]
MakeEvent = Callable[..., Event]
Load = Callable[..., LoadedSource]
SnapshotOf = Callable[..., Snapshot]

BEFORE = EventName.TOOL_BEFORE


def names(planned: tuple[object, ...]) -> list[str]:
    return [one.hook.name.rpartition(":")[2] for one in planned]  # type: ignore[attr-defined]


def test_a_plan_without_hooks_selects_nothing(make_event: MakeEvent) -> None:
    plan = Plan([])

    assert plan.select(make_event()) == plan.select(make_event()) == ()
    assert plan.hooks == ()
    assert plan.explain(make_event()) == ()
    assert plan.missing == ()


def test_hooks_that_match_run_in_order_and_background_ones_last(
    make_hook: MakeHook, make_event: MakeEvent, load: Load, snapshot_of: SnapshotOf
) -> None:
    source = load(
        make_hook("late", mode=Mode.ASYNC),
        make_hook("a", "^Bash$"),
        make_hook("later", "B", mode=Mode.DETACHED),
        make_hook("b", "^(Edit|Bash)$"),
        make_hook("other", "^Edit$"),
        make_hook("c"),
    )

    plan = snapshot_of([source]).plan("bamboo", BEFORE)

    assert names(plan.select(make_event("Bash"))) == ["a", "b", "c", "late", "later"]
    assert names(plan.select(make_event("Edit"))) == ["b", "other", "c", "late"]
    assert names(plan.select(make_event(None))) == ["a", "b", "other", "c", "late", "later"]
    assert names(plan.hooks) == ["a", "b", "other", "c", "late", "later"]
    assert plan.hooks is plan.hooks


def test_a_selection_is_remembered_for_names_that_agents_have(
    make_hook: MakeHook, make_event: MakeEvent, load: Load, snapshot_of: SnapshotOf
) -> None:
    plan = snapshot_of([load(make_hook("a", "x"), make_hook("b"))]).plan("bamboo", BEFORE)
    first = plan.select(make_event("x"))

    assert plan.select(make_event("x")) is first
    for number in range(MAX_REMEMBERED_NAMES):
        assert names(plan.select(make_event(str(number)))) == ["b"]
    assert len(plan._gated) <= MAX_REMEMBERED_NAMES
    assert plan.select(make_event("x")) == first

    endless = "x" * (MAX_REMEMBERED_NAME + 1)
    assert names(plan.select(make_event(endless))) == ["a", "b"]
    assert endless not in plan._gated


def test_what_the_name_decides_is_decided_by_the_selection(
    make_hook: MakeHook, make_event: MakeEvent, load: Load, snapshot_of: SnapshotOf
) -> None:
    plan = snapshot_of([load(make_hook("a", "^Bash$"), make_hook("b"))]).plan("bamboo", BEFORE)

    assert [planned.matches(make_event()) for planned in plan.select(make_event())] == [MATCHED, MATCHED]


def test_a_rule_that_nobody_taught_the_plan_is_no_silent_match(make_hook: MakeHook) -> None:
    with pytest.raises(AssertionError):
        plan_hook(msgspec.structs.replace(make_hook("a"), match=object()))


def test_a_hook_that_did_not_load_is_planned_only_where_a_guard_minds(
    make_hook: MakeHook, make_event: MakeEvent, load: Load, snapshot_of: SnapshotOf
) -> None:
    source = load(
        make_hook("gone", fault="no"), make_hook("off", inactive="its group is off"), make_hook("good")
    )
    every_gate = Settings(guard=(GuardSettings(hooks="*"),))
    by_name = Settings(guard=(GuardSettings(hooks="*:gone", events=("tool.before",)),))
    another = Settings(guard=(GuardSettings(hooks="*:gone", events=("tool.after",)),))

    def selected(settings: Settings, *, gate: bool) -> list[tuple[str, bool]]:
        plan = snapshot_of([source], settings=settings).plan("bamboo", BEFORE)
        return [
            (planned.hook.path, planned.guard is not None) for planned in plan.select(make_event(gate=gate))
        ]

    assert selected(Settings(), gate=True) == [("good", False)]
    assert selected(every_gate, gate=True) == [("gone", True), ("good", True)]
    assert selected(every_gate, gate=False) == [("good", False)]
    assert selected(by_name, gate=True) == selected(by_name, gate=False) == [("gone", True), ("good", False)]
    assert selected(another, gate=True) == [("good", False)]


def test_a_hook_whose_pattern_the_engine_refuses_fails_where_it_is_guarded(
    make_hook: MakeHook, make_event: MakeEvent, load: Load, snapshot_of: SnapshotOf
) -> None:
    source = load(make_hook("bad", "["), make_hook("worse", "[", fault="its own words"), make_hook("good"))
    guarded = Settings(guard=(GuardSettings(hooks="*"),))

    snapshot = snapshot_of([source], settings=guarded)
    bad, worse, good = snapshot.plan("bamboo", BEFORE).select(make_event("anything"))

    assert bad.hook.load_problem is not None
    assert "cannot be compiled" in bad.hook.load_problem.message
    assert worse.hook.load_problem is not None
    assert worse.hook.load_problem.message == "its own words"
    assert good.hook.load_problem is None
    (report,) = snapshot.sources
    assert report.problems == (bad.hook.load_problem,)
    assert report.hooks == 1
    assert names(snapshot_of([source]).plan("bamboo", BEFORE).select(make_event("x"))) == ["good"]


def test_explain_tells_every_hook_of_the_event_and_why_it_does_not_run(
    make_hook: MakeHook, make_event: MakeEvent, load: Load, snapshot_of: SnapshotOf
) -> None:
    sources = [
        load(
            make_hook("edit", "^Edit$"),
            make_hook("off", "x", inactive="its group has `enabled` false"),
            make_hook("gone", fault="no such thing"),
            make_hook("late", mode=Mode.ASYNC),
            make_hook("runs", "Bash"),
            make_hook("elsewhere", event=EventName.SESSION_END),
        ),
        load(make_hook("foreign", source="chrys"), name="chrys", agents=("chrys", "codex")),
    ]

    explained = snapshot_of(sources).plan("bamboo", BEFORE).explain(make_event("Bash"))

    assert [(hook.path, why) for hook, why in explained] == [
        ("runs", None),
        ("late", None),
        ("edit", "its matcher '^Edit$' does not match the tool name 'Bash'"),
        ("off", "its group has `enabled` false"),
        ("gone", "it did not load: x: no such thing"),
        ("foreign", "its source chrys applies to chrys, codex, not to bamboo"),
    ]


def test_explain_tells_two_hooks_of_one_name_apart(
    make_hook: MakeHook, make_event: MakeEvent, snapshot_of: SnapshotOf
) -> None:
    twins = (make_hook("same", "^Bash$", priority=1), make_hook("same", "^Edit$", priority=1))

    explained = snapshot_of(programmatic=twins).plan("bamboo", BEFORE).explain(make_event("Bash"))

    assert [(hook.match, why is None) for hook, why in explained] == [
        (twins[0].match, True),
        (twins[1].match, False),
    ]


def test_the_guards_of_a_plan_are_those_that_apply(
    make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf
) -> None:
    settings = Settings(
        guard=(
            GuardSettings(hooks="*:a"),
            GuardSettings(hooks="*:b", events=("tool.before",), on_failure=GuardAction.WARN),
        )
    )
    snapshot = snapshot_of(
        [load(make_hook("a"), make_hook("b"), make_hook("a2"), make_hook("c"))], settings=settings
    )
    plan = snapshot.plan("bamboo", BEFORE)

    assert plan.guards(gate=True) == snapshot.guards
    assert plan.guards(gate=False) == snapshot.guards[1:]


# ----------------------------------------------------------------------------------------------------------------------
# The order of a plan, for any configuration

groups = st.sampled_from(["client-low", "managed", "project", "user", "client-high"])
configured = st.tuples(
    groups,
    st.sampled_from(["", "^Bash$", "^Edit$"]),
    st.booleans(),
    st.sampled_from(["*", "bamboo", "chrys"]),
)


@pytest.mark.parametrize("agent", ["bamboo", "chrys"])
@given(rows=st.lists(configured, max_size=14), priorities=st.randoms(use_true_random=False))
def test_the_order_of_a_plan(
    make_hook: MakeHook,
    make_event: MakeEvent,
    load: Load,
    snapshot_of: SnapshotOf,
    agent: str,
    rows: list[tuple[str, str, bool, str]],
    priorities: object,
) -> None:
    """Programmatic ones up to 100, managed, project, user, programmatic above 100; the background after all of them."""
    order = ["client-low", "managed", "project", "user", "client-high"]
    base: list[LoadedSource] = []
    project: list[LoadedSource] = []
    clients: list[Hook] = []
    expected: list[tuple[bool, int, int, int, str]] = []
    for number, (group, pattern, background, applies_to) in enumerate(rows):
        priority = None
        if group.startswith("client"):
            low = group == "client-low"
            priority = priorities.randint(0, 100) if low else priorities.randint(101, 200)  # type: ignore[attr-defined]
        hook = make_hook(
            str(number), pattern, mode=Mode.ASYNC if background else Mode.BLOCKING, priority=priority
        )
        if priority is not None:
            clients.append(hook)
        else:
            layer = project if group == "project" else base
            layer.append(load(hook, name=str(number), scope=Scope(group), agents=(applies_to,)))
            if applies_to not in ("*", agent):
                continue
        if pattern != "^Edit$":
            expected.append((background, order.index(group), priority or 0, number, hook.name))

    snapshot = snapshot_of(base, project, programmatic=tuple(clients))

    selected = snapshot.plan(agent, BEFORE).select(make_event("Bash"))
    assert [planned.hook.name for planned in selected] == [row[-1] for row in sorted(expected)]


def test_conditions_of_a_hook_are_asked_against_the_event_as_it_is(
    make_hook: MakeHook, make_event: MakeEvent, load: Load, snapshot_of: SnapshotOf
) -> None:
    rule = ToolFilter(tool_name="Bash", args=(ArgumentTest(name="command", contains="rm"),))
    hook = msgspec.structs.replace(make_hook("a"), match=rule)
    plan = snapshot_of([load(hook)]).plan("bamboo", BEFORE)
    harmless = msgspec.structs.replace(make_event("Bash"), tool_arguments={"command": "ls"})

    (planned,) = plan.select(harmless)

    assert not planned.matches(harmless).matched
    assert planned.matches(msgspec.structs.replace(harmless, tool_arguments={"command": "rm x"})).matched
    assert plan.select(make_event("bash")) == ()
    assert plan.select(make_event("(Bash)")) == ()
    assert [why for _, why in plan.explain(make_event("bash"))] == ["the tool is not 'Bash'"]


def test_a_hook_hears_what_else_an_event_of_another_dialect_is(
    make_hook: MakeHook, make_event: MakeEvent, load: Load, snapshot_of: SnapshotOf
) -> None:
    after, error = EventName.TOOL_AFTER, EventName.TOOL_ERROR
    hooks = [
        msgspec.structs.replace(make_hook(name, event=name_of), dialect="chrys", source="shared")
        for name, name_of in (("error", error), ("after", after))
    ]
    loaded = load(*hooks, name="shared", agents=("*",))
    loaded = msgspec.structs.replace(loaded, source=msgspec.structs.replace(loaded.source, dialect="chrys"))
    plan = snapshot_of([loaded]).plan("bamboo", after)
    event = make_event("Bash", name=after)
    failed = msgspec.structs.replace(event, also=(error,))

    def heard(on: Event) -> list[str]:
        return [planned.hook.path for planned in plan.select(on) if planned.matches(on).matched]

    assert heard(event) == ["after"]
    assert heard(failed) == ["after", "error"]
    assert heard(msgspec.structs.replace(failed, agent="chrys")) == ["after"]
    assert names(snapshot_of([loaded]).plan("chrys", after).select(event)) == ["after"]
