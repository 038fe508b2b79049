"""The methods `trust/*`: where people and programs look at projects, trust them, and take that back.

Looking and granting happen in the store's thread, so that nothing else reads or judges a project meanwhile.
"""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import msgspec

from hooksd.config.assemble import Assembler, Base, Project, SourceFile
from hooksd.config.digests import FileDigests
from hooksd.config.examine import Examined
from hooksd.config.grants import Grant, GrantDamaged, Grants, identify_directory
from hooksd.config.settings import Settings
from hooksd.config.settling import OPEN_PATIENCE_S, Clock
from hooksd.config.sources import Source
from hooksd.config.trust import Judge, Judgement
from hooksd.config.trust_review import Review, grant_of, review, show
from hooksd.dialects.base import Dialect
from hooksd.model.errors import HooksdError, ProtocolError
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import Document, SourceState
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.methods.trust import (
    TrustGrantResult,
    TrustListResult,
    TrustProject,
    TrustRevokeResult,
    TrustShowResult,
    TrustState,
)


__all__ = ["StoreView", "TrustDesk"]

T = TypeVar("T")


class StoreView(Protocol):
    """What the desk needs of the store it belongs to."""

    @property
    def revision(self) -> int:
        """In force."""
        ...

    def trust_base(self) -> Base:
        """In force, besides projects."""
        ...

    def trust_projects(self) -> Mapping[str, Project]:
        """The workspaces that are known, by their real directories."""
        ...

    async def in_thread(self, job: Callable[[], T]) -> T:
        """Do something in the store's thread."""
        ...

    async def look_at(self, root: str) -> None:
        """Have a workspace looked at from now on, and what is new of it put in force."""
        ...


class TrustDesk:
    """Belongs to the loop's thread.

    Args:
        store: What it belongs to.
        assembler: Reads projects.
        judge: Says what is known of them.
        grants: What was granted.
        dialects: Those that are built in.
    """

    def __init__(
        self,
        store: StoreView,
        assembler: Assembler,
        judge: Judge,
        grants: Grants,
        dialects: Mapping[str, Dialect],
    ) -> None:
        self._store = store
        self._assembler = assembler
        self._judge = judge
        self._grants = grants
        self._dialects = dialects
        self._digests = FileDigests()

    async def list_projects(self) -> TrustListResult:
        """Every project that was granted trust, as it is now, and those known that bring hooks along and were not."""
        base = self._store.trust_base()
        known = dict(self._store.trust_projects())
        return await self._store.in_thread(functools.partial(self._listed, base, known))

    async def show(self, directory: str) -> TrustShowResult:
        """What trusting a project would cover, and how it differs from what was granted.

        Args:
            directory: Absolute.

        Raises:
            ProtocolError: -32003, a hooks file is just being written.
        """
        root = _root(directory)
        await self._store.look_at(root)
        found, judgement = await self._look(root)
        return show(found, judgement, self._obstacles(found))

    async def grant(self, directory: str, digest: str) -> TrustGrantResult:
        """Trust a project as somebody saw it.

        Args:
            directory: Absolute.
            digest: What he saw.

        Raises:
            ProtocolError: -32012, something else is there now; -32016, projects are off or the grant cannot be kept;
                -32013, it cannot be relied on; -32602, it has no hooks; -32003, a hooks file is just being written.
        """
        root = _root(directory)
        # So that what changes by the grant is told as a change.
        await self._store.look_at(root)
        found, _ = await self._look(root)
        if found.coverage.digest != digest:
            raise protocol_error(
                ErrorCode.STALE_REVISION,
                f"{root} is not what was looked at any more: its digest is {found.coverage.digest}, not {digest[:80]}; "
                "look at it again with `hooksd trust show`",
                kind="stale_digest",
            )
        if found.obstacles:
            raise protocol_error(
                ErrorCode.CONFIG_INVALID,
                f"{root} cannot be trusted: {found.obstacles[0].describe()}",
                problems=found.obstacles,
            )
        for problem in self._obstacles(found):
            code = ErrorCode.NOT_PERMITTED if found.hooks else ErrorCode.INVALID_PARAMS
            raise protocol_error(code, problem.describe(), problems=(problem,))
        granted = await self._store.in_thread(functools.partial(self._keep, found))
        await self._store.look_at(root)
        return TrustGrantResult(
            dir=root,
            state=self._state(root),
            digest=granted.digest,
            granted_at=granted.granted_at,
            revision=self._store.revision,
        )

    async def revoke(self, directory: str) -> TrustRevokeResult:
        """Take the trust in a project back.

        Args:
            directory: Absolute; it need not exist any more.

        Raises:
            ProtocolError: -32016, the grant cannot be removed.
        """
        root = _root(directory)
        await self._store.look_at(root)
        revoked = await self._store.in_thread(functools.partial(self._remove, root))
        await self._store.look_at(root)
        return TrustRevokeResult(dir=root, revoked=revoked, revision=self._store.revision)

    # ------------------------------------------------------------------------------------------------------------------

    def _state(self, root: str) -> TrustState:
        project = self._store.trust_projects().get(root)
        judgement = project.judgement if project is not None else None
        return judgement.state if judgement is not None else TrustState.UNTRUSTED

    def _obstacles(self, found: Review) -> tuple[ConfigProblem, ...]:
        """Why nothing would run if it were granted."""
        if not found.hooks and not found.obstacles:
            return (
                ConfigProblem(
                    severity=Severity.WARNING,
                    path="",
                    message=f"{found.root} brings no hooks along",
                    hint="hooks of a project lie in .bamboo/hooks.json, .chrys/hooks/hooks.yaml, .hooksd/hooks.json or "
                    ".hooksd/hooks.yaml of the workspace itself",
                ),
            )
        if not self._store.trust_base().policy.settings.projects.enabled:
            return (
                ConfigProblem(
                    severity=Severity.WARNING,
                    path="projects.enabled",
                    message="hooks of projects are off, whatever is trusted",
                    hint="set [projects] enabled = true in hooksd.toml first",
                ),
            )
        return ()

    async def _look(self, root: str) -> tuple[Review, Judgement]:
        """Look at a project, once its hooks files stand still."""
        deadline_s = time.monotonic() + OPEN_PATIENCE_S
        base = self._store.trust_base()
        read: tuple[SourceFile, ...] = ()
        while True:
            read = await self._store.in_thread(functools.partial(self._read, root, base, read))
            due = [one.examined.pending.due_s for one in read if one.examined.pending is not None]
            if not due:
                return await self._store.in_thread(functools.partial(self._reviewed, root, read))
            now_s = time.monotonic()
            if now_s >= deadline_s:
                raise protocol_error(
                    ErrorCode.BUSY,
                    f"a hooks file of {root} is being written; look again once it stands still",
                    kind="not_still",
                )
            await asyncio.sleep(max(min(*due, deadline_s) - now_s, 0.001))

    # ------------------------------------------------------------------------------------------------------------------
    # In the thread

    def _read(self, root: str, base: Base, before: tuple[SourceFile, ...]) -> tuple[SourceFile, ...]:
        # Also while projects are off: one may look before one switches them on.
        settings = _with_projects(base.policy.settings)
        return self._assembler.read_project(root, base, before, Clock.now(), settings=settings)

    def _reviewed(self, root: str, read: tuple[SourceFile, ...]) -> tuple[Review, Judgement]:
        files = [
            (file.source, file.examined) for file in read if file.examined.state is not SourceState.DISABLED
        ]
        return review(root, files, self._dialects, self._digests), self._judge.judge(root, files)

    def _keep(self, found: Review) -> Grant:
        identity = identify_directory(found.root)
        if identity is None:
            raise protocol_error(ErrorCode.INVALID_PARAMS, f"{found.root} is no directory")
        grant = grant_of(found, identity, round(time.time(), 3))
        try:
            self._grants.save(grant)
        except OSError as error:
            raise _not_kept(f"the grant cannot be kept: {error.strerror} ({error.filename})") from error
        except HooksdError as error:
            raise _not_kept(str(error)) from error
        return grant

    def _remove(self, root: str) -> bool:
        try:
            return self._grants.remove(root)
        except OSError as error:
            raise _not_kept(f"the grant cannot be removed: {error.strerror} ({error.filename})") from error

    def _listed(self, base: Base, known: dict[str, Project]) -> TrustListResult:
        projects: dict[str, TrustProject] = {}
        for grant in self._grants.all():
            if isinstance(grant, GrantDamaged):
                key = grant.root or grant.path
                projects[key] = _untrusted(grant.root, "", _told(str(grant)))
                continue
            files = self._files(grant.root, base, known)
            judgement = self._judge.judge(grant.root, files)
            problems = judgement.coverage.problems if judgement.coverage is not None else ()
            projects[grant.root] = TrustProject(
                dir=grant.root,
                state=judgement.state,
                digest=grant.digest,
                granted_at=grant.granted_at,
                problems=problems,
            )
        for root, project in known.items():
            brings = any(file.examined.state is not SourceState.MISSING for file in project.read)
            if brings and root not in projects:
                found = review(root, self._files(root, base, known), self._dialects, self._digests)
                projects[root] = _untrusted(root, found.coverage.digest, *found.obstacles)
        return TrustListResult(projects=tuple(projects.values()))

    def _files(
        self, root: str, base: Base, known: Mapping[str, Project]
    ) -> list[tuple[Source, Examined[Document]]]:
        # What is known already has stood still; a file that is new may have to be waited for, which a list does not.
        project = known.get(root) if base.policy.settings.projects.enabled else None
        read = self._read(root, base, project.read if project is not None else ())
        return [(one.source, one.examined) for one in read if one.examined.state is not SourceState.DISABLED]


def _root(directory: str) -> str:
    """The real directory; what is trusted is never a name of it."""
    return os.path.realpath(directory)


def _with_projects(settings: Settings) -> Settings:
    projects = msgspec.structs.replace(settings.projects, enabled=True)
    return msgspec.structs.replace(settings, projects=projects)


def _untrusted(root: str, digest: str, *problems: ConfigProblem) -> TrustProject:
    return TrustProject(
        dir=root, state=TrustState.UNTRUSTED, digest=digest, granted_at=None, problems=problems
    )


def _told(message: str) -> ConfigProblem:
    hint = "look at the project again and grant it trust anew, or revoke it"
    return ConfigProblem(severity=Severity.ERROR, path="", message=message, hint=hint)


def _not_kept(message: str) -> ProtocolError:
    return protocol_error(ErrorCode.NOT_PERMITTED, message, kind="not_kept")
