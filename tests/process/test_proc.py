from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from hooksd.process import proc


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


async def test_what_a_process_is_known_by(tmp_path, helpers):
    odd = tmp_path / "a) R 1 (b"
    shutil.copy("/bin/sleep", odd)
    child = subprocess.Popen([odd, "60"], env={"A": "1", "B": ""})
    try:
        seen = proc.stat_of(child.pid)
        assert (seen.parent, seen.group, seen.dead) == (os.getpid(), os.getpgrp(), False)
        assert seen.is_same(seen)
        assert not seen.is_same(None)
        assert not seen.is_same(seen._replace(started=1))
        assert seen.is_same(seen._replace(parent=1))
        assert not seen.is_same(seen._replace(dead=True))
        await helpers.until(lambda: proc.has_settled_environment(child.pid), "its exec is done")
        assert proc.environment_of(child.pid) == b"A=1\0B=\0"
        assert child.pid in proc.children_of(os.getpid())
    finally:
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert proc.stat_of(child.pid) == seen._replace(dead=True)
        assert proc.environment_of(child.pid) == b""
        child.wait()
    assert proc.stat_of(child.pid) is None
    assert proc.environment_of(child.pid) == b""
    assert proc.children_of(child.pid) == []
    assert not proc.has_settled_environment(child.pid)
