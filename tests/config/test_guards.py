from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hooksd.config.guards import MAX_SUGGESTED_FROM, Policy, event_names
from hooksd.config.settings import GuardSettings, SerialSettings, Settings
from hooksd.config.settings_file import read_settings
from hooksd.model.events import EventName
from hooksd.model.hooks import GuardAction


BEFORE, AFTER, END = EventName.TOOL_BEFORE, EventName.TOOL_AFTER, EventName.SESSION_END


def test_events_are_named_in_dotted_or_native_words() -> None:
    dialects: Any = {
        "one": SimpleNamespace(events={"Stop": EventName.TURN_FINISH, "Old": AFTER}),
        "two": SimpleNamespace(events={"Stop": EventName.TURN_END, "New": AFTER}),
    }

    assert event_names("tool.before", {}) == {BEFORE}
    assert event_names("Old", dialects) == event_names("New", dialects) == {AFTER}
    assert event_names("Stop", dialects) == {EventName.TURN_FINISH, EventName.TURN_END}
    assert event_names("stop", dialects) == event_names("", dialects) == set()
    assert event_names("PreToolUse") == {BEFORE}


@pytest.mark.parametrize(
    ("guards", "gate", "strictest"),
    [
        ([], True, None),
        ([GuardSettings(hooks="*:x")], True, None),
        ([GuardSettings(hooks="*")], True, 0),
        ([GuardSettings(hooks="*")], False, None),
        ([GuardSettings(hooks="*", events=("tool.before",))], True, 0),
        ([GuardSettings(hooks="*", events=("tool.before",))], False, 0),
        ([GuardSettings(hooks="*", events=("tool.after",))], True, None),
        ([GuardSettings(hooks="*"), GuardSettings(hooks="*:a")], True, 0),
        ([GuardSettings(hooks="*", on_failure=GuardAction.WARN), GuardSettings(hooks="*:a")], True, 1),
        ([GuardSettings(hooks="*", on_failure=GuardAction.WARN)], True, 0),
        (
            [
                GuardSettings(hooks="*"),
                GuardSettings(hooks="*", events=("PreToolUse",), on_failure=GuardAction.WARN),
            ],
            False,
            1,
        ),
    ],
)
def test_the_strictest_guard_that_applies(
    guards: list[GuardSettings], gate: bool, strictest: int | None
) -> None:
    policy = Policy(Settings(guard=tuple(guards)))

    found = policy.strictest(policy.fitting("bamboo:user:bamboo:a"), BEFORE, gate=gate)

    assert found is (None if strictest is None else policy.guards[strictest])


def test_serial_patterns_are_no_guards() -> None:
    policy = Policy(
        Settings(guard=(GuardSettings(hooks="*:a"),), serial=SerialSettings(hooks=("*:b", "*:c")))
    )

    serial = [policy.treatment(policy.fitting(f"x:{name}"), BEFORE).serial for name in "abcd"]
    assert serial == [False, True, True, False]
    assert policy.strictest(policy.fitting("x:b"), BEFORE, gate=True) is None


@pytest.mark.parametrize(
    ("guard", "answered", "message"),
    [
        (GuardSettings(hooks="*:a"), {BEFORE, END}, None),
        (
            GuardSettings(hooks="*:a"),
            {END},
            "'*:a' fits only hooks of session.end, where nothing can be stopped",
        ),
        (GuardSettings(hooks="*:a", events=("SessionEnd",)), {END}, None),
        (GuardSettings(hooks="*:a", events=("SessionEnd", "tool.after")), {END}, None),
        (
            GuardSettings(hooks="*:a", events=("tool.after",)),
            {BEFORE},
            "no hook for tool.after has a name that fits '*:a'",
        ),
        (GuardSettings(hooks="*:a"), set(), "no hook has a name that fits '*:a'"),
    ],
)
def test_a_guard_without_effect_is_a_problem(
    guard: GuardSettings, answered: set[EventName], message: str | None
) -> None:
    problems = Policy(Settings(guard=(guard,))).problems([answered], ())

    assert [problem.message for problem in problems] == ([] if message is None else [message])


def test_problems_have_file_and_line() -> None:
    document = read_settings(b'[[guard]]\n\nhooks = "*:a"\n[serial]\nhooks = [\n"b",\n]\n')
    assert document.settings is not None
    policy = Policy(document.settings, file="/etc/hooksd.toml", lines=document.lines)

    first, second = policy.problems([set(), set()], iter(()))

    assert first.describe().startswith(
        "/etc/hooksd.toml:3: guard[0].hooks: no hook has a name that fits '*:a' (a full"
    )
    assert second.describe().startswith("/etc/hooksd.toml:6: serial.hooks[0]: no hook")


def test_a_suggestion_looks_at_so_many_names() -> None:
    policy = Policy(Settings(guard=(GuardSettings(hooks="nearly"),)))
    far = ["x"] * MAX_SUGGESTED_FROM

    (near,) = policy.problems([set()], ["nearl"])
    (none,) = policy.problems([set()], [*far, "nearl"])

    assert near.hint == "did you mean nearl?"
    assert none.hint is not None
    assert "full name" in none.hint
    assert policy.problems([{BEFORE}], _unread()) == ()


def _unread() -> Any:
    raise AssertionError("names are not looked at when nothing is wrong")
    yield


def test_digests_tell_settings_apart_and_what_hooks_depend_on() -> None:
    plain, same = Policy(Settings()), Policy(Settings())
    guarded = Policy(Settings(guard=(GuardSettings(hooks="*"),)))

    assert plain.digest == same.digest != guarded.digest
    assert plain.rules_digest == same.rules_digest != guarded.rules_digest
