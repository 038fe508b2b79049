"""Reading the values of a Chrys document: each is what its key wants, or a located problem and the default.

Every fault of a value costs the whole document (Chrys dialect 1.10), so a reader only has to go on, so that the next
fault is told too; what it gives in the place of a bad value never comes into force.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from hooksd.dialects.document_text import LineIndex, cut
from hooksd.dialects.json_document import JsonNode, show as show_json
from hooksd.dialects.located_problems import Hint, LocatedProblems
from hooksd.dialects.suggestions import did_you_mean, nearest_or_all
from hooksd.dialects.yaml_document import kind_of
from hooksd.model.problems import ConfigProblem


__all__ = ["MAX_COUNT", "MAX_SECONDS", "Values", "joined"]

MAX_SECONDS = 366 * 86_400.0
"""A longer time is as good as for ever, and is read as this: no clock has to take infinity."""
MAX_COUNT = 1_000_000
"""A larger count is read as this."""


class Values:
    """Reads the values of one document.

    Attributes:
        problems: What was wrong so far.
        usable: Whether the document can still be used.
    """

    def __init__(self, problems: LocatedProblems, lines: LineIndex) -> None:
        self.problems = problems
        self.usable = True
        self._lines = lines

    def fault(self, path: str, offset: int, message: str, hint: Hint = None) -> ConfigProblem:
        """Tell of a fault that costs the document."""
        self.usable = False
        return self.problems.error(path, offset, message, hint)

    def line(self, node: JsonNode) -> int:
        """The line that a value begins in."""
        return self._lines.line(node.offset)

    def duplicates(self, root: JsonNode) -> None:
        """Tell of every key that a mapping has twice, wherever it is."""
        seen: set[int] = set()
        waiting: list[tuple[str, JsonNode]] = [("", root)]
        while waiting:
            path, node = waiting.pop()
            if id(node.value) in seen:
                continue  # an alias: told where it is written
            if isinstance(node.value, dict):
                seen.add(id(node.value))
                for key, offset in node.duplicates or ():
                    line = self._lines.line(node.value[key].key_offset)
                    message = f"`{cut(key)}` is there twice, first in line {line}"
                    self.fault(joined(path, key), offset, message, "keep one of them")
                waiting += [(joined(path, key), member) for key, member in reversed(node.value.items())]
            elif isinstance(node.value, list):
                seen.add(id(node.value))
                waiting += reversed([(f"{path}[{at}]", item) for at, item in enumerate(node.value)])

    # ------------------------------------------------------------------------------------------------------------------

    def mapping(self, path: str, node: JsonNode, known: Sequence[str] | None = None) -> dict[str, JsonNode]:
        """The members of a mapping, empty if it is none; keys that are not `known` are faults."""
        if type(node.value) is not dict:
            self.fault(path, node.offset, f"must be a mapping, not {kind_of(node)}")
            return {}
        members: dict[str, JsonNode] = node.value
        for key, member in members.items():
            if known is not None and key not in known:
                hint = partial(nearest_or_all, key, known, f"known keys: {', '.join(known)}")
                self.fault(joined(path, key), member.key_offset, f"unknown key `{cut(key)}`", hint)
        return members

    def text(self, path: str, node: JsonNode, *, empty: bool = True) -> str | None:
        """A string; None if it is none."""
        if type(node.value) is not str:
            hint = None if isinstance(node.value, (dict, list)) else "quote it if it is a text"
            self.fault(path, node.offset, f"must be a string, not {self.show(node)}", hint)
            return None
        if not (node.value or empty):
            self.fault(path, node.offset, "must not be empty")
            return None
        if "\0" in node.value:
            self.fault(path, node.offset, "must not contain a NUL character")
            return None
        return node.value

    def optional_text(self, path: str, node: JsonNode | None) -> str | None:
        """A string, or None for null and for a key that is not there."""
        return None if node is None or node.value is None else self.text(path, node)

    def texts(self, path: str, node: JsonNode) -> tuple[str, ...]:
        """A list of strings."""
        if type(node.value) is not list:
            self.fault(path, node.offset, f"must be a list of strings, not {kind_of(node)}")
            return ()
        found = [self.text(f"{path}[{at}]", item) for at, item in enumerate(node.value)]
        return tuple(text for text in found if text is not None)

    def flag(self, path: str, node: JsonNode | None, default: bool) -> bool:
        """A boolean."""
        if node is None:
            return default
        if type(node.value) is not bool:
            self.fault(path, node.offset, f"must be true or false, not {self.show(node)}")
            return default
        return node.value

    def word(self, path: str, node: JsonNode | None, known: Sequence[str], default: str) -> str:
        """One of some words."""
        if node is None:
            return default
        all_of_them = f"one of {', '.join(known)}"
        if type(node.value) is not str:
            self.fault(path, node.offset, f"must be a string, not {self.show(node)}", all_of_them)
        elif node.value not in known:
            hint = partial(nearest_or_all, node.value, known, all_of_them)
            self.fault(path, node.offset, f"unknown {path.rpartition('.')[2]} {self.show(node)}", hint)
        else:
            return node.value
        return default

    def seconds(self, path: str, node: JsonNode, *, least: str) -> float | None:
        """A time in seconds, at most `MAX_SECONDS`; `least` is `0`, or `more than 0`."""
        number = self._number(path, node, (int, float), "a number of seconds")
        if number is None:
            return None
        # Not math.isnan: a whole number may be too large for a float.
        if number != number or number < 0 or (number == 0 and least != "0"):
            self.fault(path, node.offset, f"must be {least} or more" if least == "0" else f"must be {least}")
            return None
        return float(min(number, MAX_SECONDS))

    def count(self, path: str, node: JsonNode, *, least: int) -> int | None:
        """A whole number, at most `MAX_COUNT`."""
        number = self._number(path, node, (int,), "a whole number")
        if number is not None and number < least:
            self.fault(path, node.offset, f"must be {least} or more, not {self.show(node)}")
            return None
        return None if number is None else min(number, MAX_COUNT)

    def _number(self, path: str, node: JsonNode, kinds: tuple[type, ...], what: str) -> Any:
        if type(node.value) in kinds:
            return node.value
        hint = None
        if type(node.value) is str and _is_number(node.value):
            hint = "YAML reads 1e3 as a text; write 1000, and no quotes"
        self.fault(path, node.offset, f"must be {what}, not {self.show(node)}", hint)
        return None

    def show(self, node: JsonNode) -> str:
        """The value as a message may repeat it."""
        if isinstance(node.value, (str, bool, int, float)):
            return show_json(node)
        return kind_of(node)

    def unexpected(self, path: str, members: dict[str, JsonNode], names: Iterable[str], why: str) -> None:
        """Warn of keys that are known but have no meaning here."""
        for name in names:
            node = members.get(name)
            if node is not None and node.value is not None:
                self.problems.warning(
                    joined(path, name), node.key_offset, f"`{name}` has no meaning {why}", "leave it out"
                )

    def near_miss(self, path: str, node: JsonNode, known: Sequence[str], what: str) -> None:
        """Warn of a word that is allowed, but looks like a misspelt known one."""
        hint = None if node.value in known else did_you_mean(node.value, known)
        if hint is not None:
            self.problems.warning(path, node.offset, f"{what} {self.show(node)} is not known", hint)


def joined(path: str, key: str) -> str:
    """The path of a member."""
    return f"{path}.{cut(key)}" if path else cut(key)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
