from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import pytest

from hooksd.config.guards import Policy
from hooksd.config.layer import Layer, LayerCompiler, LoadedSource
from hooksd.config.settings import EnvSettings, GuardSettings, Limits, SerialSettings, Settings
from hooksd.config.snapshot import Snapshot, SnapshotTable
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import Guard, GuardAction, Hook, Scope
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import Document, DocumentSettings


MakeHook = Callable[..., Hook]
MakeEvent = Callable[..., Event]
Load = Callable[..., LoadedSource]
SnapshotOf = Callable[..., Snapshot]

BEFORE, AFTER = EventName.TOOL_BEFORE, EventName.TOOL_AFTER


@pytest.fixture
def base(make_hook: MakeHook, load: Load) -> Layer:
    return LayerCompiler().compile([load(make_hook("a"))], Policy(Settings()))


def test_equal_snapshots_are_one_object(base: Layer, make_hook: MakeHook, load: Load) -> None:
    table, policy = SnapshotTable(), Policy(Settings())
    project = LayerCompiler().compile([load(make_hook("p"), scope=Scope.PROJECT)], policy)
    problem = ConfigProblem(severity=Severity.WARNING, path="", message="it does not stand still")
    clients = (make_hook("c", priority=5),)

    snapshot = table.get(revision=1, policy=policy, base=base)

    assert table.get(revision=1, policy=policy, base=base) is snapshot
    others = [
        table.get(revision=2, policy=policy, base=base),
        table.get(revision=1, policy=Policy(Settings(limits=Limits(max_depth=3))), base=base),
        table.get(revision=1, policy=policy, base=base, project=project),
        table.get(revision=1, policy=policy, base=base, programmatic=clients),
        table.get(revision=1, policy=policy, base=base, problems=(problem,)),
        table.get(revision=1, policy=policy, base=base, hooks_may_run=False),
    ]
    assert len({id(one) for one in (snapshot, *others)}) == 7
    # The revision and passing problems are not part of the configuration.
    assert [one.digest == snapshot.digest for one in others] == [True, False, False, False, True, True]
    assert [one.hooks_may_run for one in others] == [True, True, True, True, True, False]
    assert (
        table.get(revision=1, policy=policy, base=base, programmatic=(make_hook("c", priority=5),))
        is others[3]
    )
    assert others[0].revision == 2
    assert others[1].settings.limits.max_depth == 3
    assert others[4].problems == (problem,)
    assert [report.scope for report in others[2].sources] == [Scope.USER, Scope.PROJECT]


def test_a_snapshot_goes_with_the_last_that_holds_it(base: Layer) -> None:
    table = SnapshotTable()
    table.get(revision=1, policy=Policy(Settings()), base=base)
    gc.collect()

    assert not table._snapshots


def test_threads_share(base: Layer) -> None:
    table, policy = SnapshotTable(), Policy(Settings())
    found: list[Snapshot] = []
    threads = [
        threading.Thread(target=lambda: found.append(table.get(revision=1, policy=policy, base=base)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_a_plan_is_composed_once(make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf) -> None:
    snapshot = snapshot_of([load(make_hook("a"))])

    assert snapshot.plan("bamboo", BEFORE) is snapshot.plan("bamboo", BEFORE)
    assert snapshot.plan("bamboo", AFTER).hooks == ()
    assert snapshot.plan("chrys", BEFORE).hooks == ()


def test_a_compiled_source_is_shared_by_snapshots_and_their_plans(
    make_hook: MakeHook, make_event: MakeEvent, load: Load
) -> None:
    compiler, policy, table = LayerCompiler(), Policy(Settings()), SnapshotTable()
    base = compiler.compile([load(make_hook("a"))], policy)
    project = compiler.compile([load(make_hook("p"), name="project-bamboo", scope=Scope.PROJECT)], policy)

    alone = table.get(revision=1, policy=policy, base=base)
    within = table.get(revision=1, policy=policy, base=base, project=project)

    (shared,) = alone.plan("bamboo", BEFORE).select(make_event())
    assert [planned.hook.path for planned in within.plan("bamboo", BEFORE).select(make_event())] == ["p", "a"]
    assert within.plan("bamboo", BEFORE).select(make_event())[1] is shared


def test_programmatic_hooks_are_for_every_agent(make_hook: MakeHook, snapshot_of: SnapshotOf) -> None:
    clients = (make_hook("b", priority=100), make_hook("z", priority=101), make_hook("a", priority=100))

    plan = snapshot_of(programmatic=clients).plan("gemini", BEFORE)

    assert [planned.hook.path for planned in plan.hooks] == ["b", "a", "z"]


def test_only_programmatic_hooks_have_a_priority(base: Layer, make_hook: MakeHook) -> None:
    with pytest.raises(TypeError, match="no programmatic hook"):
        SnapshotTable().get(revision=1, policy=Policy(Settings()), base=base, programmatic=(make_hook("a"),))


# ----------------------------------------------------------------------------------------------------------------------
# Guards and other rules that no hook answers to


def told(snapshot: Snapshot) -> list[tuple[str, str, str]]:
    return [(problem.severity, problem.path, problem.message) for problem in snapshot.problems]


def test_a_guard_that_fits_no_hook_is_a_problem(
    make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf
) -> None:
    settings = Settings(guard=(GuardSettings(hooks="bamboo:user:bambo:a"), GuardSettings(hooks="bamboo:*")))

    snapshot = snapshot_of([load(make_hook("a"))], settings=settings)

    (problem,) = snapshot.problems
    assert problem.severity is Severity.WARNING
    assert problem.path == "guard[0].hooks"
    assert problem.message == "no hook has a name that fits 'bamboo:user:bambo:a'"
    assert problem.hint == "did you mean bamboo:user:bamboo:a?"
    assert snapshot.plan("bamboo", BEFORE).missing == ()


def test_a_guard_can_block_the_events_that_no_hook_answers_to(
    make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf
) -> None:
    block = GuardAction.BLOCK
    settings = Settings(
        guard=(
            GuardSettings(hooks="*:none", events=("PreToolUse", "tool.after"), on_missing=block),
            GuardSettings(hooks="*:a", events=("tool.before", "tool.after"), on_missing=block),
            GuardSettings(hooks="*:off", events=("tool.before",), on_missing=block),
            GuardSettings(hooks="*:none", events=("tool.before",)),
        )
    )
    hooks = [make_hook("a"), make_hook("off", inactive="off")]

    snapshot = snapshot_of([load(*hooks, agents=("chrys",))], settings=settings)

    none, only_before = snapshot.guards[0], snapshot.guards[1]
    # A hook that its owner switched off, or that is another agent's, is there: it is not missing.
    assert snapshot.plan("bamboo", BEFORE).missing == snapshot.plan("chrys", BEFORE).missing == (none,)
    assert snapshot.plan("bamboo", AFTER).missing == (none, only_before)
    assert snapshot.plan("bamboo", EventName.SESSION_END).missing == ()
    assert told(snapshot) == [
        (
            "error",
            "guard[0].hooks",
            "no hook for tool.after, tool.before has a name that fits '*:none': blocked (on_missing = \"block\")",
        ),
        (
            "error",
            "guard[1].hooks",
            "no hook for tool.after has a name that fits '*:a': blocked (on_missing = \"block\")",
        ),
        ("warning", "guard[3].hooks", "no hook for tool.before has a name that fits '*:none'"),
    ]


def test_hooks_of_projects_and_clients_answer_too(
    make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf
) -> None:
    settings = Settings(guard=(GuardSettings(hooks="*:p"), GuardSettings(hooks="programmatic:*:c")))
    project = [load(make_hook("p", scope=Scope.PROJECT), name="project-bamboo", scope=Scope.PROJECT)]
    clients = (make_hook("c", scope=Scope.CLIENT, priority=1),)

    snapshot = snapshot_of([], project, settings=settings, programmatic=clients)

    assert snapshot.problems == ()
    assert [planned.guard for planned in snapshot.plan("bamboo", BEFORE).hooks] == [
        Guard(hooks="programmatic:*:c"),
        Guard(hooks="*:p"),
    ]


def test_serial_and_allowed_names_that_fit_no_hook_are_problems(
    make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf
) -> None:
    settings = Settings(
        serial=SerialSettings(hooks=("*:a", "*:none")),
        env=EnvSettings(allow_for={"bamboo:user:bamboo:a": ("X",), "chrys:user:chrys:deploy": ("X",)}),
    )

    snapshot = snapshot_of([load(make_hook("a"), make_hook("b"))], settings=settings)

    assert told(snapshot) == [
        ("warning", "serial.hooks[1]", "no hook has a name that fits '*:none'"),
        (
            "warning",
            'env.allow_for["chrys:user:chrys:deploy"]',
            "no hook has a name that fits 'chrys:user:chrys:deploy'",
        ),
    ]
    assert [planned.serial for planned in snapshot.plan("bamboo", BEFORE).hooks] == [True, False]


def test_what_documents_say_about_a_hook(make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf) -> None:
    mine = make_hook("mine")
    theirs = make_hook("theirs", source="project-bamboo", scope=Scope.PROJECT)

    def document(hook: Hook, **said: float) -> Document:
        return Document(hooks=(hook,), problems=(), settings=DocumentSettings(**said))

    snapshot = snapshot_of(
        [load(document=document(mine, shutdown_grace_s=9.0, outbox_max_retries=7), content_digest="a")],
        [
            load(
                name="project-bamboo",
                scope=Scope.PROJECT,
                document=document(theirs, outbox_max_retries=1),
                content_digest="b",
            )
        ],
    )

    assert snapshot.document_settings(mine) == DocumentSettings(shutdown_grace_s=9.0, outbox_max_retries=7)
    assert snapshot.document_settings(theirs) == DocumentSettings(shutdown_grace_s=9.0, outbox_max_retries=1)
    assert snapshot.document_settings(make_hook("x", source="unknown")) == DocumentSettings()
