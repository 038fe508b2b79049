"""Trust in a project, from the terminal of a person to a hook that runs or does not: real daemons, real files."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


pytestmark = pytest.mark.e2e

COMMAND = [sys.executable, "-m", "hooksd"]
ENABLED = "[projects]\nenabled = true\n"
PATIENCE_S = 30.0


class Done:
    """A command that has ended."""

    def __init__(self, code: int, out: str, err: str = "") -> None:
        self.code, self.out, self.err = code, out, err
        assert "Traceback" not in out + err, out + err


class Project:
    """A workspace that brings one hook along, which names one script."""

    def __init__(self, home: Any) -> None:
        self.home = home
        self.path = home.root / "project"
        self.script = self.path / "hooks" / "guard.sh"
        self.script.parent.mkdir(parents=True)
        (self.path / ".bamboo").mkdir()
        handler = {"type": "command", "command": "./hooks/guard.sh"}
        document = {"lifecycle_hooks": {"enabled": True, "PreToolUse": [{"hooks": [handler]}]}}
        (self.path / ".bamboo" / "hooks.json").write_text(json.dumps(document))
        self.write("echo 'the project says no' >&2; exit 2")

    def write(self, text: str) -> None:
        self.script.write_text(f"#!/bin/sh\n{text}\n")
        self.script.chmod(0o755)

    def run(self, *arguments: str) -> Done:
        """`hooksd …` without a terminal, as an agent would run it."""
        process = subprocess.run(
            [*COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=self.path,
            env=self.home.environment,
            start_new_session=True,
        )
        return Done(process.returncode, process.stdout, process.stderr)

    def on_terminal(self, *arguments: str, answer: str, out: int | None = None) -> Done:
        """`hooksd …` in a terminal of its own, on which somebody answers the question."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.path)
            if out is not None:
                os.dup2(out, 1)
            os.execve(COMMAND[0], [*COMMAND, *arguments], {**self.home.environment, "NO_COLOR": "1"})
        text, answered = "", False
        deadline = time.monotonic() + PATIENCE_S
        try:
            while time.monotonic() < deadline:
                if select.select([terminal], [], [], 0.1)[0]:
                    try:
                        read = os.read(terminal, 65536)
                    except OSError:
                        break
                    if not read:
                        break
                    text += read.decode()
                if not answered and "Type yes" in text and text.endswith(": "):
                    os.write(terminal, answer.encode() + b"\n")
                    answered = True
            else:
                os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
        finally:
            os.close(terminal)
        return Done(os.waitstatus_to_exitcode(status), text.replace("\r\n", "\n"))

    def grant(self) -> None:
        assert self.on_terminal("trust", "grant", answer="yes").code == 0

    def decide(self, client: Any, execution_id: str) -> Any:
        """The outcome of a gate event in an execution that is opened with it unless it is open."""
        client.open(execution_id, workspace_path=str(self.path))
        payload = {"tool_call_id": "c-1", "tool_name": "Bash", "parsed_args": {"command": "true"}}
        return client.call("hook/dispatch", execution_id=execution_id, event="PreToolUse", payload=payload)


@pytest.fixture
def project(home: Any) -> Project:
    """A project in the surroundings of a daemon that lets projects be trusted."""
    home.write_settings(ENABLED)
    made = Project(home)
    assert home.start().ready
    return made


def test_the_whole_way(home: Any, project: Project) -> None:
    """Untrusted, granted on a terminal, run, changed, looked at, granted again, revoked."""
    with home.client() as client:
        before = project.decide(client, "run-1")
        assert (before["decision"], before["handlers"]) == ("none", [])
        shown = project.run("trust", "show")
        assert shown.code == 0
        assert "is untrusted" in shown.out
        assert "+echo 'the project says no' >&2; exit 2" in shown.out
        assert "imports" in shown.out
        assert f"hooksd trust grant {project.path}" in shown.out
        granted = project.on_terminal("trust", "grant", answer="yes")
        assert granted.code == 0, granted.out
        assert "+echo 'the project says no' >&2; exit 2" in granted.out
        assert "is trusted (revision 2)" in granted.out
        assert home.wait_for_record("config.changed")["state"] == "loaded"
        # What was opened before keeps what it was opened with.
        assert project.decide(client, "run-1")["handlers"] == []
        assert project.decide(client, "run-2")["reason"] == "the project says no"
        project.write("exit 0")
        blocked = project.decide(client, "run-2")
        assert blocked["decision"] == "block"
        assert blocked["handlers"][0]["problem"]["kind"] == "changed"
        assert f"hooksd trust show {project.path}" in blocked["reason"]
        assert project.decide(client, "run-3")["handlers"][0]["problem"]["kind"] == "changed"
        assert "changed " in project.run("trust", "list").out
        shown = project.run("trust", "show", str(project.path))
        assert "-echo 'the project says no' >&2; exit 2\n+exit 0\n" in shown.out
        project.grant()
        assert project.decide(client, "run-4")["decision"] == "none"
        assert project.decide(client, "run-4")["handlers"][0]["status"] == "ok"
        revoked = project.run("trust", "revoke")
        assert (revoked.code, "not trusted any more" in revoked.out) == (0, True)
        assert project.decide(client, "run-5")["handlers"] == []
        assert project.run("trust", "revoke").code == 1


def test_trust_survives_a_restart_and_a_kill(home: Any, project: Project) -> None:
    project.grant()
    running = home.started[-1]
    running.send(signal.SIGKILL)
    running.wait()
    second = home.start()
    with home.client() as client:
        assert project.decide(client, "run-1")["reason"] == "the project says no"
    assert second.stop() == 0
    project.write("exit 0")
    home.start()
    with home.client() as client:
        # A restart drops no gate: what was granted stays known.
        assert project.decide(client, "run-1")["handlers"][0]["problem"]["kind"] == "changed"


@pytest.mark.parametrize("answer", ["", "y", "YES", "no", "yes please", "oh yes"])
def test_only_a_typed_yes_grants(project: Project, answer: str) -> None:
    done = project.on_terminal("trust", "grant", answer=answer)

    assert done.code == 1
    assert "nothing was granted" in done.out
    assert "untrusted" in project.run("trust", "show").out


def test_without_a_terminal_nothing_is_granted(project: Project) -> None:
    done = project.run("trust", "grant")

    assert done.code == 2
    assert "wants a terminal" in done.err
    assert "agent" in done.err


def test_the_answer_comes_from_the_terminal_and_what_it_is_about_goes_there(project: Project) -> None:
    """Whatever stdout is: nobody says yes to what he did not see."""
    read_end, write_end = os.pipe()
    try:
        done = project.on_terminal("trust", "grant", answer="yes", out=write_end)
    finally:
        os.close(write_end)
    with open(read_end, "rb") as pipe:
        assert pipe.read() == b""
    assert done.code == 0
    assert "+echo 'the project says no'" in done.out


def test_what_changed_meanwhile_is_not_granted(project: Project) -> None:
    """Between the question and the answer somebody swaps the script."""
    swapped: list[bool] = []

    class Swap(str):
        __slots__ = ()

        def encode(self, *_: object) -> bytes:  # type: ignore[override]
            project.write("exit 0")
            swapped.append(True)
            return b"yes"

    done = project.on_terminal("trust", "grant", answer=Swap("yes"))

    assert swapped
    assert done.code == 1
    assert "is not what was looked at any more" in done.out
    assert "untrusted" in project.run("trust", "show").out


def test_a_hook_cannot_grant_trust(home: Any, project: Project, until: Callable[..., Any]) -> None:
    """Nor what a hook started: it is known by its depth."""
    with home.client() as client:
        digest = client.call("trust/show", dir=str(project.path))["digest"]
    answer = home.root / "answer"
    program = (
        "import json, os, socket; s = socket.socket(socket.AF_UNIX); s.connect(os.environ['HOOKSD_SOCKET']); "
        f"s.sendall(json.dumps({{'jsonrpc': '2.0', 'id': 1, 'method': 'trust/grant', 'params': "
        f"{{'dir': {str(project.path)!r}, 'digest': {digest!r}}}}}).encode() + b'\\n'); "
        f"open({str(answer)!r}, 'wb').write(s.makefile('rb').readline())"
    )
    script = home.root / "grant.py"
    script.write_text(program)
    home.write_hooks(Stop=[f"{sys.executable} {script}"])
    with home.client() as client:
        client.open("run-1", workspace_path=str(home.root))
        client.call("hook/dispatch", execution_id="run-1", event="Stop", payload={"stop_hook_active": False})
    error = json.loads(until(lambda: answer.exists() and answer.read_text()))["error"]

    assert error["code"] == -32016
    assert "untrusted" in project.run("trust", "show").out


def test_json_of_list_and_show(project: Project) -> None:
    shown = json.loads(project.run("trust", "show", "--json").out)
    assert (shown["dir"], shown["state"]) == (str(project.path), "untrusted")
    assert [file["path"] for file in shown["files"]] == [".bamboo/hooks.json", "hooks/guard.sh"]
    assert json.loads(project.run("trust", "list", "--json").out)["projects"][0]["digest"] == shown["digest"]
    project.grant()
    (listed,) = json.loads(project.run("trust", "list", "--json").out)["projects"]
    assert (listed["state"], listed["digest"]) == ("trusted", shown["digest"])
    revoked = json.loads(project.run("trust", "revoke", "--json").out)
    assert (revoked["dir"], revoked["revoked"]) == (str(project.path), True)


@pytest.mark.parametrize(
    "arguments", [("list", "x"), ("grant", "--json"), ("forget",), ("show", "a", "b"), ()]
)
def test_wrong_usage(project: Project, arguments: tuple[str, ...]) -> None:
    assert project.run("trust", *arguments).code == 2


def test_a_project_that_cannot_be_trusted_is_not_asked_about(project: Project) -> None:
    project.script.chmod(0o777)
    done = project.on_terminal("trust", "grant", answer="yes")

    assert done.code == 1
    assert "could be changed by others" in done.out
    assert "Type yes" not in done.out


def test_what_is_trusted_is_not_asked_about_again(project: Project) -> None:
    project.grant()
    done = project.on_terminal("trust", "grant", answer="yes")

    assert done.code == 0
    assert "nothing to do" in done.out


def test_text_of_a_project_cannot_act_on_the_terminal(project: Project) -> None:
    project.write("echo \x1b[2J\x1b]0;owned\x07 \u202e reversed\r hidden")
    for text in (project.run("trust", "show").out, project.on_terminal("trust", "grant", answer="no").out):
        assert "\x1b]0" not in text
        assert "\x1b[2J" not in text
        assert "\u202e" not in text
        assert "\\e[2J" in text
        assert "\\r hidden" in text


def test_a_dormant_project_is_told(home: Any) -> None:
    project = Project(home)
    assert home.start().ready
    with home.client() as client:
        opened = client.open("run-1", workspace_path=str(project.path))
    (source,) = [one for one in opened["sources"] if one["scope"] == "project"]
    assert source["state"] == "disabled"
    assert "enabled = true" in source["problems"][0]["hint"]
    assert f"hooksd trust show {project.path}" in source["problems"][0]["hint"]
    done = project.on_terminal("trust", "grant", answer="yes")
    assert done.code == 1
    assert "projects are off" in done.out or "of projects are off" in done.out
    assert project.run("trust", "list").code == 0


def test_no_daemon(home: Any) -> None:
    project = Project(home)

    assert project.run("trust", "list").code == 3
    assert project.on_terminal("trust", "grant", answer="yes").code == 3


def test_a_directory_without_hooks(home: Any, project: Project) -> None:
    nothing: Path = home.root / "nothing"
    nothing.mkdir()

    assert "brings no hooks along" in project.run("trust", "show", str(nothing)).out
    assert project.on_terminal("trust", "grant", str(nothing), answer="yes").code == 1
