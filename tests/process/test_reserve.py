from __future__ import annotations

import errno
import os

import pytest

from hooksd.process import reserve
from hooksd.process.reserve import NoDescriptor, Reserve


EXHAUSTED = OSError(errno.EMFILE, "Too many open files")


@pytest.fixture
def kept():
    made = Reserve()
    yield made
    made.close()


def test_the_reserve_is_free_for_the_second_try(kept, helpers):
    tries = []

    def operation() -> str:
        tries.append(helpers.descriptors())
        if len(tries) == 1:
            raise EXHAUSTED
        return "done"

    assert kept.lend(operation) == "done"
    assert tries[0] - tries[1] == reserve.KEPT
    assert helpers.descriptors() == tries[0]


def test_other_threads_may_be_quicker(kept):
    def operation() -> None:
        raise EXHAUSTED

    with pytest.raises(NoDescriptor):
        kept.lend(operation)


def test_other_errors_are_told(kept):
    def operation() -> None:
        raise PermissionError(errno.EPERM, "no")

    with pytest.raises(PermissionError):
        kept.lend(operation)

    def second() -> None:
        if kept._kept:
            raise EXHAUSTED
        raise FileNotFoundError(errno.ENOENT, "gone")

    with pytest.raises(FileNotFoundError):
        kept.lend(second)


def test_what_cannot_be_taken_back_is_taken_back_later(kept, helpers, monkeypatch):
    before = helpers.descriptors()

    def operation() -> None:
        if kept._kept:
            raise EXHAUSTED

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(EXHAUSTED))
        kept.lend(operation)
        assert not kept._kept
    kept.lend(operation)
    assert helpers.descriptors() == before
