"""`config/show`, `config/validate`, `config/reload`, `config/write` (protocol section 2.9)."""

from __future__ import annotations

import msgspec

from hooksd.model.hooks import Scope
from hooksd.model.problems import ConfigProblem
from hooksd.model.sources import SourceState
from hooksd.protocol.methods.base import Method, MethodKind, NoParams, check_path


__all__ = [
    "METHODS",
    "ConfigDocument",
    "ConfigReloadResult",
    "ConfigShowParams",
    "ConfigShowResult",
    "ConfigValidateParams",
    "ConfigValidateResult",
    "ConfigWriteParams",
    "ConfigWriteResult",
]


class ConfigShowParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `config/show`; with a workspace its project's sources are shown too."""

    workspace_path: str | None = None

    def __post_init__(self) -> None:
        if self.workspace_path is not None:
            check_path("workspace_path", self.workspace_path)


class ConfigDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One source and the text that is in force for it.

    Attributes:
        name: The unique name of the source.
        dialect: Whose words it is written in.
        scope: Whose it is.
        path: Where it lies.
        state: What became of it.
        revision: What `config/write` wants as `expected_revision`.
        content: The text in force (the last good one where the file is invalid); None where there is none.
        hooks: The names of its hooks, in file order.
    """

    name: str
    dialect: str
    scope: Scope
    path: str
    state: SourceState
    revision: int
    content: str | None
    hooks: tuple[str, ...]


class ConfigShowResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `config/show`: what is in force now."""

    documents: tuple[ConfigDocument, ...]
    revision: int
    digest: str
    problems: tuple[ConfigProblem, ...]


class ConfigValidateParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `config/validate`: a text, or a file that the daemon reads.

    Attributes:
        dialect: Whose words it is written in; `hooksd` for a `hooksd.toml`.
        content: The text.
        path: The file; absolute.
    """

    dialect: str
    content: str | None = None
    path: str | None = None

    def __post_init__(self) -> None:
        if (self.content is None) == (self.path is None):
            raise ValueError("`content` or `path` must be given, and not both")
        if self.path is not None:
            check_path("path", self.path)


class ConfigValidateResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `config/validate`; valid means that no problem is an error."""

    valid: bool
    problems: tuple[ConfigProblem, ...]


class ConfigReloadResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `config/reload`: answered when the revision is in force.

    Attributes:
        revision: Now in force.
        changed: Whether it is another one than before.
        problems: Everything that is wrong with any source.
    """

    revision: int
    changed: bool
    problems: tuple[ConfigProblem, ...]


class ConfigWriteParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of `config/write`.

    Attributes:
        source: The unique name of the source whose file is to be replaced.
        expected_revision: The revision the caller saw; another one in force is error -32012.
        content: The whole new text.
    """

    source: str
    expected_revision: int
    content: str


class ConfigWriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of `config/write`: the new text lies on the disk and is in force."""

    revision: int
    problems: tuple[ConfigProblem, ...]


METHODS = (
    Method(
        name="config/show",
        kind=MethodKind.REQUEST,
        params=ConfigShowParams,
        result=ConfigShowResult,
        summary="Show the configuration that is in force.",
        section="2.9",
    ),
    Method(
        name="config/validate",
        kind=MethodKind.REQUEST,
        params=ConfigValidateParams,
        result=ConfigValidateResult,
        summary="Check a configuration text or file; nothing is kept.",
        section="2.9",
    ),
    Method(
        name="config/reload",
        kind=MethodKind.REQUEST,
        params=NoParams,
        result=ConfigReloadResult,
        summary="Read everything again now and answer when it is in force.",
        section="2.9",
    ),
    Method(
        name="config/write",
        kind=MethodKind.REQUEST,
        params=ConfigWriteParams,
        result=ConfigWriteResult,
        summary="Check a new text for a source and replace its file atomically.",
        section="2.9",
    ),
)
