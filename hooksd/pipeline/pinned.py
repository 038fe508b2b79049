"""Hooks that must not be run because of whose they are: what stands for their reply (design rule 9).

A hook is *withheld* by the snapshot where its project is not trusted, or no longer what was trusted. One that the
snapshot trusts is *pinned*: right before each start the files it names are checked against what was granted.
"""

from __future__ import annotations

import asyncio
import time

from hooksd.config.pins import PinCheck
from hooksd.model.decision import Decision
from hooksd.model.events import Event
from hooksd.model.hooks import Hook, Mode, Pins, Withheld
from hooksd.model.problems import HookProblem, ProblemKind
from hooksd.model.reply import Reply


__all__ = ["PinGate", "withheld_reply"]


def withheld_reply(hook: Hook, withheld: Withheld, event: Event) -> Reply:
    """The reply of a hook that is withheld: a failure, and where it would have gated the event a block."""
    failure = HookProblem(kind=withheld.kind, message=withheld.message, hint=withheld.hint)
    if not (withheld.blocks and event.gate and hook.mode is Mode.BLOCKING):
        return Reply(failure=failure)
    reason = f"{hook.name} was not run: {withheld.message}; {withheld.hint}"
    return Reply(decision=Decision.BLOCK, reason=reason, failure=failure)


class PinGate:
    """Lets a hook through, or gives the reply that stands for its own. Belongs to the loop's thread."""

    def __init__(self) -> None:
        self._check = PinCheck()

    async def stop(
        self, hook: Hook, pins: Pins, event: Event, cwd: str, deadline: float | None
    ) -> Reply | None:
        """The reply in place of the hook's; None if it may be started now.

        Args:
            hook: About to be started.
            pins: Its own.
            event: What it is to be told.
            cwd: The absolute directory it is to run in.
            deadline: The hook's, on the clock of `time.monotonic`; None without one.
        """
        if self._check.passes_now(hook, cwd):
            return None
        loop = asyncio.get_running_loop()
        left_s = None if deadline is None else deadline - time.monotonic()
        try:
            async with asyncio.timeout(left_s):
                fault = await loop.run_in_executor(None, self._check.fault, hook, cwd)
        except TimeoutError:
            # A dead network disk must not hold anybody up, nor open a gate; the thread waits on without us.
            kind, told = ProblemKind.TIMEOUT, "the files it names could not be checked in time"
        else:
            if fault is None:
                return None
            kind, told = ProblemKind.CHANGED, f"this project has changed since it was trusted: {fault}"
        stopped = Withheld(kind=kind, message=told, hint=pins.hint, blocks=pins.blocks)
        return withheld_reply(hook, stopped, event)
