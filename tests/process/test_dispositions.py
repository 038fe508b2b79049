"""In a process of its own: dispositions belong to the whole process."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

from hooksd.process.dispositions import hand_on_no_ignored_signals


DAEMON = """
import asyncio, os, signal
from hooksd.model.run import Spawn
from hooksd.process.runner import Runner

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR2})

async def main():
    runner = Runner(asyncio.get_running_loop(), max_ending=4)
    result = await runner.run(Spawn(
        candidates=(("/bin/bash", "-c", "cat /proc/$$/status"),), cwd="/", env={}, stdin=None,
        stdout_limit_bytes=10000, stderr_limit_bytes=1000, deadline=None, kill_grace_s=1, mark="m",
    ))
    for number in (signal.SIGHUP, signal.SIGINT, 40):
        os.kill(os.getpid(), number)  # still ignored
    await runner.aclose(1)
    print(result.stdout.decode())

asyncio.run(main())
"""

IGNORE = """
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD, 40):
    signal.signal(number, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""


def test_a_daemon_that_was_started_with_ignored_signals_hands_none_on():
    """As `nohup` and shells do it; masks of the daemon do not reach hooks either."""
    done = subprocess.run(
        [sys.executable, "-c", IGNORE, DAEMON], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    status = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    assert {name: int(status[name], 16) for name in ("SigIgn", "SigBlk")} == {"SigIgn": 0, "SigBlk": 0}


def test_only_the_main_thread_can():
    before = signal.getsignal(signal.SIGUSR2)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        thread = threading.Thread(target=hand_on_no_ignored_signals)
        thread.start()
        thread.join()
        assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN
        hand_on_no_ignored_signals()
        handler = signal.getsignal(signal.SIGUSR2)
        assert callable(handler)
        signal.raise_signal(signal.SIGUSR2)
        hand_on_no_ignored_signals()
        assert signal.getsignal(signal.SIGUSR2) is handler
    finally:
        signal.signal(signal.SIGUSR2, before)
