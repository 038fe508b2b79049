"""A few descriptors kept aside, so that trees can be looked at and ended when there is no other left."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar


__all__ = ["NoDescriptor", "Reserve"]

KEPT = 4
"""A look at a tree needs two at a time: a pidfd and a file of /proc."""

T = TypeVar("T")


class NoDescriptor(Exception):
    """Even the reserve was not enough: other threads took it. Try again later."""


class Reserve:
    """Gives its descriptors up for one operation, and takes them back afterwards."""

    def __init__(self) -> None:
        self._kept: list[int] = []
        self._refill()

    def lend(self, operation: Callable[[], T]) -> T:
        """Run an operation; when it fails for want of a descriptor, run it again with the reserve free.

        Raises:
            NoDescriptor: It failed for want of a descriptor even so.
        """
        if len(self._kept) < KEPT:
            self._refill()
        try:
            return operation()
        except OSError as error:
            if not _is_exhaustion(error):
                raise
        self.close()
        try:
            return operation()
        except OSError as error:
            if not _is_exhaustion(error):
                raise
            raise NoDescriptor from error
        finally:
            self._refill()

    def close(self) -> None:
        """Give all of them up."""
        while self._kept:
            os.close(self._kept.pop())

    def _refill(self) -> None:
        with suppress(OSError):
            while len(self._kept) < KEPT:
                self._kept.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))


def _is_exhaustion(error: OSError) -> bool:
    return error.errno in (errno.EMFILE, errno.ENFILE)
