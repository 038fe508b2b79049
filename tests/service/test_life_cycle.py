import pytest
from hypothesis import given, strategies as st

from hooksd.service.life_cycle import TRANSITIONS, IllegalTransition, LifeCycle, State


def test_a_whole_life() -> None:
    entered: list[State] = []
    life = LifeCycle(entered.append)
    serving = []

    for state in (State.READY, State.DEGRADED, State.READY, State.DRAINING, State.STOPPED):
        life.go(state)
        serving.append(life.is_serving)

    assert entered == [State.READY, State.DEGRADED, State.READY, State.DRAINING, State.STOPPED]
    assert serving == [True, True, True, False, False]


@given(st.lists(st.sampled_from(State)))
def test_what_the_table_does_not_have_changes_nothing(wanted: list[State]) -> None:
    entered: list[State] = []
    life = LifeCycle(entered.append)

    for state in wanted:
        before = life.state
        if state in TRANSITIONS[before]:
            life.go(state)
            assert life.state is state
        else:
            with pytest.raises(IllegalTransition, match=f"become {state} while it is {before}"):
                life.go(state)
            assert life.state is before

    assert State.STARTING not in entered
    assert State.STOPPED not in entered[:-1]


def test_every_state_has_a_way_to_the_end() -> None:
    for state in State:
        reached = {state}
        while more := {after for one in reached for after in TRANSITIONS[one]} - reached:
            reached |= more
        assert State.STOPPED in reached
