"""The two layers of Chrys hooks, a trusted project's and the user's, through real daemons.

The numbers are those of Chrys' own test cases, see docs/dialects/chrys.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


pytestmark = pytest.mark.e2e

Entry = dict[str, Any]

ENABLED = "[projects]\nenabled = true\n"


def hook(id_: str, shell: str = "true", event: str = "user_prompt_submit", **more: Any) -> Entry:
    """A blocking hook that runs a line of shell."""
    execution = {"mode": "blocking", **more.pop("execution", {})}
    return {
        "id": id_,
        "event": event,
        "run": {"type": "shell", "shell": shell},
        "execution": execution,
        **more,
    }


def answer(**said: Any) -> str:
    return f"""printf '%s' '{json.dumps(said)}' > "$CHRYS_HOOK_RESULT" """


def write(path: Path, *hooks: Entry, **settings: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace(path, json.dumps({"version": 1, "settings": settings, "hooks": hooks}))


def replace(path: Path, text: str) -> None:
    new = path.with_name(".new")
    new.write_text(text)
    new.rename(path)


class Layers:
    """A workspace with hooks of its own, and the user's hooks.

    Attributes:
        project: The hooks file of the workspace.
        user: The user's.
    """

    def __init__(self, home: Any) -> None:
        self.home = home
        self.workspace: Path = home.root / "work"
        self.project = self.workspace / ".chrys" / "hooks" / "hooks.yaml"
        self.user: Path = home.root / "home" / ".chrys" / "hooks" / "hooks.yaml"
        self.workspace.mkdir()
        self._executions = 0
        home.write_settings(ENABLED)

    def start(self, *, trusted: bool = True) -> Any:
        daemon = self.home.start()
        assert daemon.ready, daemon.stderr
        if trusted:
            self.grant()
        return daemon

    def grant(self) -> None:
        """Trust the project as it is now, as an agent's own dialogue would."""
        with self.home.client() as client:
            shown = client.call("trust/show", dir=str(self.workspace))
            granted = client.call("trust/grant", dir=str(self.workspace), digest=shown["digest"])
            assert granted["state"] == "trusted"

    def open(self, client: Any, workspace: Path | None = None) -> tuple[str, Any]:
        """A new execution: its name, and what its opening says."""
        self._executions += 1
        name = f"run-{self._executions}"
        return name, client.open(name, agent="chrys", workspace_path=str(workspace or self.workspace))

    def dispatch(
        self, event: str = "user_prompt_submit", workspace: Path | None = None, **payload: Any
    ) -> Any:
        """The outcome of an event in an execution of its own."""
        with self.home.client() as client:
            name, _ = self.open(client, workspace)
            payload = payload or {"text": "go on"}
            outcome = client.call("hook/dispatch", execution_id=name, event=event, payload=payload)
            client.call("execution/close", execution_id=name)
            return outcome

    def opened(self, workspace: Path | None = None) -> Any:
        with self.home.client() as client:
            return self.open(client, workspace)[1]


@pytest.fixture
def layers(home: Any) -> Layers:
    return Layers(home)


def names(outcome: Any) -> list[str]:
    """The hooks that ran, without their dialect."""
    return [report["hook"].removeprefix("chrys:") for report in outcome["handlers"]]


def source(opened: Any, name: str) -> Any:
    return next(one for one in opened["sources"] if one["name"] == name)


def tool(**args: Any) -> Entry:
    return {"name": "write", "kind": "filesystem.write", "call_id": "abcdef123456", "args": args}


# ----------------------------------------------------------------------------------------------------------------------
# Which hooks there are, and in which order


def test_37_108_without_files_nothing_runs_and_nothing_is_made(layers: Layers, home: Any) -> None:
    layers.start(trusted=False)

    opened = layers.opened()

    assert layers.dispatch()["handlers"] == []
    assert {one["state"] for one in opened["sources"]} == {"missing"}
    assert opened["problems"] == []
    assert not (home.root / "home" / ".chrys").exists()
    assert list(layers.workspace.iterdir()) == []


def test_38_106_the_hooks_of_a_project_alone(layers: Layers) -> None:
    write(layers.project, hook("p"))
    layers.start()

    assert names(layers.dispatch()) == ["project:project-chrys:p"]


def test_39_107_the_hooks_of_the_user_alone(layers: Layers) -> None:
    write(layers.user, hook("g"))
    layers.start(trusted=False)

    assert names(layers.dispatch()) == ["user:chrys:g"]


def test_41_109_118_119_121_the_project_comes_first_in_the_order_of_each_file(layers: Layers) -> None:
    theirs = [f"p{at}" for at in (3, 1, 2)]
    mine = [f"g{at}" for at in (5, 4, 1, 2, 3)]
    write(layers.project, *map(hook, theirs))
    write(layers.user, *map(hook, mine[:2]), hook("off", enabled=False), *map(hook, mine[2:]))
    layers.start()

    with layers.home.client() as client:
        name, opened = layers.open(client)
        payload = {"text": "x"}
        event = {"execution_id": name, "event": "user_prompt_submit", "payload": payload}
        outcome = client.call("hook/dispatch", **event)
        explained = client.call("hook/explain", **event)

    assert names(outcome) == [
        *(f"project:project-chrys:{one}" for one in theirs),
        *(f"user:chrys:{one}" for one in mine),
    ]
    labels = [(one["name"], one["scope"], one["path"], one["hooks"]) for one in opened["sources"]]
    assert ("project-chrys", "project", str(layers.project), 3) in labels
    assert ("chrys", "user", str(layers.user), 5) in labels
    assert "chrys:user:chrys:off" in json.dumps(explained)


def test_42_43_110_120_the_same_id_in_both_runs_twice_and_is_warned_of(layers: Layers) -> None:
    write(layers.project, hook("same", "echo project >> order"))
    write(layers.user, hook("same", "echo user >> order"))
    layers.start()

    outcome = layers.dispatch()

    assert names(outcome) == ["project:project-chrys:same", "user:chrys:same"]
    assert (layers.workspace / "order").read_text() == "project\nuser\n"
    (problem,) = layers.opened()["problems"]
    assert problem["severity"] == "warning"
    assert (problem["file"], problem["line"]) == (str(layers.project), 1)
    assert f"the id 'same' is in {layers.user} too" in problem["message"]
    told = [record for record in layers.home.records("config.problem") if "'same'" in json.dumps(record)]
    assert len(told) == 1


def test_a_project_switches_nothing_of_the_user_off(layers: Layers) -> None:
    write(layers.project, hook("guard", enabled=False))
    write(layers.user, hook("guard", answer(action="block", reason="the user says no")))
    layers.start()

    assert layers.dispatch()["decided_by"] == "chrys:user:chrys:guard"
    assert layers.opened()["problems"] == []


def test_40_a_file_that_is_both_layers_counts_once(layers: Layers, home: Any) -> None:
    write(layers.user, hook("g"))
    layers.start(trusted=False)
    opened = layers.opened(home.root / "home")

    assert names(layers.dispatch(workspace=home.root / "home")) == ["user:chrys:g"]
    assert "project-chrys" not in [one["name"] for one in opened["sources"]]
    assert opened["problems"] == []


def test_116_the_root_of_a_project_is_exactly_the_workspace(layers: Layers) -> None:
    write(layers.project, hook("p"))
    layers.start()
    below = layers.workspace / "below"
    below.mkdir()

    assert names(layers.dispatch(workspace=below)) == []
    assert names(layers.dispatch()) == ["project:project-chrys:p"]


# ----------------------------------------------------------------------------------------------------------------------
# What one layer does to the other


def test_111_a_block_of_a_project_ends_the_chain(layers: Layers) -> None:
    write(layers.project, hook("p", answer(action="block", reason="not here")))
    write(layers.user, hook("g", "touch ran"), hook("audit", "touch audited", execution={"mode": "async"}))
    layers.start()

    outcome = layers.dispatch()

    assert (outcome["decision"], outcome["reason"]) == ("block", "p: not here")
    assert outcome["decided_by"] == "chrys:project:project-chrys:p"
    assert not (layers.workspace / "ran").exists()
    assert not (layers.workspace / "audited").exists()


def test_a_modification_of_a_project_reaches_the_hooks_of_the_user(
    layers: Layers, until: Callable[..., Any]
) -> None:
    """What a project rewrites is what the user's gates match and see; they have the last word."""
    seen = 'cat "$CHRYS_HOOK_PAYLOAD_FILE" > {0}.new; mv {0}.new {0}; '
    rewrite = answer(action="modify", args_override={"path": "/etc/hosts", "mode": {"a": 1}})
    write(layers.project, hook("p", rewrite, "before_tool_call", match={"tool_kind": "filesystem.write"}))
    etc = {"args": {"path": {"regex": "^/etc/"}}}
    write(
        layers.user,
        hook("was", "touch was", "before_tool_call", match={"args": {"path": {"equals": "a.txt"}}}),
        hook(
            "redact",
            seen.format("gate") + answer(action="modify", args_override={"mode": {"b": 2}}),
            "before_tool_call",
            match=etc,
        ),
        hook("audit", seen.format("audit"), "before_tool_call", match=etc, execution={"mode": "async"}),
    )
    layers.start()

    outcome = layers.dispatch("before_tool_call", tool=tool(path="a.txt", mode={"x": 0}, keep=1))

    assert outcome["arguments"] == {"path": "/etc/hosts", "mode": {"b": 2}, "keep": 1}
    assert names(outcome) == ["project:project-chrys:p", "user:chrys:redact", "user:chrys:audit"]
    assert not (layers.workspace / "was").exists()
    gate = json.loads((layers.workspace / "gate").read_text())
    assert gate["tool"]["args"] == {"path": "/etc/hosts", "mode": {"a": 1}, "keep": 1}
    until((layers.workspace / "audit").exists, "the audit")
    assert json.loads((layers.workspace / "audit").read_text())["tool"]["args"] == outcome["arguments"]

    replace(
        layers.user,
        json.dumps(
            {"hooks": [hook("no", answer(action="block", reason="etc"), "before_tool_call", match=etc)]}
        ),
    )
    blocked = layers.dispatch("before_tool_call", tool=tool(path="a.txt"))
    assert (blocked["decision"], blocked["decided_by"]) == ("block", "chrys:user:chrys:no")
    assert blocked["arguments"] is None


# ----------------------------------------------------------------------------------------------------------------------
# Files that are broken


def test_36_112_a_broken_file_of_a_project_touches_nothing_of_the_user(layers: Layers) -> None:
    write(layers.user, hook("g", answer(action="block", reason="mine")))
    layers.project.parent.mkdir(parents=True)
    layers.project.write_text("hooks:\n  - id: [unclosed\n")
    layers.start(trusted=False)

    opened = layers.opened()

    assert source(opened, "project-chrys")["state"] == "untrusted"
    assert source(opened, "chrys")["state"] == "loaded"
    assert names(layers.dispatch()) == ["user:chrys:g"]
    assert layers.dispatch()["reason"] == "g: mine"
    with layers.home.client() as client:
        problems = client.call("trust/show", dir=str(layers.workspace))["problems"]
        # A project that nobody trusts makes no daemon look broken.
        assert client.call("daemon/status")["state"] == "ready"
    assert any(problem.get("line") for problem in problems), problems


def test_a_broken_file_of_the_user_touches_nothing_of_the_project(layers: Layers) -> None:
    write(layers.project, hook("p"))
    layers.user.parent.mkdir(parents=True, mode=0o700)
    layers.user.write_text("hooks: {}\n")
    layers.start()

    opened = layers.opened()

    assert source(opened, "chrys")["state"] == "invalid"
    assert names(layers.dispatch()) == ["project:project-chrys:p"]


def test_187_a_project_that_breaks_between_the_events_of_a_workflow(layers: Layers) -> None:
    """What is running keeps what it began with; the next one is told."""
    write(layers.project, hook("p", event="workflow_run_end"))
    write(layers.user, hook("start", event="workflow_run_start"), hook("end", event="workflow_run_end"))
    layers.start()
    end = {"run_id": "r-1", "outcome": "completed"}
    with layers.home.client() as client:
        name, _ = layers.open(client)
        event = {"execution_id": name, "event": "workflow_run_start", "payload": {"run_id": "r-1"}}
        assert names(client.call("hook/dispatch", **event)) == ["user:chrys:start"]
        replace(layers.project, "hooks: [}\n")

        event |= {"event": "workflow_run_end", "payload": end}
        ended = client.call("hook/dispatch", **event)

    # It keeps the hooks it began with, which are those that were trusted.
    assert names(ended) == ["project:project-chrys:p", "user:chrys:end"]
    assert {report["status"] for report in ended["handlers"]} == {"ok"}
    opened = layers.opened()
    assert source(opened, "project-chrys")["state"] == "changed"
    assert source(opened, "project-chrys")["problems"]
    assert names(layers.dispatch("workflow_run_end", **end))[-1] == "user:chrys:end"


# ----------------------------------------------------------------------------------------------------------------------
# Scripts


def test_113_138_139_scripts_are_relative_to_the_file_that_names_them(layers: Layers) -> None:
    for path, reason in ((layers.project, "the project's"), (layers.user, "the user's")):
        script = path.parent / "scripts" / "say.sh"
        script.parent.mkdir(parents=True, mode=0o700)
        script.write_text(f"""printf '{{"system_reminder": "%s"}}' "{reason}" > "$CHRYS_HOOK_RESULT"\n""")
        write(path, {**hook("say"), "run": {"type": "script", "path": "scripts/say.sh"}})
    layers.start()

    assert layers.dispatch()["reminders"] == ["the project's", "the user's"]

    # The script is part of what was trusted.
    with (layers.project.parent / "scripts" / "say.sh").open("a") as file:
        file.write("exit 1\n")
    changed = layers.dispatch()
    assert changed["decision"] == "block"
    assert changed["handlers"][0]["problem"]["kind"] == "changed"


# ----------------------------------------------------------------------------------------------------------------------
# Settings


def test_157_a_file_of_settings_alone_is_a_layer(layers: Layers) -> None:
    """Its grace is that of the project's hooks, which say nothing."""
    write(layers.project, hook("p", "sleep 30", "after_turn", execution={"mode": "async"}))
    write(layers.user, shutdown_grace_seconds=0.2)
    layers.start()
    with layers.home.client() as client:
        name, opened = layers.open(client)
        assert (source(opened, "chrys")["state"], source(opened, "chrys")["hooks"]) == ("loaded", 0)
        turn = {"turn": 1, "status": "ok", "failed": False}
        event = {"execution_id": name, "event": "after_turn", "payload": turn}
        (report,) = client.call("hook/dispatch", **event)["handlers"]

        # The hook has 30 s; whoever waited for it would not be answered in time.
        drained = client.call("execution/drain", execution_id=name, scope="session")

    assert drained["cancelled"] == [report["invocation_id"]]


def observers(prefix: str, count: int, go: Path) -> list[Entry]:
    """Hooks that each wait for a file (outside the project: one inside that its hooks name is part of the trust)."""
    line = f"touch {prefix}-$CHRYS_HOOK_ID; until [ -e {go} ]; do sleep 0.02; done"
    return [
        hook(f"{prefix}{at}", line, "session_start", execution={"mode": "fire_and_forget"})
        for at in range(count)
    ]


@pytest.mark.parametrize(
    ("theirs", "mine", "at_once"),
    [
        pytest.param({"max_parallel_hooks": 1}, {"max_parallel_hooks": 3}, (1, 3), id="44-114-each-its-own"),
        pytest.param({}, {"max_parallel_hooks": 2}, (2, 2), id="45-115-the-project-is-silent"),
        pytest.param(
            {"max_parallel_hooks": 4}, {"max_parallel_hooks": 1}, (4, 1), id="46-the-default-written"
        ),
        pytest.param({"max_parallel_hooks": 1}, {}, (1, 4), id="a-project-lowers-nothing-of-the-user"),
        pytest.param({}, {}, (4, 4), id="1-47-the-default-of-both"),
        pytest.param({"shutdown_grace_seconds": 9}, {"max_parallel_hooks": 2}, (2, 2), id="by-field"),
    ],
)
def test_settings_of_the_layers(
    layers: Layers,
    until: Callable[..., Any],
    theirs: dict[str, Any],
    mine: dict[str, Any],
    at_once: tuple[int, int],
) -> None:
    go = layers.home.root / "go"
    write(layers.project, *observers("p", 5, go), **theirs)
    write(layers.user, *observers("g", 5, go), hook("barrier"), **mine)
    layers.start()
    with layers.home.client() as client:
        name, _ = layers.open(client)
        event = {"execution_id": name, "event": "session_start", "payload": {}}
        assert len(client.call("hook/dispatch", **event)["handlers"]) == 10

        def running() -> tuple[int, int]:
            files = [path.name for path in layers.workspace.iterdir()]
            return sum(one.startswith("p-") for one in files), sum(one.startswith("g-") for one in files)

        until(lambda: running() == at_once, f"{at_once} at once")
        # Had more of them been let in, they would have been started before this one.
        gate = {"execution_id": name, "event": "user_prompt_submit", "payload": {"text": "x"}}
        assert names(client.call("hook/dispatch", **gate)) == ["user:chrys:barrier"]
        assert running() == at_once
        go.touch()
        until(lambda: running() == (5, 5), "all of them")
    until(lambda: len(layers.home.records("hook.finished")) == 11, "their ends")


# ----------------------------------------------------------------------------------------------------------------------
# Durable jobs


class Jobs:
    """Both layers with a durable hook of the same id, whose jobs outlive a daemon that was killed.

    Attributes:
        script: What the project's hook runs.
    """

    def __init__(self, layers: Layers, until: Callable[..., Any]) -> None:
        self.layers = layers
        self.until = until
        self._runs: Path = layers.home.root / "runs"
        self._go: Path = layers.home.root / "go"
        self.script = layers.project.parent / "scripts" / "told.sh"
        durable = {"mode": "async", "delivery": "durable"}
        entry = hook("same", self._line("user"), "after_turn", execution=durable)
        write(layers.user, entry, outbox_retry_age_seconds=0)
        write(layers.project, {**entry, "run": {"type": "script", "path": "scripts/told.sh"}})
        self.script.parent.mkdir()
        self.script.write_text(self._line("project") + "\n")

    def _line(self, layer: str) -> str:
        return f"echo {layer} >> {self._runs}; until [ -e {self._go} ]; do sleep 0.02; done"

    def runs(self) -> list[str]:
        return sorted(self._runs.read_text().split()) if self._runs.exists() else []

    def begin_and_kill(self) -> None:
        """Both hooks run when the daemon is killed."""
        daemon = self.layers.start()
        with self.layers.home.client() as client:
            name, _ = self.layers.open(client)
            turn = {"turn": 1, "status": "ok", "failed": False}
            event = {"execution_id": name, "event": "after_turn", "payload": turn}
            assert names(client.call("hook/dispatch", **event)) == [
                "project:project-chrys:same",
                "user:chrys:same",
            ]
            self.until(lambda: self.runs() == ["project", "user"], "the first runs")
            daemon.kill()

    def go(self) -> None:
        self._go.touch()

    def listed(self) -> dict[str, Entry]:
        with self.layers.home.client() as client:
            jobs = client.call("outbox/list")["jobs"]
        assert len(jobs) == 2
        return {job["hook"].removeprefix("chrys:").removesuffix(":same"): job for job in jobs}


@pytest.fixture
def jobs(layers: Layers, until: Callable[..., Any]) -> Jobs:
    return Jobs(layers, until)


def test_88_101_a_job_finds_its_hook_by_its_layer(layers: Layers, jobs: Jobs) -> None:
    jobs.begin_and_kill()
    assert layers.home.start().ready

    jobs.until(lambda: jobs.runs() == ["project", "project", "user", "user"], "the second runs")
    jobs.go()

    layers.home.wait_for_record("outbox.done", 2)
    found = {layer: (job["state"], job["attempts"]) for layer, job in jobs.listed().items()}
    assert found == {"project:project-chrys": ("done", 2), "user:chrys": ("done", 2)}


@pytest.mark.parametrize("why", ["revoked", "changed", "off"])
def test_102_jobs_of_a_project_that_may_not_run_wait(layers: Layers, jobs: Jobs, why: str) -> None:
    """Nothing of it is started, nothing is given up, and the user's jobs go on."""
    jobs.begin_and_kill()
    script = jobs.script.read_text()
    if why == "changed":
        jobs.script.write_text("echo evil >> " + script.partition(">> ")[2])
    elif why == "off":
        # Not blank: for a second that would be taken for a file that is being written.
        layers.home.write_settings("[projects]\nenabled = false\n")
    else:
        for grant in (layers.home.state / "trust").rglob("*"):
            if grant.is_file():
                grant.unlink()
    assert layers.home.start().ready
    elsewhere = layers.home.root / "elsewhere"
    elsewhere.mkdir()
    layers.opened(elsewhere)

    jobs.until(lambda: jobs.runs() == ["project", "user", "user"], "the user's job")
    jobs.go()
    layers.home.wait_for_record("outbox.done")
    waiting = layers.home.wait_for_record("outbox.waiting")

    assert waiting["hook"] == "chrys:project:project-chrys:same"
    job = jobs.listed()["project:project-chrys"]
    assert (job["state"], job["attempts"]) == ("pending", 1)
    if why == "changed":
        jobs.script.write_text(script)
    elif why == "off":
        layers.home.write_settings(ENABLED)
    else:
        layers.grant()
    layers.opened()
    layers.home.wait_for_record("outbox.done", 2)
    assert jobs.runs() == ["project", "project", "user", "user"]
