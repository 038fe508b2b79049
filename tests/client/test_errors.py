from __future__ import annotations

import pickle

import pytest

from hooksd_client import errors
from hooksd_client.errors import ClientError, RequestFailed, request_failed


CODES = {
    -32700: "ParseError",
    -32600: "InvalidRequest",
    -32601: "MethodNotFound",
    -32602: "InvalidParams",
    -32603: "InternalError",
    -32001: "MessageTooLarge",
    -32002: "Draining",
    -32003: "Busy",
    -32010: "ExecutionConflict",
    -32011: "UnknownExecution",
    -32012: "StaleRevision",
    -32013: "ConfigurationInvalid",
    -32014: "Untrusted",
    -32015: "UnknownEvent",
    -32016: "NotPermitted",
    -32800: "RequestCancelled",
}


@pytest.mark.parametrize(("code", "name"), CODES.items())
def test_every_code_of_the_protocol_has_its_class(code: int, name: str) -> None:
    error = request_failed({"code": code, "message": "m"})

    assert type(error) is getattr(errors, name)
    assert error.code == code


def test_the_table_is_complete() -> None:
    assert {kind.__name__ for kind in RequestFailed.__subclasses__()} == set(CODES.values())


def test_a_new_code() -> None:
    error = request_failed(
        {"code": -32099, "message": "m", "data": {"kind": "k", "detail": "d", "problems": [1]}}
    )

    assert type(error) is RequestFailed
    assert (error.kind, str(error), error.data["problems"]) == ("k", "m (d)", [1])


@pytest.mark.parametrize("data", [None, 5, []])
def test_odd_data_is_none(data: object) -> None:
    error = request_failed({"code": -32603, "message": "m", "data": data})

    assert (error.kind, dict(error.data), str(error)) == ("", {}, "m")


@pytest.mark.parametrize(
    "error", [{}, {"code": "1", "message": "m"}, {"code": 1, "message": None}, 5, None, []]
)
def test_what_is_no_error_object(error: object) -> None:
    with pytest.raises(errors.ProtocolViolation, match="an error without a code and a message"):
        request_failed(error)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "bases", "text"),
    [
        (errors.DaemonNotReachable("/s", "why"), ConnectionError, "hooksd cannot be reached at /s: why"),
        (errors.ConnectionLost("why"), ConnectionError, "lost: why; the request may have been run"),
        (errors.ConnectionLost("why", may_have_run=False), ConnectionError, "the request was not run"),
        (errors.RequestTimeout("the answer", 1.5), TimeoutError, "the answer did not come within 1.5 s"),
        (errors.ClientClosed(), ClientError, "make a new one"),
        (errors.InvalidParams(-32602, "m", {"detail": "d"}), RequestFailed, r"m \(d\)"),
    ],
)
def test_texts_and_copies(error: ClientError, bases: type[Exception], text: str) -> None:
    copy = pickle.loads(pickle.dumps(error))

    assert isinstance(error, ClientError)
    with pytest.raises(bases, match=text):
        raise error
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_every_class_is_told_in_the_tree() -> None:
    named = [name for name in errors.__all__ if name != "request_failed"]

    assert all(issubclass(getattr(errors, name), ClientError) for name in named)
    assert set(named) == {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, ClientError)
    }
