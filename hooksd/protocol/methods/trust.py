"""`trust/list`, `trust/show`, `trust/grant`, `trust/revoke` (protocol section 2.10): the hooks that projects bring along."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from hooksd.model.problems import ConfigProblem
from hooksd.protocol.methods.base import Method, MethodKind, NoParams, check_path


__all__ = [
    "METHODS",
    "TrustChange",
    "TrustFile",
    "TrustGrantParams",
    "TrustGrantResult",
    "TrustListResult",
    "TrustProject",
    "TrustRevokeParams",
    "TrustRevokeResult",
    "TrustRole",
    "TrustShowParams",
    "TrustShowResult",
    "TrustState",
]


class TrustState(StrEnum):
    """What is known of a project's hooks as they are now."""

    UNTRUSTED = "untrusted"
    """Nobody granted anything."""
    TRUSTED = "trusted"
    """What was granted is what is there."""
    CHANGED = "changed"
    """Something was granted, and something else is there now."""


class TrustRole(StrEnum):
    """Why a file is covered."""

    HOOKS = "hooks"
    """A hooks file of the project."""
    SCRIPT = "script"
    """A file of the project that a hook names."""


class TrustChange(StrEnum):
    """A file as it is now against what was granted."""

    SAME = "same"
    NEW = "new"
    """It was not granted."""
    CHANGED = "changed"
    MISSING = "missing"
    """It was granted and is not there, or no hook names it any more."""


class TrustProject(msgspec.Struct, frozen=True, kw_only=True):
    """One project in `trust/list`.

    Attributes:
        dir: Its real directory; "" for a grant that is too damaged to tell.
        state: Of its hooks as they are now.
        digest: What was granted; of what is there now where nothing was.
        granted_at: When, in seconds since the epoch; None where nothing was granted.
        problems: What keeps it from being trusted, such as a file that others can write.
    """

    dir: str
    state: TrustState
    digest: str
    granted_at: float | None
    problems: tuple[ConfigProblem, ...] = ()


class TrustListResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `trust/list`: projects that were granted trust, then those with hooks that executions were opened in."""

    projects: tuple[TrustProject, ...]


class TrustShowParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `trust/show`.

    Attributes:
        dir: The project's directory; absolute.
    """

    dir: str

    def __post_init__(self) -> None:
        check_path("dir", self.dir)


class TrustFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file that the trust in a project covers.

    Attributes:
        path: Relative to the project's directory.
        role: Why it is covered.
        change: Against what was granted.
        sha256: Of its content now, "" for one that is missing.
        size_bytes: Of its content now.
    """

    path: str
    role: TrustRole
    change: TrustChange
    sha256: str
    size_bytes: int


class TrustShowResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `trust/show`.

    Attributes:
        dir: The project's real directory.
        state: Of its hooks as they are now.
        digest: Of everything that is covered, as it is now: what `trust/grant` wants.
        granted_digest: What was granted, None where nothing was.
        granted_at: When, in seconds since the epoch.
        files: What is covered, and what was.
        diff: Unified diff against what was granted; against nothing where nothing was.
        diff_is_whole: False where something had to be left out of it; the text says what and why.
        not_covered: What the trust does not extend to, in sentences.
        problems: What keeps the project from being trusted, or from running.
    """

    dir: str
    state: TrustState
    digest: str
    granted_digest: str | None
    granted_at: float | None
    files: tuple[TrustFile, ...]
    diff: str
    diff_is_whole: bool
    not_covered: tuple[str, ...]
    problems: tuple[ConfigProblem, ...]


class TrustGrantParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `trust/grant`.

    Attributes:
        dir: The project's directory; absolute.
        digest: What `trust/show` told; another one that is current is error -32012.
    """

    dir: str
    digest: str

    def __post_init__(self) -> None:
        check_path("dir", self.dir)


class TrustGrantResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `trust/grant`: executions that are opened from now on run the project's hooks.

    Attributes:
        dir: The project's real directory.
        state: Of its hooks now; anything but `trusted` means that they changed in the same moment.
        digest: What was granted.
        granted_at: When, in seconds since the epoch.
        revision: Of the configuration now in force.
    """

    dir: str
    state: TrustState
    digest: str
    granted_at: float
    revision: int


class TrustRevokeParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `trust/revoke`.

    Attributes:
        dir: The project's directory, which need not exist any more; absolute.
    """

    dir: str

    def __post_init__(self) -> None:
        check_path("dir", self.dir)


class TrustRevokeResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `trust/revoke`: executions that are opened from now on do not run the project's hooks.

    Attributes:
        dir: The project's real directory.
        revoked: Whether there was a grant.
        revision: Of the configuration now in force.
    """

    dir: str
    revoked: bool
    revision: int


METHODS = (
    Method(
        name="trust/list",
        kind=MethodKind.REQUEST,
        params=NoParams,
        result=TrustListResult,
        summary="List the projects that were granted trust, and those that bring hooks along and were not.",
        section="2.10",
    ),
    Method(
        name="trust/show",
        kind=MethodKind.REQUEST,
        params=TrustShowParams,
        result=TrustShowResult,
        summary="Show what trusting a project would cover, and how it differs from what was granted.",
        section="2.10",
    ),
    Method(
        name="trust/grant",
        kind=MethodKind.REQUEST,
        params=TrustGrantParams,
        result=TrustGrantResult,
        summary="Trust a project's hooks exactly as `trust/show` showed them.",
        section="2.10",
    ),
    Method(
        name="trust/revoke",
        kind=MethodKind.REQUEST,
        params=TrustRevokeParams,
        result=TrustRevokeResult,
        summary="Take the trust in a project back.",
        section="2.10",
    ),
)
