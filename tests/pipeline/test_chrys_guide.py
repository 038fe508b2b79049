"""The examples of Chrys' authoring guide, as they are written there, run for real.

Those that send something send it to a program or a receiver of the test's own.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hooksd.model.decision import Decision
from hooksd.model.outcome import Outcome
from hooksd.model.report import Status


Bench = Any
"""The class is in conftest.py, which cannot be imported."""

needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="there is no jq")

PROTECT_ETC = """\
#!/usr/bin/env bash
set -euo pipefail

payload="$(cat "$CHRYS_HOOK_PAYLOAD_FILE")"
path="$(jq -r '.tool.args.path // empty' <<<"$payload")"

if [[ "$path" == /etc/* ]]; then
  cat >"$CHRYS_HOOK_RESULT" <<EOF
{ "action": "block", "reason": "writes to /etc are not allowed" }
EOF
fi

exit 0
"""

PROTECT_ETC_YAML = """\
- id: protect-etc
  event: before_tool_call
  match:
    tool_kind: filesystem.write
  run:
    type: script
    path: scripts/protect_etc.sh
  execution:
    mode: blocking
    timeout_seconds: 5
    on_error: block
"""

REDACT = '''\
#!/usr/bin/env python3
"""Replace AWS secret keys with placeholders before shell tools run."""

import json
import os
import re

PATTERN = re.compile(r"AKIA[0-9A-Z]{16}")

with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"]) as f:
    payload = json.load(f)

cmd = payload.get("tool", {}).get("args", {}).get("command", "")
redacted = PATTERN.sub("AKIA****REDACTED****", cmd)

if redacted != cmd:
    with open(os.environ["CHRYS_HOOK_RESULT"], "w") as f:
        json.dump(
            {"action": "modify", "args_override": {"command": redacted}},
            f,
        )
'''

REDACT_YAML = """\
- id: redact-shell-secrets
  event: before_tool_call
  match:
    tool_kind: shell          # matches zsh/bash/pwsh/powershell/cmd/etc.
  run:
    type: script
    path: scripts/redact_secrets.py
  execution:
    mode: blocking
    timeout_seconds: 5
    on_error: warn
"""

REMINDERS = '''\
#!/usr/bin/env python3
"""Append a project-specific <system-reminder> to user prompts."""

import json
import os

REMINDER = (
    "[Project: customer-portal] Follow the conventions in docs/style.md. "
    "Run `pnpm test` before claiming any task is done."
)

with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"]) as f:
    payload = json.load(f)

# Only inject on fresh turns, not mid-turn user injections.
if payload.get("injected"):
    raise SystemExit(0)

with open(os.environ["CHRYS_HOOK_RESULT"], "w") as f:
    json.dump({"system_reminder": REMINDER}, f)
'''

REMINDERS_YAML = """\
- id: project-reminders
  event: user_prompt_submit
  run:
    type: script
    path: scripts/project_reminders.py
  execution:
    mode: blocking
    timeout_seconds: 2
    on_error: warn
"""

RUFF = '''\
#!/usr/bin/env python3
"""After edit_file, run ruff and append its findings to the tool result."""

import json
import os
import subprocess

with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"]) as f:
    payload = json.load(f)

path = payload.get("tool", {}).get("args", {}).get("path")
if not path:
    raise SystemExit(0)

proc = subprocess.run(
    ["uv", "run", "ruff", "check", "--quiet", path],
    capture_output=True,
    check=False,
    text=True,
)
if proc.stdout.strip():
    with open(os.environ["CHRYS_HOOK_RESULT"], "w") as f:
        json.dump(
            {"extra_context": f"[ruff]\\n{proc.stdout.strip()}"},
            f,
        )
'''

RUFF_YAML = """\
- id: ruff-after-edit
  event: after_tool_call
  match:
    tool_name: edit_file
    args:
      path:
        regex: "\\\\.py$"
  run:
    type: script
    path: scripts/ruff_summary.py
  execution:
    mode: blocking          # extra_context only flows from blocking hooks
    timeout_seconds: 60
    on_error: warn
"""

NOTIFY = """\
#!/usr/bin/env bash
set -euo pipefail

payload="$(cat "$CHRYS_HOOK_PAYLOAD_FILE")"
status="$(jq -r '.status' <<<"$payload")"

case "$(uname -s)" in
  Darwin)
    osascript -e "display notification \\"Turn finished ($status)\\" with title \\"Chrys\\""
    ;;
  Linux)
    notify-send "Chrys" "Turn finished ($status)"
    ;;
esac
"""

NOTIFY_YAML = """\
- id: notify-turn-done
  event: after_turn
  run:
    type: script
    path: scripts/notify.sh
  execution:
    mode: fire_and_forget
    on_error: ignore
"""


def install(bench: Bench, yaml: str, **scripts: str) -> None:
    """Write the hooks file and its scripts where the guide says."""
    directory: Path = bench.root / "home" / ".chrys" / "hooks"
    (directory / "scripts").mkdir(parents=True)
    for name, text in scripts.items():
        (directory / "scripts" / name.replace("__", ".")).write_text(text)
    bench.write(directory / "hooks.yaml", "version: 1\nhooks:\n" + yaml)


def program(bench: Bench, name: str, text: str) -> dict[str, str]:
    """An environment whose PATH begins with a program of ours."""
    directory: Path = bench.root / "bin"
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(text)
    (directory / name).chmod(0o755)
    return {**bench.env, "PATH": f"{directory}:{os.environ['PATH']}"}


async def dispatch(bench: Bench, event: str, payload: dict[str, Any], env: Any = None) -> Outcome:
    if not bench.started:
        await bench.start()
        assert bench.store.status().problems == ()
    execution = await bench.open(agent="chrys", env=env)
    return await bench.dispatch(event, payload, execution=execution)


def tool(name: str, kind: str, **args: Any) -> dict[str, Any]:
    return {"tool": {"name": name, "kind": kind, "call_id": "abcdef123456", "args": args}}


@needs_jq
async def test_protect_etc(bench: Bench) -> None:
    install(bench, PROTECT_ETC_YAML, protect_etc__sh=PROTECT_ETC)

    blocked = await dispatch(
        bench, "before_tool_call", tool("edit_file", "filesystem.write", path="/etc/hosts")
    )
    other = await dispatch(bench, "before_tool_call", tool("edit_file", "filesystem.write", path="/tmp/x"))
    read = await dispatch(bench, "before_tool_call", tool("read_file", "filesystem.read", path="/etc/hosts"))

    assert (blocked.decision, blocked.reason) == (
        Decision.BLOCK,
        "protect-etc: writes to /etc are not allowed",
    )
    assert (other.decision, other.handlers[0].status) == (Decision.NONE, Status.OK)
    assert read.handlers == ()


async def test_redact_secrets(bench: Bench) -> None:
    install(bench, REDACT_YAML, redact_secrets__py=REDACT)
    key = "AKIA" + "A1B2C3D4" * 2

    redacted = await dispatch(bench, "before_tool_call", tool("zsh", "shell", command=f"x {key}", reason="r"))
    plain = await dispatch(bench, "before_tool_call", tool("zsh", "shell", command="ls", reason="r"))

    assert redacted.arguments == {"command": "x AKIA****REDACTED****", "reason": "r"}
    assert (redacted.decision, plain.arguments) == (Decision.NONE, None)


async def test_project_reminders(bench: Bench) -> None:
    install(bench, REMINDERS_YAML, project_reminders__py=REMINDERS)

    fresh = await dispatch(bench, "user_prompt_submit", {"text": "hi", "injected": False})
    injected = await dispatch(bench, "user_prompt_submit", {"text": "hi", "injected": True})

    (reminder,) = fresh.reminders
    assert reminder.startswith("[Project: customer-portal]")
    assert reminder.endswith("before claiming any task is done.")
    assert injected.reminders == ()


async def test_lint_summary(bench: Bench) -> None:
    install(bench, RUFF_YAML, ruff_summary__py=RUFF)
    env = program(bench, "uv", '#!/bin/sh\necho "$5: F401 unused import"\n')
    result = {"result": {"text": "OK", "duration_ms": 42, "error": False, "failed": False}}

    edited = {**tool("edit_file", "filesystem.write", path="src/foo.py"), **result}
    other = {**tool("edit_file", "filesystem.write", path="README.md"), **result}

    assert (await dispatch(bench, "after_tool_call", edited, env)).contexts == (
        "[ruff]\nsrc/foo.py: F401 unused import",
    )
    assert (await dispatch(bench, "after_tool_call", other, env)).handlers == ()


@needs_jq
async def test_desktop_notification(bench: Bench) -> None:
    install(bench, NOTIFY_YAML, notify__sh=NOTIFY)
    shown = bench.workspace / "shown"
    text = f'#!/bin/sh\necho "$*" > "{shown}.new" && mv "{shown}.new" "{shown}"\n'
    env = {**program(bench, "notify-send", text), **program(bench, "osascript", text)}

    outcome = await dispatch(bench, "after_turn", {"turn": 1, "status": "ok", "failed": False}, env)
    await bench.until(shown.exists)

    assert outcome.handlers[0].status is Status.STARTED
    assert "Turn finished (ok)" in shown.read_text()


@needs_jq
async def test_the_dry_run_of_the_guide(bench: Bench) -> None:
    install(bench, PROTECT_ETC_YAML, protect_etc__sh=PROTECT_ETC)
    payload = {
        "schema": 1,
        "event": "before_tool_call",
        "timestamp": "2026-05-14T15:00:00Z",
        "session_id": "session-1",
        "profile": "Code",
        "cwd": "/tmp",
        "tool": {
            "name": "edit_file",
            "kind": "filesystem.write",
            "call_id": "xxx",
            "args": {"path": "/etc/hosts", "old_string": "", "new_string": ""},
        },
    }

    outcome = await dispatch(bench, "before_tool_call", json.loads(json.dumps(payload)))

    assert outcome.decision is Decision.BLOCK
