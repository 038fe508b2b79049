"""The Bamboo dialect: the public object, put together from the modules beside it.

- `bamboo_schema`: the keys of `hooks.json`
- `bamboo_document`: a document into hooks and problems
- `bamboo_handlers`: what a handler runs
- `bamboo_events`: payloads and gates
- `bamboo_envelope`: what a hook reads
- `bamboo_answer`: what a hook said
- `bamboo_dry_run`: `hook/test` of an unwritten handler
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hooksd.dialects import bamboo_answer, bamboo_events
from hooksd.dialects.bamboo_document import read_document
from hooksd.dialects.bamboo_dry_run import read_dry_run
from hooksd.dialects.bamboo_envelope import EnvelopeEncoder, envelope_object
from hooksd.dialects.bamboo_handlers import trim
from hooksd.dialects.bamboo_schema import EVENTS
from hooksd.dialects.bamboo_translation import from_normalised
from hooksd.dialects.base import Caller, DryRun, HookInput, Places
from hooksd.dialects.translate import Translator
from hooksd.model.decision import Capability
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import Contract, Hook, Script
from hooksd.model.reply import Reply
from hooksd.model.run import ProcessResult
from hooksd.model.sources import Document, Origin


__all__ = ["BAMBOO", "Bamboo"]


class Bamboo:
    """The dialect of the Bamboo agent (`base.Dialect`, where the methods are described).

    Args:
        windows: Whether hooks run on Windows, where other runtimes are tried.
    """

    name: str = "bamboo"
    contract: Contract = Contract.BAMBOO
    accepts: frozenset[Capability] = frozenset(Capability) - {Capability.ARGUMENTS}
    events: Mapping[str, EventName] = EVENTS
    gates: frozenset[EventName] = bamboo_events.GATES

    def __init__(self, *, windows: bool) -> None:
        self._windows = windows
        self._encoder = EnvelopeEncoder()
        self._translator = Translator(self.name, from_normalised)

    def read(self, text: bytes, origin: Origin) -> Document:
        """Read a `hooks.json`; the table of what a fault costs is in `bamboo_document`."""
        return read_document(text, origin, windows=self._windows)

    def native_event(self, given: str) -> str | None:
        """One of the eight names for itself or its dotted form."""
        return bamboo_events.NATIVE_NAMES.get(given)

    def event(self, native: str, payload: Mapping[str, Any], caller: Caller, *, background: bool) -> Event:
        """Check a payload; `bamboo_events` says what is accepted."""
        return bamboo_events.make_event(native, payload, caller, background=background)

    def with_arguments(self, event: Event, arguments: dict[str, Any]) -> Event:
        """The event with other tool arguments."""
        return bamboo_events.with_arguments(event, arguments)

    def working_directory(self, event: Event, hook: Hook, places: Places) -> str:
        """The dispatch's own directory, the workspace, the work area, else a place that is always there.

        That is the hooks file's directory for a script, the daemon's own for everything else (design.md, "working
        directory fallback, Bamboo").
        """
        for place in (places.cwd, places.workspace, places.work_area):
            if place and trim(place):
                return place
        if isinstance(hook.handler, Script) and hook.file:
            return os.path.dirname(hook.file)
        return places.daemon_cwd

    def own_environment(self, event: Event, hook: Hook, places: Places) -> tuple[tuple[str, str], ...]:
        """Bamboo's handlers have no variables of their own; what a hook has is told as it is."""
        return hook.env

    def input(self, event: Event, hook: Hook, cwd: str, *, script_path: str | None) -> HookInput:
        """The envelope on stdin, and the `BAMBOO_*` variables (Bamboo dialect 3.4)."""
        own = self._translator.event(event, hook.native_event)
        env = [("BAMBOO_SESSION_ID", own.session_id), ("BAMBOO_HOOK_EVENT", own.native)]
        if script_path is not None:
            env.append(("BAMBOO_HOOK_SCRIPT", script_path))
        return HookInput(stdin=self._encoder.encode(own, cwd), env=tuple(env))

    def envelope(self, event: Event, cwd: str) -> dict[str, Any]:
        """The envelope as an object."""
        native = bamboo_events.NATIVE_NAMES[event.name.value]
        return envelope_object(self._translator.event(event, native), cwd)

    def channel(self, event: Event) -> Capability | None:
        """Contexts, at every event."""
        return Capability.CONTEXTS

    def interpret(self, result: ProcessResult, event: Event, hook: Hook) -> Reply:
        """The reply of a process. An observer's decision is a decision here; the fold does not carry it out."""
        return bamboo_answer.interpret(result, hook)

    def interpret_object(self, answer: Any, event: Event, hook: Hook) -> Reply:
        """The reply of a programmatic hook."""
        return bamboo_answer.interpret_object(answer, event)

    def synthetic_payload(self, native: str, timestamp: float) -> dict[str, Any]:
        """The payload of a dry run."""
        return bamboo_events.synthetic_payload(native, timestamp)

    def dry_run(self, params: Mapping[str, Any]) -> DryRun:
        """The hook that `hook/test` describes inline."""
        return read_dry_run(params, windows=self._windows)


BAMBOO = Bamboo(windows=os.name == "nt")
