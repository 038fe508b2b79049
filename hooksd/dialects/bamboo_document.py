"""Reading a Bamboo `hooks.json` into hooks and problems (Bamboo dialect 1, changed by design.md).

The reference rejects a whole section for one wrong type; design.md wants the rest to go on. The rule here: **a fault
that can be pinned on hooks costs those hooks; any other costs the document**, and then the last good one stays in force.

| fault | costs |
|---|---|
| not UTF-8 (UTF-16 is told as such), not JSON, nested deeper than 128, more than a million values or 16 MiB | the document |
| more than 100,000 hooks | the document |
| the root or `lifecycle_hooks` no object; `lifecycle_hooks.enabled` no boolean | the document |
| a revision envelope with a newer or odd `schema_version`, an odd `revision`, or `data` that is no object | the document |
| a known key twice in the root, the envelope or `lifecycle_hooks` | the document |
| an event's value no array | the event: one hook named after it stands for all of it |
| a group no object, or its `hooks` no array | the group: one hook named after it stands for all of it |
| a group's `enabled` or `matcher` of the wrong type, a `matcher` that is no pattern, a known key twice | every hook of the group |
| any fault of a handler: `type`, `command`, `path`, `runner`, `timeout_ms`, a known key twice | that hook |
| an unknown event | nothing else; an error |
| `timeout_ms` over 600000 | nothing: a warning, the value is honoured, as the reference does with a file |
| an unknown key, a `matcher` on an event without a tool, a section that is not enabled | nothing: a warning |

What is lost keeps its name: such a hook is in `Document.hooks` with its `load_problem`, so that a guard on it can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hooksd.dialects.bamboo_handler_reader import HANDLER_KEYS, HandlerReader, ReadHandler, is_count
from hooksd.dialects.bamboo_schema import (
    EVENTS,
    TOOL_EVENTS,
    Group,
    HooksBody,
    HooksJson,
    LifecycleHooks,
    keys,
)
from hooksd.dialects.document_text import LineIndex, UnreadableText, cut, decode_document
from hooksd.dialects.json_document import JsonNode, JsonSyntaxError, kind_of, parse_json, show
from hooksd.dialects.located_problems import LocatedProblems
from hooksd.dialects.name_patterns import PatternFault, check_name_pattern
from hooksd.dialects.suggestions import did_you_mean, nearest_or_all
from hooksd.model.hooks import Contract, Hook, NamePattern
from hooksd.model.problems import ConfigProblem
from hooksd.model.sources import Document, Origin


__all__ = ["read_document"]

SECTION = "lifecycle_hooks"
ENVELOPE_VERSION = 1
"""Newest revision envelope that is understood."""
MAX_HOOKS = 100_000
"""Most hooks of one document; the reference has no limit, and nobody has a thousandth of it."""

_BODY_KEYS = keys(HooksBody)
_ENVELOPE_KEYS = tuple(key for key in keys(HooksJson) if key not in _BODY_KEYS)
_SECTION_KEYS = keys(LifecycleHooks)
_GROUP_KEYS = keys(Group)
_ALL_EVENTS = f"one of {', '.join(EVENTS)}"


def read_document(text: bytes, origin: Origin, *, windows: bool) -> Document:
    """Read a document; never raises.

    Args:
        text: The bytes of the file.
        origin: Where it comes from.
        windows: Whether hooks are to run on Windows.
    """
    try:
        decoded = decode_document(text)
    except UnreadableText as unreadable:
        return Document(hooks=(), problems=(unreadable.problem,), usable=False)
    lines = LineIndex(decoded)
    problems = LocatedProblems(lines)
    try:
        root = parse_json(decoded)
    except JsonSyntaxError as error:
        problems.error("", error.offset, f"not JSON: {error.message}", error.hint)
        return Document(hooks=(), problems=problems.in_file_order(), usable=False)
    return _Reader(origin, lines, problems, windows=windows).read(root)


class _TooManyHooks(Exception):
    """The document has more than `MAX_HOOKS`."""


class _Reader:
    """One reading of one document."""

    def __init__(self, origin: Origin, lines: LineIndex, problems: LocatedProblems, *, windows: bool) -> None:
        self._origin = origin
        self._lines = lines
        self._problems = problems
        self._handlers = HandlerReader(problems, windows=windows)
        self._prefix = f"bamboo:{origin.scope}:{origin.source}:"
        self._hooks: list[Hook] = []
        self._usable = True
        self._inactive: str | None = None
        """Why nothing of the section runs."""

    def read(self, root: JsonNode) -> Document:
        """Read the whole of it; a reader is used once."""
        revision = 0
        if type(root.value) is not dict:
            self._fatal("", root.offset, f"the document must be an object, not {kind_of(root)}")
        else:
            try:
                if all(key in root.value for key in _ENVELOPE_KEYS):
                    revision = self._read_envelope(root)
                else:
                    self._read_body(root)
            except _TooManyHooks:
                self._fatal(
                    SECTION,
                    root.offset,
                    f"there are more than {MAX_HOOKS} hooks",
                    "use fewer, larger scripts",
                )
        return Document(
            hooks=tuple(self._hooks) if self._usable else (),
            problems=self._problems.in_file_order(),
            usable=self._usable,
            revision=revision,
        )

    # ------------------------------------------------------------------------------------------------------------------
    # The document and the section

    def _read_envelope(self, root: JsonNode) -> int:
        """Read the envelope and the body in it; give the document's revision."""
        version, revision, data = (root.value[key] for key in _ENVELOPE_KEYS)
        self._refuse_duplicates(root, _ENVELOPE_KEYS, "")
        if not is_count(version.value):
            self._fatal("schema_version", version.offset, f"must be 0 or 1, not {show(version)}")
        elif version.value > ENVELOPE_VERSION:
            message = f"{show(version)} is newer than {ENVELOPE_VERSION}, the newest that this hooksd reads"
            self._fatal("schema_version", version.offset, message, "update hooksd")
        if not is_count(revision.value):
            self._fatal("revision", revision.offset, f"must be a non-negative integer, not {show(revision)}")
        for key, node in root.value.items():
            if key not in _ENVELOPE_KEYS and key != "$schema":
                message = f"`{cut(key)}` beside a revision envelope is not read"
                self._problems.warning(cut(key), node.key_offset, message, "move it into `data`")
        if type(data.value) is dict:
            self._read_body(data)
        else:
            self._fatal("data", data.offset, f"must be an object, not {kind_of(data)}")
        return revision.value if is_count(revision.value) else 0

    def _read_body(self, body: JsonNode) -> None:
        self._refuse_duplicates(body, _BODY_KEYS, "")
        for key, node in body.value.items():
            if key not in _BODY_KEYS:
                self._problems.warning(
                    cut(key), node.key_offset, f"unknown key `{cut(key)}`", partial(_body_hint, key, body)
                )
        request_hooks = body.value.get("hooks")
        if request_hooks is not None and type(request_hooks.value) is dict:
            event = next((key for key in request_hooks.value if key in EVENTS), None)
            if event is not None:
                message = f"`hooks` are the agent's request hooks, so {event} in it never runs"
                self._problems.warning(
                    "hooks", request_hooks.key_offset, message, f"move it into `{SECTION}`"
                )
        section = body.value.get(SECTION)
        if section is None:
            return
        if type(section.value) is dict:
            self._read_section(section)
        else:
            self._fatal(SECTION, section.offset, f"must be an object, not {kind_of(section)}")

    def _read_section(self, section: JsonNode) -> None:
        self._refuse_duplicates(section, _SECTION_KEYS, SECTION)
        enabled = section.value.get("enabled")
        if enabled is None:
            self._inactive = f"`{SECTION}.enabled` is not there, and is false by default"
        elif type(enabled.value) is not bool:
            self._fatal(f"{SECTION}.enabled", enabled.offset, f"must be true or false, not {show(enabled)}")
        elif not enabled.value:
            self._inactive = f"`{SECTION}.enabled` is false"
        for key, node in section.value.items():
            if key in EVENTS:
                self._read_event(key, f"{SECTION}.{key}", node)
            elif key not in _SECTION_KEYS:
                nearest = partial(nearest_or_all, key, EVENTS, _ALL_EVENTS)
                self._problems.error(
                    f"{SECTION}.{cut(key)}", node.key_offset, f"unknown event `{cut(key)}`", nearest
                )
        if self._inactive is not None and self._hooks:
            at = section if enabled is None else enabled
            message = f"none of the {len(self._hooks)} hooks runs: {self._inactive}"
            hint = f'write "enabled": true into `{SECTION}` to run them'
            self._problems.warning(f"{SECTION}.enabled", at.key_offset, message, hint)

    # ------------------------------------------------------------------------------------------------------------------
    # Events and groups

    def _read_event(self, event: str, path: str, node: JsonNode) -> None:
        if type(node.value) is list:
            for index, group in enumerate(node.value):
                self._read_group(event, f"{path}[{index}]", group)
        else:
            fault = self._problems.error(
                path, node.offset, f"must be an array of groups, not {kind_of(node)}"
            )
            self._add(event, path, node, ReadHandler(fault=fault))

    def _read_group(self, event: str, path: str, group: JsonNode) -> None:
        if type(group.value) is not dict:
            no_group = self._problems.error(
                path, group.offset, f"a group must be an object, not {kind_of(group)}"
            )
            self._add(event, path, group, ReadHandler(fault=no_group))
            return
        members: dict[str, JsonNode] = group.value
        for key, node in members.items():
            if key not in _GROUP_KEYS:
                hint = (
                    "handlers belong into `hooks`"
                    if key in HANDLER_KEYS
                    else partial(did_you_mean, key, _GROUP_KEYS)
                )
                self._problems.warning(
                    f"{path}.{cut(key)}", node.key_offset, f"unknown key `{cut(key)}`", hint
                )
        twice = self._refuse_duplicates(group, _GROUP_KEYS, path)
        enabled, enabled_fault = self._read_group_enabled(f"{path}.enabled", members.get("enabled"))
        match, matcher_fault = self._read_matcher(event, f"{path}.matcher", members.get("matcher"))
        fault = twice or enabled_fault or matcher_fault
        inactive = None if enabled else "its group has `enabled` false"
        handlers = members.get("hooks")
        if handlers is None:
            return
        if type(handlers.value) is not list:
            message = f"must be an array of handlers, not {kind_of(handlers)}"
            hooks_fault = self._problems.error(f"{path}.hooks", handlers.offset, message)
            self._add(event, path, group, ReadHandler(fault=fault or hooks_fault), inactive=inactive)
            return
        for index, node in enumerate(handlers.value):
            handler_path = f"{path}.hooks[{index}]"
            twice = self._refuse_duplicates(node, HANDLER_KEYS, handler_path)
            read = self._handlers.read(handler_path, node)
            self._add(event, handler_path, node, read, match=match, fault=fault or twice, inactive=inactive)

    def _read_group_enabled(self, path: str, node: JsonNode | None) -> tuple[bool, ConfigProblem | None]:
        if node is None:
            return True, None
        if type(node.value) is not bool:
            return True, self._problems.error(path, node.offset, f"must be true or false, not {show(node)}")
        return node.value, None

    def _read_matcher(
        self, event: str, path: str, node: JsonNode | None
    ) -> tuple[NamePattern | None, ConfigProblem | None]:
        """The rule, None if every tool matches; and why the group cannot be used."""
        if node is None or node.value is None:
            return None, None
        if type(node.value) is not str:
            return None, self._problems.error(
                path, node.offset, f"must be a string or null, not {kind_of(node)}"
            )
        faults = check_name_pattern(node.value)
        if event not in TOOL_EVENTS:
            message = f"{event} has no tool, so matcher is ignored and the hooks always run"
            self._problems.warning(path, node.offset, message, "leave matcher out")
        report = self._problems.error if event in TOOL_EVENTS else self._problems.warning
        problems = [report(path, node.offset, _told(fault), fault.hint) for fault in faults]
        if event not in TOOL_EVENTS:
            return None, None
        if problems:
            return None, problems[0]
        return (NamePattern(pattern=node.value) if node.value else None), None

    def _add(
        self,
        event: str,
        path: str,
        node: JsonNode,
        read: ReadHandler,
        *,
        match: NamePattern | None = None,
        fault: ConfigProblem | None = None,
        inactive: str | None = None,
    ) -> None:
        """Add what is written at a path as a hook; `fault` is one of its group."""
        if len(self._hooks) >= MAX_HOOKS:
            raise _TooManyHooks
        problem = fault or read.fault
        self._hooks.append(
            Hook(
                name=self._prefix + path.removeprefix(f"{SECTION}."),
                dialect="bamboo",
                contract=Contract.BAMBOO,
                source=self._origin.source,
                scope=self._origin.scope,
                event=EVENTS[event],
                native_event=event,
                handler=read.handler if problem is None else None,
                match=match,
                timeout_s=read.timeout_ms / 1000,
                path=path,
                file=self._origin.file,
                line=self._lines.line(node.offset),
                inactive=self._inactive or inactive,
                load_problem=problem,
            )
        )

    # ------------------------------------------------------------------------------------------------------------------
    # Problems

    def _fatal(self, path: str, offset: int, message: str, hint: str | None = None) -> None:
        """Report a fault that costs the document."""
        self._problems.error(path, offset, message, hint)
        self._usable = False

    def _refuse_duplicates(self, node: JsonNode, known: Sequence[str], path: str) -> ConfigProblem | None:
        """Report known keys that an object has twice; outside groups this costs the document."""
        first: ConfigProblem | None = None
        for key, offset in node.duplicates or ():
            if key in known:
                line = self._lines.line(node.value[key].key_offset)
                message = f"`{key}` is there twice, first in line {line}"
                problem = self._problems.error(
                    f"{path}.{key}".lstrip("."), offset, message, "keep one of them"
                )
                first = first or problem
        if first is not None and path in ("", SECTION):
            self._usable = False
        return first


def _told(fault: PatternFault) -> str:
    return fault.message + (f" (at character {fault.offset + 1})" if fault.offset else "")


def _body_hint(key: str, body: JsonNode) -> str | None:
    if key in EVENTS:
        return f"events belong into `{SECTION}`"
    if key in _ENVELOPE_KEYS:
        missing = " and ".join(f"`{other}`" for other in _ENVELOPE_KEYS if other not in body.value)
        return f"a revision envelope needs {missing} too"
    return did_you_mean(key, _BODY_KEYS)
