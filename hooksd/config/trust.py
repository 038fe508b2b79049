"""Whether a project is what was trusted, and what becomes of its hooks (design rule 9).

A project is all its hooks files together, with everything they name: one grant, one digest, one state. Where that is
`untrusted`, no hook of it runs; where it is `changed`, the hooks that were granted stay known, from the copies kept with
the grant, and block the gates they were for, whatever the files say now.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from hooksd.config.coverage import Coverage, HooksText, cover
from hooksd.config.digests import FileDigests
from hooksd.config.examine import Examined, Probe, Version
from hooksd.config.grants import Grant, GrantedFile, Grants, identify_directory
from hooksd.config.settings import ProjectSettings
from hooksd.config.sources import Source
from hooksd.dialects.base import Dialect
from hooksd.model.hooks import Hook, Pins, Withheld
from hooksd.model.problems import ConfigProblem, ProblemKind, Severity
from hooksd.model.sources import Document, Origin, SourceState
from hooksd.protocol.methods.trust import TrustRole, TrustState


__all__ = ["MAX_TOLD_NAMES", "Admitted", "Judge", "Judgement", "hint", "hooks_text"]

MAX_TOLD_NAMES: Final = 3
"""Files that a message names; `trust show` names them all."""

_CHANGED: Final = "this project has changed since it was trusted"
_UNTRUSTED: Final = "this project is not trusted"


def hint(root: str) -> str:
    """What to do about a project that is not trusted as it is."""
    where = shlex.quote(root)
    return f"`hooksd trust show {where}` shows what there is, `hooksd trust grant {where}` trusts it"


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a project.

    Attributes:
        state: Of all of it.
        grant: What was granted, None where nothing was.
        damage: Why a grant that is there does not count; None where there is none such.
        coverage: What its hooks name now; None where nothing was granted, since nothing hangs on it then.
        changes: In words, what makes it a changed one; "" where it is none.
    """

    state: TrustState
    grant: Grant | None = None
    damage: str | None = None
    coverage: Coverage | None = None
    changes: str = ""

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What to look at to see whether this still holds, hooks files left out."""
        return self.coverage.probes if self.coverage is not None else ()


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force of one source of a project.

    Attributes:
        examined: Its file, as it is told to people and programs.
        withheld: Hooks that are known but not run, where `examined` has no version in force.
        trust: What decides, besides the text in force.
        told: What the withheld hooks tell.
        counts: Whether `withheld` decides anything: a guard fits one of its hooks.
    """

    examined: Examined[Document]
    withheld: Document | None = None
    trust: str = ""
    told: str = ""
    counts: bool = False


class Judge:
    """Judges projects. Reads files; belongs to one thread.

    Args:
        grants: What was granted.
        dialects: Those that are built in.
        digests: Remembers what was read.
    """

    def __init__(self, grants: Grants, dialects: Mapping[str, Dialect], digests: FileDigests) -> None:
        self._grants = grants
        self._dialects = dialects
        self._digests = digests

    def judge(self, root: str, files: Sequence[tuple[Source, Examined[Document]]]) -> Judgement:
        """What is known of a project.

        Args:
            root: Its real directory.
            files: Its sources in their order, with what was read of them whether or not it is trusted.
        """
        grant = self._grants.get(root)
        if grant is None:
            return Judgement(state=TrustState.UNTRUSTED, damage=self._grants.damage(root))
        coverage = cover(root, self._texts(root, files, grant), self._dialects, self._digests)
        changes = _changes(grant, coverage)
        return Judgement(
            state=TrustState.CHANGED if changes else TrustState.TRUSTED,
            grant=grant,
            coverage=coverage,
            changes=changes,
        )

    def granted_text(self, root: str, source: Source) -> bytes | None:
        """The text that was granted of a hooks file; None where none was."""
        granted = _granted(self._grants.get(root), source)
        return None if granted is None else granted.text

    def _texts(
        self, root: str, files: Sequence[tuple[Source, Examined[Document]]], grant: Grant
    ) -> list[HooksText]:
        """The hooks files as they are; of one that must not be read, what was granted, which then stays in force."""
        texts = []
        for source, examined in files:
            version = examined.in_force
            if examined.state is SourceState.LOADED and version is not None:
                texts.append(hooks_text(root, source, version))
            elif examined.state is SourceState.INVALID and (granted := _granted(grant, source)):
                version = self._granted_version(root, source, granted)
                texts.append(hooks_text(root, source, version))
        return texts

    def admit(
        self,
        root: str,
        source: Source,
        examined: Examined[Document],
        judgement: Judgement,
        settings: ProjectSettings,
        guarded: Callable[[str], bool],
    ) -> Admitted:
        """What becomes of one source.

        Args:
            root: The project's real directory.
            source: The source.
            examined: What was read of its file.
            judgement: On the project.
            settings: Say what becomes of a changed project.
            guarded: Whether a guard fits a hook, by its name.
        """
        if examined.state is SourceState.DISABLED:
            return Admitted(examined=examined)
        granted = _granted(judgement.grant, source) if judgement.grant else None
        if judgement.state is TrustState.CHANGED and granted is not None:
            return self._changed(root, source, examined, judgement, granted, settings)
        if examined.state is SourceState.MISSING:
            return Admitted(examined=examined)
        if judgement.state is TrustState.TRUSTED:
            return self._trusted(root, source, examined, judgement, granted, settings)
        return _untrusted(root, source, examined, judgement, guarded)

    def _trusted(
        self,
        root: str,
        source: Source,
        examined: Examined[Document],
        judgement: Judgement,
        granted: GrantedFile | None,
        settings: ProjectSettings,
    ) -> Admitted:
        version = examined.in_force
        problems = examined.problems
        if examined.state is SourceState.INVALID:
            # It cannot be read any more; what was granted is the last good version of it.
            version = None if granted is None else self._granted_version(root, source, granted)
            problems = _with_note(examined, version is not None)
        if version is None or judgement.coverage is None:
            return Admitted(examined=_shown(examined, examined.state, None, problems))
        if not version.value.usable:
            return Admitted(examined=_shown(examined, SourceState.INVALID, None, problems))
        pinned = _pinned(version.value, judgement.coverage, blocks=settings.on_changed == "block")
        version = msgspec.structs.replace(version, value=pinned)
        return Admitted(
            examined=_shown(examined, examined.state, version, problems),
            trust=f"trusted {judgement.coverage.digest} {settings.on_changed}",
        )

    def _changed(
        self,
        root: str,
        source: Source,
        examined: Examined[Document],
        judgement: Judgement,
        granted: GrantedFile,
        settings: ProjectSettings,
    ) -> Admitted:
        blocks = settings.on_changed == "block"
        told = judgement.changes
        version = self._granted_version(root, source, granted)
        withheld = Withheld(kind=ProblemKind.CHANGED, message=told, hint=hint(root), blocks=blocks)
        version = msgspec.structs.replace(version, value=_withhold(version.value, withheld))
        becomes = "the gates of its hooks block" if blocks else "its hooks are skipped"
        problem = _problem(f"{told}: {becomes} until it is looked at", root)
        shown = _shown(examined, SourceState.CHANGED, version, (*source.problems, problem))
        if examined.state is SourceState.MISSING:
            shown = msgspec.structs.replace(shown, path=version.path)
        return Admitted(examined=shown, trust=f"changed {settings.on_changed}", told=told)

    def _granted_version(self, root: str, source: Source, granted: GrantedFile) -> Version[Document]:
        """The copy of a hooks file that was granted, as a version of it."""
        path = f"{root}/{granted.path}"
        text = granted.text or b""
        origin = Origin(source=source.name, scope=source.scope, file=path)
        document = self._dialects[source.dialect].read(text, origin)
        return Version(value=document, text=text, digest=granted.sha256, path=path)


def hooks_text(root: str, source: Source, version: Version[Document]) -> HooksText:
    """A version of a hooks file, as it is covered."""
    return HooksText(
        source=source.name,
        dialect=source.dialect,
        path=version.path.removeprefix(f"{root}/"),
        text=version.text,
        document=version.value,
    )


def _changes(grant: Grant, coverage: Coverage) -> str:
    """In words, how a project differs from what was granted, the first few of it; "" if it does not."""
    if coverage.problems:
        return f"{_CHANGED}: {coverage.problems[0].describe()}"
    if coverage.digest != grant.digest:
        before = {file.path: file.sha256 for file in grant.files}
        after = {file.path: file.sha256 for file in coverage.files}
        names = [path for path in {**before, **after} if before.get(path) != after.get(path)]
        if not names:
            return f"{_CHANGED}: its hooks files are read otherwise now"
        more = f" and {len(names) - MAX_TOLD_NAMES} more" if len(names) > MAX_TOLD_NAMES else ""
        return f"{_CHANGED} ({', '.join(names[:MAX_TOLD_NAMES])}{more})"
    identity = identify_directory(grant.root)
    if identity is None or not grant.identity.is_same(identity):
        return f"{_CHANGED}: another directory lies in its place"
    return ""


def _untrusted(
    root: str,
    source: Source,
    examined: Examined[Document],
    judgement: Judgement,
    guarded: Callable[[str], bool],
) -> Admitted:
    """A file that nobody granted anything: of an untrusted project, or a new one of a changed project."""
    version = examined.in_force
    if examined.state is SourceState.INVALID or version is None:
        return Admitted(examined=_shown(examined, examined.state, None, _with_note(examined, in_force=False)))
    new = judgement.state is TrustState.CHANGED
    told = judgement.changes if new else judgement.damage or _UNTRUSTED
    problem = _problem(f"{told}: {'this file was not granted, ' if new else ''}its hooks do not run", root)
    state = SourceState.CHANGED if new else SourceState.UNTRUSTED
    shown = _shown(examined, state, None, (*source.problems, problem))
    withheld = Withheld(
        kind=ProblemKind.UNTRUSTED, message=judgement.damage or _UNTRUSTED, hint=hint(root), blocks=False
    )
    document = _withhold(version.value, withheld)
    return Admitted(
        examined=shown,
        withheld=document,
        trust=f"untrusted {version.digest}",
        told=withheld.message,
        counts=any(guarded(hook.name) for hook in document.hooks),
    )


def _granted(grant: Grant | None, source: Source) -> GrantedFile | None:
    for file in grant.files if grant is not None else ():
        if file.role is TrustRole.HOOKS and file.source == source.name and file.dialect == source.dialect:
            return file
    return None


def _shown(
    examined: Examined[Document],
    state: SourceState,
    version: Version[Document] | None,
    problems: tuple[ConfigProblem, ...],
) -> Examined[Document]:
    return msgspec.structs.replace(examined, state=state, in_force=version, problems=problems)


def _with_note(examined: Examined[Document], in_force: bool) -> tuple[ConfigProblem, ...]:
    """Problems of a file that cannot be used, the last of which says what is in force of it."""
    message = (
        "what was granted of this file stays in force"
        if in_force
        else "nothing of this file is in force, and nothing of it was granted"
    )
    note = ConfigProblem(severity=Severity.WARNING, path="", message=message, hint="correct the file")
    return (*examined.problems[:-1], note)


def _problem(message: str, root: str) -> ConfigProblem:
    return ConfigProblem(severity=Severity.WARNING, path="", message=message, hint=hint(root))


def _withhold(document: Document, withheld: Withheld) -> Document:
    hooks = tuple(msgspec.structs.replace(hook, withheld=withheld) for hook in document.hooks)
    # What it says besides its hooks must not count either.
    return Document(hooks=hooks, problems=document.problems, revision=document.revision)


def _pinned(document: Document, coverage: Coverage, *, blocks: bool) -> Document:
    digests = dict(coverage.scripts)
    what_to_do = hint(coverage.root)

    def pinned(hook: Hook) -> Hook:
        named = coverage.named.get(hook.name, ())
        pins = Pins(
            root=coverage.root,
            files=tuple((place, digests[place]) for place in named),
            blocks=blocks,
            hint=what_to_do,
        )
        return msgspec.structs.replace(hook, pins=pins)

    return msgspec.structs.replace(document, hooks=tuple(map(pinned, document.hooks)))
