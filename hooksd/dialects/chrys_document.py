"""Reading a Chrys `hooks.yaml`, `.yml` or `.json` into hooks and problems (Chrys dialect 1, changed by design.md).

The reference stops at the first problem of a file and drops all of it. Here every problem is told, and what each costs
is the same:

| fault | costs |
|---|---|
| not UTF-8 (UTF-16 is told as such), no YAML or JSON, over 16 MiB, a million values or 128 levels deep | the document |
| a second YAML document, a tag or value that the safe loader refuses, a key that is no string | the document |
| a key twice in one mapping, anywhere (the reference: the last one counts, in silence) | the document |
| an unknown key, a missing one, a value of the wrong type or out of its range, the same id twice | the document |
| a pattern that Python does not take, in a hook that is enabled | that hook: it is kept with its `load_problem` |
| what is allowed but hardly meant | nothing: a warning |

A document that is costed is not `usable`: the last good one stays in force.
"""

from __future__ import annotations

from hooksd.dialects.chrys_hook_reader import HookReader
from hooksd.dialects.chrys_schema import HooksYaml, Settings, keys
from hooksd.dialects.chrys_values import Values, joined
from hooksd.dialects.document_text import LineIndex, UnreadableText, decode_document
from hooksd.dialects.json_document import JsonNode, JsonSyntaxError, parse_json
from hooksd.dialects.located_problems import LocatedProblems
from hooksd.dialects.yaml_document import kind_of, parse_yaml
from hooksd.model.hooks import Hook
from hooksd.model.sources import Document, DocumentSettings, Origin


__all__ = ["read_document"]

VERSION = 1


def read_document(text: bytes, origin: Origin) -> Document:
    """Read a document; never raises. A file whose name ends with `.json` is JSON, any other is YAML."""
    try:
        decoded = decode_document(text)
    except UnreadableText as unreadable:
        return Document(hooks=(), problems=(unreadable.problem,), usable=False)
    lines = LineIndex(decoded)
    values = Values(LocatedProblems(lines), lines)
    as_json = origin.file.endswith(".json")
    root = _read_json(decoded, values) if as_json else _read_yaml(decoded, values)
    hooks: tuple[Hook, ...] = ()
    settings = DocumentSettings()
    if root is not None and values.usable:
        values.duplicates(root)
        hooks, settings = _Reader(values, origin).read(root)
    return Document(
        hooks=hooks if values.usable else (),
        problems=values.problems.in_file_order(),
        usable=values.usable,
        settings=settings if values.usable else DocumentSettings(),
    )


def _read_yaml(text: str, values: Values) -> JsonNode | None:
    """The root, None if there is nothing in it; what is falsy counts as nothing."""
    parsed = parse_yaml(text)
    for fault in parsed.faults:
        values.fault("", fault.offset, fault.message, fault.hint)
    root = parsed.root
    empty = root is None or (not root.value and not isinstance(root.value, dict))
    return None if empty else root


def _read_json(text: str, values: Values) -> JsonNode | None:
    """The root, None if there is nothing in it, or null."""
    if not text.strip():
        return None
    try:
        root = parse_json(text)
    except JsonSyntaxError as error:
        values.fault("", error.offset, f"not JSON: {error.message}", error.hint)
        return None
    return None if root.value is None else root


class _Reader:
    """One reading of one document."""

    def __init__(self, values: Values, origin: Origin) -> None:
        self._values = values
        self._hooks = HookReader(values, origin)

    def read(self, root: JsonNode) -> tuple[tuple[Hook, ...], DocumentSettings]:
        """Read the whole of it."""
        members = self._values.mapping("", root, keys(HooksYaml))
        version = members.get("version")
        if version is not None and version.value != VERSION:
            message = f"must be {VERSION}, not {self._values.show(version)}"
            self._values.fault("version", version.offset, message)
        settings = self._read_settings(members.get("settings"))
        return self._read_hooks(members.get("hooks")), settings

    def _read_settings(self, node: JsonNode | None) -> DocumentSettings:
        if node is None or node.value is None:
            return DocumentSettings()
        members = self._values.mapping("settings", node, keys(Settings))

        def seconds(key: str) -> float | None:
            found = members.get(key)
            return None if found is None else self._values.seconds(joined("settings", key), found, least="0")

        def count(key: str, least: int) -> int | None:
            found = members.get(key)
            return None if found is None else self._values.count(joined("settings", key), found, least=least)

        return DocumentSettings(
            shutdown_grace_s=seconds("shutdown_grace_seconds"),
            max_parallel_hooks=count("max_parallel_hooks", 1),
            outbox_retry_age_s=seconds("outbox_retry_age_seconds"),
            outbox_max_retries=count("outbox_max_retries", 0),
        )

    def _read_hooks(self, node: JsonNode | None) -> tuple[Hook, ...]:
        if node is None:
            return ()
        if type(node.value) is not list:
            hint = "write `hooks: []` for none" if node.value is None else None
            self._values.fault("hooks", node.offset, f"must be a list of hooks, not {kind_of(node)}", hint)
            return ()
        hooks: list[Hook] = []
        first: dict[str, tuple[str, JsonNode]] = {}
        for at, entry in enumerate(node.value):
            path = f"hooks[{at}]"
            hook = self._hooks.read(path, entry)
            if hook is None:
                continue
            hooks.append(hook)
            other_path, other = first.setdefault(hook.id, (path, entry))
            if other is not entry:
                self._tell_duplicate(path, entry, hook.id, other_path, other)
        return tuple(hooks)

    def _tell_duplicate(
        self, path: str, entry: JsonNode, hook_id: str, other_path: str, other: JsonNode
    ) -> None:
        lines = f"lines {self._values.line(other)} and {self._values.line(entry)}"
        message = f"{other_path} and {path} have the same id {hook_id!r} ({lines})"
        offset = entry.value["id"].offset
        self._values.fault(joined(path, "id"), offset, message, "give each hook an id of its own")
