from __future__ import annotations

import json

import msgspec

from hooksd.config.settings import Limits, Settings
from hooksd.config.settings_schema import limits, settings_schema


def test_every_limit_has_its_reason() -> None:
    rows = limits()

    assert {row.name: row.default for row in rows} == msgspec.structs.asdict(Limits())
    assert all(len(row.reason) > 20 and row.reason.endswith(".") for row in rows)


def test_every_key_is_described() -> None:
    definitions = settings_schema()["$defs"]

    assert {field.name for field in msgspec.structs.fields(Settings)} == set(
        definitions["Settings"]["properties"]
    )
    undescribed = [
        f"{name}.{key}"
        for name, table in definitions.items()
        if name != "Settings"
        for key, value in table.get("properties", {}).items()
        if not value.get("description")
    ]
    assert undescribed == []


def test_the_schema_is_plain_json_about_toml() -> None:
    schema = settings_schema()

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "hooksd.toml"
    assert "null" not in json.dumps(schema)
    depth = schema["$defs"]["Limits"]["properties"]["max_depth"]
    assert (depth["minimum"], depth["default"], depth["type"]) == (1, 4, "integer")
    assert schema["$defs"]["SourceSettings"]["properties"]["enabled"]["type"] == "boolean"
