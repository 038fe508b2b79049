"""The shape of a Chrys `hooks.yaml`: its events, keys, types and defaults (Chrys dialect 1.2 to 1.7, 2).

These structs are the one list of known keys: the reader takes names and defaults from them, and
`hooksd schema hooks.yaml` is made of them. The reader walks the document with positions instead of decoding into them,
so that every problem is told with its line.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec

from hooksd.model.events import EventName


__all__ = [
    "DEFAULT_TIMEOUT_S",
    "EVENTS",
    "GATES",
    "KNOWN_KINDS",
    "MAX_ID",
    "TOOL_EVENTS",
    "Entry",
    "Execution",
    "HooksYaml",
    "Match",
    "Run",
    "Settings",
    "Test",
    "hooks_yaml_schema",
    "keys",
    "words",
]

DEFAULT_TIMEOUT_S = 30.0
MAX_ID = 512
"""Longest id, in characters."""

EVENTS: dict[str, EventName] = {
    "session_start": EventName.SESSION_START,
    "session_restored": EventName.SESSION_RESTORED,
    "session_end": EventName.SESSION_END,
    "before_turn": EventName.TURN_START,
    "after_turn": EventName.TURN_END,
    "user_prompt_submit": EventName.PROMPT_SUBMIT,
    "before_tool_call": EventName.TOOL_BEFORE,
    "after_tool_call": EventName.TOOL_AFTER,
    "tool_error": EventName.TOOL_ERROR,
    "approval_requested": EventName.PERMISSION_REQUEST,
    "approval_resolved": EventName.PERMISSION_RESOLVED,
    "sub_agent_start": EventName.SUBAGENT_START,
    "sub_agent_end": EventName.SUBAGENT_STOP,
    "pre_compact": EventName.COMPACT_BEFORE,
    "user_interrupt": EventName.TURN_INTERRUPT,
    "workflow_run_start": EventName.WORKFLOW_START,
    "workflow_run_end": EventName.WORKFLOW_END,
}
"""The seventeen events."""

GATES = frozenset({EventName.TOOL_BEFORE, EventName.PROMPT_SUBMIT})
"""The events that a hook can stop."""

TOOL_EVENTS = frozenset(
    {"before_tool_call", "after_tool_call", "tool_error", "approval_requested", "approval_resolved"}
)
"""The events that are about a tool, so that conditions on the tool mean something."""

KNOWN_KINDS = (
    "shell",
    "filesystem.read",
    "filesystem.write",
    "search",
    "web_search",
    "web_fetch",
    "ask_user",
    "sleep",
    "sub_agent",
    "mcp",
    "doc_converter",
    "skill",
    "context",
    "todo",
)
"""The kinds of tools that the agent has itself; others are allowed."""

ModeWord = Literal["blocking", "async", "fire_and_forget"]
Delivery = Literal["best_effort", "durable"]
OnErrorWord = Literal["block", "warn", "ignore"]
EventWord = Literal[
    "session_start",
    "session_restored",
    "session_end",
    "before_turn",
    "after_turn",
    "user_prompt_submit",
    "before_tool_call",
    "after_tool_call",
    "tool_error",
    "approval_requested",
    "approval_resolved",
    "sub_agent_start",
    "sub_agent_end",
    "pre_compact",
    "user_interrupt",
    "workflow_run_start",
    "workflow_run_end",
]
RunType = Literal["script", "command", "shell"]


class Test(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What an argument, as text, must be like. Without any of these it must only be there and not null."""

    equals: Annotated[str, msgspec.Meta(description="The whole text.")] | msgspec.UnsetType = msgspec.UNSET
    contains: Annotated[str, msgspec.Meta(description="A part of it.")] | msgspec.UnsetType = msgspec.UNSET
    regex: (
        Annotated[str, msgspec.Meta(description="A Python regular expression, searched for.")]
        | msgspec.UnsetType
    ) = msgspec.UNSET


class Match(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Conditions of which every one must hold; all are exact and case-sensitive."""

    profile: Annotated[str | None, msgspec.Meta(description="The agent's profile.")] = None
    profiles: Annotated[list[str] | None, msgspec.Meta(description="Profiles of which it is one.")] = None
    tool_kind: Annotated[
        str | None, msgspec.Meta(description=f"The kind of the tool: {', '.join(KNOWN_KINDS)}, or another.")
    ] = None
    tool_name: Annotated[str | None, msgspec.Meta(description="The name of the tool.")] = None
    args: Annotated[dict[str, Test] | None, msgspec.Meta(description="Arguments of the call, by name.")] = (
        None
    )


class Run(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is run: a `script` needs `path`, a `command` needs `argv`, a `shell` line needs `shell`."""

    type: RunType
    path: Annotated[
        str | None,
        msgspec.Meta(description="The script, absolute or relative to the directory of this file."),
    ] = None
    argv: Annotated[list[str] | None, msgspec.Meta(description="Program and arguments, no shell.")] = None
    shell: Annotated[str | None, msgspec.Meta(description="A line for $SHELL, else /bin/sh.")] = None
    args: Annotated[
        list[str] | None, msgspec.Meta(description="Further arguments of a script or command.")
    ] = None
    env: Annotated[
        dict[str, str] | None,
        msgspec.Meta(
            description="Variables; ${workspace_cwd}, ${chrys_home}, ${session_id} and ${profile} are filled in."
        ),
    ] = None
    cwd: Annotated[
        str | None, msgspec.Meta(description="Working directory; filled in like env. Default: the workspace.")
    ] = None


class Execution(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How it is run. Only a `blocking` hook can block, change arguments or add text."""

    mode: ModeWord = "fire_and_forget"
    detach: Annotated[
        bool, msgspec.Meta(description="Survives the daemon; only with fire_and_forget. Has no timeout.")
    ] = False
    delivery: Annotated[
        Delivery, msgspec.Meta(description="durable: run again after a crash; not for blocking hooks.")
    ] = "best_effort"
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, description="Seconds it may take.")] = (
        DEFAULT_TIMEOUT_S
    )
    on_error: Annotated[
        OnErrorWord,
        msgspec.Meta(
            description="What a failure means; block only for before_tool_call and user_prompt_submit."
        ),
    ] = "warn"


class Entry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One hook."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID, description="Unique in the file.")]
    event: EventWord
    run: Run
    execution: Execution | None = None
    match: Match | None = None
    enabled: Annotated[bool, msgspec.Meta(description="false keeps the hook without running it.")] = True
    description: Annotated[str | None, msgspec.Meta(description="For people.")] = None


class Settings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Settings of the whole file."""

    shutdown_grace_seconds: Annotated[
        float, msgspec.Meta(ge=0, description="Longest wait for background hooks at the end of a session.")
    ] = 5.0
    max_parallel_hooks: Annotated[
        int, msgspec.Meta(ge=1, description="Background hooks of this file at the same time.")
    ] = 4
    outbox_retry_age_seconds: Annotated[
        float,
        msgspec.Meta(ge=0, description="How long after its last start an interrupted durable job is due."),
    ] = 60.0
    outbox_max_retries: Annotated[
        int, msgspec.Meta(ge=0, description="Most starts of a durable job, the first included.")
    ] = 3


class HooksYaml(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A Chrys `hooks.yaml`."""

    version: Literal[1] = 1
    settings: Settings | None = None
    hooks: list[Entry] = []


def keys(of: type[msgspec.Struct]) -> tuple[str, ...]:
    """The keys of an object of the document."""
    return of.__struct_encode_fields__


def words(kind: Any) -> tuple[str, ...]:
    """The words that a value of fixed words takes."""
    return get_args(kind)


def hooks_yaml_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a `hooks.yaml`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hooks.yaml (Chrys dialect)",
        **msgspec.json.schema(HooksYaml),
    }
