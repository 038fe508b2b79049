"""Sources: the configuration files that a snapshot was made of, as they are told to people and programs."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from hooksd.model.hooks import Hook, Scope
from hooksd.model.problems import ConfigProblem


__all__ = ["Document", "DocumentSettings", "Origin", "SourceReport", "SourceState"]


class SourceState(StrEnum):
    """What became of a source (`state` of protocol section 2.2)."""

    LOADED = "loaded"
    DISABLED = "disabled"
    MISSING = "missing"
    INVALID = "invalid"
    UNTRUSTED = "untrusted"
    CHANGED = "changed"


class SourceReport(msgspec.Struct, frozen=True, kw_only=True):
    """One source as `execution/open`, `config/show` and `daemon/status` tell it. `hooks` counts active hooks."""

    name: str
    dialect: str
    scope: Scope
    path: str
    state: SourceState
    hooks: int
    problems: tuple[ConfigProblem, ...] = ()


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a document comes from; a dialect's reader puts it into the hooks it reads."""

    source: str
    scope: Scope
    file: str
    """Absolute path of the document; relative scripts of some dialects are resolved against its directory."""


class DocumentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a document says besides its hooks (Chrys `settings`). None: not written, so that another layer may say it.

    Attributes:
        shutdown_grace_s: Longest wait of a session drain.
        max_parallel_hooks: How many hooks of the document may run in the background of one execution.
        outbox_retry_age_s: How old the last start of a durable job must be before it is due again.
        outbox_max_retries: Most starts of a durable job, the first included.
    """

    shutdown_grace_s: float | None = None
    max_parallel_hooks: int | None = None
    outbox_retry_age_s: float | None = None
    outbox_max_retries: int | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What a dialect's reader made of a text.

    Attributes:
        hooks: Every hook in file order, inactive ones and those that did not load included.
        problems: Everything that is wrong, in file order.
        usable: False when the text as a whole cannot be used (it does not parse, or its typing is wrong where the
            dialect rejects the whole section): the last good version then stays in force.
        revision: The document's own revision number where it has one, else 0.
        settings: What it says besides its hooks.
    """

    hooks: tuple[Hook, ...]
    problems: tuple[ConfigProblem, ...]
    usable: bool = True
    revision: int = 0
    settings: DocumentSettings = DocumentSettings()
