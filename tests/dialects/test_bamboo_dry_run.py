"""`hook/test` of a handler written nowhere; the numbers are those of the reference's own cases (Bamboo dialect 8)."""

from __future__ import annotations

from typing import Any

import pytest

from hooksd.dialects.bamboo import Bamboo
from hooksd.dialects.base import PayloadRefused
from hooksd.model.events import EventName
from hooksd.model.hooks import NamePattern, Scope, Script, ShellCommand


def refused(bamboo: Bamboo, params: dict[str, Any]) -> list[str]:
    with pytest.raises(PayloadRefused) as caught:
        bamboo.dry_run(params)
    return [problem.path for problem in caught.value.problems]


def test_case_60_a_command(bamboo: Bamboo) -> None:
    run = bamboo.dry_run({"event": "PreToolUse", "command": "echo $BAMBOO_HOOK_EVENT; exit 7"})
    assert run.event == "PreToolUse"
    assert run.hook.handler == ShellCommand(command="echo $BAMBOO_HOOK_EVENT; exit 7", shells=("bash", "sh"))
    assert (run.hook.name, run.hook.scope) == ("bamboo:client:hook-test:PreToolUse", Scope.CLIENT)
    assert (run.hook.event, run.hook.native_event) == (EventName.TOOL_BEFORE, "PreToolUse")
    assert (run.hook.match, run.hook.timeout_s) == (None, 60.0)


def test_case_62_a_script(bamboo: Bamboo) -> None:
    run = bamboo.dry_run(
        {
            "event": "tool.before",
            "type": "script",
            "path": " a.js ",
            "runner": "bun",
            "matcher": "^Bash$",
            "timeout_ms": 25,
            "payload": {"tool_name": "Bash"},
            "command": None,
        }
    )
    assert run.event == "PreToolUse"
    assert run.hook.handler == Script(path="a.js", runtimes=(("bun", "run"),))
    assert run.hook.match == NamePattern(pattern="^Bash$")
    assert run.hook.timeout_s == 0.025


@pytest.mark.parametrize("native", list(Bamboo.events))
def test_every_event(bamboo: Bamboo, native: str) -> None:
    assert bamboo.dry_run({"event": native, "command": "true"}).hook.native_event == native


@pytest.mark.parametrize(
    ("params", "paths"),
    [
        pytest.param({"event": "PreToolUze", "command": "x"}, ["params.event"], id="case_61_unknown_event"),
        pytest.param({"command": "x"}, ["params.event"], id="no_event"),
        pytest.param(
            {"event": "Stop", "command": "x", "timeout_ms": 0}, ["params.timeout_ms"], id="timeout_0"
        ),
        pytest.param(
            {"event": "Stop", "command": "x", "timeout_ms": 600_001}, ["params.timeout_ms"], id="timeout_max"
        ),
        pytest.param(
            {"event": "Stop", "command": "x", "timeout_ms": 1.5}, ["params.timeout_ms"], id="timeout_float"
        ),
        pytest.param({"event": "Stop", "command": "x", "matcher": "*"}, ["params.matcher"], id="matcher"),
        pytest.param({"event": "Stop"}, ["params.command"], id="no_command"),
        pytest.param({"event": "Stop", "command": " "}, ["params.command"], id="blank_command"),
        pytest.param({"event": "Stop", "command": "\0"}, ["params.command"], id="nul_command"),
        pytest.param({"event": "Stop", "type": "script"}, ["params.path"], id="no_path"),
        pytest.param({"event": "Stop", "type": "script", "path": "a.rb"}, ["params.path"], id="extension"),
        pytest.param(
            {"event": "Stop", "type": "script", "path": "a.py", "runner": "node"},
            ["params.runner"],
            id="runner",
        ),
        pytest.param({"event": "Stop", "type": "shell", "command": "x"}, ["params.type"], id="type"),
        pytest.param(
            {"event": "Stop", "command": "x", "runner": "deno"}, ["params.runner"], id="unknown_runner"
        ),
        pytest.param({"event": "Stop", "command": "x", "payload": []}, ["params.payload"], id="payload"),
        pytest.param(
            {"event": "Stop", "command": "x", "commandx": "y"}, ["params.commandx"], id="unknown_key"
        ),
        pytest.param(
            {"event": "Stops", "timeout_ms": 0, "matcher": "[", "command": ""},
            ["params.event", "params.timeout_ms", "params.matcher", "params.command"],
            id="all_in_the_reference_s_order",
        ),
    ],
)
def test_refused(bamboo: Bamboo, params: dict[str, Any], paths: list[str]) -> None:
    assert refused(bamboo, params) == paths


def test_a_misspelt_event_gets_a_suggestion(bamboo: Bamboo) -> None:
    with pytest.raises(PayloadRefused, match=r"did you mean Stop\?"):
        bamboo.dry_run({"event": "stop", "command": "x"})


def test_keys_of_the_other_type_are_ignored(bamboo: Bamboo) -> None:
    run = bamboo.dry_run(
        {"event": "Stop", "type": "command", "command": "x", "path": "a.rb", "runner": "node"}
    )
    assert isinstance(run.hook.handler, ShellCommand)
