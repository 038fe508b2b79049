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
    """The lowest level that is written to the log."""
    work_area: str = "~"
    """Working directory of hooks when an execution has no workspace; "" switches it off."""


class Limits(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[limits]`: everything is bounded, and every bound has a name (design rule 6)."""

    max_message_bytes: Annotated[int, msgspec.Meta(ge=1024, le=MAX_NUMBER)] = 16_777_216
    """One line of a client. Tool inputs with whole files in them fit; a runaway client does not."""
    max_write_buffer_bytes: Annotated[int, msgspec.Meta(ge=1024, le=MAX_NUMBER)] = 67_108_864
    """Unread answers of one connection, past which it is dropped: a client that does not read costs no more."""
    max_executions: Positive = 10_000
    """Open executions; at the limit the longest idle one goes. Agents that crash leave theirs open."""
    execution_idle_s: Seconds = 86_400
    """After this long without a request an execution is dropped: an agent that crashed never closes its own."""
    max_running_gates: Positive = 64
    """Running hooks of gate events, and as many again reserved for each depth of nesting."""
    max_running_background: Positive = 16
    """Running hooks that no decision waits for; they never take a gate's slot, so they can be fewer."""
    max_detached: Positive = 256
    """Detached hooks that run at once. They have no timeout, so those that never end would pile up."""
    max_queued: Positive = 1_024
    """Hooks waiting for a slot; beyond it they fail as `busy`, because a longer queue only answers later."""
    max_queue_s: Seconds = 60
    """Longest wait for a slot: past it an answer, even `busy`, serves an agent better."""
    max_depth: Positive = 4
    """Hooks that dispatch events themselves, nested: one that triggers itself must come to an end."""
    max_ending: Positive = 256
    """Process trees being ended at once; each takes some descriptors and a look at the process table."""
    kill_grace_ms: NotNegative = 500
    """From SIGTERM to SIGKILL: long enough to clean up, and no answer waits for it."""
    drain_s: Seconds = 10
    """Longest drain at shutdown; below the service manager's own limit."""
    stop_continuations: NotNegative = 5
    """Forced continuations of one turn, so that a stubborn Stop hook cannot run for ever."""
    kept_results: NotNegative = 256
    """Recent invocations whose output `hook/result` can still show, 16 KiB each."""
    max_subscribers: Positive = 64
    """Event streams at once; each has a queue of its own."""
    max_log_field_bytes: Annotated[int, msgspec.Meta(ge=64, le=MAX_NUMBER)] = 2_048
    """Longest text field of a log record, so that no line grows with what a client sent."""
    bamboo_output_bytes: Positive = 65_536
    """Kept of each stream of a Bamboo hook, as in the reference; the rest is read and dropped."""
    chrys_output_bytes: Positive = 262_144
    """Kept of each stream of a Chrys hook, as in the reference; the rest is read and dropped."""
    result_file_bytes: Positive = 1_048_576
    """Longest result file of a Chrys hook, as in the reference."""
    max_outbox_jobs: Positive = 100_000
    """Durable jobs on disk; a project that never comes back must not fill it."""
    max_outbox_bytes: Annotated[int, msgspec.Meta(ge=1_048_576, le=MAX_NUMBER)] = 1_073_741_824
    """Size of the file they lie in: a job holds a whole payload, so their number bounds nothing."""
    watched_workspaces: NotNegative = 64
    """Workspaces that are watched; systems bound the number of watches. Others are looked at when an execution is opened."""


class ShellSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[shell]`."""

    command: str = "auto"
    """A path here replaces each dialect's own choice of a shell."""


class RuntimeSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[runtimes]`."""

    uv: bool = False
    """Run Python scripts of Chrys hooks by `uv run`."""


class WarmSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[warm]`: interpreters that are started before they are needed."""

    python: bool = True
    """Keep a warm Python."""
    node: bool = False
    """Keep pre-started node processes; each costs some 40 MB."""


class EnvSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[env]`: name patterns (only `*` is special) of variables that hooks never get."""

    deny: tuple[str, ...] = ()
    """Patterns of variables, such as `*_TOKEN`."""
    allow_for: dict[str, tuple[str, ...]] = {}
    """Exceptions from `deny`, by the full name of a hook that is named by an id, not by its position."""


class ProjectSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[projects]`: hooks that a workspace brings along."""

    enabled: bool = False
    """Whether hooks of projects run at all; each project must be trusted as well."""
    on_changed: Literal["block", "skip"] = "block"
    """What becomes of the gates of a project that was trusted and differs now."""


class LogSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[log]`."""

    reasons: bool = False
    """Whether the reasons of blocks, which are the hooks' own words, go into the log too."""


class HistorySettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[history]`."""

    keep_output: bool = False
    """Whether the output of hooks is stored on disk, readable by the owner only."""


class SerialSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[serial]`: name patterns of hooks that never run twice at a time."""

    hooks: tuple[str, ...] = ()
    """Patterns of full hook names."""


class SourcesSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[sources]`."""

    defaults: bool = True
    """Whether the default sources count; without them only `[[source]]` entries do."""


class SourceSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[source]]`. An entry with the name of a default changes that default and needs only the changed keys."""

    name: str
    """Unique; part of the names of the source's hooks."""
    dialect: str | None = None
    """Who reads the file, such as `bamboo`. Required unless a default has the name."""
    path: str | None = None
    """The file: absolute or from `~/`; for a project's default relative to the workspace. Required like `dialect`."""
    scope: Literal["user", "managed"] | None = None
    """Managed sources come before those of projects and users. Not for the defaults of projects."""
    agents: tuple[str, ...] | None = None
    """The agents whose executions it applies to, or `*` for all; by default the one of the dialect."""
    enabled: bool | None = None
    """False switches the source off."""


class GuardSettings(_Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[guard]]` (design rule 2)."""

    hooks: str
    """Pattern of full hook names."""
    events: tuple[str, ...] = ()
    """Events it applies to, by their normalised or native names; by default every gate."""
    on_failure: GuardAction = GuardAction.BLOCK
    """What every way of not giving a valid answer becomes."""
    on_missing: GuardAction = GuardAction.WARN
    """What it means that no hook fits; `block` needs `events`, and blocks those."""


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
