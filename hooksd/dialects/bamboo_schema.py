"""The shape of a Bamboo `hooks.json`: its keys, their types and defaults (Bamboo dialect 1.1 and 1.2).

These structs are the one list of known keys: the reader takes names and defaults from them, and
`hooksd schema hooks.json` is made of them. The reader itself walks the document with positions instead of decoding
into them, because one bad handler must not cost the others.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec

from hooksd.model.events import EventName


__all__ = [
    "DEFAULT_TIMEOUT_MS",
    "EVENTS",
    "MAX_TIMEOUT_MS",
    "RUNNERS",
    "TOOL_EVENTS",
    "CommandHandler",
    "Group",
    "HooksBody",
    "HooksJson",
    "LifecycleHooks",
    "Runner",
    "ScriptHandler",
    "hooks_json_schema",
    "keys",
]

DEFAULT_TIMEOUT_MS = 60_000
MAX_TIMEOUT_MS = 600_000
"""End of the documented range. The reference validates it but honours a larger value that comes from disk."""

EVENTS: dict[str, EventName] = {
    "SessionStart": EventName.SESSION_START,
    "UserPromptSubmit": EventName.PROMPT_SUBMIT,
    "PreToolUse": EventName.TOOL_BEFORE,
    "PostToolUse": EventName.TOOL_AFTER,
    "Stop": EventName.TURN_FINISH,
    "SessionEnd": EventName.SESSION_END,
    "PreCompact": EventName.COMPACT_BEFORE,
    "Notification": EventName.NOTIFICATION,
}
"""The eight events in the reference's fixed order."""
TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse"})
"""The events that have a tool's name, so that a matcher means something."""

Runner = Literal["auto", "node", "bun", "python", "bash", "powershell", "cmd"]
RUNNERS: tuple[str, ...] = get_args(Runner)

TimeoutMs = Annotated[
    int,
    msgspec.Meta(ge=1, le=MAX_TIMEOUT_MS, description="Milliseconds the handler may take, 1 to 600000."),
]


class CommandHandler(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="command"
):
    """Runs a command line in the shell: bash, or sh where there is no bash."""

    command: Annotated[str, msgspec.Meta(description="Passed to the shell as it is.", pattern=r"\S")]
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS


class ScriptHandler(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag="script"):
    """Runs a script file with the runtime of its kind."""

    path: Annotated[
        str,
        msgspec.Meta(
            description="The script, absolute or relative to the working directory: .js .mjs .cjs .py .sh .ps1 .bat .cmd",
            pattern=r"\S",
        ),
    ]
    runner: Annotated[
        Runner, msgspec.Meta(description="What runs it; auto chooses by the file's extension.")
    ] = "auto"
    timeout_ms: TimeoutMs = DEFAULT_TIMEOUT_MS


class Group(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Handlers that run, in order, for the tools that the matcher accepts."""

    enabled: Annotated[bool, msgspec.Meta(description="false keeps the group without running it.")] = True
    matcher: Annotated[
        str | None,
        msgspec.Meta(
            description="Regular expression (RE2) searched for in the tool's name; only for PreToolUse and PostToolUse. "
            "Left out, every tool matches."
        ),
    ] = None
    hooks: list[CommandHandler | ScriptHandler] = []


class LifecycleHooks(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Ordered groups of handlers for each event. Nothing runs unless `enabled` is true."""

    enabled: Annotated[bool, msgspec.Meta(description="Must be true for any of the hooks to run.")] = False
    SessionStart: Annotated[list[Group], msgspec.Meta(description="A run is initialised or resumed.")] = []
    UserPromptSubmit: Annotated[list[Group], msgspec.Meta(description="Before a prompt is accepted.")] = []
    PreToolUse: Annotated[list[Group], msgspec.Meta(description="Before a tool call.")] = []
    PostToolUse: Annotated[list[Group], msgspec.Meta(description="After a tool call has finished.")] = []
    Stop: Annotated[
        list[Group], msgspec.Meta(description="Before the agent stops; a block makes it go on.")
    ] = []
    SessionEnd: Annotated[list[Group], msgspec.Meta(description="After a run; cannot change anything.")] = []
    PreCompact: Annotated[list[Group], msgspec.Meta(description="Before the context is summarised.")] = []
    Notification: Annotated[list[Group], msgspec.Meta(description="A notification is delivered.")] = []


class ImageFallback(msgspec.Struct, kw_only=True):
    """A setting of the agent that shares the file; hooksd does not look at it."""

    enabled: bool = False
    mode: Literal["placeholder", "error", "ocr", "vision"] = "placeholder"


class HooksBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The body of a `hooks.json`."""

    schema: Annotated[str, msgspec.Meta(description="For editors.")] | msgspec.UnsetType = msgspec.field(
        name="$schema", default=msgspec.UNSET
    )
    lifecycle_hooks: LifecycleHooks = msgspec.field(default_factory=LifecycleHooks)
    image_fallback: ImageFallback | msgspec.UnsetType = msgspec.UNSET
    hooks: Annotated[Any, msgspec.Meta(description="Request hooks of the agent; not lifecycle hooks.")] = (
        msgspec.UNSET
    )


class HooksJson(HooksBody, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A Bamboo `hooks.json`: the body itself, or the body as `data` of a revision envelope."""

    schema_version: Annotated[int, msgspec.Meta(ge=0, le=1)] | msgspec.UnsetType = msgspec.UNSET
    revision: Annotated[int, msgspec.Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET
    data: HooksBody | msgspec.UnsetType = msgspec.UNSET


def keys(of: type[msgspec.Struct]) -> tuple[str, ...]:
    """The keys of an object of the document as they are written, its tag first."""
    tag = of.__struct_config__.tag_field
    return of.__struct_encode_fields__ if tag is None else (tag, *of.__struct_encode_fields__)


def hooks_json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a `hooks.json`."""
    schema = msgspec.json.schema(HooksJson)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hooks.json (Bamboo dialect)",
        **schema,
    }
