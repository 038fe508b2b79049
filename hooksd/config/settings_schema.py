"""What `settings.py` says about itself: the JSON Schema of `hooksd.toml`, and the table of all limits for the reference.

Descriptions are the docstrings below the attributes, read from the module's source, so that nothing is said twice.
"""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from typing import Any

import msgspec

from hooksd.config import settings


__all__ = ["Limit", "descriptions", "limits", "settings_schema"]


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table of limits: a key of `[limits]`, its default, and why there is such a bound."""

    name: str
    default: float
    reason: str


def limits() -> tuple[Limit, ...]:
    """Every key of `[limits]`, in the order of the module."""
    reasons = descriptions()["Limits"]
    return tuple(
        Limit(name=field.name, default=field.default, reason=reasons[field.name])
        for field in msgspec.structs.fields(settings.Limits)
    )


def settings_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of `hooksd.toml`. Rules between keys are not in it."""
    schema = msgspec.json.schema(settings.Settings)
    for name, described in descriptions().items():
        for key, text in described.items():
            properties = schema["$defs"][name]["properties"]
            properties[key] = {**_without_null(properties[key]), "description": text}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "hooksd.toml", **schema}


def _without_null(of_key: dict[str, Any]) -> dict[str, Any]:
    """None stands for a key that is left out: TOML has no null that an editor could offer."""
    if "anyOf" not in of_key:
        return of_key
    (kind,) = (kind for kind in of_key["anyOf"] if kind != {"type": "null"})
    return dict(kind)


def descriptions() -> dict[str, dict[str, str]]:
    """The docstrings below attributes, by class and attribute."""
    found: dict[str, dict[str, str]] = {}
    for statement in ast.parse(inspect.getsource(settings)).body:
        if isinstance(statement, ast.ClassDef):
            found[statement.name] = {
                attribute.target.id: inspect.cleandoc(str(below.value.value))
                for attribute, below in pairwise(statement.body)
                if isinstance(attribute, ast.AnnAssign)
                and isinstance(attribute.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            }
    return found
