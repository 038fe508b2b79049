"""Checking what a caller sent against the struct that describes it.

The good case is one msgspec conversion, because it is on the way of every event. Only a refused payload is looked at
again, field by field, so that every fault is told and not just the first. Messages name fields and types, never values:
errors are logged, payloads are not (design rule 8).
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from hooksd.dialects.base import PayloadRefused
from hooksd.dialects.document_text import cut
from hooksd.dialects.suggestions import did_you_mean
from hooksd.model.problems import ConfigProblem, Severity


__all__ = ["checked", "refusal"]

S = TypeVar("S", bound=msgspec.Struct)

MAX_FAULTS = 32
"""Most faults told of one payload."""


def checked(
    given: Any, shape: type[S], path: str, hints: Mapping[str, str] = types.MappingProxyType({})
) -> S:
    """The struct of that shape.

    Args:
        given: What was sent, as decoded JSON.
        shape: A struct that forbids unknown fields.
        path: What to call `given` in problems, such as `payload`.
        hints: What to say about unknown fields that callers are known to send.

    Raises:
        PayloadRefused: It does not fit; every fault is told, up to `MAX_FAULTS`.
    """
    try:
        return msgspec.convert(given, shape)
    except msgspec.ValidationError:
        faults = [
            fault for fault, _ in zip(_faults(given, shape, path, hints), range(MAX_FAULTS), strict=False)
        ]
        raise PayloadRefused(faults) from None


def refusal(path: str, message: str, hint: str | None = None) -> ConfigProblem:
    """A fault of a payload."""
    return ConfigProblem(severity=Severity.ERROR, path=path, message=message, hint=hint)


def _faults(
    given: Any, shape: type[msgspec.Struct], path: str, hints: Mapping[str, str]
) -> Iterator[ConfigProblem]:
    if not isinstance(given, Mapping):
        yield refusal(path, "must be an object")
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
    for key in given:
        if key not in fields:
            yield refusal(
                f"{path}.{cut(str(key))}", "unknown field", hints.get(key) or did_you_mean(str(key), fields)
            )
    for name, field in fields.items():
        where = f"{path}.{name}"
        if name not in given:
            if field.required:
                yield refusal(where, "is missing", hints.get(name))
        elif isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _faults(given[name], field.type, where, {})
        else:
            try:
                msgspec.convert(given[name], field.type)
            except msgspec.ValidationError as error:
                yield refusal(where, _words(field.type) or str(error))


def _words(kind: Any) -> str | None:
    """The words that a field of fixed words takes, as a message; msgspec's own would repeat the wrong one."""
    if get_origin(kind) is Literal:
        return f"must be {' or '.join(str(word) for word in get_args(kind))}"
    if get_origin(kind) in (Annotated, Union, types.UnionType):
        return next((found for part in get_args(kind) if (found := _words(part))), None)
    return None
