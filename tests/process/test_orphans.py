from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

import pytest

from hooksd.process import ownership
from hooksd.process.orphans import Orphan, Orphans, mark_in


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def orphans():
    made = Orphans()
    yield made
    made.close()
    made.close()


async def test_children_of_others_in_the_daemon_are_left_alone(orphans, helpers):
    ours = subprocess.Popen(["/bin/true"])
    announced = subprocess.Popen(["/bin/true"], start_new_session=True)
    ownership.own(announced.pid)
    try:
        await helpers.until(lambda: helpers.zombies() == [ours.pid, announced.pid], "both have exited")
        assert orphans.look() == ({}, [])
        assert helpers.zombies() == [ours.pid, announced.pid]
    finally:
        ownership.disown(announced.pid)
        assert (ours.wait(), announced.wait()) == (0, 0)


def test_is_a_subreaper_while_it_stands():
    before = _is_subreaper()
    orphans = Orphans()
    assert _is_subreaper()
    orphans.close()
    assert _is_subreaper() == before


def _is_subreaper() -> bool:
    value = ctypes.c_int()
    ctypes.CDLL(None).prctl(37, ctypes.byref(value), 0, 0, 0)
    return bool(value.value)


@pytest.mark.parametrize(
    ("environment", "mark"),
    [
        (b"", None),
        (b"A=1\0HOOKSD_INVOCATION_ID=x=1\0B=2\0", b"x=1"),
        (b"HOOKSD_INVOCATION_ID=\0", b""),
        (b"A=HOOKSD_INVOCATION_ID=x\0AHOOKSD_INVOCATION_ID=x\0HOOKSD_INVOCATION_IDS=x\0", None),
    ],
)
def test_the_mark_in_an_environment(environment, mark):
    assert mark_in(environment) == mark


async def test_many_orphans_are_listed_and_reaped(orphans, helpers):
    """More than one piece of the kernel's list."""
    count = 700
    script = f"for i in $(seq {count}); do (exec setsid sleep 60 &) ; done; sleep 60"
    hook = subprocess.Popen(["/bin/bash", "-c", script], start_new_session=True, stdin=subprocess.DEVNULL)
    ownership.own(hook.pid)
    try:
        await helpers.until(lambda: len(orphans.look().living) == count, "all of them landed here")
        living = orphans.look().living
        assert {orphan.is_certain for orphan in living.values()} == {True}
        hook.kill()
        for pid in living:
            os.kill(pid, signal.SIGKILL)
        left = set(living)

        def reap():
            left.difference_update(orphan.pid for orphan in orphans.look().reaped)
            return not left

        await helpers.until(reap, "all of them are reaped")
        assert orphans.look().living == {}
    finally:
        hook.kill()
        hook.wait()
        ownership.disown(hook.pid)


def test_an_orphan_that_hides_its_environment_is_certain_after_a_while(monkeypatch):
    monkeypatch.setattr("hooksd.process.orphans.proc.environment_of", lambda pid: b"")
    monkeypatch.setattr("hooksd.process.orphans.proc.has_settled_environment", lambda pid: False)
    orphan = Orphan(1, 1)
    orphan.look()
    assert not orphan.is_certain
    monkeypatch.setattr("hooksd.process.orphans.EXEC_S", -1.0)
    orphan.look()
    assert (orphan.is_certain, orphan.mark) == (True, None)


def _shown(monkeypatch, environments, settled):
    """What /proc tells, one reading after the other."""
    monkeypatch.setattr("hooksd.process.orphans.proc.environment_of", lambda pid: environments.pop(0))
    monkeypatch.setattr("hooksd.process.orphans.proc.has_settled_environment", lambda pid: settled.pop(0))


def test_an_orphan_that_was_in_two_execs_when_it_was_looked_at_is_known_by_its_mark_later(monkeypatch):
    monkeypatch.setattr("hooksd.process.orphans.EXEC_S", -1.0)
    orphan = Orphan(1, 1)
    _shown(monkeypatch, [b"", b"A=1\0HOOKSD_INVOCATION_ID=inv-1\0"], [False])
    orphan.look()
    assert (orphan.is_certain, orphan.mark) == (True, None)
    orphan.look()
    assert (orphan.is_certain, orphan.mark) == (True, b"inv-1")
    orphan.look()
    assert orphan.mark == b"inv-1", "it is not read any more"


@pytest.mark.parametrize(("after", "mark"), [(b"HOOKSD_INVOCATION_ID=inv-1\0", b"inv-1"), (b"", None)])
def test_an_exec_that_ends_while_it_is_looked_at_hides_no_mark(monkeypatch, after, mark):
    orphan = Orphan(1, 1)
    _shown(monkeypatch, [b"", after], [True])
    orphan.look()
    assert (orphan.is_certain, orphan.mark) == (True, mark)
    orphan.look()
    assert orphan.mark == mark, "it is not read any more"


def test_a_child_that_somebody_reaps_meanwhile_is_no_orphan(orphans, monkeypatch):
    monkeypatch.setattr(orphans, "_listed", lambda: [2**22 - 1])
    assert orphans.look() == ({}, [])
