"""Memory that goes back to the system."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys

import pytest

from hooksd.service import memory


LOAD = """
import sys
from hooksd.service.memory import return_large_blocks

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

arranged = return_large_blocks()
before = resident()
pins = []
for _ in range(4):
    blocks = []
    for _ in range(16):
        blocks.append(b"x" * 8_000_000)
        pins.append(b"y" * 100_000)  # between them: what a heap cannot give back
    del blocks
print(arranged, resident() - before - sum(map(len, pins)))
"""

is_gnu = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="not the GNU allocator")


def load(**environment: str) -> tuple[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    arranged, left = done.stdout.split()
    return arranged, int(left)


@is_gnu
def test_large_blocks_go_back_when_they_are_freed() -> None:
    arranged, left = load()

    assert arranged == "True"
    assert left < 16_000_000


@is_gnu
def test_what_the_user_has_configured_stays() -> None:
    arranged, left = load(MALLOC_MMAP_THRESHOLD_="33554432")

    assert arranged == "False"
    assert left > 16_000_000, "the test itself shows nothing here"


def test_another_system_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not memory.return_large_blocks()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux")
def test_another_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert not memory.return_large_blocks()
