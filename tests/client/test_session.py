"""The protocol state of one connection, without one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hooksd_client import calls
from hooksd_client.errors import (
    ClientClosed,
    ConnectionLost,
    MessageTooLarge,
    ProtocolViolation,
    RequestFailed,
    UnknownExecution,
)
from hooksd_client.session import (
    MAX_CALLBACKS,
    Answered,
    Fed,
    Invoked,
    Refused,
    Session,
    answer_line,
    busy_line,
    failure_line,
    not_sent,
)
from hooksd_client.standing import Feed, HookReply, Offer


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def begun(session: Session[str], call: calls.Call[Any], waiter: str = "w", **options: Any) -> dict[str, Any]:
    """Begin a call; the message that goes out."""
    request_id, data = session.begin(call, waiter, **options)
    message: dict[str, Any] = json.loads(data)
    assert message["id"] == request_id
    assert data.endswith(b"\n")
    return message


PARAMS = calls.execution_params("run-1", agent="bamboo", session_id="s")


def event(opens: Any = None) -> calls.Call[Any]:
    return calls.dispatch(calls.event_params("run-1", "Stop", None, {}), opens)


OUTCOME = {"event": "Stop", "decision": "none"}


def test_an_answer_finds_its_waiter() -> None:
    session: Session[str] = Session()
    first, second = begun(session, calls.ping(), "first"), begun(session, calls.reload_config(), "second")

    happenings = session.receive_data(
        line(id=second["id"], result={"revision": 2}) + line(id=first["id"], result={"pong": True})
    )

    assert [(item.waiter, item.error) for item in happenings] == [("second", None), ("first", None)]
    assert happenings[0].value.revision == 2
    assert session.receive_data(line(id=first["id"], result={})) == []


@given(st.lists(st.integers(1, 60), max_size=8))
def test_any_chunking_gives_the_same_happenings(cuts: list[int]) -> None:
    session: Session[str] = Session()
    begun(session, calls.ping(), "a")
    begun(session, calls.status(), "b")
    stream = line(id=2, error={"code": -32003, "message": "busy"}) + b"\r\n" + line(id=1, result=None)
    happenings = []
    at = 0
    for size in [*cuts, len(stream)]:
        happenings += session.receive_data(stream[at : at + size])
        at += size

    assert [item.waiter for item in happenings] == ["b", "a"]


def test_an_error_is_its_exception() -> None:
    session: Session[str] = Session()
    begun(session, calls.ping())

    (answered,) = session.receive_data(
        line(id=1, error={"code": -32011, "message": "gone", "data": {"kind": "k"}})
    )

    assert isinstance(answered.error, UnknownExecution)
    assert (answered.error.kind, str(answered.error)) == ("k", "gone")


def test_an_abandoned_call_is_cancelled_once_and_its_answer_forgotten() -> None:
    session: Session[str] = Session()
    request_id, _ = session.begin(calls.ping(), "w")

    cancel = session.abandon(request_id)

    assert cancel is not None
    assert json.loads(cancel) == {"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": 1}}
    assert session.abandon(request_id) is None
    assert session.receive_data(line(id=1, error={"code": -32800, "message": "cancelled"})) == []


def test_own_ids() -> None:
    session: Session[str] = Session()

    assert begun(session, calls.ping(), request_id="mine")["id"] == "mine"
    with pytest.raises(ValueError, match="'mine' is already under way"):
        session.begin(calls.ping(), "w", "mine")
    assert begun(session, calls.ping())["id"] == 2


class TestOpening:
    def test_the_open_params_go_along_until_they_have_been_taken(self) -> None:
        session: Session[str] = Session()
        assert begun(session, event(PARAMS))["params"]["execution"] == PARAMS
        assert begun(session, event(PARAMS))["params"]["execution"] == PARAMS
        session.receive_data(line(id=1, error={"code": -32603, "message": "m"}))
        assert begun(session, event(PARAMS))["params"]["execution"] == PARAMS
        session.receive_data(line(id=2, result=OUTCOME))
        assert "execution" not in begun(session, event(PARAMS))["params"]

    def test_the_open_params_go_along_again_once_the_daemon_does_not_know_the_execution(self) -> None:
        session: Session[str] = Session()
        begun(session, event(PARAMS))
        session.receive_data(line(id=1, result=OUTCOME))
        begun(session, event(PARAMS))
        begun(session, event(PARAMS))
        session.receive_data(line(id=2, error={"code": -32003, "message": "busy"}))
        assert "execution" not in begun(session, event(PARAMS))["params"]
        session.receive_data(line(id=3, error={"code": -32011, "message": "dropped"}))
        assert begun(session, event(PARAMS))["params"]["execution"] == PARAMS

    def test_other_params_of_the_same_execution_go_along(self) -> None:
        session: Session[str] = Session()
        begun(session, event(PARAMS))
        session.receive_data(line(id=1, result=OUTCOME))
        other = {**PARAMS, "model": "m"}

        assert begun(session, event(other))["params"]["execution"] == other

    def test_opening_itself_opens(self) -> None:
        session: Session[str] = Session()
        assert begun(session, calls.open_execution(PARAMS))["params"] == PARAMS
        session.receive_data(line(id=1, result={"execution_id": "run-1", "revision": 1}))

        assert "execution" not in begun(session, event(PARAMS))["params"]

    def test_a_closed_one_is_opened_again(self) -> None:
        session: Session[str] = Session()
        begun(session, event(PARAMS))
        session.receive_data(line(id=1, result=OUTCOME))
        begun(session, calls.close_execution("run-1", None))
        session.receive_data(line(id=2, result={}))

        assert "execution" in begun(session, event(PARAMS))["params"]


class TestUnaddressedErrors:
    TOO_LARGE = line(id=None, error={"code": -32001, "message": "too large"})

    def test_too_large_is_for_the_longest(self) -> None:
        session: Session[str] = Session()
        begun(session, calls.ping(), "short")
        begun(session, calls.raw("x", {"text": "y" * 100}), "long")
        begun(session, calls.ping(), "short too")

        (answered,) = session.receive_data(self.TOO_LARGE)

        assert answered.waiter == "long"
        assert isinstance(answered.error, MessageTooLarge)

    def test_with_nothing_under_way_it_is_a_violation(self) -> None:
        with pytest.raises(ProtocolViolation, match="too large"):
            Session[str]().receive_data(self.TOO_LARGE)

    def test_every_other_is_a_violation(self) -> None:
        session: Session[str] = Session()
        begun(session, calls.ping())

        with pytest.raises(ProtocolViolation, match="could not read"):
            session.receive_data(line(id=None, error={"code": -32700, "message": "bad"}))


def test_a_line_over_the_limit_is_a_violation() -> None:
    session: Session[str] = Session(100)
    assert session.receive_data(b"x" * 100) == []

    with pytest.raises(ProtocolViolation, match="longer than 100 bytes"):
        session.receive_data(b"x")


@pytest.mark.parametrize("data", [b"{\n", b"3\n", b"[]\n", b'"method"\n', b"\xff\n"])
def test_a_line_that_is_no_message_is_a_violation(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        Session[str]().receive_data(data)


def test_the_end_of_the_connection_is_told_to_everybody() -> None:
    session: Session[str] = Session()
    begun(session, calls.ping(), "a")
    begun(session, calls.ping(), "b")
    error = ConnectionLost("why")

    ended = session.fail(error)

    assert [answered.waiter for answered in ended] == ["a", "b"]
    errors = [answered.error for answered in ended]
    assert [str(found) for found in errors] == [str(error)] * 2
    assert len({id(found) for found in [*errors, error]}) == 3
    assert session.fail(error) == []


@pytest.mark.parametrize("error", [ClientClosed(), ProtocolViolation("what")])
def test_any_end_can_be_told(error: Any) -> None:
    session: Session[str] = Session()
    begun(session, calls.ping(), "a")

    (ended,) = session.fail(error)

    assert type(ended.error) is type(error)
    assert str(ended.error) == str(error)
    assert str(not_sent(error)) == str(error)


def test_a_request_after_the_end_was_not_sent() -> None:
    found = not_sent(ConnectionLost("why"))

    assert isinstance(found, ConnectionLost)
    assert not found.may_have_run


class TestStanding:
    def offered(self) -> tuple[Session[str], Offer]:
        session: Session[str] = Session()
        offer = Offer({"name": "mine", "events": ["Stop"]}, lambda call: None)
        message = begun(session, session.stand(offer))
        assert message["params"] == {"name": "mine", "events": ["Stop"]}
        session.receive_data(line(id=1, result={"registration_id": "reg-1"}))
        return session, offer

    def invoke(self, session: Session[str], **params: Any) -> Any:
        asked = {"registration_id": "reg-1", "envelope": {"a": 1}, "deadline_ms": 9, **params}
        (happening,) = session.receive_data(line(id="d-1", method="hook/invoke", params=asked))
        return happening

    def test_an_invocation(self) -> None:
        session, offer = self.offered()

        invoked = self.invoke(session)

        assert isinstance(invoked, Invoked)
        assert invoked.offer is offer
        assert (invoked.request_id, invoked.call.name) == ("d-1", "mine")
        assert (invoked.call.envelope, invoked.call.deadline_ms) == ({"a": 1}, 9)

    @pytest.mark.parametrize(
        "params",
        [{"registration_id": "reg-2"}, {"envelope": None}, {"deadline_ms": "9"}, {"registration_id": None}],
    )
    def test_an_invocation_that_cannot_be_one_is_refused(self, params: dict[str, Any]) -> None:
        session, _ = self.offered()

        refused = self.invoke(session, **params)

        assert isinstance(refused, Refused)
        assert json.loads(refused.line)["error"]["code"] == -32602

    def test_another_method_is_refused(self) -> None:
        (refused,) = Session[str]().receive_data(line(id=1, method="hook/dance", params=[1]))

        assert json.loads(refused.line)["error"] == {
            "code": -32601,
            "message": "this client has no method hook/dance",
        }

    def test_another_notification_is_ignored(self) -> None:
        assert Session[str]().receive_data(line(method="hook/dance")) == []

    def test_withdrawing(self) -> None:
        session, offer = self.offered()
        assert session.has(offer)

        call = session.withdraw(offer)

        assert call is not None
        assert (call.method, call.params) == ("hook/unregister", {"registration_id": "reg-1"})
        assert session.withdraw(offer) is None
        assert not session.has(offer)
        assert isinstance(self.invoke(session), Refused)

    def test_records_find_their_feed(self) -> None:
        session: Session[str] = Session()
        feed, other = Feed({}), Feed({})
        begun(session, session.stand(feed))
        begun(session, session.stand(other))
        session.receive_data(
            line(id=1, result={"subscription_id": "a", "seq": 7})
            + line(id=2, result={"subscription_id": "b"})
        )
        record = {"subscription_id": "b", "seq": 8, "ts": "t", "level": "info", "event": "x"}

        assert session.receive_data(line(method="events/event", params=record)) == [Fed(other)]
        assert (feed.last_seq, other.last_seq) == (7, 8)
        assert not feed.ready
        assert other.take().seq == 8
        assert session.receive_data(line(method="events/event", params={"subscription_id": "c"})) == []

    @pytest.mark.parametrize("answer", [None, [], {}, {"registration_id": 5}])
    def test_an_answer_without_an_id(self, answer: Any) -> None:
        session: Session[str] = Session()
        begun(session, session.stand(Offer({"name": "n"}, print)))

        (answered,) = session.receive_data(line(id=1, result=answer))

        assert isinstance(answered, Answered)
        assert isinstance(answered.error, ProtocolViolation)


def test_answers_to_invocations() -> None:
    assert json.loads(answer_line(5, HookReply(decision="block", reason="r"))) == {
        "jsonrpc": "2.0",
        "id": 5,
        "result": {"decision": "block", "reason": "r"},
    }
    assert json.loads(answer_line(5, {"reason": float("nan")}))["error"]["message"].startswith("ValueError")
    assert json.loads(failure_line("x", OSError("no")))["error"] == {"code": -32603, "message": "OSError: no"}
    assert str(MAX_CALLBACKS) in json.loads(busy_line("x"))["error"]["message"]


def test_an_error_that_is_no_error_object_fails_its_call() -> None:
    session: Session[str] = Session()
    begun(session, calls.ping())

    (answered,) = session.receive_data(line(id=1, error="bad"))

    assert isinstance(answered.error, ProtocolViolation)
    assert not isinstance(answered.error, RequestFailed)
