"""Rounds: one job at a time, shared by all who asked for it before it began.

Who asks while a round is under way gets the next one, because the one under way may have looked too early for him.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hooksd.model.errors import HooksdError


__all__ = ["Request", "Rounds"]


class Request:
    """What a round is to look at: what was asked for by everybody who shares it.

    Attributes:
        roots: Workspaces, besides what is always looked at.
        everything: All workspaces that are known, too.
        afresh: Read even what looks the same.
    """

    __slots__ = ("afresh", "done", "everything", "roots")

    def __init__(self, done: asyncio.Future[None]) -> None:
        self.roots: set[str] = set()
        self.everything = False
        self.afresh = False
        self.done = done


class Rounds:
    """Runs rounds as long as it is not closed.

    Args:
        loop: The running loop.
        run: One round. What it raises goes to those who wait for the round.
        failed: Told what it raised, too: nobody may be waiting.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        run: Callable[[Request], Awaitable[None]],
        failed: Callable[[Exception], None],
    ) -> None:
        self._loop = loop
        self._run = run
        self._failed = failed
        self._next: Request | None = None
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = 0.0
        """When it is due; the handle of uvloop does not always know."""
        self._closed = False
        self._task = loop.create_task(self._work(), name="hooksd-config")

    def ask(
        self, root: str | None = None, *, everything: bool = False, afresh: bool = False
    ) -> asyncio.Future[None]:
        """Ask for a round that begins after now.

        Returns:
            Done when the round is; shared, so wait for it through `asyncio.shield`.

        Raises:
            HooksdError: Closed.
        """
        if self._closed:
            raise HooksdError("the configuration is no longer read: the daemon is stopping")
        request = self._next
        if request is None:
            request = self._next = Request(self._loop.create_future())
            self._wake.set()
        if root is not None:
            request.roots.add(root)
        request.everything = request.everything or everything
        request.afresh = request.afresh or afresh
        return request.done

    def ask_in(self, delay_s: float) -> None:
        """Ask for a round of everything after a time, unless one is to come sooner; nothing once closed."""
        when_s = self._loop.time() + max(delay_s, 0.0)
        if self._closed or (self._timer is not None and self._timer_s <= when_s):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_s = self._loop.call_at(when_s, self._timed), when_s

    def _timed(self) -> None:
        self._timer = None
        self.ask(everything=True)

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            request, self._next = self._next, None
            if request is None:
                continue
            try:
                await self._run(request)
            except Exception as error:  # noqa: BLE001 - the border of a task that must live as long as the daemon
                self._failed(error)
                if not request.done.done():
                    request.done.set_exception(error)
                    # Retrieved: nobody may be waiting for this round.
                    request.done.exception()
            except asyncio.CancelledError:
                request.done.cancel()
                raise
            else:
                request.done.set_result(None)

    async def aclose(self) -> None:
        """Stop; a round under way is given up, and who waits is cancelled."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._task.cancel()
        if self._next is not None:
            self._next.done.cancel()
        await asyncio.wait([self._task])
