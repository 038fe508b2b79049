"""`hook/register`, `hook/unregister`, `hook/invoke`: hooks inside connected clients (protocol section 2.8)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from hooksd.protocol.methods.base import MAX_MILLISECONDS, Empty, Method, MethodKind, check_identifier


__all__ = [
    "METHODS",
    "FailureAction",
    "HookInvokeParams",
    "HookInvokeResult",
    "HookRegisterParams",
    "HookRegisterResult",
    "HookUnregisterParams",
    "RegistrationMode",
]


class RegistrationMode(StrEnum):
    """Whether the daemon waits for the hook's word."""

    CONTROL = "control"
    OBSERVER = "observer"


class FailureAction(StrEnum):
    """What it means that the hook gave no valid answer."""

    WARN = "warn"
    BLOCK = "block"


MAX_MATCHER_CHARACTERS: Final = 1_024
"""Longest matcher of a registration. It is compiled while everybody waits, unlike those of files: a pattern of 64 K
characters, which a file may have, takes seconds."""


class HookRegisterParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `hook/register`.

    Attributes:
        events: Normalised names, or those of `agent`.
        agent: The dialect whose names `events` are and whose envelope the hook gets.
        matcher: Pattern over the tool name, as in the Bamboo dialect.
        priority: Ascending; configured hooks have 100 and come after programmatic ones of equal priority.
        name: Last part of the hook's name `programmatic:client:<client name or ->:<name>`.
        mode: Whether a dispatch waits for it.
        timeout_ms: Its deadline for one answer.
        on_failure: What no answer, or no valid one, means.
    """

    events: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=64)]
    agent: str = "bamboo"
    matcher: Annotated[str, msgspec.Meta(max_length=MAX_MATCHER_CHARACTERS)] | None = None
    priority: int = 100
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    mode: RegistrationMode = RegistrationMode.CONTROL
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=MAX_MILLISECONDS)] = 60_000
    on_failure: FailureAction = FailureAction.WARN

    def __post_init__(self) -> None:
        check_identifier("name", self.name, printable=True)


class HookRegisterResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `hook/register`."""

    registration_id: str


class HookUnregisterParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `hook/unregister`; only the connection that registered the hook may take it out."""

    registration_id: str


class HookInvokeParams(msgspec.Struct, frozen=True, kw_only=True):
    """Params of `hook/invoke`, which the daemon sends.

    Attributes:
        registration_id: Which of the client's hooks is called.
        envelope: The event as a hook of the registered agent gets it.
        deadline_ms: How long the daemon waits for the answer.
    """

    registration_id: str
    envelope: dict[str, Any]
    deadline_ms: int


class HookInvokeResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the client answers to `hook/invoke`; everything is optional."""

    decision: str | None = None
    reason: str | None = None
    additional_context: str | None = None
    arguments: dict[str, Any] | None = None


METHODS = (
    Method(
        name="hook/register",
        kind=MethodKind.REQUEST,
        params=HookRegisterParams,
        result=HookRegisterResult,
        summary="Offer a hook inside this client; it is part of the executions opened while it stands.",
        section="2.8",
    ),
    Method(
        name="hook/unregister",
        kind=MethodKind.REQUEST,
        params=HookUnregisterParams,
        result=Empty,
        summary="Take a hook of this client out everywhere.",
        section="2.8",
    ),
    Method(
        name="hook/invoke",
        kind=MethodKind.FROM_DAEMON,
        params=HookInvokeParams,
        result=HookInvokeResult,
        summary="Call a hook inside the client.",
        section="2.8",
    ),
)
