"""Removing a directory that a hook could put anything into.

Whatever is in it, and however its modes were set: nothing is followed, nothing outside is touched, and neither the
stack, nor a path, nor the number of open descriptors grows with it. What lies deep is moved up to the top first.

What is more than a few files is removed by a thread of its own, so that nobody waits for a hook that made a million.
"""

from __future__ import annotations

import os
import queue
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Final


__all__ = ["MAX_AT_ONCE", "MAX_FILES", "Remover", "remove_tree"]

MAX_AT_ONCE: Final = 64
"""Most files that are removed while the caller waits, some 10 us each: what a hook leaves behind by a mere oversight."""

MAX_FILES: Final = 10_000_000
"""Most that are removed of one directory; whoever still makes some in it could go on for ever."""

_PRIVATE = 0o700


class Remover:
    """Removes directories: small ones at once, the rest of others in a thread, one after another.

    The thread is started when it is first needed, and never waited for: what it has not come to when the process ends is
    left for whoever looks for left-overs at the next start.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def remove(self, path: str) -> None:
        """Remove what is there, as far as it goes, now or soon."""
        if remove_tree(path, MAX_AT_ONCE):
            return
        self._waiting.put(path)
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="hooksd-remover", daemon=True)
            # Without a thread to be had: at the next start.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def _work(self) -> None:
        while True:
            remove_tree(self._waiting.get(), MAX_FILES)


def remove_tree(path: str, most: int) -> bool:
    """Remove whatever is there, as far as it goes; a symlink itself, never what it leads to.

    Args:
        path: A directory that nobody else uses, or anything else.
        most: The most removals.

    Returns:
        False if there was more to remove than that. True says that nothing is left, or nothing that can be removed.
    """
    left = most
    while not _is_gone(path):
        before = left
        for entry in _entries(path):
            if left <= 0:
                return False
            left -= _remove_or_flatten(path, entry, left)
        if left == before:
            # Somebody else's files, or a disk that takes no changes.
            break
    return True


def _is_gone(path: str) -> bool:
    """Remove one file or empty directory; a directory is made one that can be looked into."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return True
    with suppress(OSError):
        if not stat.S_ISDIR(mode):
            os.unlink(path)
            return True
        os.chmod(path, _PRIVATE)
        os.rmdir(path)
        return True
    return False


def _remove_or_flatten(top: str, path: str, most: int) -> int:
    """Remove a file or a directory without directories in it; move those up. Gives how many were removed or moved."""
    if _is_gone(path):
        return 1
    done = 0
    for inner in _entries(path):
        if done >= most:
            break
        if not _is_gone(inner):
            # Not empty: its turn comes when it lies at the top itself.
            try:
                os.rename(inner, os.path.join(top, os.urandom(16).hex()))
            except OSError:
                continue
        done += 1
    return done


def _entries(path: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            yield entry.path
