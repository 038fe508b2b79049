"""What a method of the protocol is, and the field types that several methods share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import msgspec


__all__ = [
    "EMPTY",
    "MAX_ID_CHARACTERS",
    "MAX_MILLISECONDS",
    "Empty",
    "ExecutionId",
    "Method",
    "MethodKind",
    "Milliseconds",
    "NoParams",
    "check_environment",
    "check_identifier",
    "check_path",
]

MAX_ID_CHARACTERS = 512
"""Longest execution id (protocol section 2.2)."""

MAX_MILLISECONDS = 2**31 - 1
"""Longest duration a client can ask for, about 24 days: what every timer of every platform takes."""

ExecutionId = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=MAX_ID_CHARACTERS,
        description="1 to 512 printable characters, chosen by the caller.",
    ),
]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_MILLISECONDS, description="Milliseconds.")]


class MethodKind(StrEnum):
    """Who sends a method, and whether it is answered."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    EITHER = "notification or request"
    FROM_DAEMON = "request from the daemon to the client"
    EVENT = "notification from the daemon to the client"


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One method: the source of the reference page, of `hooksd schema` and of the server's table.

    Attributes:
        name: As on the wire.
        kind: Who sends it, and whether it is answered.
        params: The struct of its params.
        result: The struct of its result; None where nothing is answered.
        summary: What it does, one sentence.
        section: The section of the protocol that defines it.
    """

    name: str
    kind: MethodKind
    params: type[msgspec.Struct]
    result: type[msgspec.Struct] | None
    summary: str
    section: str


class NoParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The params of a method that takes none; they may be left out."""


class Empty(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a method that has nothing to tell but that it is done."""


EMPTY = Empty()


def check_identifier(field: str, value: str, *, printable: bool = False) -> None:
    """Refuse a string that could not be handed to a process or shown in one line.

    The text of every error begins with the field, as `hooksd.protocol.params` takes it up from there.

    Raises:
        ValueError: It holds a NUL character or, with `printable`, any character that is not printable.
    """
    if "\0" in value:
        raise ValueError(f"`{field}` must not contain a NUL character")
    if printable and not value.isprintable():
        raise ValueError(f"`{field}` must consist of printable characters")


def check_path(field: str, value: str) -> None:
    """Refuse a path that is not absolute or cannot be one.

    Raises:
        ValueError: The path is relative or holds a NUL character.
    """
    check_identifier(field, value)
    if not os.path.isabs(value):
        raise ValueError(f"`{field}` must be an absolute path, not {value[:200]!r}")


def check_environment(field: str, value: Mapping[str, str]) -> None:
    """Refuse variables that no process can be given.

    Raises:
        ValueError: A name is empty or holds `=` or NUL, or a value holds NUL.
    """
    for name, content in value.items():
        if not name or "=" in name or "\0" in name:
            raise ValueError(f"`{field}` has the impossible variable name {name[:200]!r}")
        if "\0" in content:
            raise ValueError(f"`{field}` must not have a NUL character in the value of {name[:200]!r}")
