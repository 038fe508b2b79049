"""Reading one entry of `hooks` into a hook (Chrys dialect 1.4 to 1.7)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from hooksd.dialects.chrys_handlers import command_handler, script_handler, shell_handler
from hooksd.dialects.chrys_schema import (
    DEFAULT_TIMEOUT_S,
    EVENTS,
    GATES,
    KNOWN_KINDS,
    MAX_ID,
    TOOL_EVENTS,
    Delivery,
    Entry,
    Execution,
    Match,
    ModeWord,
    OnErrorWord,
    Run,
    RunType,
    Test,
    keys,
    words,
)
from hooksd.dialects.chrys_values import Values, joined
from hooksd.dialects.json_document import JsonNode
from hooksd.dialects.python_patterns import check_python_pattern
from hooksd.model.hooks import ArgumentTest, Contract, Handler, Hook, Mode, OnError, ToolFilter
from hooksd.model.problems import ConfigProblem
from hooksd.model.sources import Origin


__all__ = ["HookReader"]

_KIND_PREFIX = "chrys."
_OF_TYPE = {"script": ("path", "args"), "command": ("argv", "args"), "shell": ("shell",)}
"""The keys of `run` that mean something for one type only."""


class _Run(NamedTuple):
    handler: Handler | None
    env: tuple[tuple[str, str], ...]
    cwd: str | None


class _Execution(NamedTuple):
    mode: Mode
    durable: bool
    timeout_s: float | None
    on_error: OnError


class HookReader:
    """Reads the entries of one document.

    Args:
        values: Reads values and collects problems.
        origin: Where the document comes from.
    """

    def __init__(self, values: Values, origin: Origin) -> None:
        self._values = values
        self._origin = origin
        self._directory = os.path.dirname(origin.file)

    def read(self, path: str, node: JsonNode) -> Hook | None:
        """The hook; None where the document cannot be used because of it. Every fault is told."""
        values = self._values
        members = values.mapping(path, node, keys(Entry))
        if type(node.value) is not dict:
            return None
        hook_id = self._read_id(path, node)
        enabled = values.flag(joined(path, "enabled"), members.get("enabled"), default=True)
        values.optional_text(joined(path, "description"), members.get("description"))
        event = self._read_event(path, node)
        run = self._read_run(joined(path, "run"), node)
        execution = self._read_execution(joined(path, "execution"), members.get("execution"))
        rule, bad_pattern = self._read_match(
            joined(path, "match"), members.get("match"), event, enabled=enabled
        )
        if event and enabled:
            self._look_for_mistakes(path, node, event, execution, rule)
        if hook_id is None or event is None:
            return None
        return Hook(
            name=f"chrys:{self._origin.scope}:{self._origin.source}:{hook_id}",
            dialect="chrys",
            contract=Contract.CHRYS,
            source=self._origin.source,
            scope=self._origin.scope,
            event=EVENTS[event],
            native_event=event,
            handler=None if bad_pattern else run.handler,
            match=rule,
            mode=execution.mode,
            durable=execution.durable,
            timeout_s=execution.timeout_s,
            on_error=execution.on_error,
            env=run.env,
            cwd=run.cwd,
            path=path,
            file=self._origin.file,
            line=values.line(node),
            inactive=None if enabled else "`enabled` is false",
            id=hook_id,
            load_problem=bad_pattern,
        )

    # ------------------------------------------------------------------------------------------------------------------
    # The entry's own keys

    def _read_id(self, path: str, entry: JsonNode) -> str | None:
        node = self._required(path, entry, "id")
        if node is None:
            return None
        path = joined(path, "id")
        text = self._values.text(path, node)
        if text is None:
            return None
        trimmed = text.strip()
        if not 1 <= len(trimmed) <= MAX_ID:
            message = f"must have 1 to {MAX_ID} characters, not {len(trimmed)}"
            self._values.fault(path, node.offset, message)
            return None
        odd = next((character for character in trimmed if not character.isprintable()), None)
        if odd is not None:
            message = f"must be printable, but has the character U+{ord(odd):04X}"
            self._values.fault(
                path, node.offset, message, "of white space only the ordinary space is allowed"
            )
            return None
        return trimmed

    def _read_event(self, path: str, entry: JsonNode) -> str | None:
        node = self._required(path, entry, "event")
        if node is None:
            return None
        return self._values.word(joined(path, "event"), node, tuple(EVENTS), "") or None

    def _required(self, path: str, entry: JsonNode, key: str) -> JsonNode | None:
        node: JsonNode | None = entry.value.get(key)
        if node is None:
            self._values.fault(joined(path, key), entry.offset, f"`{key}` is missing")
        return node

    # ------------------------------------------------------------------------------------------------------------------
    # run

    def _read_run(self, path: str, entry: JsonNode) -> _Run:
        nothing = _Run(None, (), None)
        node = entry.value.get("run")
        if node is None or node.value is None:
            self._values.fault(path, (node or entry).offset, "`run` is missing", "say what the hook runs")
            return nothing
        members = self._values.mapping(path, node, keys(Run))
        if type(node.value) is not dict:
            return nothing
        kind_node = members.get("type")
        if kind_node is None:
            hint = f"one of {', '.join(words(RunType))}"
            self._values.fault(joined(path, "type"), node.offset, "`type` is missing", hint)
        kind = self._values.word(joined(path, "type"), kind_node, words(RunType), "")
        args = self._optional_texts(path, members, "args")
        env = self._read_env(joined(path, "env"), members.get("env"))
        cwd = self._values.optional_text(joined(path, "cwd"), members.get("cwd"))
        handler: Handler | None = None
        if kind:
            others = [name for of in _OF_TYPE.values() for name in of if name not in _OF_TYPE[kind]]
            self._values.unexpected(path, members, dict.fromkeys(others), f"for a {kind}")
            handler = self._read_handler(kind, path, node, args)
        return _Run(handler, env, cwd or None)

    def _read_handler(self, kind: str, path: str, run: JsonNode, args: tuple[str, ...]) -> Handler | None:
        key = _OF_TYPE[kind][0]
        path = joined(path, key)
        node = run.value.get(key)
        if node is None or node.value is None:
            self._values.fault(path, (node or run).offset, f"a {kind} needs `{key}`")
            return None
        if kind == "command":
            argv = self._values.texts(path, node)
            if node.value == []:
                self._values.fault(path, node.offset, "must name a program")
            return command_handler(argv, args) if argv else None
        text = self._values.text(path, node, empty=False)
        if text is None:
            return None
        return shell_handler(text) if kind == "shell" else script_handler(text, args, self._directory)

    def _optional_texts(self, path: str, members: dict[str, JsonNode], key: str) -> tuple[str, ...]:
        node = members.get(key)
        return () if node is None or node.value is None else self._values.texts(joined(path, key), node)

    def _read_env(self, path: str, node: JsonNode | None) -> tuple[tuple[str, str], ...]:
        if node is None or node.value is None:
            return ()
        found = []
        for name, member in self._values.mapping(path, node).items():
            value = self._values.text(joined(path, name), member)
            if not name or "=" in name or "\0" in name:
                message = "no environment can hold a variable of this name, so the hook cannot be started"
                self._values.problems.warning(joined(path, name), member.key_offset, message)
            found.append((name, value or ""))
        return tuple(found)

    # ------------------------------------------------------------------------------------------------------------------
    # execution

    def _read_execution(self, path: str, node: JsonNode | None) -> _Execution:
        values = self._values
        members: dict[str, JsonNode] = {}
        if node is not None and node.value is not None:
            members = values.mapping(path, node, keys(Execution))
        mode = Mode(
            values.word(joined(path, "mode"), members.get("mode"), words(ModeWord), "fire_and_forget")
        )
        detach = values.flag(joined(path, "detach"), members.get("detach"), default=False)
        delivery = values.word(
            joined(path, "delivery"), members.get("delivery"), words(Delivery), "best_effort"
        )
        on_error = values.word(joined(path, "on_error"), members.get("on_error"), words(OnErrorWord), "warn")
        timeout_s: float | None = DEFAULT_TIMEOUT_S
        if "timeout_seconds" in members:
            timeout_s = values.seconds(
                joined(path, "timeout_seconds"), members["timeout_seconds"], least="more than 0"
            )
        if detach and mode is not Mode.FIRE_AND_FORGET:
            message = f"only a fire_and_forget hook can be detached, not one that is {mode}"
            hint = "write mode: fire_and_forget, or leave detach out"
            values.fault(joined(path, "detach"), members["detach"].offset, message, hint)
        elif detach:
            mode, timeout_s = Mode.DETACHED, None
        return _Execution(mode, delivery == "durable", timeout_s, OnError(on_error))

    # ------------------------------------------------------------------------------------------------------------------
    # match

    def _read_match(
        self, path: str, node: JsonNode | None, event: str | None, *, enabled: bool
    ) -> tuple[ToolFilter | None, ConfigProblem | None]:
        """The conditions, None if there are none; and the problem of a pattern that cannot be used.

        A pattern that cannot be used costs only the hook (Chrys dialect 1.7); the other conditions then still say which
        calls a guard on it is about. Of a hook that is switched off nobody is told.
        """
        if node is None or node.value is None:
            return None, None
        values = self._values
        members = values.mapping(path, node, keys(Match))
        profiles = self._optional_texts(path, members, "profiles")
        tests: tuple[ArgumentTest, ...] = ()
        bad: ConfigProblem | None = None
        args = members.get("args")
        if args is not None and args.value is not None:
            tests, bad = self._read_tests(joined(path, "args"), args, enabled=enabled)
        rule = ToolFilter(
            profile=values.optional_text(joined(path, "profile"), members.get("profile")),
            profiles=profiles,
            tool_kind=self._read_kind(joined(path, "tool_kind"), members.get("tool_kind")),
            tool_name=values.optional_text(joined(path, "tool_name"), members.get("tool_name")),
            args=tests,
        )
        about_tool = rule.tool_kind is not None or rule.tool_name is not None or rule.args
        if about_tool and event is not None and event not in TOOL_EVENTS and enabled:
            message = f"{event} is about no tool, so this hook never runs"
            values.problems.warning(path, node.offset, message, "leave the conditions on the tool out")
        return (None if rule == ToolFilter() else rule), bad

    def _read_kind(self, path: str, node: JsonNode | None) -> str | None:
        kind = self._values.optional_text(path, node)
        if kind is None or node is None:
            return None
        bare = kind.removeprefix(_KIND_PREFIX)
        if bare != kind and bare in KNOWN_KINDS:
            self._values.problems.warning(path, node.offset, f"{kind} is an old spelling", f"write {bare}")
            return bare
        self._values.near_miss(path, node, KNOWN_KINDS, "the kind")
        return kind

    def _read_tests(
        self, path: str, node: JsonNode, *, enabled: bool
    ) -> tuple[tuple[ArgumentTest, ...], ConfigProblem | None]:
        tests = []
        bad: ConfigProblem | None = None
        for name, member in self._values.mapping(path, node).items():
            where = joined(path, name)
            operators = self._values.mapping(where, member, keys(Test))
            told = {
                operator: self._values.text(joined(where, operator), operators[operator])
                for operator in keys(Test)
                if operator in operators
            }
            pattern = told.get("regex")
            if pattern is not None:
                fault = check_python_pattern(pattern)
                if fault is not None:
                    pattern = None
                    if enabled:
                        at = operators["regex"].offset
                        message = f"{fault.message}; this hook does not run"
                        found = self._values.problems.error(joined(where, "regex"), at, message, fault.hint)
                        bad = bad or found
            tests.append(
                ArgumentTest(
                    name=name, equals=told.get("equals"), contains=told.get("contains"), regex=pattern
                )
            )
        return tuple(tests), bad

    # ------------------------------------------------------------------------------------------------------------------

    def _look_for_mistakes(
        self, path: str, entry: JsonNode, event: str, execution: _Execution, rule: ToolFilter | None
    ) -> None:
        """Warn of what is allowed, but hardly meant."""
        warn = partial(self._values.problems.warning, path, entry.offset)
        for message, hint in _mistakes(entry, event, execution, rule):
            warn(message, hint)


def _mistakes(
    entry: JsonNode, event: str, execution: _Execution, rule: ToolFilter | None
) -> Iterator[tuple[str, str]]:
    blocking = execution.mode is Mode.BLOCKING
    gate = EVENTS[event] in GATES
    if event == "before_tool_call" and rule is None:
        yield (
            "it has no `match`, so it runs for every tool call",
            "name a tool_kind or a tool_name in `match`",
        )
    if blocking and execution.durable:
        yield "`delivery: durable` has no effect on a blocking hook", "leave it out, or write mode: async"
    if gate and not blocking and not _has(entry, "mode"):
        message = f"it has no `execution.mode`, so it runs in the background and cannot stop {event}"
        yield message, "write mode: blocking, or mode: fire_and_forget if that is meant"
    if execution.on_error is OnError.BLOCK and not (gate and blocking):
        what = f"{event} cannot be stopped" if blocking else "a hook in the background stops nothing"
        yield f"`on_error: block` has no effect: {what}", "write on_error: warn"


def _has(entry: JsonNode, key: str) -> bool:
    execution = entry.value.get("execution")
    return execution is not None and type(execution.value) is dict and key in execution.value
