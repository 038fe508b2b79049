"""What is told of a fault of our own, and to whom."""

from __future__ import annotations

from hooksd.protocol.errors import ErrorCode
from hooksd.server.incidents import MAX_FRAMES, incident


def fault(depth):
    if depth:
        return fault(depth - 1)
    raise KeyError("what a client sent")


def caught(depth):
    try:
        fault(depth)
    except KeyError as error:
        return error
    raise AssertionError("no fault")


def test_the_peer_gets_an_id_and_the_log_the_place():
    records = []

    error = incident(caught(0), lambda *record: records.append(record), "hook/dispatch")

    [(level, kind, fields)] = records
    assert (error.code, error.kind) == (ErrorCode.INTERNAL_ERROR, "internal_error")
    assert error.detail in error.message
    assert (level, kind) == ("error", "daemon.internal_error")
    assert (fields["incident"], fields["method"], fields["error"]) == (
        error.detail,
        "hook/dispatch",
        "KeyError",
    )
    assert fields["where"][-1].endswith(" fault")
    assert "what a client sent" not in f"{error.message}{error.detail}{records}"


def test_every_incident_has_an_id_of_its_own():
    assert (
        incident(caught(0), lambda *_: None, "a").detail != incident(caught(0), lambda *_: None, "a").detail
    )


def test_the_record_is_bounded():
    records = []
    incident(caught(100), lambda *record: records.append(record), "m" * 1_000)

    fields = records[0][2]
    assert len(fields["where"]) == MAX_FRAMES
    assert len(fields["method"]) == 100
