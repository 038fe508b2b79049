from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from hooksd.outbox import owner as owners
from hooksd.outbox.owner import Owner, is_alive, process_start


def test_this_process_is_alive_and_every_owner_another() -> None:
    first, second = Owner.of(os.getpid()), Owner.of(os.getpid())

    assert first.instance != second.instance
    assert is_alive(first)
    assert is_alive(second)
    assert Owner.of(os.getpid(), 7).instance == 7


def test_a_process_that_has_ended_is_dead_also_before_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert child.stdin is not None
    owner = Owner.of(child.pid)
    assert is_alive(owner)

    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert not is_alive(owner)
    child.wait()
    assert not is_alive(owner)


def test_whoever_got_the_pid_later_is_somebody_else() -> None:
    owner = Owner.of(os.getpid())

    assert not is_alive(msgspec.structs.replace(owner, started="another boot:1"))
    # Where the system did not tell, the pid alone counts.
    assert is_alive(msgspec.structs.replace(owner, started=""))


@pytest.mark.skipif(not os.path.exists("/bin/ps"), reason="there is no /bin/ps")
def test_without_proc_ps_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert child.stdin is not None

    told = owners._by_ps(child.pid)

    assert told
    assert owners._by_ps(child.pid) == told
    child.stdin.close()
    child.wait()
    assert owners._by_ps(child.pid) is None
    monkeypatch.setattr(owners, "_has_proc", lambda: False)
    assert process_start(child.pid) is None


def test_a_ps_that_cannot_be_run_leaves_the_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(owners.subprocess, "run", broken)

    assert owners._by_ps(os.getpid()) == ""
