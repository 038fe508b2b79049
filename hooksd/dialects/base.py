"""What a dialect is: the one seam through which an agent family comes into the house.

A dialect module is pure: text in, hooks and problems out; event in, envelope out; process result in, reply out. It
opens no file, starts nothing, reads no clock. Adding an agent is one module that has this shape, one line in
`dialects/__init__.py`, and cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from hooksd.model.decision import Capability
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import Contract, Hook
from hooksd.model.problems import ConfigProblem
from hooksd.model.reply import Reply
from hooksd.model.run import ProcessResult
from hooksd.model.sources import Document, Origin


__all__ = ["Caller", "Dialect", "DryRun", "HookFiles", "HookInput", "PayloadRefused", "Places"]


class PayloadRefused(Exception):
    """A dispatched payload, or the parameters of a dry run, that do not fit the event; `problems` tells where."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.describe() for problem in self.problems))


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who reports an event, and when: what the dialect needs besides the payload."""

    session_id: str
    workspace_path: str = ""
    model: str = ""
    profile: str = ""
    timestamp: float
    """Seconds since the epoch."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Directories a working directory may be chosen from."""

    cwd: str | None = None
    """The dispatch's own `cwd`, for this event only."""
    workspace: str
    """The execution's workspace, "" if none."""
    work_area: str
    """`[daemon] work_area`, absolute; "" if switched off."""
    daemon_cwd: str
    """The daemon's own working directory."""
    home: str = ""


class HookFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The two files through which a contract gives the payload and takes the answer.

    Attributes:
        payload: What is in the one; the other is empty.
        payload_variable: The variable that tells where the payload is; the hook's own `env` may override it.
        answer_variable: The same for the answer.
    """

    payload: bytes
    payload_variable: str
    answer_variable: str


class HookInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook's process is given besides its command: stdin and the contract's own variables.

    Attributes:
        stdin: What it reads; None gives it the null device.
        env: The contract's variables.
        without: Variables, in upper case, that the contract takes out of the caller's environment however they are
            written; `env` and the hook's own may set them again.
        files: The files of the contract, None where it has none.
    """

    stdin: bytes | None
    env: tuple[tuple[str, str], ...]
    without: frozenset[str] = frozenset()
    files: HookFiles | None = None


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """`hook/test` of a handler that is written nowhere, as its dialect understood it."""

    hook: Hook
    event: str
    """The native event name."""


class Dialect(Protocol):
    """The contract of a dialect module's one public object."""

    name: str
    """The word for it in settings, hook names and `agent` parameters."""
    contract: Contract
    accepts: frozenset[Capability]
    """What its agent can carry out unless it says otherwise."""
    events: Mapping[str, EventName]
    """Its own event names and the normalised ones; several of its names may mean one normalised event."""
    gates: frozenset[EventName]
    """The events whose outcome can stop something in its agent; a background completion of one never can."""

    def read(self, text: bytes, origin: Origin) -> Document:
        """Read a configuration document. Never raises; everything that is wrong is a problem with its line."""
        ...

    def native_event(self, given: str) -> str | None:
        """Its own name for an event named in its own or in dotted form; None if it has no such event."""
        ...

    def event(self, native: str, payload: Mapping[str, Any], caller: Caller, *, background: bool) -> Event:
        """Check a dispatched payload and make it an event.

        Raises:
            PayloadRefused: A field is missing, of the wrong type or unknown; every such fault is told.
        """
        ...

    def with_arguments(self, event: Event, arguments: dict[str, Any]) -> Event:
        """The event as it is after a hook changed the tool's arguments."""
        ...

    def working_directory(self, event: Event, hook: Hook, places: Places) -> str:
        """The absolute directory a hook of this dialect runs in; whether it exists is found out at the spawn."""
        ...

    def own_environment(self, event: Event, hook: Hook, places: Places) -> tuple[tuple[str, str], ...]:
        """The hook's own variables as they are for this event."""
        ...

    def input(self, event: Event, hook: Hook, cwd: str, *, script_path: str | None) -> HookInput:
        """The envelope and the contract's variables for one run of a hook *of this dialect*.

        The event may come from an agent of another dialect: it is then translated (event-map.md).

        Raises:
            PayloadRefused: No envelope can hold the event (it is nested too deeply to be encoded).
        """
        ...

    def envelope(self, event: Event, cwd: str) -> dict[str, Any]:
        """The envelope as an object, for a programmatic hook that speaks this dialect."""
        ...

    def channel(self, event: Event) -> Capability | None:
        """How its agent takes text that a hook adds at one of its events; None where it takes none."""
        ...

    def interpret(self, result: ProcessResult, event: Event, hook: Hook) -> Reply:
        """What a finished process said. A launch failure, a timeout or a bad exit is a reply with a failure."""
        ...

    def interpret_object(self, answer: Any, event: Event, hook: Hook) -> Reply:
        """What a programmatic hook's result object said."""
        ...

    def synthetic_payload(self, native: str, timestamp: float) -> dict[str, Any]:
        """The deterministic payload of a dry run."""
        ...

    def dry_run(self, params: Mapping[str, Any]) -> DryRun:
        """The hook that `hook/test` describes inline.

        Raises:
            PayloadRefused: It could never run; every fault is told.
        """
        ...
