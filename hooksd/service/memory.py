"""How the process gives memory back to the system."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final


__all__ = ["LARGE_BLOCK_BYTES", "return_large_blocks"]

LARGE_BLOCK_BYTES: Final = 1_048_576
"""Blocks of this size and more are a mapping of their own. Only whole messages and payloads are so large, and mapping one
is nothing against reading it."""

_M_MMAP_THRESHOLD: Final = -3  # <malloc.h>


def return_large_blocks() -> bool:
    """Let every large block go back to the system as soon as it is freed; whether that could be arranged.

    The GNU allocator maps large blocks at first, but takes the first one that is freed for a sign that more will come, and
    from then on keeps up to 32 MiB blocks in its heap: a few large messages would stay resident for the life of the daemon.
    Other allocators, and one that the environment has already configured, are left alone.
    """
    if not sys.platform.startswith("linux") or "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES))
