from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hooksd.config.guards_file import guards_json
from hooksd.config.layer import LoadedSource
from hooksd.config.settings import GuardSettings, Settings
from hooksd.config.snapshot import Snapshot
from hooksd.dialects import DIALECTS
from hooksd.model.events import EventName
from hooksd.model.hooks import GuardAction, Hook


MakeHook = Callable[..., Hook]
Load = Callable[..., LoadedSource]
SnapshotOf = Callable[..., Snapshot]

BAMBOO = {"bamboo": DIALECTS["bamboo"]}


def content(snapshot: Snapshot) -> Any:
    return json.loads(guards_json(snapshot, BAMBOO))


def test_nothing_is_guarded_without_guards(make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf) -> None:
    assert content(snapshot_of([load(make_hook("a"))])) == {"version": 1, "agents": {}}


def test_guarded_gates_are_named_in_both_words(
    make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf
) -> None:
    settings = Settings(
        guard=(
            GuardSettings(hooks="*:a"),
            GuardSettings(hooks="*:end"),
            GuardSettings(hooks="*:a*", on_failure=GuardAction.WARN),
            GuardSettings(hooks="*:b"),
        )
    )
    hooks = [make_hook("a"), make_hook("b"), make_hook("end", event=EventName.SESSION_END)]

    snapshot = snapshot_of([load(*hooks)], settings=settings)

    guards = [{"hooks": "*:a"}, {"hooks": "*:b"}]
    # The end of a session is no gate: a guard of all gates says nothing about it.
    assert content(snapshot) == {
        "version": 1,
        "agents": {"bamboo": {"PreToolUse": guards, "tool.before": guards}},
    }
    assert guards_json(snapshot, BAMBOO) == guards_json(snapshot, BAMBOO)


def test_an_observer_is_guarded_where_a_guard_names_it(
    make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf
) -> None:
    settings = Settings(guard=(GuardSettings(hooks="*", events=("SessionEnd",)),))

    snapshot = snapshot_of([load(make_hook("end", event=EventName.SESSION_END))], settings=settings)

    assert set(content(snapshot)["agents"]["bamboo"]) == {"SessionEnd", "session.end"}


def test_a_guard_against_missing_hooks_counts_whether_or_not_one_is_there(
    make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf
) -> None:
    guard = GuardSettings(
        hooks="*:a", events=("tool.before",), on_failure=GuardAction.WARN, on_missing=GuardAction.BLOCK
    )
    settings = Settings(guard=(guard,))

    for sources in ([], [load(make_hook("a"))]):
        assert content(snapshot_of(sources, settings=settings))["agents"] == {
            "bamboo": {"PreToolUse": [{"hooks": "*:a"}], "tool.before": [{"hooks": "*:a"}]}
        }


def test_hooks_that_never_run_for_an_agent_guard_nothing(
    make_hook: MakeHook, load: Load, snapshot_of: SnapshotOf
) -> None:
    settings = Settings(guard=(GuardSettings(hooks="*"),))
    off = load(make_hook("off", inactive="off"))
    foreign = load(make_hook("foreign"), name="other", agents=("chrys",))
    broken = load(make_hook("broken", fault="no"))

    assert content(snapshot_of([off, foreign], settings=settings))["agents"] == {}
    assert set(content(snapshot_of([broken], settings=settings))["agents"]) == {"bamboo"}
