"""What the README and the examples show is run, against a daemon that blocks the second tool call."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "client/README.md").read_text(), re.DOTALL)


@pytest.fixture
def guarding(daemon: Any) -> Any:
    """Blocks `rm -rf`, adds a context to a prompt and refuses the first stop."""
    stops: list[int] = []

    def decide(peer: Any, asked: Any) -> None:
        event, payload = asked["params"]["event"], asked["params"].get("payload", {})
        outcome = {"event": event, "decision": "none"}
        if "rm -rf" in str(payload.get("tool_input")):
            outcome = {"event": event, "decision": "block", "reason": "not that"}
        elif event == "UserPromptSubmit":
            outcome["contexts"] = ["be kind"]
        elif event == "Stop" and not stops:
            stops.append(1)
            outcome = {"event": event, "decision": "block", "reason": "tests are missing"}
        peer.send({"id": asked["id"], "result": outcome})

    daemon.on("hook/dispatch", decide)
    return daemon


def run(daemon: Any, tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOOKSD_SOCKET": daemon.path, "XDG_STATE_HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, timeout=30, check=False
    )


def test_the_readme_s_first_example(guarding: Any, tmp_path: Path) -> None:
    done = run(guarding, tmp_path, "-c", BLOCKS[0])

    assert done.stdout.splitlines() == [
        "Bash {'command': 'ls'} -> may run",
        "Bash {'command': 'rm -rf /'} -> not that",
    ]
    assert (done.returncode, done.stderr) == (0, "")
    assert len([line for line in BLOCKS[0].splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize("block", BLOCKS[1:])
def test_the_other_examples_of_the_readme_are_python_that_imports(block: str) -> None:
    head = block.split("with Client", maxsplit=1)[0]

    compile(block, "README.md", "exec")
    exec(head, {})


def test_the_toy_agent(guarding: Any, tmp_path: Path) -> None:
    done = run(guarding, tmp_path, str(ROOT / "examples/toy_agent.py"))

    assert done.stdout.splitlines() == [
        "   UserPromptSubmit tells the model: be kind",
        "the model calls Bash {'command': 'ls -l'}",
        "   (pretended to run {'command': 'ls -l'})",
        "the model calls Bash {'command': 'rm -rf /'}",
        "   PreToolUse blocks: not that",
        "the model calls Bash {'command': 'date'}",
        "   (pretended to run {'command': 'date'})",
        "   Stop blocks: tests are missing",
    ]
    assert (done.returncode, done.stderr) == (0, "")
    stops = [
        asked["params"]["payload"] for asked in guarding.requests if asked["params"].get("event") == "Stop"
    ]
    assert stops == [{"stop_hook_active": False}, {"stop_hook_active": True}]
    assert guarding.methods()[:2] == ["initialize", "execution/open"]
    assert guarding.methods()[-2:] == ["execution/drain", "execution/close"]


def test_the_toy_agent_without_a_daemon(daemon: Any, tmp_path: Path) -> None:
    daemon.stop()

    done = run(daemon, tmp_path, str(ROOT / "examples/toy_agent.py"))

    assert done.returncode == 1
    assert done.stderr.startswith("toy_agent: hooksd cannot be reached")
