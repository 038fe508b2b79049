"""The JSON Schema of the wire: params and result of every method, made from the structs that the server decodes into."""

from __future__ import annotations

from typing import Any

import msgspec

from hooksd.protocol.methods import METHODS


__all__ = ["methods_schema"]


def methods_schema() -> dict[str, Any]:
    """`methods` maps each method to its kind, summary, section, and the schemas of `params` and `result`."""
    kinds: list[type[msgspec.Struct]] = []
    for method in METHODS.values():
        kinds.append(method.params)
        if method.result is not None:
            kinds.append(method.result)
    schemas, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    found = iter(schemas)
    methods: dict[str, Any] = {}
    for method in METHODS.values():
        told: dict[str, Any] = {
            "kind": method.kind.value,
            "summary": method.summary,
            "section": method.section,
        }
        told["params"] = next(found)
        if method.result is not None:
            told["result"] = next(found)
        methods[method.name] = told
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hooksd wire protocol, version 1",
        "methods": methods,
        "$defs": definitions,
    }
