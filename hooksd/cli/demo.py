"""`hooksd demo`: the main job in one go, with a daemon, a workspace and a configuration of its own.

Everything is real: a daemon process, its socket, the shipped example hooks in shell, Python and Node, for agents of two
dialects. Nothing outside a temporary directory is read or written. It is also a self-check: an outcome other than the expected one is exit 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hooksd.cli import render
from hooksd.cli.daemon_session import add_json_argument, fail, terminal
from hooksd.cli.demo_scenes import SCENES, Scene
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import Terminal, safe
from hooksd_client import Client
from hooksd_client.errors import ClientError


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "examples_directory", "run"]

NAME = "demo"
HELP = "see the main job: real events through the example hooks, in a private daemon"
EXAMPLES = """\
examples:
  hooksd demo
  hooksd demo --json
exit status: 0 every outcome was as it should be, 1 otherwise
"""

_READY_S = 20.0
"""From the start of the daemon to its first answer."""
_PHONE_S = 10.0
"""Until a fire-and-forget hook has left its mark."""
_LEFT_OUT = {"hooks/check-command.js": "node", "hooks/guard-shell.sh": "jq"}
"""Example hooks that are left out of the demo, and said to be, where their program is not there."""
_EXECUTIONS = {"bamboo": "demo", "chrys": "demo-chrys"}
"""The agents of the story, and their executions."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `demo`."""
    add_json_argument(parser)
    parser.add_argument(
        "--keep", action="store_true", help="keep the temporary directory, with the log, and say where it is"
    )


def examples_directory() -> Path:
    """Where the example hooks lie: in the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_examples"
    return installed if installed.is_dir() else package.parent / "examples"


def run(args: argparse.Namespace) -> int:
    """Tell the story; 1 if an outcome is not as expected."""
    speaker = terminal()
    # A socket address is short; the default temporary directory may be deep.
    base = Path(tempfile.mkdtemp(prefix="hooksd-demo-", dir="/tmp" if os.access("/tmp", os.W_OK) else None))  # noqa: S108 - mkdtemp makes it private
    try:
        with _daemon(base) as socket:
            told = _play(speaker, base, socket, quiet=args.json)
    finally:
        if not args.keep:
            shutil.rmtree(base, ignore_errors=True)
    wrong = [scene for scene in told["scenes"] if not scene["as_expected"]]
    if args.json:
        speaker.json(told)
    else:
        speaker.line()
        count = len(told["scenes"])
        if wrong:
            speaker.line(speaker.style(f"{len(wrong)} of {count} outcomes were not as expected", "bold red"))
        else:
            speaker.line(speaker.style(f"{count} events, every outcome as it should be", "green"))
        for text in told["left_out"]:
            speaker.line(f"left out: {text}")
        if args.keep:
            speaker.line(f"kept: {base}")
    return ExitCode.NO if wrong else ExitCode.DONE


# ----------------------------------------------------------------------------------------------------------------------
# The private daemon


@contextmanager
def _daemon(base: Path) -> Iterator[str]:
    for name in ("home", "bamboo", "config", "state", "run", "project"):
        (base / name).mkdir(mode=0o700)
    chrys = base / "home" / ".chrys"
    chrys.mkdir(mode=0o700)
    shutil.copytree(examples_directory() / "chrys", chrys / "hooks")
    examples = examples_directory() / "bamboo"
    shutil.copytree(examples / "hooks", base / "project" / "hooks")
    config = json.loads((examples / "hooks.json").read_text(encoding="utf-8"))
    for name, missing in _LEFT_OUT.items():
        if shutil.which(missing) is None:
            _leave_out(config["lifecycle_hooks"], name)
    (base / "bamboo" / "hooks.json").write_text(json.dumps(config), encoding="utf-8")
    (base / "bamboo" / "hooks.json").chmod(0o600)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("HOOKSD_", "XDG_"))
    }
    environment |= {
        "HOME": str(base / "home"),
        "BAMBOO_DATA_DIR": str(base / "bamboo"),
        "XDG_CONFIG_HOME": str(base / "config"),
        "XDG_STATE_HOME": str(base / "state"),
        "XDG_RUNTIME_DIR": str(base / "run"),
    }
    socket = str(base / "run" / "hooksd" / "hooksd.sock")
    ready, told_ready = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "hooksd", "serve", "--socket", socket, "--ready-fd", str(told_ready)],
            env=environment,
            cwd=base,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(told_ready,),
        )
    finally:
        os.close(told_ready)
    try:
        # One line when it is ready, end of file when it could not start.
        line = os.read(ready, 1)
        if not line:
            _, errors = process.communicate(timeout=_READY_S)
            fail(
                ExitCode.NO,
                "the demo's daemon did not start",
                safe(errors.decode("utf-8", "replace").strip()),
            )
        yield socket
    finally:
        os.close(ready)
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=_READY_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _leave_out(section: dict[str, Any], path: str) -> None:
    for groups in section.values():
        for group in groups if isinstance(groups, list) else ():
            group["hooks"] = [hook for hook in group["hooks"] if hook.get("path") != path]


# ----------------------------------------------------------------------------------------------------------------------
# The story


def _play(speaker: Terminal, base: Path, socket: str, *, quiet: bool) -> dict[str, Any]:
    project = base / "project"
    told: dict[str, Any] = {"scenes": [], "left_out": []}
    try:
        with Client(socket_path=socket, timeout=60.0) as client:
            for agent, execution in _EXECUTIONS.items():
                opened = client.call("execution/open", _execution(execution, project, agent))
                if not quiet:
                    _introduce(speaker, agent, opened)
            for scene in SCENES:
                missing = [program for program in scene.needs if shutil.which(program) is None]
                if missing:
                    told["left_out"].append(f"{scene.title} (needs {', '.join(missing)})")
                    continue
                if scene.writes is not None:
                    (project / scene.writes[0]).write_text(scene.writes[1], encoding="utf-8")
                outcome = _dispatch(client, _EXECUTIONS[scene.agent], scene.event, scene.payload)
                told["scenes"].append(_judge(scene, outcome))
                if not quiet:
                    _show(speaker, scene.title, outcome)
            told["scenes"].append(_notification(speaker, client, project, quiet=quiet))
            told["scenes"] += _frozen(speaker, client, base, quiet=quiet)
            for execution in _EXECUTIONS.values():
                client.call("execution/close", {"execution_id": execution})
    except ClientError as error:
        fail(ExitCode.NO, f"the demo's daemon did not answer as it should: {safe(error)}")
    return told


def _introduce(speaker: Terminal, agent: str, opened: Mapping[str, Any]) -> None:
    hooks = sum(source["hooks"] for source in opened["sources"])
    paths = ", ".join(source["path"] for source in opened["sources"] if source["hooks"])
    speaker.line(
        f"{agent}: {hooks} hooks of {safe(paths)}; "
        f"execution `{opened['execution_id']}` is bound to revision {opened['revision']}"
    )


def _execution(name: str, project: Path, agent: str = "bamboo") -> dict[str, Any]:
    return {
        "execution_id": name,
        "agent": agent,
        "session_id": f"session-{name}",
        "workspace_path": str(project),
        "model": "demo-model",
    }


def _dispatch(client: Client, execution: str, event: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    outcome: dict[str, Any] = client.call(
        "hook/dispatch", {"execution_id": execution, "event": event, "payload": dict(payload)}
    )
    return outcome


def _judge(scene: Scene, outcome: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(outcome["arguments"])
    texts = [outcome.get("reason") or "", *outcome["contexts"], *outcome["reminders"], arguments]
    said = not scene.says or any(scene.says in text for text in texts)
    return {
        "title": scene.title,
        "event": scene.event,
        "expected": scene.decision,
        "decision": outcome["decision"],
        "as_expected": said and outcome["decision"] == scene.decision,
        "outcome": outcome,
    }


def _show(speaker: Terminal, title: str, outcome: Mapping[str, Any]) -> None:
    speaker.line()
    speaker.line(f"{speaker.style('▸', 'cyan')} {title}")
    render.outcome(speaker, outcome)
    speaker.flush()


def _notification(speaker: Terminal, client: Client, project: Path, *, quiet: bool) -> dict[str, Any]:
    """Fire and forget: the answer comes at once, the hook runs on."""
    title = "a notification: the answer comes at once, the hook runs on"
    payload = {"category": "done", "priority": "normal", "title": "Demo", "body": "all events were sent"}
    told = client.call("hook/notify", {"execution_id": "demo", "event": "Notification", "payload": payload})
    phone = project / "phone.log"
    end = time.monotonic() + _PHONE_S
    while (
        not (phone.exists() and phone.read_text(encoding="utf-8").endswith("\n")) and time.monotonic() < end
    ):
        time.sleep(0.02)
    text = phone.read_text(encoding="utf-8").strip() if phone.exists() else ""
    if not quiet:
        speaker.line()
        speaker.line(f"{speaker.style('▸', 'cyan')} {title}")
        speaker.line(
            f"{speaker.style('Notification', 'bold')} → accepted, {len(told['invocation_ids'])} hook started"
        )
        speaker.line(f"{render.label(speaker, 'phone.log')}{safe(text)}")
    return {
        "title": title,
        "event": "Notification",
        "as_expected": text == "[normal] Demo: all events were sent",
    }


def _frozen(speaker: Terminal, client: Client, base: Path, *, quiet: bool) -> list[dict[str, Any]]:
    """An edit never changes what an open execution runs; a new one gets it."""
    strict = {
        "lifecycle_hooks": {
            "enabled": True,
            "PreToolUse": [
                {"hooks": [{"type": "command", "command": "echo 'the new rule: nothing runs' >&2; exit 2"}]}
            ],
        }
    }
    edited = base / "bamboo" / "hooks.json.new"
    edited.write_text(json.dumps(strict), encoding="utf-8")
    edited.chmod(0o600)
    edited.replace(base / "bamboo" / "hooks.json")
    payload = {"tool_name": "Read", "tool_call_id": "call-9", "tool_input": {}}
    client.call("execution/open", _execution("later", base / "project"))
    found = []
    for execution, decision, title in (
        ("demo", "none", "the configuration is edited: the open execution keeps what it was opened with"),
        ("later", "block", "a new execution runs the new revision"),
    ):
        outcome = _dispatch(client, execution, "PreToolUse", payload)
        if not quiet:
            _show(speaker, title, outcome)
        scene = Scene(title=title, event="PreToolUse", payload=payload, decision=decision)
        found.append(_judge(scene, outcome))
    client.call("execution/close", {"execution_id": "later"})
    return found
