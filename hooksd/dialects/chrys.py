"""The Chrys dialect: the public object, put together from the modules beside it.

- `chrys_schema`: the events, and the keys of `hooks.yaml`
- `chrys_document`, `chrys_hook_reader`, `chrys_values`: a document into hooks and problems
- `chrys_handlers`: what a hook runs
- `chrys_events`: payloads and gates
- `chrys_envelope`: what a hook is given
- `chrys_answer`: what a hook said
- `chrys_dry_run`: `hook/test` of an unwritten hook
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hooksd.dialects import chrys_answer, chrys_events
from hooksd.dialects.base import Caller, DryRun, HookFiles, HookInput, Places
from hooksd.dialects.chrys_document import read_document
from hooksd.dialects.chrys_dry_run import read_dry_run
from hooksd.dialects.chrys_envelope import PayloadEncoder, envelope_object, filled_in, working_directory
from hooksd.dialects.chrys_schema import EVENTS, GATES
from hooksd.dialects.chrys_translation import from_normalised
from hooksd.dialects.translate import Translator
from hooksd.model.decision import Capability
from hooksd.model.events import Event, EventName
from hooksd.model.hooks import Contract, Hook
from hooksd.model.reply import Reply
from hooksd.model.run import ProcessResult
from hooksd.model.sources import Document, Origin


__all__ = ["CHRYS", "Chrys"]

_WITHOUT = frozenset({"PYTHONHOME", "PYTHONPATH"})
"""Taken out of every environment: they are the agent's, and break the Python of a hook."""


_CHANNELS = {
    EventName.PROMPT_SUBMIT: Capability.REMINDERS,
    EventName.TOOL_AFTER: Capability.CONTEXTS,
    EventName.TOOL_ERROR: Capability.CONTEXTS,
}


class Chrys:
    """The dialect of the Chrys agent (`base.Dialect`, where the methods are described)."""

    name: str = "chrys"
    contract: Contract = Contract.CHRYS
    accepts: frozenset[Capability] = frozenset(Capability) - {Capability.ASK}
    events: Mapping[str, EventName] = EVENTS
    gates: frozenset[EventName] = GATES

    def __init__(self) -> None:
        self._encoder = PayloadEncoder()
        self._translator = Translator(self.name, from_normalised)

    def read(self, text: bytes, origin: Origin) -> Document:
        """Read a hooks file; the table of what a fault costs is in `chrys_document`."""
        return read_document(text, origin)

    def native_event(self, given: str) -> str | None:
        """One of the seventeen names for itself or its dotted form."""
        return chrys_events.NATIVE_NAMES.get(given)

    def event(self, native: str, payload: Mapping[str, Any], caller: Caller, *, background: bool) -> Event:
        """Check a payload; `chrys_events` says what is accepted."""
        return chrys_events.make_event(native, payload, caller, background=background)

    def with_arguments(self, event: Event, arguments: dict[str, Any]) -> Event:
        """The event with other tool arguments."""
        return chrys_events.with_arguments(event, arguments)

    def working_directory(self, event: Event, hook: Hook, places: Places) -> str:
        """The hook's own directory, else the one that the event is about."""
        return working_directory(event, hook, places)

    def own_environment(self, event: Event, hook: Hook, places: Places) -> tuple[tuple[str, str], ...]:
        """The hook's `env`, placeholders filled in."""
        return tuple((name, filled_in(value, event, hook, places)) for name, value in hook.env)

    def input(self, event: Event, hook: Hook, cwd: str, *, script_path: str | None) -> HookInput:
        """The payload in a file, and the variables that say where (Chrys dialect 4)."""
        return HookInput(
            stdin=None,
            env=(
                ("PYTHONUTF8", "1"),
                ("PYTHONIOENCODING", "utf-8"),
                ("CHRYS_HOOK_ID", hook.id),
                ("CHRYS_HOOK_EVENT", hook.native_event),
            ),
            without=_WITHOUT,
            files=HookFiles(
                payload=self._encoder.encode(self._translator.event(event, hook.native_event), cwd),
                payload_variable="CHRYS_HOOK_PAYLOAD_FILE",
                answer_variable="CHRYS_HOOK_RESULT",
            ),
        )

    def envelope(self, event: Event, cwd: str) -> dict[str, Any]:
        """The envelope as an object."""
        native = chrys_events.NATIVE_NAMES[event.name.value]
        return envelope_object(self._translator.event(event, native), cwd)

    def channel(self, event: Event) -> Capability | None:
        """Reminders beside a prompt, contexts after a tool call, nothing anywhere else (event-map C)."""
        return _CHANNELS.get(event.name)

    def interpret(self, result: ProcessResult, event: Event, hook: Hook) -> Reply:
        """The reply of a process."""
        return chrys_answer.interpret(result, event, hook)

    def interpret_object(self, answer: Any, event: Event, hook: Hook) -> Reply:
        """The reply of a programmatic hook."""
        return chrys_answer.interpret_object(answer, event, hook)

    def synthetic_payload(self, native: str, timestamp: float) -> dict[str, Any]:
        """The payload of a dry run."""
        return chrys_events.synthetic_payload(native)

    def dry_run(self, params: Mapping[str, Any]) -> DryRun:
        """The hook that `hook/test` describes inline."""
        return read_dry_run(params)


CHRYS = Chrys()
