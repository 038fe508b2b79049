"""What large messages cost a daemon, seen from outside: it is a fresh process, in which nothing else has run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

MIB = 2**20


def memory_bytes(pid, field):
    """`VmRSS` is what the process has now, `VmHWM` the most it ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def dispatch(prompt):
    params = {"execution_id": "run-1", "event": "UserPromptSubmit", "payload": {"prompt": prompt}}
    return json.dumps({"jsonrpc": "2.0", "id": "p", "method": "hook/dispatch", "params": params}).encode()


def test_16_mib_work_and_17_are_refused_and_the_memory_comes_back(home):
    home.write_hooks(UserPromptSubmit=["wc -c >&2; exit 2"])
    daemon = home.start()
    fits = dispatch("x" * (16 * MIB - len(dispatch(""))))
    assert len(fits) == 16 * MIB
    with daemon.client() as client:
        client.open()
        before = memory_bytes(daemon.pid, "VmRSS")
        for _ in range(3):
            client.send_line(fits)
            outcome = client.receive()["result"]
            assert outcome["decision"] == "block"
            # The envelope has the prompt twice.
            assert int(outcome["reason"]) > 32 * MIB - 1000
            client.send_line(b"x" * (17 * MIB))
            refused = client.receive()
            assert (refused["id"], refused["error"]["code"]) == (None, -32001)
        assert client.call("daemon/ping") == {"pong": True}

        assert memory_bytes(daemon.pid, "VmRSS") - before < 64 * MIB
        assert memory_bytes(daemon.pid, "VmHWM") - before < 12 * 16 * MIB
