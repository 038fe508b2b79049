"""The settings of `hooksd.toml`: every key, its default and the reason for it.

This module only says what there is; `settings_file.py` reads it from a file and says what is wrong with one.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from hooksd.model.hooks import GuardAction


__all__ = [
    "DaemonSettings",
    "EnvSettings",
    "GuardSettings",
    "HistorySettings",
    "Limits",
    "LogSettings",
    "ProjectSettings",
    "RuntimeSettings",
    "SerialSettings",
    "Settings",
    "ShellSettings",
    "SourceSettings",
    "SourcesSettings",
    "WarmSettings",
]

MAX_NUMBER = 2**31 - 1
"""Largest count, size in bytes or number of milliseconds: more is a slip, and would not fit a timer or a buffer."""
MAX_SECONDS = 366 * 86_400
"""Longest time, a year."""

Positive = Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)]
NotNegative = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file: unknown keys are errors."""


class DaemonSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[daemon]`."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    work_area: str = "~"
    """Working directory of hooks when an execution has no workspace; "" switches it off."""


class Limits(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[limits]`: everything is bounded, and every bound has a name (design rule 6)."""

    max_message_bytes: Annotated[int, msgspec.Meta(ge=1024, le=MAX_NUMBER)] = 16_777_216
    """One line of a client. Tool inputs with whole files in them fit; a runaway client does not."""
    max_write_buffer_bytes: Annotated[int, msgspec.Meta(ge=1024, le=MAX_NUMBER)] = 67_108_864
    """Unread answers of one connection, past which it is dropped."""
    max_executions: Positive = 10_000
    """Open executions; the longest idle one goes first."""
    execution_idle_s: Seconds = 86_400
    """After this long without a request an execution is dropped: an agent that crashed never closes its own."""
    max_running_gates: Positive = 64
    """Running hooks of gate events, and as many again reserved for each depth of nesting."""
    max_running_background: Positive = 16
    """Running hooks that no decision waits for; they never take a gate's slot."""
    max_queued: Positive = 1_024
    """Hooks waiting for a slot; beyond it they fail as `busy`."""
    max_queue_s: Seconds = 60
    """Longest wait for a slot."""
    max_depth: Positive = 4
    """Hooks that dispatch events themselves, nested."""
    max_ending: Positive = 256
    """Process trees being ended at once."""
    kill_grace_ms: NotNegative = 500
    """From SIGTERM to SIGKILL."""
    drain_s: Seconds = 10
    """Longest drain at shutdown; below the service manager's own limit."""
    stop_continuations: NotNegative = 5
    """Forced continuations of one turn, so that a stubborn Stop hook cannot run for ever."""
    kept_results: NotNegative = 256
    """Recent invocations whose output `hook/result` can still show, 16 KiB each."""
    max_subscribers: Positive = 64
    """Event streams at once."""
    max_log_field_bytes: Annotated[int, msgspec.Meta(ge=64, le=MAX_NUMBER)] = 2_048
    """Longest text field of a log record."""
    bamboo_output_bytes: Positive = 65_536
    """Kept of each stream of a Bamboo hook."""
    chrys_output_bytes: Positive = 262_144
    """Kept of each stream of a Chrys hook."""
    result_file_bytes: Positive = 1_048_576
    """A Chrys result file."""
    max_outbox_jobs: Positive = 100_000
    """Durable jobs on disk."""
    watched_workspaces: NotNegative = 64
    """Workspaces whose project sources are watched; beyond it they are looked at when an execution is opened."""


class ShellSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[shell]`."""

    command: str = "auto"
    """A path here replaces each dialect's own choice of a shell."""


class RuntimeSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[runtimes]`."""

    uv: bool = False


class WarmSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[warm]`."""

    python: bool = True
    node: bool = False


class EnvSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[env]`: name patterns (only `*` is special) of variables that hooks never get."""

    deny: tuple[str, ...] = ()
    allow_for: dict[str, tuple[str, ...]] = {}
    """Exceptions from `deny`, by the full name of a hook that is named by an id, not by its position."""


class ProjectSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[projects]`: hooks that a workspace brings along."""

    enabled: bool = False
    on_changed: Literal["block", "skip"] = "block"


class LogSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[log]`."""

    reasons: bool = False
    """Whether the reasons of blocks, which are the hooks' own words, go into the log too."""


class HistorySettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[history]`."""

    keep_output: bool = False


class SerialSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[serial]`: name patterns of hooks that never run twice at a time."""

    hooks: tuple[str, ...] = ()


class SourcesSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[sources]`."""

    defaults: bool = True


class SourceSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[source]]`. An entry with the name of a default changes that default and needs only the changed keys."""

    name: str
    dialect: str | None = None
    path: str | None = None
    scope: Literal["user", "managed"] | None = None
    agents: tuple[str, ...] | None = None
    enabled: bool | None = None


class GuardSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[guard]]` (design rule 2)."""

    hooks: str
    events: tuple[str, ...] = ()
    on_failure: GuardAction = GuardAction.BLOCK
    on_missing: GuardAction = GuardAction.WARN


class Settings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of `hooksd.toml`; everything is optional."""

    daemon: DaemonSettings = DaemonSettings()
    limits: Limits = Limits()
    shell: ShellSettings = ShellSettings()
    runtimes: RuntimeSettings = RuntimeSettings()
    warm: WarmSettings = WarmSettings()
    env: EnvSettings = EnvSettings()
    projects: ProjectSettings = ProjectSettings()
    log: LogSettings = LogSettings()
    history: HistorySettings = HistorySettings()
    serial: SerialSettings = SerialSettings()
    sources: SourcesSettings = SourcesSettings()
    source: tuple[SourceSettings, ...] = ()
    guard: tuple[GuardSettings, ...] = ()
