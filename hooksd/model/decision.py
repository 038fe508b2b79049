"""The one decision of a dispatch, and what the caller is able to carry out."""

from __future__ import annotations

from enum import StrEnum


__all__ = ["Capability", "Decision"]


class Decision(StrEnum):
    """What is decided: `block` beats `ask`, `ask` beats `allow`, `allow` beats `none` (nothing was said)."""

    NONE = "none"
    ALLOW = "allow"
    ASK = "ask"
    BLOCK = "block"


class Capability(StrEnum):
    """What a caller can carry out (`accepts` of protocol section 2.2); a block can be carried out by all."""

    ALLOW = "allow"
    ASK = "ask"
    ARGUMENTS = "arguments"
    CONTEXTS = "contexts"
    REMINDERS = "reminders"
    CONTINUATION = "continuation"
