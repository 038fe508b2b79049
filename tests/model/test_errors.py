"""The exceptions: one root, split by whose fault it is, and sentences that say what to do with them."""

from __future__ import annotations

import pytest

from hooksd.model.errors import (
    AlreadyRunning,
    ConfigError,
    HooksdError,
    ProtocolError,
    ServiceError,
    SocketUnusable,
    UnsafePermissions,
)
from hooksd.model.problems import ConfigProblem, Severity


PROBLEM = ConfigProblem(severity=Severity.ERROR, path="a", message="bad")

ERRORS = [
    (ProtocolError(-32602, "no such field", kind="x"), "no such field"),
    (ConfigError([PROBLEM, PROBLEM], file="/h.json"), "a: bad; a: bad"),
    (AlreadyRunning("/d.lock", 12), "hooksd is already running (pid 12; lock /d.lock)"),
    (AlreadyRunning("/d.lock", None), "hooksd is already running (its pid is not known; lock /d.lock)"),
    (SocketUnusable("/s", "it is a file"), "cannot use the socket path /s: it is a file"),
    (UnsafePermissions("/d", "others can write"), "refusing /d: others can write"),
]


@pytest.mark.parametrize(("error", "text"), ERRORS, ids=lambda value: type(value).__name__)
def test_every_error_is_ours_and_says_what_is_wrong(error: HooksdError, text: str) -> None:
    assert isinstance(error, HooksdError)
    assert str(error) == text


def test_the_facts_are_fields() -> None:
    told = ProtocolError(-32602, "m", kind="k", detail="d", problems=[PROBLEM])
    assert (told.code, told.message, told.kind, told.detail, told.problems) == (
        -32602,
        "m",
        "k",
        "d",
        (PROBLEM,),
    )
    config = ConfigError([PROBLEM], file="/h.json")
    assert (config.problems, config.file) == ((PROBLEM,), "/h.json")
    assert AlreadyRunning("/d.lock", 12).pid == 12


def test_what_is_wrong_with_the_surroundings_has_one_root() -> None:
    assert all(issubclass(one, ServiceError) for one in (AlreadyRunning, SocketUnusable, UnsafePermissions))
