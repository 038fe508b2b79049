"""The public object: what it declares, working directories, variables, and that it is a dialect."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from hooksd.dialects import DIALECTS
from hooksd.dialects.bamboo import BAMBOO, Bamboo
from hooksd.dialects.base import Dialect, Places
from hooksd.model.decision import Capability, Decision
from hooksd.model.events import Event
from hooksd.model.hooks import Contract, Hook, Script
from hooksd.model.problems import ProblemKind
from hooksd.model.run import ProcessResult


MakeEvent = Callable[..., Event]


def test_it_is_registered_and_of_the_contract_s_shape() -> None:
    dialect: Dialect = BAMBOO
    assert DIALECTS["bamboo"] is dialect
    assert (dialect.name, dialect.contract) == ("bamboo", Contract.BAMBOO)
    assert dialect.accepts == set(Capability) - {Capability.ARGUMENTS}


SCRIPT = Script(path="a.py", runtimes=(("python3",),))


@pytest.mark.parametrize(
    ("places", "command_in", "script_in"),
    [
        ({"cwd": "/here", "workspace": "/w"}, "/here", "/here"),
        ({"workspace": "/w"}, "/w", "/w"),
        ({"workspace": "/gone/but/given"}, "/gone/but/given", "/gone/but/given"),
        ({"workspace": ""}, "/home/u", "/home/u"),
        ({"workspace": " \t"}, "/home/u", "/home/u"),
        ({"cwd": "", "workspace": "", "work_area": ""}, "/daemon", "/home/u/.bamboo"),
    ],
)
def test_working_directory(
    event: MakeEvent, hook: Hook, places: dict[str, Any], command_in: str, script_in: str
) -> None:
    """design.md, "working directory fallback, Bamboo"."""
    given = Places(**{"work_area": "/home/u", "daemon_cwd": "/daemon", **places})
    made = event("PreToolUse")
    assert BAMBOO.working_directory(made, hook, given) == command_in
    script = msgspec.structs.replace(hook, handler=SCRIPT)
    assert BAMBOO.working_directory(made, script, given) == script_in


def test_a_script_without_a_file_runs_where_commands_do(event: MakeEvent, hook: Hook) -> None:
    unwritten = msgspec.structs.replace(hook, handler=SCRIPT, file="")
    nowhere = Places(workspace="", work_area="", daemon_cwd="/daemon")
    assert BAMBOO.working_directory(event("Stop"), unwritten, nowhere) == "/daemon"


def test_variables(event: MakeEvent, hook: Hook) -> None:
    """Bamboo dialect 3.4."""
    made = event("PreToolUse")
    command = BAMBOO.input(made, hook, "/w", script_path=None)
    assert dict(command.env) == {"BAMBOO_SESSION_ID": "session-123", "BAMBOO_HOOK_EVENT": "PreToolUse"}
    script = BAMBOO.input(made, hook, "/w", script_path="/w/a.py")
    assert dict(script.env) == {**dict(command.env), "BAMBOO_HOOK_SCRIPT": "/w/a.py"}
    assert command.stdin == script.stdin
    assert json.loads(command.stdin or b"") == BAMBOO.envelope(made, "/w")


def test_payloads_never_go_into_variables(event: MakeEvent, hook: Hook) -> None:
    given = BAMBOO.input(event("UserPromptSubmit", prompt="hunter2"), hook, "/w", script_path=None)
    assert "hunter2" not in str(given.env)


def test_case_15_an_observer_s_reply_is_told_as_it_was(event: MakeEvent, hook: Hook) -> None:
    """Whether a decision counts is for the fold to say."""
    made = event("PreCompact")
    blocked = BAMBOO.interpret(ProcessResult(exit_code=2, stderr=b"no"), made, hook)
    assert blocked.decision is Decision.BLOCK
    context = BAMBOO.interpret(ProcessResult(exit_code=0, stdout=b'{"additional_context":"c"}'), made, hook)
    assert context.contexts == ("c",)


def test_programmatic_answers(event: MakeEvent, hook: Hook) -> None:
    made = event("PreToolUse")
    assert BAMBOO.interpret_object({"arguments": {"a": 1}}, made, hook).arguments == {"a": 1}
    failure = BAMBOO.interpret_object(7, made, hook).failure
    assert failure is not None
    assert failure.kind is ProblemKind.MALFORMED_OUTPUT


def test_dry_run_runtimes_are_those_of_the_system() -> None:
    params = {"event": "Stop", "type": "script", "path": "a.bat"}
    here = Bamboo(windows=False).dry_run(params).hook.handler
    there = Bamboo(windows=True).dry_run(params).hook.handler
    assert isinstance(here, Script)
    assert isinstance(there, Script)
    assert here.refusal is not None
    assert there.refusal is None
