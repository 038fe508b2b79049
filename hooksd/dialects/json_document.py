"""Strict JSON that remembers where everything stands.

`parse_json` reads one JSON text (RFC 8259) into nodes that know their offsets, so that a problem found later in the
*meaning* of a document can be told with line and column. It takes exactly what a strict parser takes: no comments, no
trailing commas, no NaN, no lone surrogates, nothing after the value. Duplicate keys are kept count of, not refused:
which of them matter is for the dialect to say.

It is one loop over an explicit stack: nothing recurses, whatever the text. Depth and number of values are bounded.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any

import msgspec

from hooksd.dialects.document_text import cut


__all__ = [
    "MAX_DEPTH",
    "MAX_VALUES",
    "JsonFault",
    "JsonNode",
    "JsonSyntaxError",
    "kind_of",
    "show",
    "parse_json",
    "to_plain",
]

MAX_DEPTH = 128
"""Deepest nesting; the limit of the reference's parser (serde_json)."""
MAX_VALUES = 1_000_000
"""Most values of one text: a hundred thousand hooks fit, a hostile file cannot fill the memory."""
MAX_INTEGER_DIGITS = 1000
"""A longer integer is read as a float (usually infinity): exact, it would cost quadratic time and nobody wants it."""


class JsonFault(StrEnum):
    """What kind of thing is wrong with a text."""

    EMPTY = "empty"
    UNEXPECTED = "unexpected"
    UNFINISHED = "unfinished"
    TRAILING = "trailing"
    STRING = "string"
    LIMIT = "limit"


class JsonSyntaxError(Exception):
    """A text that is not JSON.

    Attributes:
        fault: The kind of fault.
        message: What is wrong, in a few words; it may quote single characters of the text.
        offset: Where, in characters from the start.
        hint: What to do about it.
    """

    def __init__(self, fault: JsonFault, message: str, offset: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.fault = fault
        self.message = message
        self.offset = offset
        self.hint = hint


class JsonNode(msgspec.Struct, gc=False):
    """One value and where it stands. A tree of nodes has no cycles, so the garbage collector need not look at it.

    Attributes:
        value: `dict[str, JsonNode]`, `list[JsonNode]`, or a plain str, int, float, bool or None. Of duplicate keys
            the first is kept.
        offset: Of the value's first character.
        key_offset: Of its key's opening quote if it is a member of an object, else the same as `offset`.
        duplicates: For an object, each repeated key with the offset of its repetition.
    """

    value: Any
    offset: int
    key_offset: int
    duplicates: list[tuple[str, int]] | None = None


_SPACE = re.compile(r"[ \t\r\n]*+")
# One value after white space. A string without escapes is taken whole; of one with escapes only the opening quote.
_VALUE = re.compile(
    r'[ \t\r\n]*+(?:(?P<open>[\[{])|(?P<plain>"[^"\\\x00-\x1f]*+")|(?P<string>")'
    r"|(?P<float>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++(?:[eE][+-]?[0-9]++)?|[eE][+-]?[0-9]++))"
    r"|(?P<integer>-?(?:0|[1-9][0-9]*+))|(?P<word>true|false|null))"
)
_KEY = re.compile(r'[ \t\r\n]*+("[^"\\\x00-\x1f]*+")[ \t\r\n]*+:')
_AFTER_VALUE = re.compile(r"[ \t\r\n]*+([,\]}])")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"')
_SURROGATE = re.compile("[\ud800-\udfff]")
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
# A stretch of a string that is in order: plain characters, one escape, or a whole surrogate pair.
_GOOD_PART = re.compile(
    r'[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_WORDS = {"true": True, "false": False, "null": None}


def parse_json(text: str, max_values: int = MAX_VALUES) -> JsonNode:
    """Read one JSON text.

    Args:
        text: The text, without a byte order mark.
        max_values: Most values it may have, those inside others counted.

    Raises:
        JsonSyntaxError: It is not JSON, or past a limit.
    """
    outside = JsonNode([], 0, 0)  # an array around the one value, so that every value has a container
    container = outside
    around: list[JsonNode] = []
    key, key_offset = "", 0
    position = values = 0
    while True:
        found = _VALUE.match(text, position)
        if found is None:
            raise _unexpected(text, position, "a value")
        kind = found.lastgroup or ""
        offset, position = found.span(kind)
        value: Any
        if kind == "plain":
            value = text[offset + 1 : position - 1]
        elif kind == "open":
            value = {} if text[offset] == "{" else []
        elif kind == "integer":
            value = int(found[kind]) if position - offset <= MAX_INTEGER_DIGITS else float(found[kind])
        elif kind == "float":
            value = float(found[kind])
        elif kind == "word":
            value = _WORDS[found[kind]]
        else:
            value, position = _read_string(text, offset)
        values += 1
        if values > max_values:
            raise JsonSyntaxError(JsonFault.LIMIT, f"more than {max_values} values", offset)

        siblings: Any = container.value
        if type(siblings) is list:
            node = JsonNode(value, offset, offset)
            siblings.append(node)
        else:
            node = JsonNode(value, offset, key_offset)
            if siblings.setdefault(key, node) is not node:
                if container.duplicates is None:
                    container.duplicates = []
                container.duplicates.append((key, key_offset))

        if kind == "open":
            around.append(container)
            container = node
            if len(around) > MAX_DEPTH:
                raise JsonSyntaxError(JsonFault.LIMIT, f"nested deeper than {MAX_DEPTH} levels", offset)
            position = _skip_space(text, position)
            if not text.startswith("}" if text[offset] == "{" else "]", position):
                if text[offset] == "{":
                    key, key_offset, position = _read_key(text, position)
                continue

        # After a value: the next one of its container, or the end of one or more containers.
        while container is not outside:
            after = _AFTER_VALUE.match(text, position)
            closing = "]" if type(container.value) is list else "}"
            if after is None or after[1] not in (",", closing):
                raise _unexpected(text, position, f"`,` or `{closing}`")
            position = after.end()
            if after[1] == closing:
                container = around.pop()
                continue
            if text.startswith(closing, _skip_space(text, position)):
                raise JsonSyntaxError(
                    JsonFault.UNEXPECTED, f"a comma before `{closing}`", after.start(1), "remove the comma"
                )
            if closing == "}":
                key, key_offset, position = _read_key(text, position)
            break
        else:
            position = _skip_space(text, position)
            if position < len(text):
                raise JsonSyntaxError(
                    JsonFault.TRAILING, "more text after the end of the JSON value", position
                )
            root: JsonNode = outside.value[0]
            return root


def to_plain(node: JsonNode) -> Any:
    """The value without its positions. Recursion is bounded by `MAX_DEPTH`."""
    if type(node.value) is dict:
        return {key: to_plain(member) for key, member in node.value.items()}
    if type(node.value) is list:
        return [to_plain(item) for item in node.value]
    return node.value


def kind_of(node: JsonNode) -> str:
    """What kind of value it is, as a message says it."""
    match node.value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case str():
            return "a string"
        case bool():
            return "a boolean"
        case None:
            return "null"
        case _:
            return "a number"


def show(node: JsonNode) -> str:
    """The value as a message may repeat it: short, arrays and objects only by their kind."""
    match node.value:
        case str(text):
            return f'"{cut(text)}"'
        case bool(flag):
            return "true" if flag else "false"
        case int() | float():
            return cut(str(node.value))
        case _:
            return kind_of(node)


def _skip_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _read_key(text: str, position: int) -> tuple[str, int, int]:
    """The key at a position, where its quote stands, and the position after its colon."""
    found = _KEY.match(text, position)
    if found is not None:
        offset, end = found.span(1)
        return text[offset + 1 : end - 1], offset, found.end()
    offset = _skip_space(text, position)
    if not text.startswith('"', offset):
        raise _unexpected(text, offset, "a key in double quotes")
    key, position = _read_string(text, offset)
    position = _skip_space(text, position)
    if not text.startswith(":", position):
        raise _unexpected(text, position, "`:`")
    return key, offset, position + 1


def _read_string(text: str, start: int) -> tuple[str, int]:
    """The string whose opening quote stands at `start`, and the position after its closing quote."""
    found = _STRING.match(text, start)
    if found is None:
        raise _string_fault(text, start)
    # The C scanner undoes the escapes, of megabytes at a time; alone it would let lone surrogates through.
    value: str = json.loads(found[0])
    if _SURROGATE.search(value):
        raise _string_fault(text, start)
    return value, found.end()


def _string_fault(text: str, start: int) -> JsonSyntaxError:
    """What is wrong with the string whose opening quote stands at `start`."""
    position = start + 1
    while good := _GOOD_PART.match(text, position):
        position = good.end()
    if text[position:] in ("", "\\"):
        return JsonSyntaxError(JsonFault.UNFINISHED, "a string is never closed", start)
    if text[position] != "\\":
        hint = "write \\n for a line break, \\t for a tab"
        return JsonSyntaxError(JsonFault.STRING, "a raw control character in a string", position, hint)
    if _HALF_PAIR.match(text, position):
        return JsonSyntaxError(JsonFault.STRING, "half of a surrogate pair, which is no character", position)
    if text.startswith("u", position + 1):
        return JsonSyntaxError(JsonFault.STRING, "\\u without four hexadecimal digits", position)
    hint = "write the backslash twice, as in \\\\d for the pattern \\d"
    return JsonSyntaxError(JsonFault.STRING, "a backslash that starts no escape of JSON", position, hint)


_FOREIGN_WORD = re.compile(r"-?[A-Za-z_]\w*")


def _unexpected(text: str, position: int, wanted: str) -> JsonSyntaxError:
    """The error for text at a position (white space aside) that is not what was wanted there."""
    position = _skip_space(text, position)
    if position >= len(text):
        if position == len(text) and not text.strip(" \t\r\n"):
            return JsonSyntaxError(JsonFault.EMPTY, "there is nothing in it", 0)
        return JsonSyntaxError(JsonFault.UNFINISHED, f"the text ends where {wanted} is expected", position)
    character = text[position]
    hint = None
    if character == "'":
        hint = "JSON has only double quotes"
    elif character == "#" or text.startswith(("//", "/*"), position):
        hint = "JSON has no comments"
    elif wanted == "a value" and _FOREIGN_WORD.match(text, position):
        hint = "JSON has only true, false and null besides numbers, strings, arrays and objects"
    elif wanted.startswith("`,`") and character == '"':
        hint = "a comma is missing before it"
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return JsonSyntaxError(JsonFault.UNEXPECTED, f"expected {wanted}, found `{shown}`", position, hint)
