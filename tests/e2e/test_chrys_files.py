"""The payload and answer files of Chrys hooks around the life of a real daemon."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def configure(home: Any, line: str) -> None:
    directory = home.root / "home" / ".chrys" / "hooks"
    directory.mkdir(parents=True, mode=0o700)
    entry = {
        "id": "slow",
        "event": "user_prompt_submit",
        "run": {"type": "shell", "shell": line},
        "execution": {"mode": "blocking", "timeout_seconds": 20},
    }
    (directory / "hooks.yaml").write_text(json.dumps({"hooks": [entry]}))


def exchange(home: Any) -> Path:
    return Path(home.socket).parent / "exchange"


def test_what_a_killed_daemon_left_is_removed_at_the_next_start(home: Any, until: Any) -> None:
    seen = home.root / "seen"
    configure(home, f'echo "$$ $CHRYS_HOOK_PAYLOAD_FILE" > {seen}.new; mv {seen}.new {seen}; sleep 15')
    first = home.start()
    with first.client() as client:
        client.open(agent="chrys", workspace_path=str(home.root))
        client.send(
            "hook/dispatch", execution_id="run-1", event="user_prompt_submit", payload={"text": "secret"}
        )
        pid, payload = until(lambda: seen.exists() and seen.read_text().split(), "the hook")
        first.kill()
    os.killpg(int(pid), 9)
    assert "secret" in Path(payload).read_text()

    second = home.start()

    assert second.ready
    assert os.listdir(exchange(home)) == []
    assert home.wait_for_record("daemon.swept")["left_over_runs"] == 1


def test_files_lie_beside_the_socket_and_go_with_the_run(home: Any) -> None:
    seen = home.root / "seen"
    configure(home, f'dirname "$CHRYS_HOOK_RESULT" > {seen}')
    daemon = home.start()
    with daemon.client() as client:
        client.open(agent="chrys", workspace_path=str(home.root))
        outcome = client.call(
            "hook/dispatch", execution_id="run-1", event="user_prompt_submit", payload={"text": "x"}
        )

    assert outcome["decision"] == "none"
    assert Path(seen.read_text().strip()).parent == exchange(home)
    assert os.listdir(exchange(home)) == []
    assert exchange(home).stat().st_mode & 0o777 == 0o700
