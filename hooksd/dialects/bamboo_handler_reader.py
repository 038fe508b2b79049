"""Reading one handler of a `hooks.json`: what it runs, for how long, and everything that is wrong with it."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from hooksd.dialects.bamboo_handlers import (
    EXTENSIONS,
    RunnerMismatch,
    command_handler,
    runners_for,
    script_extension,
    script_handler,
    trim,
)
from hooksd.dialects.bamboo_schema import (
    DEFAULT_TIMEOUT_MS,
    MAX_TIMEOUT_MS,
    RUNNERS,
    CommandHandler,
    ScriptHandler,
    keys,
)
from hooksd.dialects.document_text import cut
from hooksd.dialects.json_document import JsonNode, kind_of, show
from hooksd.dialects.located_problems import Hint, LocatedProblems
from hooksd.dialects.suggestions import did_you_mean, nearest_or_all
from hooksd.model.hooks import Handler
from hooksd.model.problems import ConfigProblem


__all__ = ["HANDLER_KEYS", "HandlerReader", "ReadHandler", "is_count"]

_KEYS_OF = {"command": keys(CommandHandler), "script": keys(ScriptHandler)}
HANDLER_KEYS = tuple(dict.fromkeys((*_KEYS_OF["command"], *_KEYS_OF["script"])))
"""Every key that some handler has."""

_TYPES = 'one of "command" and "script"'
_RANGE = f"milliseconds, 1 to {MAX_TIMEOUT_MS}"
_ALL_RUNNERS = f"one of {', '.join(RUNNERS)}"
_ALL_EXTENSIONS = f"one of {', '.join('.' + extension for extension in EXTENSIONS)}"


class ReadHandler(msgspec.Struct, frozen=True, kw_only=True):
    """A handler as it was read; with a `fault` it cannot run."""

    handler: Handler | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    fault: ConfigProblem | None = None


class HandlerReader:
    """Reads the handlers of one document, and tells what is wrong with them to its problems."""

    def __init__(self, problems: LocatedProblems, *, windows: bool) -> None:
        self._problems = problems
        self._windows = windows

    def read(self, path: str, node: JsonNode) -> ReadHandler:
        """Read the handler that is written at `path`."""
        if type(node.value) is not dict:
            return ReadHandler(
                fault=self._problems.error(
                    path, node.offset, f"a handler must be an object, not {kind_of(node)}"
                )
            )
        kind, type_fault = self._read_type(f"{path}.type", node)
        handler: Handler | None = None
        fault = type_fault
        if kind == "command":
            handler, fault = self._read_command(path, node)
        elif kind == "script":
            handler, fault = self._read_script(path, node)
        if kind is not None:
            self._look_for_other_keys(path, kind, node)
        timeout_ms, timeout_fault = self._read_timeout(f"{path}.timeout_ms", node.value.get("timeout_ms"))
        return ReadHandler(handler=handler, timeout_ms=timeout_ms, fault=fault or timeout_fault)

    def _read_type(self, path: str, node: JsonNode) -> tuple[str | None, ConfigProblem | None]:
        kind = node.value.get("type")
        if kind is None:
            return None, self._problems.error(path, node.offset, "`type` is missing", _TYPES)
        if type(kind.value) is not str:
            return None, self._problems.error(
                path, kind.offset, f"must be a string, not {kind_of(kind)}", _TYPES
            )
        if kind.value in _KEYS_OF:
            return kind.value, None
        # The reference had such a handler for a short time, and never migrated it (Bamboo dialect 1.9).
        old = 'write "type": "script" and the file in `path`' if kind.value == "javascript" else None
        hint = old or partial(nearest_or_all, kind.value, tuple(_KEYS_OF), _TYPES)
        return None, self._problems.error(path, kind.offset, f"unsupported type {show(kind)}", hint)

    def _read_command(self, path: str, node: JsonNode) -> tuple[Handler | None, ConfigProblem | None]:
        text, fault = self._read_text(path, node, "command")
        return (None if text is None else command_handler(text)), fault

    def _read_script(self, path: str, node: JsonNode) -> tuple[Handler | None, ConfigProblem | None]:
        text, text_fault = self._read_text(path, node, "path")
        runner, runner_fault = self._read_runner(f"{path}.runner", node.value.get("runner"))
        if text is None:
            return None, text_fault
        written = node.value["path"]
        extension = script_extension(trim(text), windows=self._windows)
        if extension is None:
            message = f"unsupported script extension in {show(written)}"
            return None, self._problems.error(f"{path}.path", written.offset, message, _ALL_EXTENSIONS)
        if runner_fault is not None:
            return None, runner_fault
        try:
            handler = script_handler(trim(text), extension, runner, windows=self._windows)
        except RunnerMismatch:
            message = f"runner {runner} cannot execute {show(written)}"
            hint = f"for .{extension}: {', '.join(runners_for(extension))}"
            return None, self._problems.error(f"{path}.runner", node.value["runner"].offset, message, hint)
        if handler.refusal is not None:
            self._problems.warning(
                f"{path}.path", written.offset, handler.refusal, "the hook fails on this system"
            )
        return handler, None

    def _read_text(self, path: str, handler: JsonNode, key: str) -> tuple[str | None, ConfigProblem | None]:
        """A required text that is not blank; else why there is none."""
        node = handler.value.get(key)
        path = f"{path}.{key}"
        if node is None:
            return None, self._problems.error(path, handler.offset, f"`{key}` is missing")
        if type(node.value) is not str:
            return None, self._problems.error(path, node.offset, f"must be a string, not {kind_of(node)}")
        if not trim(node.value):
            return None, self._problems.error(path, node.offset, "must not be blank")
        if "\0" in node.value:
            return None, self._problems.error(path, node.offset, "must not contain a NUL character")
        return node.value, None

    def _read_runner(self, path: str, node: JsonNode | None) -> tuple[str, ConfigProblem | None]:
        if node is None:
            return "auto", None
        hint: Hint
        if type(node.value) is not str:
            message = f"must be a string, not {kind_of(node)}"
            hint = _ALL_RUNNERS
        elif node.value not in RUNNERS:
            message = f"unsupported runner {show(node)}"
            hint = partial(nearest_or_all, node.value, RUNNERS, _ALL_RUNNERS)
        else:
            return node.value, None
        return "auto", self._problems.error(path, node.offset, message, hint)

    def _read_timeout(self, path: str, node: JsonNode | None) -> tuple[int, ConfigProblem | None]:
        if node is None:
            return DEFAULT_TIMEOUT_MS, None
        if not is_count(node.value):
            message = f"must be a non-negative integer, not {show(node)}"
            return DEFAULT_TIMEOUT_MS, self._problems.error(path, node.offset, message, _RANGE)
        if node.value == 0:
            message = f"0 is outside 1..{MAX_TIMEOUT_MS}"
            return DEFAULT_TIMEOUT_MS, self._problems.error(path, node.offset, message, _RANGE)
        if node.value > MAX_TIMEOUT_MS:
            message = f"{node.value} is outside 1..{MAX_TIMEOUT_MS}; it is honoured all the same"
            self._problems.warning(path, node.offset, message, _RANGE)
        return node.value, None

    def _look_for_other_keys(self, path: str, kind: str, node: JsonNode) -> None:
        for key, member in node.value.items():
            if key in _KEYS_OF[kind]:
                continue
            message = f"unknown key `{cut(key)}`"
            hint: Hint = partial(did_you_mean, key, _KEYS_OF[kind])
            if key in HANDLER_KEYS:
                message, hint = f"`{key}` has no meaning for a {kind} handler", "leave it out"
            elif key == "timeout":
                hint = "write timeout_ms, in milliseconds"
            self._problems.warning(f"{path}.{cut(key)}", member.key_offset, message, hint)


def is_count(value: Any) -> bool:
    """Whether it is an unsigned 64-bit integer as the reference reads one: no 1.0, no 1e3, no true."""
    return type(value) is int and 0 <= value < 1 << 64
