import asyncio
import os
import signal

import pytest
import uvloop

from hooksd.service.signals import SignalActions, Signals


@pytest.fixture(scope="module", autouse=True)
def libuv_has_its_lock() -> None:
    """The first signal handler of a process makes libuv open a pipe, which it keeps: before descriptors are counted."""

    async def use() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR2, lambda: None)
        loop.remove_signal_handler(signal.SIGUSR2)

    uvloop.run(use())


class Heard:
    """Keeps what the signals did, and waits for it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._changed = asyncio.Event()

    def actions(self) -> SignalActions:
        return SignalActions(
            drain=lambda number: self._add(f"drain {number.name}"),
            stop_now=lambda number: self._add(f"now {number.name}"),
            reload=lambda: self._add("reload"),
            reopen_log=lambda: self._add("reopen"),
        )

    def _add(self, call: str) -> None:
        self.calls.append(call)
        self._changed.set()

    async def after(self, number: signal.Signals) -> None:
        self._changed.clear()
        os.kill(os.getpid(), number)
        async with asyncio.timeout(5):
            await self._changed.wait()


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_drains_and_every_further_one_ends_now(
    first: signal.Signals, second: signal.Signals
) -> None:
    heard = Heard()
    signals = Signals(asyncio.get_running_loop(), heard.actions())
    try:
        await heard.after(first)
        await heard.after(second)
        await heard.after(second)
    finally:
        signals.remove()

    assert heard.calls == [f"drain {first.name}", f"now {second.name}", f"now {second.name}"]
    assert signals.received is first


async def test_reload_and_reopen_end_nothing() -> None:
    heard = Heard()
    signals = Signals(asyncio.get_running_loop(), heard.actions())
    try:
        await heard.after(signal.SIGHUP)
        await heard.after(signal.SIGUSR1)
        await heard.after(signal.SIGHUP)
    finally:
        signals.remove()

    assert heard.calls == ["reload", "reopen", "reload"]
    assert signals.received is None


async def test_a_drain_that_began_without_a_signal_is_ended_by_the_first_one() -> None:
    heard = Heard()
    signals = Signals(asyncio.get_running_loop(), heard.actions())
    try:
        signals.ending()
        await heard.after(signal.SIGTERM)
    finally:
        signals.remove()

    assert heard.calls == ["now SIGTERM"]


async def test_afterwards_the_signals_do_what_they_did_before() -> None:
    before = signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGTERM)

    Signals(asyncio.get_running_loop(), Heard().actions()).remove()

    assert (signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGTERM)) == before
