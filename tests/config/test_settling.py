"""When a changed file may be taken. Pure: signatures and moments are made up."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given, strategies as st

from hooksd.config.files import Signature
from hooksd.config.settling import BLANK_S, MISSING_S, STILL_S, Clock, Pending, is_blank, observe


MISSING: Signature = (errno.ENOENT,)
DENIED: Signature = (errno.EACCES,)
SECOND = 1_000_000_000


def version(*, size: int = 2, mtime_s: float = 0.0, ctime_s: float | None = None) -> Signature:
    ctime_s = mtime_s if ctime_s is None else ctime_s
    return (1, 1, size, int(mtime_s * SECOND), int(ctime_s * SECOND))


def moment(now_s: float) -> Clock:
    """Both clocks began together."""
    return Clock(now_s, int(now_s * SECOND))


def look(
    signature: Signature,
    now_s: float,
    *,
    known: Signature | None = None,
    was_there: bool = False,
    before: Pending | None = None,
) -> Pending:
    return observe(signature, known=known, was_there=was_there, before=before, clock=moment(now_s))


def test_an_old_file_is_taken_at_once() -> None:
    assert look(version(mtime_s=10), 20).due_s <= 20


def test_a_fresh_file_has_to_stand_still() -> None:
    assert look(version(mtime_s=20), 20.02).due_s == pytest.approx(20 + STILL_S)


def test_a_copy_with_an_old_mtime_has_to_stand_still_too() -> None:
    assert look(version(mtime_s=1, ctime_s=20), 20).due_s == pytest.approx(20 + STILL_S)


def test_times_in_the_future_prove_nothing() -> None:
    first = look(version(mtime_s=99), 20)
    second = look(version(mtime_s=99), 20 + STILL_S, before=first)

    assert first.due_s == pytest.approx(20 + STILL_S)
    assert second.due_s <= 20 + STILL_S


def test_every_change_starts_anew() -> None:
    first = look(version(mtime_s=20, size=1), 20)
    second = look(version(mtime_s=20.04, size=2), 20.04, before=first)

    assert second.due_s == pytest.approx(20.04 + STILL_S)


def test_a_file_that_was_never_there_is_missing_at_once() -> None:
    assert look(MISSING, 20).due_s <= 20


@pytest.mark.parametrize(("known", "was_there"), [(version(), True), (version(), False), (None, True)])
def test_a_file_that_was_there_is_missed_for_a_while(known: Signature | None, was_there: bool) -> None:
    first = look(MISSING, 20, known=known, was_there=was_there)
    second = look(MISSING, 20.1, known=known, was_there=was_there, before=first)

    assert first.due_s == second.due_s == pytest.approx(20 + MISSING_S)


def test_a_file_that_cannot_be_looked_at_any_more_is_waited_for_briefly() -> None:
    assert look(DENIED, 20, known=version(), was_there=True).due_s == pytest.approx(20 + STILL_S)
    assert look(DENIED, 20).due_s <= 20


def test_blank_counts_as_half_written_for_a_second() -> None:
    pending = look(version(mtime_s=20), 20.05)

    blank = pending.blank(20.05)
    assert blank is not None
    assert blank.due_s == pytest.approx(20 + BLANK_S)
    assert pending.blank(20 + BLANK_S) is None


def test_what_was_blank_for_long_is_meant() -> None:
    assert look(version(mtime_s=20), 30).blank(30) is None


@pytest.mark.parametrize("text", [b"", b" \r\n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf \n"])
def test_texts_that_say_nothing(text: bytes) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", [b"{}", b"\0", b"\xef\xbb\xbf{"])
def test_texts_that_say_something(text: bytes) -> None:
    assert not is_blank(text)


def test_now_is_now() -> None:
    first, second = Clock.now(), Clock.now()

    assert first.now_s <= second.now_s


@given(
    st.lists(
        st.tuples(st.sampled_from([MISSING, DENIED, version(), version(size=3)]), st.floats(0, 0.04)),
        max_size=20,
    )
)
def test_nothing_that_moves_is_ever_taken(looks: list[tuple[Signature, float]]) -> None:
    """Whatever is seen: a version that was there is replaced only by one that was seen unchanged for `STILL_S`."""
    known, now_s, before = version(size=9), 100.0, None
    seen_since: dict[Signature, float] = {}
    for signature, pause_s in looks:
        now_s += pause_s
        if before is None or before.signature != signature:
            seen_since = {signature: now_s}
        # Times in the future: nothing but watching proves anything.
        shown = signature if len(signature) == 1 else (*signature[:3], 10**30, 10**30)
        pending = observe(
            shown, known=known, was_there=True, before=before and _as_shown(before), clock=moment(now_s)
        )
        if pending.due_s <= now_s:
            assert now_s - seen_since[signature] >= STILL_S - 1e-9
        before = Pending(signature=signature, since_s=pending.since_s, due_s=pending.due_s)


def _as_shown(pending: Pending) -> Pending:
    signature = pending.signature if len(pending.signature) == 1 else (*pending.signature[:3], 10**30, 10**30)
    return Pending(signature=signature, since_s=pending.since_s, due_s=pending.due_s)
