"""What the daemon does on signals, on any event loop.

SIGTERM and SIGINT ask for a drain, a second one of either for an end now; SIGHUP reloads the configuration; SIGUSR1
reopens the log (cli.md, `serve`).
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable


__all__ = ["SignalActions", "Signals"]


class SignalActions:
    """What is done on each signal; every callable runs on the loop and returns at once."""

    def __init__(
        self,
        *,
        drain: Callable[[signal.Signals], None],
        stop_now: Callable[[signal.Signals], None],
        reload: Callable[[], None],
        reopen_log: Callable[[], None],
    ) -> None:
        self.drain = drain
        self.stop_now = stop_now
        self.reload = reload
        self.reopen_log = reopen_log


class Signals:
    """Installed handlers; `remove` gives every signal its former disposition back."""

    _ENDING = (signal.SIGTERM, signal.SIGINT)

    def __init__(self, loop: asyncio.AbstractEventLoop, actions: SignalActions) -> None:
        self._loop = loop
        self._actions = actions
        self._is_ending = False
        self.received: signal.Signals | None = None
        """The first signal that asked for the end, if one did: it decides the exit status."""
        for number in self._ENDING:
            loop.add_signal_handler(number, self._end, number)
        loop.add_signal_handler(signal.SIGHUP, actions.reload)
        loop.add_signal_handler(signal.SIGUSR1, actions.reopen_log)

    def ending(self) -> None:
        """The end has begun without a signal: the first one is then the second word."""
        self._is_ending = True

    def remove(self) -> None:
        """Take the handlers out again."""
        for number in (*self._ENDING, signal.SIGHUP, signal.SIGUSR1):
            self._loop.remove_signal_handler(number)

    def _end(self, number: signal.Signals) -> None:
        if self.received is None:
            self.received = number
        if self._is_ending:
            self._actions.stop_now(number)
        else:
            self._is_ending = True
            self._actions.drain(number)
