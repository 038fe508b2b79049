"""The last resort of an end that hangs.

Something in the kernel (a dead network disk) can hold a thread for ever, and the interpreter waits for its threads.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable


__all__ = ["LastResort"]

_FAULT = 70
"""EX_SOFTWARE, as `hooksd.cli.exit_codes` has it."""


class LastResort:
    """Ends the process after a time, unless it is called off.

    Args:
        after_s: How long the orderly end may take.
        say: Told why, right before; it must not wait.
    """

    def __init__(self, after_s: float, say: Callable[[str], None]) -> None:
        self._after_s = after_s
        self._say = say
        self._timer = threading.Timer(after_s, self._end)
        self._timer.daemon = True
        try:
            self._timer.start()
        except RuntimeError:
            # No thread is to be had, as when hooks have used up the user's processes: the kernel ends us, without a word.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, after_s)

    def call_off(self) -> None:
        """The end was orderly."""
        self._timer.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _end(self) -> None:
        self._say(f"the end takes more than {self._after_s:g} s: something hangs; giving up")
        os._exit(_FAULT)
