from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hooksd.outbox.jobs import JobState, RetryRules
from hooksd.outbox.schedule import (
    BACKOFF_FIRST_S,
    BACKOFF_MOST_S,
    MOVES,
    Move,
    Place,
    Standing,
    WrongMove,
    backoff_s,
    follow,
    jumped,
)


RULES = RetryRules(max_starts=3, retry_age_s=60.0)
CHANCES = st.floats(min_value=0, max_value=1, exclude_max=True)


def at(place: Place, *, starts: int = 0, due_at: float = 5.0, started_at: float | None = None) -> Standing:
    return Standing(place=place, starts=starts, due_at=due_at, started_at=started_at)


def moved(standing: Standing, move: Move, *, rules: RetryRules = RULES, now: float = 100.0) -> Standing:
    return follow(standing, move, rules, now=now, chance=0.5)


def test_a_start_is_counted_and_its_time_kept() -> None:
    for place in (Place.FREE, Place.HELD):
        assert moved(at(place, starts=1), Move.START) == at(Place.RUNNING, starts=2, started_at=100.0)


def test_a_run_that_ends_well_is_done() -> None:
    assert moved(at(Place.RUNNING, starts=3), Move.SUCCEED).place is Place.DONE


@pytest.mark.parametrize(
    ("starts", "wait_s"), [(1, 5), (2, 10), (3, 20), (4, 40), (10, 2560), (11, 3600), (10**9, 3600)]
)
def test_a_run_that_fails_waits_longer_each_time(starts: int, wait_s: float) -> None:
    rules = RetryRules(max_starts=10**10)

    after = moved(at(Place.RUNNING, starts=starts, started_at=90.0), Move.FAIL, rules=rules)

    assert after == at(Place.FREE, starts=starts, due_at=100.0 + wait_s, started_at=90.0)


@given(st.integers(1, 50), CHANCES)
def test_the_wait_is_spread_by_a_quarter_and_never_over_an_hour(starts: int, chance: float) -> None:
    middle = BACKOFF_FIRST_S * 2.0 ** (starts - 1)

    assert (
        min(0.75 * middle, BACKOFF_MOST_S) <= backoff_s(starts, chance) <= min(1.25 * middle, BACKOFF_MOST_S)
    )


@pytest.mark.parametrize("move", [Move.FAIL, Move.ABANDON])
def test_the_last_start_that_does_not_end_well_is_the_end(move: Move) -> None:
    assert moved(at(Place.RUNNING, starts=3, started_at=90.0), move).place is Place.FAILED


@pytest.mark.parametrize("now", [90.0, 95.0, 10_000.0])
def test_what_nobody_ended_is_due_a_fixed_time_after_its_start(now: float) -> None:
    after = moved(at(Place.RUNNING, starts=2, started_at=90.0), Move.ABANDON, now=now)

    assert after == at(Place.FREE, starts=2, due_at=150.0, started_at=90.0)


@pytest.mark.parametrize("move", [Move.RELEASE, Move.ABANDON])
def test_what_was_only_held_is_as_before(move: Move) -> None:
    assert moved(at(Place.HELD, due_at=7.0), move) == at(Place.FREE, due_at=7.0)


def test_a_job_without_a_start_left_is_failed_when_it_is_looked_at() -> None:
    assert moved(at(Place.FREE, starts=3), Move.EXHAUST).place is Place.FAILED
    assert moved(at(Place.FREE, starts=2), Move.EXHAUST) == at(Place.FREE, starts=2)
    # 0: even a job that was never started (Chrys dialect 1.3).
    never = RetryRules(max_starts=0)
    assert moved(at(Place.FREE), Move.EXHAUST, rules=never).place is Place.FAILED


def test_by_hand_a_failed_job_gets_all_its_starts_again_and_a_pending_one_its_turn() -> None:
    assert moved(at(Place.FAILED, starts=3), Move.RETRY) == at(Place.FREE, starts=0, due_at=100.0)
    assert moved(at(Place.FREE, starts=2, due_at=900.0), Move.RETRY) == at(Place.FREE, starts=2, due_at=100.0)


@pytest.mark.parametrize("place", Place)
@pytest.mark.parametrize("move", Move)
def test_moves_are_those_of_the_table(place: Place, move: Move) -> None:
    standing = at(place, starts=1, started_at=90.0)
    before = standing

    if move in MOVES[place]:
        assert moved(standing, move).place in MOVES[place][move]
    else:
        with pytest.raises(WrongMove, match=f"a job that is {place.name.lower()} cannot {move.name.lower()}"):
            moved(standing, move)
    assert standing == before


def test_every_place_but_gone_has_a_state() -> None:
    assert {place.state for place in Place if place is not Place.GONE} == set(JobState)
    assert Place.HELD.state is JobState.PENDING
    with pytest.raises(KeyError):
        _ = Place.GONE.state


def test_a_time_that_no_wait_explains() -> None:
    assert not jumped(3700.0, RULES, now=100.0)
    assert jumped(3701.0, RULES, now=100.0)
    assert not jumped(3701.0, RetryRules(retry_age_s=9000.0), now=100.0)
    assert jumped(9200.0, RetryRules(retry_age_s=9000.0), now=100.0)


class Life(RuleBasedStateMachine):
    """Any life of a job, told by what it may never do."""

    @initialize(starts=st.integers(0, 4), age_s=st.floats(0, 10_000))
    def make(self, starts: int, age_s: float) -> None:
        self.rules = RetryRules(max_starts=starts, retry_age_s=age_s)
        self.now = 1000.0
        self.standing = at(Place.FREE, due_at=self.now)
        self.started_since_retry = 0

    @rule(
        move=st.sampled_from(Move),
        passed_s=st.floats(0, 5000),
        chance=CHANCES,
    )
    def move(self, move: Move, passed_s: float, chance: float) -> None:
        self.now += passed_s
        before = self.standing
        spent = before.starts >= self.rules.max_starts
        if move is Move.START and (spent or before.due_at > self.now):
            # Whoever starts asks first what is due.
            return
        try:
            self.standing = follow(before, move, self.rules, now=self.now, chance=chance)
        except WrongMove:
            assert move not in MOVES[before.place]
            return
        if move is Move.START:
            self.started_since_retry += 1
        if (before.place, move) == (Place.FAILED, Move.RETRY):
            self.started_since_retry = 0
        if self.standing.place is Place.DONE:
            assert (before.place, move) == (Place.RUNNING, Move.SUCCEED)
        if self.standing.place is Place.FAILED and before.place is not Place.FAILED:
            assert spent

    @invariant()
    def every_start_counts_and_there_are_no_more_than_allowed(self) -> None:
        assert self.standing.starts == self.started_since_retry <= max(self.rules.max_starts, 0)

    @invariant()
    def what_waits_comes_back(self) -> None:
        if self.standing.place is Place.FREE:
            assert not jumped(self.standing.due_at, self.rules, now=self.now)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
