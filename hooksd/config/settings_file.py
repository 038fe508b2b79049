"""`hooksd.toml`: text to `Settings`, or everything that is wrong with it.

The text is converted key by key, so that one wrong value hides no other. What a type alone cannot say (a name that must
be unique, a key that another one makes necessary) is in `settings_rules.py`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import inspect

from hooksd.config.settings import Settings
from hooksd.config.settings_rules import Report, check_document, check_table
from hooksd.config.toml_lines import Path, dotted, key_lines
from hooksd.dialects import DIALECTS
from hooksd.dialects.base import Dialect
from hooksd.dialects.suggestions import did_you_mean
from hooksd.model.problems import ConfigProblem, Severity


__all__ = ["MAX_SETTINGS_BYTES", "SettingsDocument", "read_settings"]

MAX_SETTINGS_BYTES: Final = 1024 * 1024
"""Longest `hooksd.toml`; thousands of sources and guards fit."""

MAX_SHOWN: Final = 60
"""Longest piece of a wrong value that a problem repeats."""


class SettingsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What a `hooksd.toml` says.

    Attributes:
        settings: None when there is an error among the problems; the last good version then stays in force.
        problems: Everything that is wrong, in file order.
        lines: The lines of dotted paths, for what turns out to be wrong later.
    """

    settings: Settings | None
    problems: tuple[ConfigProblem, ...] = ()
    lines: Mapping[str, int] = MappingProxyType({})


def read_settings(
    text: bytes, *, file: str = "hooksd.toml", dialects: Mapping[str, Dialect] = DIALECTS
) -> SettingsDocument:
    """Read a `hooksd.toml`. Never raises; a byte order mark is tolerated.

    Args:
        text: The content of the file.
        file: Its path, for the problems.
        dialects: Those that are built in; they know the native names of events.
    """
    parsed = _parsed(text)
    if isinstance(parsed, ConfigProblem):
        return SettingsDocument(settings=None, problems=(msgspec.structs.replace(parsed, file=file),))
    document, lines = parsed
    report = Report(file, lines)
    settings = _Conversion(report, dialects).value(_SETTINGS, document, ())
    check_document(document, report)
    return SettingsDocument(
        settings=None if report.has_errors else settings,
        problems=report.problems,
        lines={dotted(path): line for path, line in lines.items()},
    )


# ----------------------------------------------------------------------------------------------------------------------
# Text to values

_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_ONCE = "each key and each [table] may come once; several of a kind are written [[…]]"
_SYNTAX_HINTS = (
    ("Invalid value", "text goes in quotes; truth values are true and false"),
    ("Cannot overwrite", _ONCE),
    ("Cannot declare", _ONCE),
    ("Cannot mutate", _ONCE),
)


def _parsed(text: bytes) -> tuple[dict[str, Any], dict[Path, int]] | ConfigProblem:
    """The values of a TOML text and the lines of its keys, or why it is none."""
    if len(text) > MAX_SETTINGS_BYTES:
        return _unreadable(f"the file has {len(text)} bytes; at most {MAX_SETTINGS_BYTES} are read")
    try:
        source = text.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode().removeprefix("\ufeff")
        return _unreadable(
            f"byte {text[error.start]:#04x} is not UTF-8", before, hint="save the file as UTF-8"
        )
    try:
        return tomllib.loads(source), key_lines(source)
    except RecursionError:
        return _unreadable("the values are nested too deep", hint="nothing here needs more than four levels")
    except ValueError as error:  # of tomllib, or of a number with thousands of digits
        return _syntax_error(str(error), source)


def _syntax_error(said: str, source: str) -> ConfigProblem:
    message, _, _ = said.partition("; ")  # what Python's own limit on digits says goes on about Python
    message = "invalid TOML: " + _POSITION.sub("", message)
    hint = next((hint for start, hint in _SYNTAX_HINTS if said.startswith(start)), None)
    position = _POSITION.search(said)
    if position is None:
        return _unreadable(message, hint=hint)
    if position[1] is None:
        return _unreadable(message, source.rstrip(), hint="is a quote or a bracket still open?")
    problem = _unreadable(message, hint=hint)
    return msgspec.structs.replace(problem, line=int(position[1]), column=int(position[2]))


def _unreadable(message: str, before: str | None = None, *, hint: str | None = None) -> ConfigProblem:
    """A problem of the whole file, located behind the text `before`."""
    line = column = None
    if before is not None:
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
    return ConfigProblem(
        severity=Severity.ERROR, path="", message=message, line=line, column=column, hint=hint
    )


# ----------------------------------------------------------------------------------------------------------------------
# Values to structs

_SETTINGS = inspect.type_info(Settings)
_BAD: Final = object()
"""What a value that was reported is converted to."""

_TABLES_OF_KEYS = {
    key.encode_name: table.encode_name
    for table in _SETTINGS.fields  # type: ignore[attr-defined]
    if isinstance(table.type, inspect.StructType)
    for key in table.type.fields
}
"""Where a key belongs, for one that stands elsewhere."""


class _Conversion:
    """Converts the values of one document; what is wrong with them goes into the report."""

    def __init__(self, report: Report, dialects: Mapping[str, Dialect]) -> None:
        self._report = report
        self._dialects = dialects

    def value(self, kind: inspect.Type, value: object, path: Path) -> Any:
        match kind:
            case inspect.StructType():
                return self.table(kind, value, path)
            case inspect.UnionType():  # with None, which TOML does not have
                return self.value(kind.types[0], value, path)
            case inspect.VarTupleType():
                return self._array(kind, value, path)
            case inspect.DictType():
                return self._mapping(kind, value, path)
            case _ if not _accepts(kind, value):
                self._refuse(kind, value, path)
                return _BAD
            case inspect.EnumType():
                return kind.cls(value)
            case _:
                return value

    def table(self, kind: inspect.StructType, value: object, path: Path) -> Any:
        if not isinstance(value, dict):
            self._refuse(kind, value, path)
            return _BAD
        fields = {field.encode_name: field for field in kind.fields}
        good = {}
        for key, item in value.items():
            if key not in fields:
                self._report.error((*path, key), f"unknown key {key!r}", hint=_key_hint(key, fields))
            elif (converted := self.value(fields[key].type, item, (*path, key))) is not _BAD:
                good[key] = converted
        for name, field in fields.items():
            if field.required and name not in value:
                self._report.error(path, f"the key {name!r} is missing")
        if any(field.required and name not in good for name, field in fields.items()):
            return _BAD
        table = kind.cls(**good)
        check_table(table, path, value, self._report, self._dialects)
        return table

    def _array(self, kind: inspect.VarTupleType, value: object, path: Path) -> Any:
        if not isinstance(value, list):
            self._refuse(kind, value, path)
            return _BAD
        items = [self.value(kind.item_type, item, (*path, index)) for index, item in enumerate(value)]
        return tuple(item for item in items if item is not _BAD)

    def _mapping(self, kind: inspect.DictType, value: object, path: Path) -> Any:
        if not isinstance(value, dict):
            self._refuse(kind, value, path)
            return _BAD
        items = {key: self.value(kind.value_type, item, (*path, key)) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not _BAD}

    def _refuse(self, kind: inspect.Type, value: object, path: Path) -> None:
        self._report.error(
            path, f"expected {_expected(kind)}, got {_shown(value)}", hint=_value_hint(kind, value, path)
        )


def _accepts(kind: inspect.Type, value: object) -> bool:
    """Whether a single value is of its type and in its range. Not a number and infinity are in no range."""
    match kind:
        case inspect.IntType():
            return type(value) is int and _in_range(kind, value)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool) and _in_range(kind, value)
        case inspect.LiteralType() | inspect.EnumType():
            return value in _choices(kind)
        case inspect.StrType():
            return isinstance(value, str)
        case _:
            return isinstance(value, bool)


def _in_range(kind: inspect.IntType | inspect.FloatType, value: float) -> bool:
    """Every number of the settings has both bounds."""
    return kind.ge is not None and kind.le is not None and kind.ge <= value <= kind.le


def _choices(kind: inspect.LiteralType | inspect.EnumType) -> list[str]:
    if isinstance(kind, inspect.EnumType):
        return [member.value for member in kind.cls]
    return [str(value) for value in kind.values]


def _expected(kind: inspect.Type) -> str:
    match kind:
        case inspect.IntType():
            return f"an integer from {kind.ge} to {kind.le}"
        case inspect.FloatType():
            return f"a number from {kind.ge} to {kind.le}"
        case inspect.LiteralType() | inspect.EnumType():
            return "one of " + ", ".join(f'"{choice}"' for choice in _choices(kind))
        case inspect.StrType():
            return "text"
        case inspect.VarTupleType():
            return (
                "an array of tables"
                if isinstance(kind.item_type, inspect.StructType)
                else "an array of texts"
            )
        case inspect.StructType() | inspect.DictType():
            return "a table"
        case _:
            return "true or false"


def _shown(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"' if len(value) <= MAX_SHOWN else f'"{value[:MAX_SHOWN]}…"'
        case int():
            return str(value) if value.bit_length() <= 64 else "a larger number"
        case float():
            return repr(value)
        case list():
            return "an array"
        case dict():
            return "a table"
        case _:
            return "a date or time"


def _value_hint(kind: inspect.Type, value: object, path: Path) -> str | None:
    if isinstance(kind, inspect.LiteralType | inspect.EnumType) and isinstance(value, str):
        return did_you_mean(value, _choices(kind))
    if isinstance(kind, inspect.VarTupleType) and isinstance(value, str):
        return "put it into brackets"
    if isinstance(kind, inspect.VarTupleType) and isinstance(value, dict):
        return f"write [[{dotted(path)}]], with double brackets"
    if isinstance(kind, inspect.StructType) and isinstance(value, list):
        return f"write [{dotted(path)}], with single brackets"
    if isinstance(value, str) and not isinstance(kind, inspect.StructType | inspect.DictType):
        return "write it without quotes"
    return None


def _key_hint(key: str, known: Mapping[str, object]) -> str:
    if (near := did_you_mean(key, known)) is not None:
        return near
    if (table := _TABLES_OF_KEYS.get(key)) is not None:
        return f"it belongs into [{table}]"
    return "known keys: " + ", ".join(known)
