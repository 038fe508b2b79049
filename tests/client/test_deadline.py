from __future__ import annotations

import pytest

from hooksd_client.deadline import Deadline


@pytest.mark.parametrize("timeout_s", [float("inf"), 1e300])
def test_no_limit(timeout_s: float) -> None:
    assert Deadline(timeout_s, "x").left() is None


@pytest.mark.parametrize("timeout_s", [0, -1])
def test_a_passed_one_has_nothing_left(timeout_s: float) -> None:
    assert Deadline(timeout_s, "x").left() == 0


def test_what_is_left() -> None:
    left = Deadline(1000, "x").left()

    assert left is not None
    assert 900 < left <= 1000


def test_the_error() -> None:
    error = Deadline(0.5, "the answer").error()

    assert (error.what, error.timeout_s) == ("the answer", 0.5)
