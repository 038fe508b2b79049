"""Starting hooks: hooksd's runner against a C program at the floor, and against uvloop's own subprocess support."""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from unittest import mock

import uvloop

from benchmarks.measure import Figure, compiled, interleaved, plain_environment
from hooksd.model.run import Spawn
from hooksd.process.invocation import LATE_BYTES_S
from hooksd.process.runner import Runner


ROUNDS = 9
EACH = 60
"""Hooks of one contestant in one round."""

AT_ONCE = 16
LAG_HOOKS = 8
LAG_S = 0.5

BALLAST_BYTES = 500_000_000
OPEN_FILES = 10_000

CAT = "/bin/cat"
PAYLOAD = bytes(1024)

SCATTER = Path(__file__).parent.parent / "tests" / "process" / "hostile" / "scatter.py"
T = TypeVar("T")

_numbers = itertools.count()


def spawn(*argv: str, timeout_s: float = 60.0) -> Spawn:
    """A hook like any other, with a mark of its own."""
    mark = f"bench-{os.getpid()}-{next(_numbers)}"
    return Spawn(
        candidates=(argv,),
        cwd="/",
        env={**plain_environment(), "HOOKSD_INVOCATION_ID": mark},
        stdin=PAYLOAD,
        stdout_limit_bytes=65_536,
        stderr_limit_bytes=65_536,
        deadline=time.monotonic() + timeout_s,
        kill_grace_s=0.1,
        mark=mark,
    )


class Bench:
    """A loop with a runner, for measuring from outside."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        self.runner: Runner = self.do(self._make())

    async def _make(self) -> Runner:
        return Runner(self.loop, max_ending=64)

    def do(self, work: Awaitable[T]) -> T:
        """Run a coroutine to its end."""
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        """End everything."""
        self.do(self.runner.aclose(1.0))
        self.loop.close()

    # --- contestants: microseconds per hook

    def ours_us(self) -> float:
        """The runner, one hook after another."""

        async def measure() -> float:
            return await median_us(lambda: self.runner.run(spawn(CAT)))

        return self.do(measure())

    def uvloop_us(self) -> float:
        """uvloop's own, one hook after another."""

        async def measure() -> float:
            return await median_us(run_by_uvloop)

        return self.do(measure())

    # --- contestants: hooks per second

    def ours_per_s(self) -> float:
        """The runner, sixteen at once."""
        return self.do(per_second(lambda: self.runner.run(spawn(CAT)), 400))

    def uvloop_per_s(self) -> float:
        """uvloop's own, sixteen at once."""
        return self.do(per_second(run_by_uvloop, 80))

    def lag_us(self) -> float:
        """The loop's lag, 99th percentile, while eight hooks run back to back."""

        async def measure() -> float:
            until = time.perf_counter() + LAG_S

            async def keep_busy() -> None:
                while time.perf_counter() < until:
                    await self.runner.run(spawn(CAT))

            busy = [asyncio.ensure_future(keep_busy()) for _ in range(LAG_HOOKS)]
            lags = []
            while time.perf_counter() < until:
                asked = time.perf_counter()
                await asyncio.sleep(0)
                lags.append(time.perf_counter() - asked)
                await asyncio.sleep(0.001)
            await asyncio.gather(*busy)
            return statistics.quantiles(lags, n=100)[98] * 1e6

        return self.do(measure())


class OnTheLoop:
    """In place of the pool: starts processes on the loop, as a yardstick for its lag."""

    def submit(self, job: Callable[[], None]) -> None:
        """Run it now."""
        job()

    def close(self) -> None:
        """Nothing to end."""


async def median_us(run: Callable[[], Awaitable[object]]) -> float:
    """One after another."""
    times = []
    for _ in range(EACH):
        began = time.perf_counter()
        await run()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


async def per_second(run: Callable[[], Awaitable[object]], count: int) -> float:
    """Sixteen at once."""
    left = iter(range(count))

    async def keep_busy() -> None:
        for _ in left:
            await run()

    began = time.perf_counter()
    await asyncio.gather(*(keep_busy() for _ in range(AT_ONCE)))
    return count / (time.perf_counter() - began)


async def run_by_uvloop() -> None:
    """What one would write with uvloop alone; without a session of its own, for the runner reaps strangers in those."""
    process = await asyncio.create_subprocess_exec(
        CAT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=plain_environment(),
    )
    await process.communicate(PAYLOAD)


def floor_us(open_files: int = 0) -> float:
    """The C program, one hook after another."""
    return float(_floor(EACH, open_files).communicate()[0].split()[0])


def floors_per_s() -> float:
    """Four C programs side by side."""
    running = [_floor(150, 0) for _ in range(4)]
    return sum(150 / float(one.communicate()[0].split()[1]) for one in running)


def _floor(count: int, open_files: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [compiled("spawn_floor"), str(count), str(open_files), CAT],
        stdout=subprocess.PIPE,
        text=True,
        env=plain_environment(),
    )


def run() -> Iterable[Figure]:
    """All figures about starting and ending hooks."""
    bench = Bench()
    try:
        yield from latency(bench)
        yield from throughput(bench)
        yield from lag(bench)
        yield from ballast(bench)
        yield from open_files(bench)
        yield from held_pipe(bench)
        yield from survivors(bench)
    finally:
        bench.close()


def latency(bench: Bench) -> Iterator[Figure]:
    rounds = interleaved(ROUNDS, {"ours": bench.ours_us, "C": floor_us, "uvloop": bench.uvloop_us})
    note = f"{rounds.median('ours'):.0f} us; C {rounds.median('C'):.0f}, uvloop {rounds.median('uvloop'):.0f}"
    yield Figure("cat hook / C posix_spawn", rounds.ratio("ours", "C"), "<= 1.4", note)
    yield Figure("cat hook / uvloop subprocess", rounds.ratio("ours", "uvloop"), "<= 0.5")


def throughput(bench: Bench) -> Iterator[Figure]:
    rounds = interleaved(ROUNDS, {"ours": bench.ours_per_s, "C": floors_per_s, "uvloop": bench.uvloop_per_s})
    note = f"{rounds.median('ours'):.0f}/s; C {rounds.median('C'):.0f}, uvloop {rounds.median('uvloop'):.0f}"
    yield Figure("hooks/s, 16 at once / four C spawners", rounds.ratio("ours", "C"), ">= 0.6", note)
    yield Figure("hooks/s, 16 at once / uvloop subprocess", rounds.ratio("ours", "uvloop"), ">= 3.5")


def lag(bench: Bench) -> Iterator[Figure]:
    def on_the_loop() -> float:
        with mock.patch.object(bench.runner, "_pool", OnTheLoop()):
            return bench.lag_us()

    rounds = interleaved(ROUNDS, {"ours": bench.lag_us, "on the loop": on_the_loop})
    note = f"{rounds.median('ours') / 1000:.2f} ms; {rounds.median('on the loop') / 1000:.2f}"
    yield Figure(
        "loop lag p99 under 8 hooks / spawning on the loop",
        rounds.ratio("ours", "on the loop"),
        "<= 0.4",
        note,
    )


def ballast(bench: Bench) -> Iterator[Figure]:
    def heavy() -> float:
        held = bytearray(BALLAST_BYTES)
        held[::4096] = b"x" * len(held[::4096])
        return bench.ours_us()

    rounds = interleaved(ROUNDS, {"heavy": heavy, "light": bench.ours_us})
    yield Figure("cat hook with 500 MB resident / without", rounds.ratio("heavy", "light"), "<= 1.2")


def open_files(bench: Bench) -> Iterator[Figure]:
    with descriptors(OPEN_FILES) as number:
        rounds = interleaved(ROUNDS, {"ours": bench.ours_us, "C": lambda: floor_us(number)})
        yield Figure(
            f"cat hook with {number:,} open files / C with as many", rounds.ratio("ours", "C"), "<= 1.25"
        )


@contextmanager
def descriptors(wanted: int) -> Iterator[int]:
    """As many open files as wanted and allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    number = min(wanted, hard - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number + 500), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(number)]
    try:
        yield number
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def held_pipe(bench: Bench) -> Iterator[Figure]:
    def took_ms(script: str) -> Callable[[], float]:
        def measure() -> float:
            result = bench.do(bench.runner.run(spawn("/bin/sh", "-c", script)))
            return result.duration_s * 1000

        return measure

    rounds = interleaved(
        ROUNDS, {"held": took_ms("sleep 1 & echo x"), "free": took_ms("sleep 1 >&- 2>&- & echo x")}
    )
    extra = statistics.median(held - free for held, free in zip(rounds["held"], rounds["free"], strict=True))
    grace = LATE_BYTES_S * 1000
    yield Figure("answer after the exit while a pipe is held, ms", extra, f"<= {grace + 10:.0f}")


def survivors(bench: Bench) -> Iterator[Figure]:
    alive, hit = 0, 0
    costs = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as directory:
            logs = [Path(directory) / name for name in ("ours", "neighbour")]

            async def end_one(logs: list[Path]) -> float:
                hooks = [
                    asyncio.ensure_future(
                        bench.runner.run(spawn("/usr/bin/python3", "-I", "-S", str(SCATTER), str(log)))
                    )
                    for log in logs
                ]
                while not all(log.exists() and "ready" in log.read_text() for log in logs):
                    await asyncio.sleep(0.01)
                began = time.perf_counter()
                hooks[0].cancel()
                await asyncio.wait(hooks[:1])
                while bench.runner.ending:
                    await asyncio.sleep(0.002)
                took = time.perf_counter() - began
                nonlocal alive, hit
                alive += sum(map(is_alive, pids(logs[0])))
                hit += sum(not is_alive(pid) for pid in pids(logs[1]))
                hooks[1].cancel()
                await asyncio.wait(hooks[1:])
                while bench.runner.ending:
                    await asyncio.sleep(0.002)
                return took

            costs.append(bench.do(end_one(logs)))
    note = f"{statistics.median(costs) * 1000:.0f} ms, 100 of them the grace of one that ignores SIGTERM"
    yield Figure("survivors of a hostile tree, 5 runs", alive, "== 0", note)
    yield Figure("processes of a neighbour that were hit", hit, "== 0")


def pids(log: Path) -> list[int]:
    return [int(line.split()[1]) for line in log.read_text().splitlines()]


def is_alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text[text.rindex(")") + 2] not in "ZX"
