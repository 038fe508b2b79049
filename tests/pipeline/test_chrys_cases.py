"""The Chrys dialect with real files and processes: the reference's own cases by number, guards, and other agents."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from hooksd.model.decision import Decision
from hooksd.model.outcome import Outcome
from hooksd.model.problems import ProblemKind
from hooksd.model.records import Level
from hooksd.model.report import Status
from hooksd.pipeline.dispatch import DispatchOptions
from hooksd.protocol.methods.hooks import HookTestParams


Bench = Any
"""The class is in conftest.py, which cannot be imported."""

TOOL = {"name": "bash", "kind": "shell", "call_id": "c", "args": {"command": "ls", "reason": "r"}}
PAYLOADS: dict[str, dict[str, Any]] = {
    "before_tool_call": {"tool": TOOL},
    "after_tool_call": {
        "tool": TOOL,
        "result": {"text": "x", "duration_ms": 1, "error": False, "failed": False},
    },
    "user_prompt_submit": {"text": "hi"},
    "session_start": {},
    "after_turn": {"turn": 1, "status": "ok", "failed": False},
}


def shell(hook_id: str, line: str, event: str = "before_tool_call", **more: Any) -> dict[str, Any]:
    """A blocking hook that runs a line; keywords change `execution`, `match` and `run`."""
    run = {"type": "shell", "shell": line, **more.pop("run", {})}
    match = more.pop("match", None)
    entry = {"id": hook_id, "event": event, "run": run, "execution": {"mode": "blocking", **more}}
    return entry if match is None else {**entry, "match": match}


def answers(answer: Any) -> str:
    """A line that answers."""
    return f'printf %s {shlex.quote(json.dumps(answer))} > "$CHRYS_HOOK_RESULT"'


def configure(bench: Bench, *entries: dict[str, Any], settings: dict[str, Any] | None = None) -> Path:
    """Write the user's hooks file; every JSON text is a YAML text too."""
    directory = bench.root / "home" / ".chrys" / "hooks"
    if not directory.exists():
        directory.mkdir(parents=True, mode=0o700)
        directory.parent.chmod(0o700)
    return bench.write(directory / "hooks.yaml", json.dumps({"hooks": list(entries), "settings": settings}))


async def dispatch(
    bench: Bench, event: str = "before_tool_call", payload: Any = None, **options: Any
) -> Outcome:
    if not bench.started:
        await bench.start()
    env = options.pop("env", None)
    execution = await bench.open("run-chrys", agent="chrys", env=env)
    return await bench.dispatch(
        event, PAYLOADS[event] if payload is None else payload, execution=execution, **options
    )


def statuses(outcome: Outcome) -> list[tuple[str, Status]]:
    return [(report.hook.rpartition(":")[2], report.status) for report in outcome.handlers]


def left_over(bench: Bench) -> list[str]:
    """The files of runs that are still there."""
    directory = bench.root / "exchange"
    return os.listdir(directory) if directory.exists() else []


# ----------------------------------------------------------------------------------------------------------------------
# Decisions


async def test_68_without_hooks_nothing_is_decided(bench: Bench) -> None:
    outcome = await dispatch(bench)

    assert (outcome.decision, outcome.handlers) == (Decision.NONE, ())
    assert not (bench.root / "exchange").exists()


async def test_70_a_block_ends_the_event(bench: Bench) -> None:
    configure(
        bench,
        {**shell("audit", "touch audited"), "execution": {"mode": "async"}},
        shell("guard", answers({"action": "block", "reason": "no"})),
        shell("after", "touch ran"),
    )

    outcome = await dispatch(bench)

    assert (outcome.decision, outcome.reason) == (Decision.BLOCK, "guard: no")
    assert outcome.decided_by == "chrys:user:chrys:guard"
    assert statuses(outcome) == [
        ("guard", Status.BLOCKED),
        ("after", Status.SKIPPED),
        ("audit", Status.SKIPPED),
    ]
    assert os.listdir(bench.workspace) == []


async def test_71_a_block_of_an_observer_is_ignored_and_told(bench: Bench) -> None:
    configure(
        bench,
        shell("a", answers({"action": "block", "extra_context": "kept"}), "after_tool_call"),
        {**shell("b", "touch ran", "after_tool_call"), "execution": {"mode": "async"}},
    )

    outcome = await dispatch(bench, "after_tool_call")
    await bench.until((bench.workspace / "ran").exists)

    assert (outcome.decision, outcome.contexts) == (Decision.NONE, ("kept",))
    assert outcome.handlers[0].problem is not None
    assert outcome.handlers[0].problem.kind is ProblemKind.IGNORED_DECISION


@pytest.mark.parametrize("event", ["approval_requested", "approval_resolved"])
async def test_176_to_180_no_hook_has_a_say_in_an_approval(bench: Bench, event: str) -> None:
    hostile = {
        "action": "modify",
        "args_override": {"command": "rm"},
        "system_reminder": "r",
        "extra_context": "c",
    }
    configure(
        bench,
        shell("a", answers({"action": "block", "reason": "no"}), event, on_error="block"),
        shell("b", answers(hostile), event),
        shell("c", "exit 1", event, on_error="block"),
    )
    approved = {"approved": True} if event == "approval_resolved" else {}

    outcome = await dispatch(bench, event, {"request_id": "r-1", "tool": TOOL, **approved})

    assert (outcome.decision, outcome.reason, outcome.arguments) == (Decision.NONE, None, None)
    assert (outcome.contexts, outcome.reminders) == ((), ())
    assert [report.problem is not None for report in outcome.handlers] == [True, True, True]


async def test_73_74_each_hook_is_matched_against_the_arguments_as_they_are(bench: Bench) -> None:
    configure(
        bench,
        shell("old", "touch old-ran", match={"args": {"path": {"equals": "/tmp/x"}}}),
        shell(
            "rewrite", answers({"action": "modify", "args_override": {"path": "/etc/x", "nested": {"b": 1}}})
        ),
        shell("gone", "touch gone-ran", match={"args": {"path": {"equals": "/tmp/x"}}}),
        shell(
            "guard",
            answers({"action": "block", "reason": "etc"}),
            match={"args": {"path": {"regex": "^/etc/"}}},
        ),
    )
    tool = {**TOOL, "args": {"path": "/tmp/x", "nested": {"a": 1}, "kept": True}}

    outcome = await dispatch(bench, payload={"tool": tool})

    assert statuses(outcome) == [("old", Status.OK), ("rewrite", Status.OK), ("guard", Status.BLOCKED)]
    assert (outcome.decision, outcome.reason, outcome.arguments) == (Decision.BLOCK, "guard: etc", None)
    assert sorted(os.listdir(bench.workspace)) == ["old-ran"]


async def test_modifications_are_shallow_and_the_next_hook_is_told(bench: Bench) -> None:
    configure(
        bench,
        shell("one", answers({"action": "modify", "args_override": {"a": {"y": 2}, "n": None}})),
        shell(
            "two",
            'cat "$CHRYS_HOOK_PAYLOAD_FILE" > seen; '
            + answers({"action": "modify", "args_override": {"b": 3}}),
        ),
        shell("three", "true"),
    )
    tool = {**TOOL, "args": {"a": {"x": 1}, "b": 2, "n": 1, "kept": 0}}

    outcome = await dispatch(bench, payload={"tool": tool})

    assert outcome.arguments == {"a": {"y": 2}, "b": 3, "n": None, "kept": 0}
    seen = json.loads((bench.workspace / "seen").read_text())
    assert seen["tool"]["args"] == {"a": {"y": 2}, "b": 2, "n": None, "kept": 0}


async def test_a_later_block_takes_the_modifications_with_it(bench: Bench) -> None:
    configure(
        bench,
        shell("one", answers({"action": "modify", "args_override": {"a": 1}})),
        shell("two", answers({"action": "block"})),
    )

    assert (await dispatch(bench)).arguments is None


async def test_75_profiles(bench: Bench) -> None:
    configure(bench, shell("guard", answers({"action": "block"}), match={"profile": "Plan"}))

    other = await dispatch(bench, payload={"tool": TOOL, "profile": "Code"})
    right = await dispatch(bench, payload={"tool": TOOL, "profile": "Plan"})

    assert (other.decision, other.handlers) == (Decision.NONE, ())
    assert right.decision is Decision.BLOCK


@pytest.mark.parametrize(
    ("on_error", "decision"), [("block", Decision.BLOCK), ("warn", Decision.NONE), ("ignore", Decision.NONE)]
)
async def test_76_77_a_timeout(bench: Bench, on_error: str, decision: Decision) -> None:
    line = 'echo slow >&2; printf \'{"action":"bl\' > "$CHRYS_HOOK_RESULT"; sleep 30'
    configure(bench, shell("slow", line, timeout_seconds=0.3, on_error=on_error))

    outcome = await dispatch(bench)

    assert (outcome.decision, statuses(outcome)) == (decision, [("slow", Status.TIMEOUT)])
    assert outcome.reason == ("slow: timeout: slow" if decision is Decision.BLOCK else None)
    assert left_over(bench) == []
    (record,) = (level for level, kind, _ in bench.records if kind == "hook.finished")
    assert record is (Level.INFO if on_error == "ignore" else Level.WARNING)


async def test_78_the_answer_of_a_hook_that_failed_is_not_looked_at(bench: Bench) -> None:
    configure(bench, shell("a", answers({"action": "block"}) + "; exit 9"))

    outcome = await dispatch(bench)

    assert (outcome.decision, outcome.handlers[0].exit_code) == (Decision.NONE, 9)
    assert outcome.handlers[0].problem is not None
    assert outcome.handlers[0].problem.kind is ProblemKind.EXIT_CODE


async def test_80_133_a_program_that_is_not_there(bench: Bench) -> None:
    run = {"type": "command", "argv": ["/nonexistent/program"]}
    configure(bench, {**shell("a", "", on_error="block"), "run": run})

    outcome = await dispatch(bench)

    assert statuses(outcome) == [("a", Status.LAUNCH_ERROR)]
    assert outcome.reason is not None
    assert outcome.reason.startswith("a: launch_error: ")


@pytest.mark.parametrize("event", list(PAYLOADS))
@pytest.mark.parametrize("on_error", ["block", "warn", "ignore"])
async def test_on_error_at_every_kind_of_event(bench: Bench, event: str, on_error: str) -> None:
    configure(bench, shell("a", "echo why >&2; exit 3", event, on_error=on_error))

    outcome = await dispatch(bench, event)

    blocks = on_error == "block" and event in ("before_tool_call", "user_prompt_submit")
    assert outcome.decision is (Decision.BLOCK if blocks else Decision.NONE)
    assert outcome.reason == ("a: exit_code=3: why" if blocks else None)
    assert statuses(outcome) == [("a", Status.FAILED)]


async def test_reminders_and_contexts_accumulate_in_order(bench: Bench) -> None:
    configure(
        bench,
        shell("a", answers({"system_reminder": "one"}), "user_prompt_submit"),
        shell("b", answers({"system_reminder": "two", "action": "nonsense"}), "user_prompt_submit"),
    )

    outcome = await dispatch(bench, "user_prompt_submit")

    assert outcome.reminders == ("one", "two")
    assert outcome.handlers[1].problem is not None
    assert outcome.handlers[1].problem.kind is ProblemKind.UNKNOWN_DECISION


async def test_a_hook_in_the_background_decides_nothing(bench: Bench) -> None:
    configure(
        bench, {**shell("a", answers({"action": "block"}) + "; touch done"), "execution": {"mode": "async"}}
    )

    outcome = await dispatch(bench)
    await bench.until(lambda: bench.told("hook.finished") and not left_over(bench))

    assert (outcome.decision, statuses(outcome)) == (Decision.NONE, [("a", Status.STARTED)])


# ----------------------------------------------------------------------------------------------------------------------
# The process


async def test_122_to_132_what_a_hook_is_given(bench: Bench) -> None:
    line = """python3 - <<'P'
import json, os, stat, sys
names = {n: os.environ.get(n) for n in ("CHRYS_HOOK_ID", "CHRYS_HOOK_EVENT", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONHOME", "PYTHONPATH", "W", "P")}
files = [os.environ[n] for n in ("CHRYS_HOOK_PAYLOAD_FILE", "CHRYS_HOOK_RESULT")]
modes = [stat.S_IMODE(os.stat(f).st_mode) for f in (*files, os.path.dirname(files[0]))]
payload = json.load(open(files[0]))
out = dict(names=names, modes=modes, payload=payload, files=files, stdin=sys.stdin.read(), cwd=os.getcwd(), size=os.stat(files[1]).st_size)
json.dump(out, open("seen", "w"))
print("not an answer")
P"""
    run = {"env": {"W": "${workspace_cwd}", "P": "<${profile}>"}}
    configure(bench, shell("an id / with ../ odd", line, run=run))
    env = {
        **bench.env,
        "PYTHONHOME": "/x",
        "PythonPath": "/y",
        "PYTHONPATH": "/z",
        "CHRYS_HOOK_RESULT": "/stale",
    }

    outcome = await dispatch(bench, payload={"tool": TOOL, "profile": "Code"}, env=env)

    assert statuses(outcome) == [("an id / with ../ odd", Status.OK)]
    seen = json.loads((bench.workspace / "seen").read_text())
    assert seen["names"] == {
        "CHRYS_HOOK_ID": "an id / with ../ odd",
        "CHRYS_HOOK_EVENT": "before_tool_call",
        "PYTHONUTF8": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONHOME": None,
        "PYTHONPATH": None,
        "W": str(bench.workspace),
        "P": "<Code>",
    }
    assert seen["modes"] == [0o600, 0o600, 0o700]
    assert (seen["stdin"], seen["cwd"], seen["size"]) == ("", str(bench.workspace), 0)
    assert seen["payload"]["tool"] == TOOL
    assert all(path.startswith(str(bench.root / "exchange")) and "odd" not in path for path in seen["files"])
    assert not any(os.path.exists(path) for path in seen["files"])
    assert left_over(bench) == []


async def test_126_a_hooks_own_variables_count_more(bench: Bench) -> None:
    run = {
        "env": {"PYTHONPATH": "/own", "CHRYS_HOOK_ID": "mine", "CHRYS_HOOK_RESULT": str(bench.root / "mine")}
    }
    configure(bench, shell("a", 'echo "$PYTHONPATH $CHRYS_HOOK_ID" > "$CHRYS_HOOK_RESULT"', run=run))

    outcome = await dispatch(bench)

    assert (bench.root / "mine").read_text() == "/own mine\n"
    assert statuses(outcome) == [("a", Status.OK)]


async def test_an_id_as_long_as_can_be_runs(bench: Bench) -> None:
    configure(bench, shell("日" * 512, answers({"action": "block"})))

    assert (await dispatch(bench)).decision is Decision.BLOCK


async def test_138_scripts_are_relative_to_the_hooks_file(bench: Bench) -> None:
    run = {"type": "script", "path": "scripts/x.py", "args": ["blocked"]}
    path = configure(bench, {**shell("a", ""), "run": run})
    (path.parent / "scripts").mkdir()
    (path.parent / "scripts" / "x.py").write_text(
        "import json, os, sys\njson.dump({'action': 'block', 'reason': sys.argv[1]}, open(os.environ['CHRYS_HOOK_RESULT'], 'w'))\n"
    )

    assert (await dispatch(bench)).reason == "a: blocked"


@pytest.mark.parametrize("name", ["x.sh", "x.zsh"])
async def test_a_shell_script_runs_in_the_shell_that_its_first_line_names(bench: Bench, name: str) -> None:
    path = configure(bench, {**shell("a", ""), "run": {"type": "script", "path": name}})
    (path.parent / name).write_text(
        '#!/usr/bin/env bash\n[[ a == a ]] && echo \'{"action":"block"}\' > $CHRYS_HOOK_RESULT\n'
    )

    assert (await dispatch(bench)).decision is Decision.BLOCK


@pytest.mark.parametrize(("asked", "runner"), [("", "python3"), ("[runtimes]\nuv = true\n", "uv run")])
async def test_uv_runs_python_only_where_it_is_asked_for(bench: Bench, asked: str, runner: str) -> None:
    programs = bench.root / "bin"
    programs.mkdir()
    for name in ("uv", "python3"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $1" > "{bench.workspace}/runner"\n')
        (programs / name).chmod(0o755)
    path = configure(bench, {**shell("a", ""), "run": {"type": "script", "path": "x.py"}})
    (path.parent / "x.py").touch()
    bench.settings(asked)

    await dispatch(bench, env={"PATH": f"{programs}:/usr/bin:/bin"})

    assert (bench.workspace / "runner").read_text().startswith(runner)


async def test_the_working_directory(bench: Bench) -> None:
    (bench.workspace / "sub").mkdir()
    configure(
        bench,
        shell("own", "touch here", run={"cwd": "sub"}),
        shell("told", "touch there"),
        shell("gone", "touch nowhere", run={"cwd": "${workspace_cwd}/gone"}),
    )
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()

    await dispatch(bench)
    outcome = await dispatch(bench, payload={"tool": TOOL, "cwd": str(elsewhere)})

    assert (bench.workspace / "sub" / "here").exists()
    assert (bench.workspace / "there").exists()
    assert (elsewhere / "there").exists()
    own, _, gone = (report.problem for report in outcome.handlers)
    assert own is not None
    assert gone is not None
    assert own.kind is gone.kind is ProblemKind.MISSING_CWD


async def test_127_output_is_kept_at_both_ends(bench: Bench) -> None:
    configure(bench, shell("a", "printf start; head -c 400000 /dev/zero | tr '\\0' x; printf end"))
    outcome = await dispatch(bench)
    report = outcome.handlers[0]

    told = bench.pipeline.results.get(report.invocation_id)

    assert (report.stdout_bytes, report.stdout_truncated, report.status) == (400_008, True, Status.OK)
    assert told.stdout.startswith("start")


async def test_an_answer_may_be_renamed_into_place(bench: Bench) -> None:
    configure(
        bench,
        shell(
            "a",
            answers({"action": "block"}).replace('RESULT"', 'RESULT.new"')
            + '; mv "$CHRYS_HOOK_RESULT.new" "$CHRYS_HOOK_RESULT"',
        ),
    )

    assert (await dispatch(bench)).decision is Decision.BLOCK
    assert left_over(bench) == []


async def test_files_go_when_the_dispatch_is_cancelled(bench: Bench) -> None:
    configure(bench, shell("a", "touch started; sleep 30"))
    task = asyncio.ensure_future(dispatch(bench))
    await bench.until((bench.workspace / "started").exists)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert left_over(bench) == []


async def test_files_that_cannot_be_made_are_a_failure_of_the_hook(bench: Bench) -> None:
    (bench.root / "exchange").write_text("in the way")
    configure(bench, shell("a", "true", on_error="block"))

    outcome = await dispatch(bench)

    assert statuses(outcome) == [("a", Status.LAUNCH_ERROR)]
    assert outcome.decision is Decision.BLOCK


# ----------------------------------------------------------------------------------------------------------------------
# Answers that cannot be understood, patterns that take too long, and guards

BAD_ANSWERS = {
    ProblemKind.MALFORMED_OUTPUT: "echo nonsense > $CHRYS_HOOK_RESULT",
    ProblemKind.UNKNOWN_DECISION: answers({"action": "deny"}),
    ProblemKind.OVERSIZE_RESULT: "head -c 1048577 /dev/zero > $CHRYS_HOOK_RESULT",
}


@pytest.mark.parametrize("kind", list(BAD_ANSWERS), ids=str)
@pytest.mark.parametrize("guarded", [False, True])
async def test_an_answer_that_cannot_be_understood(bench: Bench, kind: ProblemKind, guarded: bool) -> None:
    if guarded:
        bench.settings('[[guard]]\nhooks = "chrys:*"\n')
    configure(bench, shell("a", BAD_ANSWERS[kind], on_error="block"))

    outcome = await dispatch(bench)

    assert statuses(outcome) == [("a", Status.FAILED)]
    assert outcome.handlers[0].problem is not None
    assert outcome.handlers[0].problem.kind is kind
    # `on_error` is about the run, not about the answer, as in the reference; a guard is about both.
    assert outcome.decision is (Decision.BLOCK if guarded else Decision.NONE)


async def test_a_symlink_for_an_answer_is_refused(bench: Bench) -> None:
    (bench.workspace / "answer").write_text('{"action": "block"}')
    configure(bench, shell("a", 'ln -sf "$PWD/answer" "$CHRYS_HOOK_RESULT"'))

    outcome = await dispatch(bench)

    assert outcome.decision is Decision.NONE
    assert outcome.handlers[0].problem is not None
    assert "symbolic link" in outcome.handlers[0].problem.message


async def test_a_hook_whose_pattern_is_bad_is_guarded_for_the_calls_it_is_about(bench: Bench) -> None:
    bench.settings('[[guard]]\nhooks = "chrys:*:a"\n')
    configure(bench, shell("a", "true", match={"tool_kind": "shell", "args": {"command": {"regex": "("}}}))

    guarded = await dispatch(bench)
    other = await dispatch(bench, payload={"tool": {**TOOL, "kind": "search"}})

    assert guarded.decision is Decision.BLOCK
    assert guarded.handlers[0].problem is not None
    assert guarded.handlers[0].problem.kind is ProblemKind.NOT_LOADED
    assert (other.decision, other.handlers) == (Decision.NONE, ())


SLOW = {"args": {"command": {"regex": "(a|a|aa)+$"}}}
EVIL = {**TOOL, "args": {"command": "a" * 5000 + "!"}}


async def test_a_pattern_that_takes_too_long_runs_the_hook_of_a_gate(bench: Bench) -> None:
    configure(bench, shell("a", answers({"action": "block"}), match=SLOW))

    outcome = await dispatch(bench, payload={"tool": EVIL})

    assert outcome.decision is Decision.BLOCK
    assert outcome.handlers[0].problem is not None
    assert outcome.handlers[0].problem.kind is ProblemKind.REGEX_TIMEOUT


async def test_and_leaves_out_that_of_an_observer_with_a_word(bench: Bench) -> None:
    configure(bench, shell("a", "touch ran", "after_tool_call", match=SLOW))

    outcome = await dispatch(bench, "after_tool_call", {**PAYLOADS["after_tool_call"], "tool": EVIL})

    assert statuses(outcome) == [("a", Status.SKIPPED)]
    assert outcome.handlers[0].problem is not None
    assert outcome.handlers[0].problem.kind is ProblemKind.REGEX_TIMEOUT
    assert [record["problem"]["kind"] for record in bench.told("hook.skipped")] == ["regex_timeout"]


async def test_a_hook_that_does_not_match_is_blamed_for_no_budget(bench: Bench) -> None:
    bench.settings('[[guard]]\nhooks = "chrys:*:b"\n')
    configure(bench, shell("a", "sleep 30"), shell("b", "true", match={"tool_kind": "search"}))

    outcome = await dispatch(bench, timeout_s=0.2)

    assert (outcome.decision, statuses(outcome)) == (Decision.NONE, [("a", Status.TIMEOUT)])


async def test_of_what_is_cut_off_only_hooks_that_match_are_told(bench: Bench) -> None:
    configure(
        bench,
        shell("a", "touch started; sleep 30"),
        shell("b", "true", match={"tool_kind": "search"}),
        shell("c", "true"),
    )
    task = asyncio.ensure_future(dispatch(bench))
    await bench.until((bench.workspace / "started").exists)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [record["hook"] for record in bench.told("hook.skipped")] == ["chrys:user:chrys:c"]


async def test_an_observer_is_told_only_of_hooks_that_match(bench: Bench) -> None:
    configure(
        bench,
        shell("a", "touch a", "after_tool_call", match={"tool_kind": "search"}),
        shell("b", "touch b", "after_tool_call", match={"tool_kind": "shell"}),
    )
    pipeline = await bench.start()
    execution = await bench.open(agent="chrys")
    event = pipeline.prepare(execution, "after_tool_call", PAYLOADS["after_tool_call"])

    ids = pipeline.notify(execution, event, DispatchOptions())
    await bench.until((bench.workspace / "b").exists)

    assert len(ids) == 1
    assert os.listdir(bench.workspace) == ["b"]


async def test_explain_says_why_not(bench: Bench) -> None:
    configure(
        bench,
        shell("kind", "true", match={"tool_kind": "search"}),
        shell("name", "true", match={"tool_name": "zsh"}),
        shell("args", "true", match={"args": {"path": {}}}),
        {**shell("off", "true"), "enabled": False},
        shell("on", "true"),
    )
    pipeline = await bench.start()
    execution = await bench.open(agent="chrys")
    event = pipeline.prepare(execution, "before_tool_call", PAYLOADS["before_tool_call"])

    explained = pipeline.explain(execution, event)

    assert [row.hook for row in explained.plan] == ["chrys:user:chrys:on"]
    assert {row.hook.rpartition(":")[2]: row.why for row in explained.not_matched} == {
        "kind": "the kind of the tool is not 'search'",
        "name": "the tool is not 'zsh'",
        "args": "the call has no argument 'path'",
        "off": "`enabled` is false",
    }


async def test_a_dry_run_of_a_hook_that_is_written_nowhere(bench: Bench) -> None:
    pipeline = await bench.start()
    run = {"type": "shell", "shell": answers({"action": "modify", "args_override": {"command": "x"}})}

    tried = await pipeline.test(
        HookTestParams(dialect="chrys", event="before_tool_call", run=run, match={"tool_kind": "search"})
    )

    assert tried.interpreted is not None
    assert (tried.matched, tried.interpreted.arguments) == (False, {"command": "x"})
    assert "CHRYS_HOOK_PAYLOAD_FILE" in tried.environment
    assert left_over(bench) == []


# ----------------------------------------------------------------------------------------------------------------------
# Agents of other dialects


def share(bench: Bench, *entries: dict[str, Any]) -> None:
    """Hooks in Chrys' terms that apply to every agent."""
    bench.write(bench.config / "hooks.yaml", json.dumps({"hooks": list(entries)}))


def share_bamboo(bench: Bench, **events: str) -> None:
    groups = {name: [{"hooks": [{"type": "command", "command": line}]}] for name, line in events.items()}
    text = json.dumps({"lifecycle_hooks": {"enabled": True, **groups}})
    bench.write(bench.config / "hooks.json", text)


async def test_a_hook_of_chrys_for_an_agent_of_bamboo(bench: Bench) -> None:
    share(
        bench,
        shell(
            "guard",
            'cp "$CHRYS_HOOK_PAYLOAD_FILE" seen; ' + answers({"action": "block", "reason": "no"}),
            match={"tool_kind": "shell"},
        ),
    )
    await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    assert (outcome.event, outcome.decision, outcome.reason) == ("PreToolUse", Decision.BLOCK, "guard: no")
    seen = json.loads((bench.workspace / "seen").read_text())
    assert seen["event"] == "before_tool_call"
    assert seen["tool"] == {"name": "Bash", "kind": "shell", "call_id": "c-1", "args": {"command": "pwd"}}


async def test_a_rewrite_for_an_agent_that_cannot_rewrite_is_asked(bench: Bench) -> None:
    share(bench, shell("redact", answers({"action": "modify", "args_override": {"command": "x"}})))
    await bench.start()

    outcome = await bench.dispatch("PreToolUse")

    assert (outcome.decision, outcome.arguments) == (Decision.ASK, None)
    assert outcome.handlers[0].problem is not None
    assert outcome.handlers[0].problem.kind is ProblemKind.NOT_APPLICABLE


async def test_a_reminder_for_an_agent_of_bamboo_is_a_context(bench: Bench) -> None:
    share(bench, shell("remind", answers({"system_reminder": "r"}), "user_prompt_submit"))
    await bench.start()

    outcome = await bench.dispatch("UserPromptSubmit")

    assert (outcome.contexts, outcome.reminders) == (("r",), ())


async def test_a_hook_of_bamboo_for_an_agent_of_chrys(bench: Bench) -> None:
    share_bamboo(
        bench,
        PreToolUse="""cat > seen; echo '{"decision":"ask"}'""",
        UserPromptSubmit="""echo '{"additional_context":"c"}'""",
    )

    tool = await dispatch(bench)
    prompt = await dispatch(bench, "user_prompt_submit")

    assert json.loads((bench.workspace / "seen").read_text())["tool_input"] == TOOL["args"]
    # Chrys cannot ask, so it must not go on.
    assert tool.decision is Decision.BLOCK
    assert (prompt.contexts, prompt.reminders) == ((), ("c",))


async def test_events_that_only_one_of_them_has_never_reach_the_other(bench: Bench) -> None:
    share(bench, shell("turn", "touch turn", "before_turn"))
    share_bamboo(bench, Stop="touch stop", PostToolUse="touch post")
    await bench.start()

    assert (await bench.dispatch("Stop")).handlers[0].hook.startswith("bamboo:")
    outcome = await dispatch(bench, "session_start")

    assert outcome.handlers == ()


async def test_f_an_error_of_a_tool_is_heard_once_by_each_hook(bench: Bench) -> None:
    share(
        bench,
        shell("error", "touch error", "tool_error"),
        shell("after", "touch after", "after_tool_call"),
        shell("restored", "touch restored", "session_restored"),
        shell("start", "touch start", "session_start"),
    )
    share_bamboo(bench, PostToolUse="touch post", SessionStart="""cat >> starts""")
    await bench.start()
    failed = {
        "tool_name": "Bash",
        "tool_call_id": "c",
        "outcome": {"success": False, "error": "e", "needs_human": False, "duration_ms": 1},
    }

    bad = await bench.dispatch("PostToolUse", failed)
    good = await bench.dispatch("PostToolUse")
    resumed = await bench.dispatch("SessionStart", {"initial_message": "", "source": "resume"})
    fresh = await bench.dispatch("SessionStart")
    error = await dispatch(bench, "tool_error", PAYLOADS["after_tool_call"])
    restored = await dispatch(bench, "session_restored", {"restored_session_id": "s"})

    def names(outcome: Outcome) -> list[str]:
        return [report.hook.rpartition(":")[2] for report in outcome.handlers]

    assert names(bad) == ["PostToolUse[0].hooks[0]", "after", "error"]
    assert names(good) == ["PostToolUse[0].hooks[0]", "after"]
    assert names(resumed) == ["SessionStart[0].hooks[0]", "start", "restored"]
    assert names(fresh) == ["SessionStart[0].hooks[0]", "start"]
    assert names(error) == ["error"]
    assert names(restored) == ["restored", "SessionStart[0].hooks[0]"]
    assert (
        '"source":"resume"' in (bench.workspace / "starts").read_text().replace("}{", "}\n{").splitlines()[-1]
    )
