"""`hook/test` of a Chrys hook that is written nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from hooksd.dialects.base import PayloadRefused
from hooksd.dialects.chrys import CHRYS
from hooksd.model.hooks import Argv, Mode, OnError, Scope, Script, ToolFilter


RUN = {"type": "command", "argv": ["true"]}


def refused(**params: Any) -> list[str]:
    with pytest.raises(PayloadRefused) as caught:
        CHRYS.dry_run(params)
    return [problem.path for problem in caught.value.problems]


def test_it_is_what_it_would_be_in_a_file() -> None:
    dry = CHRYS.dry_run(
        {
            "event": "before_tool_call",
            "run": {**RUN, "env": {"A": "b"}, "cwd": "sub"},
            "execution": {"mode": "blocking", "timeout_seconds": 2, "on_error": "block"},
            "match": {"tool_kind": "shell"},
        }
    )
    hook = dry.hook

    assert dry.event == "before_tool_call"
    assert (hook.handler, hook.match) == (Argv(argv=("true",)), ToolFilter(tool_kind="shell"))
    assert (hook.timeout_s, hook.on_error, hook.env, hook.cwd) == (2.0, OnError.BLOCK, (("A", "b"),), "sub")
    assert (hook.scope, hook.file, hook.line) == (Scope.CLIENT, "", None)


@pytest.mark.parametrize("execution", [{}, {"mode": "async"}, {"detach": True}])
def test_it_is_waited_for_whatever_its_mode(execution: dict[str, Any]) -> None:
    hook = CHRYS.dry_run({"event": "turn.start", "run": RUN, "execution": execution}).hook

    assert (hook.mode, hook.timeout_s, hook.native_event) == (Mode.BLOCKING, 30.0, "before_turn")


def test_a_script_is_relative_to_the_working_directory() -> None:
    hook = CHRYS.dry_run({"event": "before_turn", "run": {"type": "script", "path": "x.py"}}).hook

    assert isinstance(hook.handler, Script)
    assert (hook.handler.path, hook.handler.base) == ("x.py", None)


def test_every_fault_is_told_and_warnings_are_none() -> None:
    assert refused(event="befor_turn", run={"type": "shel"}, command="x", execution=None) == [
        "params.command",
        "params.event",
        "params.run.type",
    ]
    assert refused(event="before_turn") == ["params.run"]
    assert refused(run=RUN) == ["params.event"]
    assert refused(event="before_tool_call", run=RUN, match={"args": {"a": {"regex": "("}}}) == [
        "params.match.args.a.regex"
    ]
