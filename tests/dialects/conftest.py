"""What the dialect tests share: an origin, a caller, and short ways to read documents and to make events."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hooksd.dialects.bamboo import Bamboo
from hooksd.dialects.base import Caller
from hooksd.model.events import Event
from hooksd.model.hooks import Contract, Hook, Scope, ShellCommand
from hooksd.model.sources import Document, Origin


@pytest.fixture
def bamboo() -> Bamboo:
    """The dialect as it is on POSIX systems."""
    return Bamboo(windows=False)


@pytest.fixture
def origin() -> Origin:
    """A user's own `hooks.json`."""
    return Origin(source="bamboo", scope=Scope.USER, file="/home/u/.bamboo/hooks.json")


@pytest.fixture
def read(bamboo: Bamboo, origin: Origin) -> Callable[[Any], Document]:
    """Read a document given as an object, a text, or bytes."""

    def read(document: Any) -> Document:
        if isinstance(document, str):
            document = document.encode()
        if not isinstance(document, bytes):
            document = json.dumps(document, indent=1).encode()
        return bamboo.read(document, origin)

    return read


@pytest.fixture
def caller() -> Caller:
    """Who reports the events of these tests."""
    return Caller(
        session_id="session-123", workspace_path="/work/project", model="m-1", timestamp=1_753_174_800.5
    )


@pytest.fixture
def event(bamboo: Bamboo, caller: Caller) -> Callable[..., Event]:
    """The event of that name with its synthetic payload, changed as the keywords say."""

    def event(native: str, *, background: bool = False, **changes: Any) -> Event:
        payload = bamboo.synthetic_payload(native, caller.timestamp)
        return bamboo.event(native, {**payload, **changes}, caller, background=background)

    return event


@pytest.fixture
def hook() -> Hook:
    """A configured command hook."""
    return Hook(
        name="bamboo:user:bamboo:PreToolUse[0].hooks[0]",
        dialect="bamboo",
        contract=Contract.BAMBOO,
        source="bamboo",
        scope=Scope.USER,
        event=Bamboo.events["PreToolUse"],
        native_event="PreToolUse",
        handler=ShellCommand(command="true", shells=("bash", "sh")),
        timeout_s=60.0,
        path="lifecycle_hooks.PreToolUse[0].hooks[0]",
        file="/home/u/.bamboo/hooks.json",
        line=7,
    )
