"""Looking at a project to grant it trust: what would be covered, how it differs, and the grant that comes of it.

Everything here is about one look, so that what is shown, what its digest is over, and what is kept are the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from hooksd.config.coverage import NOT_COVERED, Coverage, CoveredFile, HooksText, cover
from hooksd.config.digests import FileDigests
from hooksd.config.examine import Examined
from hooksd.config.grants import MAX_COPY_BYTES, DirectoryIdentity, Grant, GrantedFile
from hooksd.config.sources import Source
from hooksd.config.trust import Judgement, hooks_text
from hooksd.config.trust_diff import Side, difference
from hooksd.dialects.base import Dialect
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import Document, SourceState
from hooksd.protocol.methods.trust import TrustChange, TrustFile, TrustRole, TrustShowResult


__all__ = ["MAX_COPIES_BYTES", "Review", "grant_of", "review", "show"]

MAX_COPIES_BYTES: Final = 8_388_608
"""Most that the copies of one project's scripts take; of the rest only digests are kept."""


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A project as it was looked at.

    Attributes:
        root: Its real directory.
        hooks: Its hooks files that could be read.
        coverage: What is covered.
        texts: Contents of scripts by path, as far as they are kept.
        problems: Of its hooks; a hook that does not load keeps nobody from trusting the others.
        obstacles: Why it cannot be granted.
    """

    root: str
    hooks: tuple[HooksText, ...]
    coverage: Coverage
    texts: Mapping[str, bytes]
    problems: tuple[ConfigProblem, ...]
    obstacles: tuple[ConfigProblem, ...]


def review(
    root: str,
    files: Sequence[tuple[Source, Examined[Document]]],
    dialects: Mapping[str, Dialect],
    digests: FileDigests,
) -> Review:
    """Look at a project whose hooks files were read. Reads files; call it off the loop.

    Args:
        root: Its real directory.
        files: Its enabled sources in their order.
        dialects: Those that are built in.
        digests: Remembers what was read.
    """
    hooks: list[HooksText] = []
    problems: list[ConfigProblem] = []
    obstacles: list[ConfigProblem] = []
    for source, examined in files:
        told = [msgspec.structs.replace(one, file=one.file or examined.path) for one in examined.problems]
        version = examined.in_force if examined.state is SourceState.LOADED else None
        if version is not None:
            hooks.append(hooks_text(root, source, version))
        usable = version.value.usable if version is not None else examined.state is SourceState.MISSING
        if usable:
            problems += told
        else:
            # Never none: a file that cannot be used must not be granted for want of a word about it.
            obstacles += [one for one in told if one.severity is Severity.ERROR] or told
    coverage = cover(root, hooks, dialects, digests)
    obstacles += coverage.problems
    texts: dict[str, bytes] = {}
    left = MAX_COPIES_BYTES
    for file in coverage.files:
        if file.role is TrustRole.HOOKS or not file.sha256 or file.size_bytes > min(MAX_COPY_BYTES, left):
            continue
        path = os.path.join(root, file.path)
        known, texts[file.path] = digests.read(path)
        left -= file.size_bytes
        if known.sha256 != file.sha256:
            obstacles.append(_changed_meanwhile(path))
    return Review(
        root=root,
        hooks=tuple(hooks),
        coverage=coverage,
        texts=texts,
        problems=tuple(problems),
        obstacles=tuple(obstacles),
    )


def show(review: Review, judgement: Judgement, more: Sequence[ConfigProblem] = ()) -> TrustShowResult:
    """The answer of `trust/show`.

    Args:
        review: The project as it was looked at.
        judgement: What is known of it.
        more: Told besides, such as that projects are off.
    """
    grant = judgement.grant
    before = {file.path: file for file in grant.files} if grant is not None else {}
    after = {file.path: file for file in review.coverage.files}
    contents = {one.path: one.text for one in review.hooks} | dict(review.texts)
    files = [_told(file, before.get(path)) for path, file in after.items()]
    files += [_missing(file) for path, file in before.items() if path not in after]
    told = difference(
        Side(
            path=path,
            before_sha256=before[path].sha256 if path in before else "",
            before=before[path].text if path in before else None,
            after_sha256=after[path].sha256 if path in after else "",
            after=contents.get(path) if path in after else None,
        )
        for path in {**after, **before}
    )
    return TrustShowResult(
        dir=review.root,
        state=judgement.state,
        digest=review.coverage.digest,
        granted_digest=grant.digest if grant is not None else None,
        granted_at=grant.granted_at if grant is not None else None,
        files=tuple(files),
        diff=told.text,
        diff_is_whole=told.is_whole,
        not_covered=NOT_COVERED,
        problems=(*more, *review.obstacles, *review.problems),
    )


def grant_of(review: Review, identity: DirectoryIdentity, granted_at: float) -> Grant:
    """The grant of exactly what was looked at."""
    hooks = {one.path: one for one in review.hooks}
    files = []
    for file in review.coverage.files:
        one = hooks.get(file.path) if file.role is TrustRole.HOOKS else None
        files.append(
            GrantedFile(
                path=file.path,
                role=file.role,
                sha256=file.sha256,
                size_bytes=file.size_bytes,
                text=one.text if one is not None else review.texts.get(file.path),
                source=one.source if one is not None else "",
                dialect=one.dialect if one is not None else "",
            )
        )
    return Grant(
        root=review.root,
        identity=identity,
        granted_at=granted_at,
        digest=review.coverage.digest,
        files=tuple(files),
    )


def _told(file: CoveredFile, before: GrantedFile | None) -> TrustFile:
    if before is None:
        change = TrustChange.NEW
    else:
        change = TrustChange.SAME if before.sha256 == file.sha256 else TrustChange.CHANGED
    return TrustFile(
        path=file.path, role=file.role, change=change, sha256=file.sha256, size_bytes=file.size_bytes
    )


def _missing(file: GrantedFile) -> TrustFile:
    return TrustFile(path=file.path, role=file.role, change=TrustChange.MISSING, sha256="", size_bytes=0)


def _changed_meanwhile(path: str) -> ConfigProblem:
    return ConfigProblem(
        severity=Severity.ERROR,
        path="",
        message="the file changed while it was looked at",
        hint="look again once nothing writes it",
        file=path,
    )
