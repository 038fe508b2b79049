"""Counters of forced continuations, and where a turn begins."""

from __future__ import annotations

from hypothesis import given, strategies as st

from hooksd.model.events import Event, EventName
from hooksd.model.outcome import Continuation
from hooksd.pipeline.continuations import MAX_SUBAGENTS, Continuations


def event(name: EventName, agent: str = "bamboo", *, subagent: str = "", continued: bool = False) -> Event:
    return Event(
        name=name,
        agent=agent,
        native="x",
        gate=True,
        session_id="s",
        payload={},
        subagent=subagent,
        continued=continued,
        timestamp=0.0,
    )


def test_the_limit_is_the_last_one_that_is_carried_out() -> None:
    counters = Continuations()

    states = [counters.claim("", 2) for _ in range(4)]

    assert states == [
        Continuation(count=1, limit=2, exhausted=False),
        Continuation(count=2, limit=2, exhausted=False),
        Continuation(count=2, limit=2, exhausted=True),
        Continuation(count=2, limit=2, exhausted=True),
    ]


def test_a_limit_of_none_forbids_them() -> None:
    assert Continuations().claim("", 0) == Continuation(count=0, limit=0, exhausted=True)


def test_a_prompt_begins_a_turn_of_the_agents_that_report_prompts() -> None:
    for agent in ("bamboo", "chrys"):
        counters = Continuations()
        counters.claim("", 5)
        counters.claim("sub", 5)
        counters.observe(event(EventName.TURN_FINISH, agent))
        counters.observe(event(EventName.TOOL_BEFORE, agent))
        assert (counters.count(""), counters.count("sub")) == (1, 1)
        assert counters.is_continued(event(EventName.TURN_FINISH, agent))

        counters.observe(event(EventName.PROMPT_SUBMIT, agent))

        assert (counters.count(""), counters.count("sub")) == (0, 0)
        assert not counters.is_continued(event(EventName.TURN_FINISH, agent))


def test_a_prompt_of_a_subagent_begins_its_own_turn_only() -> None:
    counters = Continuations()
    counters.claim("", 5)
    counters.claim("sub", 5)

    counters.observe(event(EventName.PROMPT_SUBMIT, subagent="sub"))

    assert (counters.count(""), counters.count("sub")) == (1, 0)


def test_the_turns_of_other_agents_begin_with_a_stop_whose_flag_is_false() -> None:
    counters = Continuations()
    counters.claim("", 5)
    counters.claim("sub", 5)
    stop = event(EventName.TURN_FINISH, "claude")
    assert not counters.is_continued(stop)
    assert counters.is_continued(event(EventName.TURN_FINISH, "claude", continued=True))

    counters.observe(event(EventName.PROMPT_SUBMIT, "claude"))
    counters.observe(event(EventName.TURN_FINISH, "claude", continued=True))
    assert counters.count("") == 1
    counters.observe(stop)

    assert (counters.count(""), counters.count("sub")) == (0, 1)


def test_the_counters_of_subagents_are_bounded() -> None:
    counters = Continuations()
    for number in range(MAX_SUBAGENTS + 1):
        counters.claim(f"sub-{number}", 5)

    assert counters.count("sub-0") == 0
    assert counters.count("sub-1") == 1
    assert counters.count(f"sub-{MAX_SUBAGENTS}") == 1


@given(st.lists(st.sampled_from(["claim", "prompt", "stop", "tool"]), max_size=40), st.integers(0, 4))
def test_never_more_than_the_limit_between_two_prompts(steps: list[str], limit: int) -> None:
    counters = Continuations()
    carried_out = 0
    for step in steps:
        if step == "claim":
            may = carried_out < limit
            assert counters.claim("", limit).exhausted is not may
            carried_out += may
        elif step == "prompt":
            counters.observe(event(EventName.PROMPT_SUBMIT))
            carried_out = 0
        else:
            counters.observe(event(EventName.TURN_FINISH if step == "stop" else EventName.TOOL_BEFORE))
        assert counters.count("") == carried_out <= limit
