"""Signal dispositions that the daemon was started with, and that its hooks must not inherit.

A handler is reset to the default by `exec`, but an ignored signal stays ignored: a daemon started by `nohup`, or in the
background of a script, would hand on a SIGHUP or SIGINT that no hook can be ended with. Taking them over with a handler
that does nothing is the same for the daemon and the default for its hooks. (`Popen` itself restores SIGPIPE and SIGXFSZ,
which Python ignores.)
"""

from __future__ import annotations

import signal
import threading
from types import FrameType


__all__ = ["hand_on_no_ignored_signals"]

RESTORED_BY_POPEN = frozenset({signal.SIGPIPE, signal.SIGXFSZ})


def hand_on_no_ignored_signals() -> None:
    """Replace every ignored signal of this process. Does nothing outside the main thread, where handlers cannot be set."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in signal.valid_signals():
        if number not in RESTORED_BY_POPEN and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _ignored)


def _ignored(number: int, frame: FrameType | None) -> None:
    """Stand in for SIG_IGN."""
