"""What a Chrys hook is given: the payload's text, variables, placeholders, the working directory."""

from __future__ import annotations

import gc
import json
from typing import Any

import msgspec
import pytest

from hooksd.dialects.base import Caller, PayloadRefused, Places
from hooksd.dialects.chrys import CHRYS, Chrys
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import Contract, Hook, Scope, ShellCommand


PLACES = Places(workspace="/work", work_area="/area", daemon_cwd="/daemon", home="/home/u")


def event(
    native: str = "before_turn", *, workspace: str = "/work", profile: str = "Code", **fields: Any
) -> Event:
    caller = Caller(session_id="s-1", workspace_path=workspace, profile=profile, timestamp=1_800_000_000.9)
    return CHRYS.event(native, {**CHRYS.synthetic_payload(native, 0.0), **fields}, caller, background=False)


def hook(**changes: Any) -> Hook:
    made = Hook(
        name="chrys:user:chrys:my hook",
        dialect="chrys",
        contract=Contract.CHRYS,
        source="chrys",
        scope=Scope.USER,
        event=EventName.TURN_START,
        native_event="before_turn",
        handler=ShellCommand(command="true", shells=("/bin/sh",)),
        timeout_s=1.0,
        file="/home/u/.chrys/hooks/hooks.yaml",
        id="my hook",
    )
    return msgspec.structs.replace(made, **changes)


def payload(on: Event, cwd: str = "/cwd") -> dict[str, Any]:
    files = CHRYS.input(on, hook(), cwd, script_path=None).files
    assert files is not None
    return json.loads(files.payload)


def test_base_fields_come_first_and_are_filled_in() -> None:
    assert list(payload(event()).items()) == [
        ("schema", 1),
        ("event", "before_turn"),
        ("timestamp", "2027-01-15T08:00:00Z"),
        ("session_id", "s-1"),
        ("profile", "Code"),
        ("cwd", "/work"),
        ("turn", 1),
        ("user_text", "Lifecycle hook test"),
        ("is_retry", False),
    ]


def test_what_the_caller_says_counts_but_for_the_time() -> None:
    given = event(session_id=None, cwd="/there", timestamp="x", profile="", workflow_id="w")

    made = payload(given)

    assert (made["session_id"], made["cwd"], made["profile"], made["workflow_id"]) == (
        None,
        "/there",
        "",
        "w",
    )
    assert made["timestamp"] == "2027-01-15T08:00:00Z"


def test_without_a_workspace_the_directory_is_the_hooks() -> None:
    assert payload(event(workspace=""))["cwd"] == "/cwd"


def test_the_text_is_escaped_to_ascii() -> None:
    files = CHRYS.input(event(user_text="é日🙂\ud800"), hook(), "/", script_path=None).files

    assert files is not None
    assert files.payload.isascii()
    assert json.loads(files.payload)["user_text"] == "é日🙂\ud800"


def test_the_text_of_one_event_is_made_once() -> None:
    dialect = Chrys()
    given = event()

    first, second, other = (
        dialect.input(given, hook(), cwd, script_path=None).files for cwd in ("/a", "/a", "/b")
    )

    assert first is not None
    assert second is not None
    assert other is not None
    assert first.payload is second.payload
    assert first.payload == other.payload
    assert first.payload is not other.payload


def test_it_is_forgotten_with_its_event() -> None:
    dialect = Chrys()
    dialect.input(event(), hook(), "/", script_path=None)
    gc.collect()

    assert dialect._encoder._last is None


def test_what_is_nested_too_deeply_cannot_be_told() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    given = msgspec.structs.replace(event(), payload={"turn": deep})

    with pytest.raises(PayloadRefused, match="nested too deeply"):
        CHRYS.input(given, hook(), "/", script_path=None)


def test_the_contracts_variables() -> None:
    given = CHRYS.input(event(), hook(), "/", script_path=None)

    assert given.stdin is None
    assert dict(given.env) == {
        "PYTHONUTF8": "1",
        "PYTHONIOENCODING": "utf-8",
        "CHRYS_HOOK_ID": "my hook",
        "CHRYS_HOOK_EVENT": "before_turn",
    }
    assert given.without == {"PYTHONHOME", "PYTHONPATH"}
    assert given.files is not None
    assert (given.files.payload_variable, given.files.answer_variable) == (
        "CHRYS_HOOK_PAYLOAD_FILE",
        "CHRYS_HOOK_RESULT",
    )


def filled(text: str, on: Event | None = None, places: Places = PLACES, **changes: Any) -> str:
    made = hook(env=(("A", text),), **changes)
    return dict(CHRYS.own_environment(on or event(), made, places))["A"]


def test_placeholders_in_variables_are_filled_in() -> None:
    text = "${workspace_cwd} ${chrys_home} ${session_id} ${profile}"

    assert filled(text) == "/work /home/u/.chrys s-1 Code"


@pytest.mark.parametrize("text", ["$PROFILE", "${Profile}", "${other}", "~", "$${profile", "{profile}"])
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert filled(text) == text


def test_what_a_placeholder_puts_in_is_looked_at_by_the_next_ones_only() -> None:
    assert filled("${workspace_cwd}", event(workspace="/w/${profile}", cwd="/w/${profile}")) == "/w/Code"
    assert filled("${profile}", event(profile="${session_id}")) == "${session_id}"


def test_what_is_not_there_is_empty() -> None:
    assert filled("<${session_id}|${profile}>", event(session_id=None, profile="")) == "<|>"


@pytest.mark.parametrize(
    ("file", "scope", "home"),
    [
        ("/home/u/.chrys/hooks/hooks.yaml", Scope.USER, "/home/u/.chrys"),
        ("/etc/team/hooks.yaml", Scope.MANAGED, "/etc/team"),
        ("/work/.chrys/hooks/hooks.yaml", Scope.PROJECT, "/home/u/.chrys"),
    ],
)
def test_the_home_of_chrys(file: str, scope: Scope, home: str) -> None:
    assert filled("${chrys_home}", file=file, scope=scope) == home


@pytest.mark.parametrize(
    ("cwd", "fields", "places", "expected"),
    [
        (None, {}, PLACES, "/work"),
        (None, {"cwd": "/there"}, PLACES, "/there"),
        (None, {"cwd": "/there"}, msgspec.structs.replace(PLACES, cwd="/now"), "/now"),
        (None, {}, msgspec.structs.replace(PLACES, workspace=""), "/daemon"),
        ("/own", {}, PLACES, "/own"),
        ("sub", {}, PLACES, "/work/sub"),
        ("${chrys_home}/x", {}, PLACES, "/home/u/.chrys/x"),
        ("${workspace_cwd}/x", {"cwd": "/there"}, PLACES, "/there/x"),
    ],
)
def test_where_a_hook_runs(cwd: str | None, fields: dict[str, Any], places: Places, expected: str) -> None:
    assert CHRYS.working_directory(event(**fields), hook(cwd=cwd), places) == expected


def test_the_envelope_of_a_programmatic_hook_is_the_same_object() -> None:
    given = event()

    assert CHRYS.envelope(given, "/cwd") == payload(given)
