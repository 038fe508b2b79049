from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from hooksd.dialects.bamboo_schema import (
    DEFAULT_TIMEOUT_MS,
    EVENTS,
    CommandHandler,
    Group,
    HooksJson,
    LifecycleHooks,
    ScriptHandler,
    hooks_json_schema,
    keys,
)


DOCUMENT: dict[str, Any] = {
    "lifecycle_hooks": {
        "enabled": True,
        "PreToolUse": [
            {
                "matcher": "^Bash$",
                "hooks": [
                    {"type": "command", "command": ".bamboo/hooks/audit-bash.sh", "timeout_ms": 5000},
                    {"type": "script", "path": ".bamboo/hooks/check-command.js", "runner": "bun"},
                ],
            }
        ],
    }
}


def test_keys_are_those_of_the_reference() -> None:
    assert keys(CommandHandler) == ("type", "command", "timeout_ms")
    assert keys(ScriptHandler) == ("type", "path", "runner", "timeout_ms")
    assert keys(Group) == ("enabled", "matcher", "hooks")
    assert keys(LifecycleHooks) == ("enabled", *EVENTS)


@pytest.mark.parametrize(
    "document",
    [
        DOCUMENT,
        {"schema_version": 1, "revision": 3, "data": DOCUMENT},
        {"image_fallback": {"enabled": True, "mode": "ocr"}, "hooks": {"x": 1}, "$schema": "s", **DOCUMENT},
        {},
    ],
)
def test_documents_of_the_reference_fit_the_structs(document: dict[str, Any]) -> None:
    read = msgspec.json.decode(json.dumps(document), type=HooksJson)
    body = read if read.data is msgspec.UNSET else read.data
    for group in body.lifecycle_hooks.PreToolUse:
        assert group.enabled
        assert [handler.timeout_ms for handler in group.hooks] == [5000, DEFAULT_TIMEOUT_MS]


def test_the_schema_says_what_editors_need() -> None:
    schema = hooks_json_schema()
    json.dumps(schema)
    assert schema["$schema"].endswith("2020-12/schema")
    section = schema["$defs"]["LifecycleHooks"]
    assert section["additionalProperties"] is False
    assert set(EVENTS) < set(section["properties"])
    command = schema["$defs"]["CommandHandler"]
    assert command["required"] == ["type", "command"]
    assert command["properties"]["timeout_ms"]["maximum"] == 600_000
    assert {"auto", "bun"} < set(schema["$defs"]["ScriptHandler"]["properties"]["runner"]["enum"])
