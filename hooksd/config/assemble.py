"""From files to layers: everything that is in force, put together again after something changed.

Two results, both immutable: `Base` is `hooksd.toml` with the managed and user sources, `Project` the sources of one
workspace. Everything here may take long and runs in one thread of the store, never on the loop.
"""

from __future__ import annotations

import functools
import hashlib
import shlex
from collections.abc import Callable, Mapping

import msgspec

from hooksd.config.examine import Examined, Probe, Subject, carry_over, examine, identify, quick_probes
from hooksd.config.guards import Policy
from hooksd.config.last_good import LastGood
from hooksd.config.layer import EMPTY_DOCUMENT, Layer, LayerCompiler, LoadedSource
from hooksd.config.settings import Settings
from hooksd.config.settings_file import SettingsDocument, read_settings
from hooksd.config.settling import Clock
from hooksd.config.sources import Source, base_sources, project_sources
from hooksd.config.trust import Judge, Judgement
from hooksd.dialects.base import Dialect
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import Document, Origin, SourceState


__all__ = [
    "SETTINGS_DIALECT",
    "SETTINGS_SOURCE",
    "Assembler",
    "Base",
    "ConfigPlaces",
    "Project",
    "SourceFile",
]

SETTINGS_SOURCE = "hooksd.toml"
"""The name by which records and `config/write` know the settings file."""

SETTINGS_DIALECT = "hooksd"
"""The word by which `config/validate` knows the settings file."""

ReadText = Callable[[bytes, str], tuple[Document | None, tuple[ConfigProblem, ...]]]


class ConfigPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Where this daemon looks for configuration, and where it keeps what it must remember.

    Attributes:
        settings_path: `hooksd.toml`; absolute.
        settings_required: It was named on purpose: missing is then an error.
        config_dir: hooksd's own configuration directory; absolute.
        state_dir: The state directory; absolute.
        home: The home directory; absolute.
        env: The daemon's environment.
    """

    settings_path: str
    settings_required: bool = False
    config_dir: str
    state_dir: str
    home: str
    env: Mapping[str, str]


class SourceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A source, and what was seen of its file.

    Attributes:
        source: The source.
        examined: Its file.
        withheld: Of a project that is not trusted, hooks that are known but not run.
        trust: Of a project, what decides besides the text in force.
        told: What the withheld hooks tell.
        counts: Whether `withheld` decides anything.
    """

    source: Source
    examined: Examined[Document]
    withheld: Document | None = None
    trust: str = ""
    told: str = ""
    counts: bool = False

    @property
    def digest(self) -> str:
        """Of what is in force; "" where nothing is."""
        version = self.examined.in_force
        return f"{version.digest if version else ''} {self.trust}".strip() if version or self.counts else ""

    @property
    def content_digest(self) -> str:
        """Of everything that its compiled form depends on."""
        version = self.examined.in_force
        return f"{version.digest if version else ''} {self.trust} {self.told}".strip()


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of one workspace, as they were when `base` was in force.

    Attributes:
        root: The workspace.
        policy: The settings it was put together with.
        identities: The files of `Base` it was put together with.
        read: Its sources as they were read, trusted or not.
        files: The same sources, with what is in force of them.
        judgement: What is known of the project; None where nothing of it may run anyway.
        layer: Compiled.
        in_force: Digest of what is in force of it; "" where there is nothing.
        probes: What to look at to see whether anything changed.
        due_s: When to look again at a file that does not stand still; None if there is none.
    """

    root: str
    policy: Policy
    identities: frozenset[tuple[int, int]]
    read: tuple[SourceFile, ...]
    files: tuple[SourceFile, ...]
    judgement: Judgement | None
    layer: Layer
    in_force: str
    probes: tuple[Probe, ...]
    due_s: float | None


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """`hooksd.toml`, and the managed and user sources it names.

    Attributes:
        settings: The settings file.
        policy: The settings in force.
        hooks_may_run: False where the settings file is invalid and there is no last good version (design rule 4).
        problems: Of the settings file.
        identities: Device and inode of every source's file.
        in_force: Digest of what is in force.
    """

    settings: Examined[SettingsDocument]
    policy: Policy
    hooks_may_run: bool
    problems: tuple[ConfigProblem, ...]
    files: tuple[SourceFile, ...]
    identities: frozenset[tuple[int, int]]
    layer: Layer
    in_force: str
    probes: tuple[Probe, ...]
    due_s: float | None


class Assembler:
    """Reads and compiles. Belongs to one thread.

    Args:
        places: Where everything lies.
        dialects: Those that are built in.
        judge: Asked about projects.
        last_good: What an earlier daemon kept.
    """

    def __init__(
        self, places: ConfigPlaces, dialects: Mapping[str, Dialect], judge: Judge, last_good: LastGood
    ) -> None:
        self._places = places
        self._dialects = dialects
        self._judge = judge
        self._last_good = last_good
        self._compiler = LayerCompiler()

    def base(self, before: Base | None, clock: Clock, *, afresh: bool = False) -> Base:
        """Look at the settings and at every managed and user source.

        Args:
            before: What this said last.
            clock: Now.
            afresh: Read everything, even what looks the same.

        Returns:
            `before` itself if nothing changed.
        """
        settings = examine(
            self._settings_subject(), before.settings if before else None, clock, afresh=afresh
        )
        if before is None or settings is not before.settings:
            policy = self._policy(settings, before)
            sources = self._base_sources(policy.settings)
        else:
            policy, sources = before.policy, tuple(file.source for file in before.files)
        known = {file.source.name: file for file in before.files} if before else {}
        files = tuple(
            self._examined(source, known.get(source.name), clock, self._base_subject, afresh=afresh)
            for source in sources
        )
        if before is not None and settings is before.settings and _same(files, before.files):
            return before
        identities = frozenset(file.examined.identity for file in files if file.examined.identity)
        if before is not None and identities == before.identities:
            identities = before.identities
        return Base(
            settings=settings,
            policy=policy,
            hooks_may_run=settings.state is not SourceState.INVALID or settings.in_force is not None,
            problems=tuple(
                msgspec.structs.replace(problem, file=settings.path) for problem in settings.problems
            ),
            files=files,
            identities=identities,
            layer=self._compiler.compile([_loaded(file) for file in files], policy),
            in_force=_in_force_digest(policy, files),
            probes=quick_probes(
                [*settings.probes, *(probe for file in files for probe in file.examined.probes)]
            ),
            due_s=_due([settings, *(file.examined for file in files)]),
        )

    def project(
        self, root: str, base: Base, before: Project | None, clock: Clock, *, afresh: bool = False
    ) -> Project:
        """Look at the sources of a workspace; one that is the same file as a source of `base` is left out."""
        policy = base.policy
        read = self.read_project(root, base, before.read if before else (), clock, afresh=afresh)
        judgement = None
        if policy.settings.projects.enabled:
            judgement = self._judge.judge(root, [(file.source, file.examined) for file in read])
        if (
            before is not None
            and before.policy is policy
            and before.identities is base.identities
            and before.judgement == judgement
            and _same(read, before.read)
        ):
            return before
        files = (
            read
            if judgement is None
            else tuple(self._admitted(root, file, judgement, policy) for file in read)
        )
        return Project(
            root=root,
            policy=policy,
            identities=base.identities,
            read=read,
            files=files,
            judgement=judgement,
            # Workspaces that bring nothing along have one layer in common, and so one snapshot.
            layer=self._compiler.compile([_loaded(file) for file in files if _says_something(file)], policy),
            in_force=_in_force_digest(None, files) if any(file.digest for file in files) else "",
            probes=quick_probes(
                [
                    *(probe for file in read for probe in file.examined.probes),
                    *(judgement.probes if judgement is not None else ()),
                ]
            ),
            due_s=_due([file.examined for file in read]),
        )

    def read_project(
        self,
        root: str,
        base: Base,
        before: tuple[SourceFile, ...],
        clock: Clock,
        *,
        afresh: bool = False,
        settings: Settings | None = None,
    ) -> tuple[SourceFile, ...]:
        """Read the sources of a workspace, whether or not they are trusted.

        Args:
            root: The workspace's real directory.
            base: What else is in force; a source that is the same file as one of it is left out.
            before: What this said last.
            clock: Now.
            afresh: Read everything, even what looks the same.
            settings: Other settings than those in force.
        """
        settings = settings or base.policy.settings
        known = {file.source.name: file for file in before}
        subject = functools.partial(self._project_subject, root, settings)
        return tuple(
            self._examined(source, known.get(source.name), clock, subject, afresh=afresh)
            for source in project_sources(settings, root, dialects=self._dialects)
            if identify(source.candidates) not in base.identities
        )

    def _admitted(self, root: str, file: SourceFile, judgement: Judgement, policy: Policy) -> SourceFile:
        admitted = self._judge.admit(
            root, file.source, file.examined, judgement, policy.settings.projects, policy.guards_a_hook
        )
        return SourceFile(
            source=file.source,
            examined=admitted.examined,
            withheld=admitted.withheld,
            trust=admitted.trust,
            told=admitted.told,
            counts=admitted.counts,
        )

    # -- what there is to know about each file

    def _settings_subject(self) -> Subject[SettingsDocument]:
        path = self._places.settings_path

        def read(text: bytes, path: str) -> tuple[SettingsDocument | None, tuple[ConfigProblem, ...]]:
            document = read_settings(text, file=path, dialects=self._dialects)
            return (None if document.settings is None else document), document.problems

        return Subject(
            candidates=(path,),
            read=read,
            last_good=functools.partial(self._last_good.load, path, SETTINGS_DIALECT),
            required=self._places.settings_required,
        )

    def _base_subject(self, source: Source) -> Subject[Document]:
        return Subject(
            candidates=source.candidates,
            read=self._reader(source),
            last_good=functools.partial(self._last_good.load, source.candidates[0], source.dialect),
            disabled=source.disabled,
            problems=source.problems,
        )

    def _project_subject(self, root: str, settings: Settings, source: Source) -> Subject[Document]:
        problems = source.problems
        if source.disabled is not None and not settings.projects.enabled:
            problems += (
                ConfigProblem(
                    severity=Severity.WARNING,
                    path="",
                    message=f"the hooks of this project are not loaded: {source.disabled}",
                    hint="set [projects] enabled = true in hooksd.toml, then look at them with "
                    f"`hooksd trust show {shlex.quote(root)}`",
                ),
            )
        return Subject(
            candidates=source.candidates,
            # Unusable ones too: what a text means is nobody's business before it is known whether it is trusted.
            read=self._reader(source, only_usable=False),
            # What was trusted of a project is kept with the grant, and serves while the file is being written.
            last_good=functools.partial(self._judge.granted_text, root, source),
            disabled=source.disabled,
            problems=problems,
        )

    def _reader(self, source: Source, *, only_usable: bool = True) -> ReadText:
        def read(text: bytes, path: str) -> tuple[Document | None, tuple[ConfigProblem, ...]]:
            origin = Origin(source=source.name, scope=source.scope, file=path)
            document = self._dialects[source.dialect].read(text, origin)
            return (document if document.usable or not only_usable else None), document.problems

        return read

    def _examined(
        self,
        source: Source,
        before: SourceFile | None,
        clock: Clock,
        subject_of: Callable[[Source], Subject[Document]],
        *,
        afresh: bool,
    ) -> SourceFile:
        subject = subject_of(source)
        known = before.examined if before else None
        if before is not None and before.source != source:
            same_text = (before.source.dialect, before.source.candidates) == (
                source.dialect,
                source.candidates,
            )
            known = (
                carry_over(subject, before.examined)
                if same_text and source.dialect in self._dialects
                else None
            )
        examined = examine(subject, known, clock, afresh=afresh)
        if before is not None and before.source == source and examined is before.examined:
            return before
        return SourceFile(source=source, examined=examined)

    def _policy(self, settings: Examined[SettingsDocument], before: Base | None) -> Policy:
        if before is not None and settings.in_force is before.settings.in_force:
            return before.policy
        document = settings.in_force.value if settings.in_force else None
        if document is None or document.settings is None:
            return Policy(Settings(), self._dialects)
        return Policy(document.settings, self._dialects, file=settings.path, lines=document.lines)

    def _base_sources(self, settings: Settings) -> tuple[Source, ...]:
        places = self._places
        return base_sources(
            settings, env=places.env, home=places.home, config_dir=places.config_dir, dialects=self._dialects
        )


def _same(files: tuple[SourceFile, ...], before: tuple[SourceFile, ...]) -> bool:
    return len(files) == len(before) and all(map(_is, files, before))


def _is(one: object, other: object) -> bool:
    return one is other


def _says_something(file: SourceFile) -> bool:
    return file.examined.state is not SourceState.MISSING or bool(file.examined.problems)


def _loaded(file: SourceFile) -> LoadedSource:
    examined = file.examined
    document = examined.in_force.value if examined.in_force else file.withheld
    return LoadedSource(
        source=file.source,
        path=examined.path,
        state=examined.state,
        document=document or EMPTY_DOCUMENT,
        content_digest=file.content_digest,
        problems=examined.problems,
    )


def _in_force_digest(policy: Policy | None, files: tuple[SourceFile, ...]) -> str:
    """Of what decides; what is only told about it (states, problems of newer versions) does not count."""
    parts = [
        (file.source, file.examined.in_force.path if file.examined.in_force else "", file.digest)
        for file in files
        if file.digest
    ]
    return hashlib.sha256(msgspec.json.encode((policy.digest if policy else "", parts))).hexdigest()


def _due(examined: list[Examined[Document] | Examined[SettingsDocument]]) -> float | None:
    return min((one.pending.due_s for one in examined if one.pending is not None), default=None)
