"""Hooks: configured reactions, as every dialect's document is read into them.

A `Hook` is inert data: what it runs is told by its `handler`, when by `event` and `match`, how its process is spoken
to by `contract`. What can be said about a hook only on the machine (is there a `node`? does the script exist?) is not
here: the process room finds out at each run.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from hooksd.model.events import EventName
from hooksd.model.problems import ConfigProblem, ProblemKind


__all__ = [
    "ArgumentTest",
    "Argv",
    "Contract",
    "Guard",
    "GuardAction",
    "Handler",
    "Hook",
    "MatchRule",
    "Mode",
    "NamePattern",
    "OnError",
    "Pins",
    "Programmatic",
    "Scope",
    "Script",
    "ShellCommand",
    "Withheld",
    "ToolFilter",
]


class Contract(StrEnum):
    """How a hook gets its input and gives its answer."""

    BAMBOO = "bamboo"
    CHRYS = "chrys"
    PROGRAMMATIC = "programmatic"


class Scope(StrEnum):
    """Whose a source is; also its place in the order of a plan (managed, then project, then user)."""

    MANAGED = "managed"
    PROJECT = "project"
    USER = "user"
    CLIENT = "client"
    """A programmatic hook of a connected client."""


class Mode(StrEnum):
    """How a dispatch treats the run of a hook (`mode` of protocol section 2.3)."""

    BLOCKING = "blocking"
    ASYNC = "async"
    FIRE_AND_FORGET = "fire_and_forget"
    DETACHED = "detached"


class OnError(StrEnum):
    """What a hook that gave no valid answer means, by its own configuration."""

    BLOCK = "block"
    WARN = "warn"
    IGNORE = "ignore"


# ----------------------------------------------------------------------------------------------------------------------
# Handlers: what a hook runs


class ShellCommand(msgspec.Struct, frozen=True, kw_only=True, tag="shell"):
    """A command line for a shell.

    Attributes:
        command: Passed on byte for byte.
        shells: Programs to try in order; each is given `-c` and the command. `$SHELL` stands for the variable of that
            name in the hook's environment. `hooksd.toml` `[shell] command` replaces the list.
    """

    command: str
    shells: tuple[str, ...]


class Argv(msgspec.Struct, frozen=True, kw_only=True, tag="argv"):
    """A program and its arguments, without a shell."""

    argv: tuple[str, ...]


class Script(msgspec.Struct, frozen=True, kw_only=True, tag="script"):
    """A script file and the runtimes that may run it.

    Attributes:
        path: Absolute, or relative to `base`.
        base: What a relative path is relative to: the effective working directory (None) or a directory.
        runtimes: Argument prefixes to try in order, such as `("node",)` then `("bun", "run")`; the script's path and
            `arguments` come after. Empty when `refusal` tells why the script cannot run here.
        shebang_shell: Before `runtimes`, try the shell that the script's first line names, if it is one of sh, bash,
            dash, zsh and ksh.
        refusal: Why this script can never run on this system (a batch file outside Windows); None normally. It is
            told only after the file was found, as the Bamboo reference does.
        arguments: Further arguments after the path.
        prefers_uv: `hooksd.toml` `[runtimes] uv` may put `uv run` before `runtimes`. It is not asked for by default: it
            may write into a workspace.
    """

    path: str
    base: str | None = None
    runtimes: tuple[tuple[str, ...], ...]
    shebang_shell: bool = False
    refusal: str | None = None
    arguments: tuple[str, ...] = ()
    prefers_uv: bool = False


class Programmatic(msgspec.Struct, frozen=True, kw_only=True, tag="programmatic"):
    """A hook inside a connected client (`hook/register`)."""

    registration_id: str
    priority: int


Handler = ShellCommand | Argv | Script | Programmatic


# ----------------------------------------------------------------------------------------------------------------------
# Match rules: each is defined by a dialect and compiled by the config room


class NamePattern(msgspec.Struct, frozen=True, kw_only=True, tag="name_pattern"):
    """An unanchored, case-sensitive RE2 search over the tool name (Bamboo). Only tool events have a name."""

    pattern: str


class ArgumentTest(msgspec.Struct, frozen=True, kw_only=True):
    """What one top-level argument of a tool call must be like (Chrys dialect 1.7). It must be there and not null.

    What is tested is the argument as text, the way Python's `str` writes it.

    Attributes:
        name: The argument.
        equals: The text it must be.
        contains: A text that must be in it.
        regex: A pattern that must be found in it; Python's own syntax and meaning, unanchored, no flags.
    """

    name: str
    equals: str | None = None
    contains: str | None = None
    regex: str | None = None


class ToolFilter(msgspec.Struct, frozen=True, kw_only=True, tag="tool_filter"):
    """Exact, case-sensitive conditions of which every one must hold (Chrys dialect 1.7).

    A condition on the tool never holds for an event without one.

    Attributes:
        profile: The agent's profile.
        profiles: Profiles of which it must be one; empty for no condition.
        tool_kind: The kind of the tool.
        tool_name: The name of the tool.
        args: Conditions on its arguments.
    """

    profile: str | None = None
    profiles: tuple[str, ...] = ()
    tool_kind: str | None = None
    tool_name: str | None = None
    args: tuple[ArgumentTest, ...] = ()


MatchRule = NamePattern | ToolFilter


# ----------------------------------------------------------------------------------------------------------------------


class GuardAction(StrEnum):
    """What a guard makes of a failure, or of a hook that is not there."""

    BLOCK = "block"
    WARN = "warn"


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """One `[[guard]]` of `hooksd.toml` (design rule 2).

    Attributes:
        hooks: Name pattern; only `*` is special and stands for any characters, `:` included.
        events: Normalised names it applies to; empty means every gate.
        on_failure: What every way of not giving a valid answer becomes.
        on_missing: What it means that no hook has a name like that.
    """

    hooks: str
    events: tuple[EventName, ...] = ()
    on_failure: GuardAction = GuardAction.BLOCK
    on_missing: GuardAction = GuardAction.WARN


class Pins(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a project that a hook names, as they were when the project was granted trust (design rule 9).

    Attributes:
        root: The project's real directory.
        files: Path relative to it and SHA-256 of the content, by path.
        blocks: Whether a file that differs blocks a gate (`[projects] on_changed`).
        hint: What to do when one differs.
    """

    root: str
    files: tuple[tuple[str, str], ...]
    blocks: bool
    hint: str


class Withheld(msgspec.Struct, frozen=True, kw_only=True):
    """Why a hook that is known is not run: its project is not trusted, or is no longer what was trusted.

    Attributes:
        kind: `untrusted` or `changed`; `timeout` where that could not be found out in time.
        message: Of the problem that every dispatch tells.
        hint: What to do about it.
        blocks: Whether it blocks the gates it is for; a guard makes it block in any case.
    """

    kind: ProblemKind
    message: str
    hint: str
    blocks: bool


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One configured reaction to one event.

    Attributes:
        name: `<dialect>:<scope>:<source>:<id or config path>`, the name used everywhere.
        dialect: Whose document it was read from; decides envelope and interpretation.
        contract: How its process is spoken to.
        source: The unique name of its source; the client's name for a programmatic hook.
        scope: The scope of its source.
        event: The normalised event it reacts to.
        native_event: That event in its own dialect's words.
        handler: What it runs.
        match: A rule on the event beyond its name; None matches all.
        mode: Whether a dispatch waits for it.
        durable: Its run survives a crash (Chrys `delivery: durable`); only background modes can be.
        timeout_s: Its own deadline, from holding a slot to the decision; None for none (detached hooks).
        on_error: What its failure means by its own configuration; Bamboo hooks always warn.
        env: Variables of its own, on top of the contract's.
        cwd: Its own working directory, None for the dialect's chain.
        path: Where in the document it is written, such as `lifecycle_hooks.PreToolUse[0].hooks[1]`.
        file: The document, "" for a programmatic hook.
        line: 1-based line of the handler in `file`, where known.
        inactive: Why it never runs (a disabled group), None when it does; told by `hook/explain`.
        id: Its own name in its document, where its dialect has one.
        load_problem: Why it could not be loaded. Such a hook runs only as a failure, and only where it is guarded.
        pins: What the files that it names must be like for it to be run; None where nothing is asked.
        withheld: Why it must not be run; None where it may.
    """

    name: str
    dialect: str
    contract: Contract
    source: str
    scope: Scope
    event: EventName
    native_event: str
    handler: Handler | None
    match: MatchRule | None = None
    mode: Mode = Mode.BLOCKING
    durable: bool = False
    timeout_s: float | None
    on_error: OnError = OnError.WARN
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    path: str = ""
    file: str = ""
    line: int | None = None
    inactive: str | None = None
    id: str = ""
    load_problem: ConfigProblem | None = None
    pins: Pins | None = None
    withheld: Withheld | None = None
