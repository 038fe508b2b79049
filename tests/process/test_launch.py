from __future__ import annotations

import os
import resource

from hooksd.process.descriptor_limit import HookLimit
from hooksd.process.launch import Launched, launch


def test_what_fits_the_pipe_is_in_it_before_the_start(helpers):
    launched = launch(helpers.spawn("/bin/cat", stdin=b"x" * 65_536), HookLimit(None))
    assert isinstance(launched, Launched)
    assert (launched.stdin, bytes(launched.stdin_rest)) == (None, b"")
    launched.abort()


def test_what_does_not_fit_is_left(helpers):
    launched = launch(helpers.spawn("/bin/sleep", "60", stdin=b"x" * 65_536 + b"rest"), HookLimit(None))
    assert launched.stdin is not None
    assert not os.get_blocking(launched.stdin)
    assert bytes(launched.stdin_rest) == b"rest"
    launched.abort()


def test_abort_leaves_nothing(helpers):
    before = helpers.descriptors()
    launched = launch(helpers.spawn("/bin/sleep", "60", stdin=b"x" * 100_000), HookLimit(None))
    launched.abort()
    assert helpers.descriptors() == before
    assert launched.popen.returncode == -9
    launched = launch(helpers.spawn("/bin/true"), HookLimit(None))
    launched.popen.wait()
    launched.abort()
    assert helpers.descriptors() == before


def limit_of(launched: Launched) -> int:
    launched.popen.wait()
    written = os.read(launched.stdout, 100)
    launched.abort()
    return int(written)


def test_the_hooks_own_limit_of_descriptors(helpers):
    own = resource.getrlimit(resource.RLIMIT_NOFILE)
    spawn = helpers.bash("ulimit -Sn")
    assert limit_of(launch(spawn, HookLimit(None))) == own[0]
    assert limit_of(launch(spawn, HookLimit(700))) == 700
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == own


def test_the_limit_is_told_afterwards_when_the_daemon_has_many_open(helpers):
    own = resource.getrlimit(resource.RLIMIT_NOFILE)
    # It waits for its input, so that the limit is there when it looks.
    launched = launch(helpers.bash("read; ulimit -Sn", stdin=b"x" * 70_000 + b"\n"), HookLimit(100))
    os.set_blocking(launched.stdin, True)
    os.write(launched.stdin, launched.stdin_rest)
    assert limit_of(launched) == 100
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == own
