"""Params of a method: unparsed JSON into its struct, and what is wrong with them in words of ours."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec
from msgspec import inspect

from hooksd.model.errors import ProtocolError
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.protocol.errors import ErrorCode, protocol_error


__all__ = ["decode_params", "invalid_params"]

P = TypeVar("P", bound=msgspec.Struct)

_MAX_SHOWN = 200
"""Characters of an offending value or name that a message repeats."""

_PLACE = re.compile(r" - at `(?:key` in `)?\$(.*)`\Z", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`\Z", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`\Z", re.DOTALL)
_TYPE = re.compile(r"Expected `([^`]*)`, got `([^`]*)`\Z")
_LENGTH = re.compile(r"Expected `(str|array|object)` of length (>=|<=) (\d+)\Z")
_BOUND = re.compile(r"Expected `(?:int|float)` (>=|<=) (\S+)\Z")
_OWN = re.compile(r"`([\w.]+)` (.*)\Z", re.DOTALL)
_ENUM = re.compile(r"Invalid enum value (.*)\Z", re.DOTALL)

_NOUNS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_UNITS = {"str": "characters", "array": "items", "object": "members"}
_SIDES = {">=": "at least", "<=": "at most"}


def decode_params(decoder: msgspec.json.Decoder[P], struct: type[P], params: msgspec.Raw, method: str) -> P:
    """Make the struct of a method's params; `decoder` is the one of `struct`.

    Raises:
        ProtocolError: -32602, naming the field by its path and what it must be; -32600 where params are neither an
            object nor an array, which makes the whole message no request.
    """
    try:
        return decoder.decode(params)
    except msgspec.ValidationError as error:
        text = str(error)
        if text.startswith("Expected `object`, got `") and not _PLACE.search(text):
            raise _no_object(text, method) from None
        place, what = _explain(text, struct)
        raise invalid_params(place, what, method=method) from None


def invalid_params(place: str, what: str, *, method: str = "") -> ProtocolError:
    """The error for one field of the params.

    Args:
        place: Path of the field inside the params, such as `execution.env`; "" for the params as a whole.
        what: The rest of the sentence that begins with the field.
        method: Named in the message where given.
    """
    subject = f"params.{place}" if place else "params"
    message = f"{method}: `{subject}` {what}" if method else f"`{subject}` {what}"
    problem = ConfigProblem(severity=Severity.ERROR, path=subject, message=what)
    return protocol_error(ErrorCode.INVALID_PARAMS, message, problems=(problem,))


def _no_object(text: str, method: str) -> ProtocolError:
    if text.endswith("got `array`"):
        return invalid_params("", "must be an object with named members, not an array", method=method)
    return protocol_error(ErrorCode.INVALID_REQUEST, "`params` must be an object")


def _explain(text: str, struct: type[msgspec.Struct]) -> tuple[str, str]:
    """Place and fault of one message of the decoder; a message of unknown form is passed on as it is."""
    found = _PLACE.search(text)
    place = found[1].removeprefix(".") if found else ""
    what = text[: found.start()] if found else text
    if missing := _MISSING.match(what):
        return _join(place, missing[1]), "is missing"
    if unknown := _UNKNOWN.match(what):
        return _join(place, unknown[1][:_MAX_SHOWN]), f"is not known; known are {_names(struct, place)}"
    if wrong := _TYPE.match(what):
        return place, f"must be {_nouns(wrong[1])}, not {_nouns(wrong[2])}"
    if length := _LENGTH.match(what):
        return place, f"must have {_SIDES[length[2]]} {length[3]} {_UNITS[length[1]]}"
    if bound := _BOUND.match(what):
        return place, f"must be {_SIDES[bound[1]]} {bound[2]}"
    if enum := _ENUM.match(what):
        return place, f"must be one of {_choices(struct, place)}, not {enum[1][:_MAX_SHOWN]}"
    if own := _OWN.match(what):  # a check of the struct's own
        return _join(place, own[1]), own[2]
    return place, f"cannot be used: {what[: 2 * _MAX_SHOWN]}"


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _nouns(types: str) -> str:
    return " or ".join(_NOUNS.get(name, name) for name in types.split(" | "))


def _names(struct: type[msgspec.Struct], place: str) -> str:
    found = _type_at(struct, place, inspect.StructType)
    return ", ".join(f"`{field.encode_name}`" for field in found.fields) if found and found.fields else "none"


def _choices(struct: type[msgspec.Struct], place: str) -> str:
    if enum := _type_at(struct, place, inspect.EnumType):
        return ", ".join(repr(str(member.value)) for member in enum.cls)
    literal = _type_at(struct, place, inspect.LiteralType)
    return ", ".join(map(repr, literal.values)) if literal else "the known values"


T = TypeVar("T", bound=inspect.Type)


def _type_at(struct: type[msgspec.Struct], place: str, wanted: type[T]) -> T | None:
    """The type of one sort that the struct has at a place such as `execution.accepts[1]`."""
    found = _plain(inspect.type_info(struct))
    for step in re.findall(r"\w+(?!\])|\[", place):
        found = [plain for outer in found for inner in _inside(outer, step) for plain in _plain(inner)]
    return next((one for one in found if isinstance(one, wanted)), None)


def _plain(outer: inspect.Type) -> list[inspect.Type]:
    """The alternatives of a type, without the annotations around them."""
    if isinstance(outer, inspect.Metadata):
        return _plain(outer.type)
    if isinstance(outer, inspect.UnionType):
        return [plain for inner in outer.types for plain in _plain(inner)]
    return [outer]


def _inside(outer: inspect.Type, step: str) -> list[inspect.Type]:
    if isinstance(outer, inspect.StructType):
        return [field.type for field in outer.fields if field.encode_name == step]
    return [outer.item_type] if isinstance(outer, inspect.VarTupleType) and step == "[" else []
