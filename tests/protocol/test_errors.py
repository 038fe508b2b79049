"""The codes of protocol section 4."""

from __future__ import annotations

from hooksd.protocol.errors import KINDS, ErrorCode, protocol_error


def test_every_code_of_the_protocol():
    assert sorted(code.value for code in ErrorCode) == sorted(
        [
            -32700,
            -32600,
            -32601,
            -32602,
            -32603,
            -32001,
            -32002,
            -32003,
            -32010,
            -32011,
            -32012,
            -32013,
            -32014,
            -32015,
            -32016,
            -32800,
        ]
    )


def test_every_code_has_a_kind():
    assert set(KINDS) == set(ErrorCode)
    assert len(set(KINDS.values())) == len(ErrorCode)


def test_an_error_has_the_kind_of_its_code_or_a_closer_one():
    assert protocol_error(ErrorCode.BUSY, "full").kind == "busy"
    error = protocol_error(ErrorCode.BUSY, "full", kind="max_executions", detail="10")
    assert (error.code, error.kind, error.detail, error.problems) == (-32003, "max_executions", "10", ())
    assert str(error) == "full"
