"""What trust in a project covers: its hooks files, and the files of the project that their hooks name.

The digest of all of it is what is granted. It is over names and contents, so it says nothing about where the project
lies; which directory may use a grant is decided by `grants.py`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from hooksd.config.digests import FileDigests
from hooksd.config.examine import Probe
from hooksd.config.files import sign
from hooksd.config.named_files import MAX_WORDS, is_file, named_words, place_in
from hooksd.dialects.base import Caller, Dialect, Places
from hooksd.model.events import Event
from hooksd.model.hooks import Hook
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import Document
from hooksd.protocol.methods.trust import TrustRole


__all__ = ["MAX_COVERED_FILES", "NOT_COVERED", "Coverage", "CoveredFile", "HooksText", "cover"]

MAX_COVERED_FILES: Final = 512
"""Files that one project's trust can cover. A project whose hooks name more cannot be trusted."""

MAX_PROBED: Final = 1024
"""Names that are no files and are looked at for every execution that is opened. The others are found before a spawn."""

NOT_COVERED: Final = (
    "what a script reads, imports or starts by itself",
    "programs that are found by their bare name on the PATH, also where that leads into the project",
    "names that a shell puts together when the hook runs",
)
"""What trust does not extend to, for people."""


class HooksText(msgspec.Struct, frozen=True, kw_only=True):
    """A hooks file of a project.

    Attributes:
        source: The name of its source.
        dialect: The dialect that reads it.
        path: Relative to the project's directory.
        text: Its content.
        document: What that means.
    """

    source: str
    dialect: str
    path: str
    text: bytes
    document: Document


class CoveredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is covered; `path` is relative to the project's directory."""

    path: str
    role: TrustRole
    sha256: str
    size_bytes: int


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is covered, as it is now.

    Attributes:
        root: The project's real directory.
        files: Hooks files in the order of their sources, then scripts by path.
        named: The scripts that each hook names, by its name; hooks that name none are left out.
        digest: Of all of it.
        problems: Why it cannot be relied on, and so not be granted; empty when it can.
        probes: What to look at to see whether any of it changed, hooks files left out; names that are no file included.
    """

    root: str
    files: tuple[CoveredFile, ...]
    named: Mapping[str, tuple[str, ...]]
    digest: str
    problems: tuple[ConfigProblem, ...]
    probes: tuple[Probe, ...]

    @property
    def scripts(self) -> tuple[tuple[str, str], ...]:
        """Path and digest of what hooks name."""
        return tuple((file.path, file.sha256) for file in self.files if file.role is TrustRole.SCRIPT)


def cover(
    root: str, hooks: Sequence[HooksText], dialects: Mapping[str, Dialect], digests: FileDigests
) -> Coverage:
    """Find out what a project's hooks name, and what is in it. Reads files; call it off the loop.

    Args:
        root: The project's real directory.
        hooks: Its hooks files.
        dialects: Those that are built in.
        digests: Remembers what was read.
    """
    problems: list[ConfigProblem] = []
    directories = _Directories(root, dialects)
    paths: dict[str, str] = {}
    missing: dict[str, None] = {}
    places: dict[str, str | None] = {}
    named: dict[str, tuple[str, ...]] = {}
    for one in hooks:
        for hook in one.document.hooks:
            words = named_words(hook.handler)
            if len(words) > MAX_WORDS:
                problems.append(_too_many(hook, f"names more than {MAX_WORDS} words (MAX_WORDS)"))
            cwd = directories.usual(hook, one.dialect)
            found: set[str] = set()
            for path in (os.path.join(cwd, word) for word in words):
                if path not in places:
                    places[path] = place_in(root, path) if is_file(path) else None
                    if not places[path]:
                        missing[path] = None
                if place := places[path]:
                    paths[place] = path
                    found.add(place)
            if found:
                named[hook.name] = tuple(sorted(found))
            if len(paths) > MAX_COVERED_FILES:
                problems.append(
                    _too_many(
                        hook,
                        f"is one of those that name {len(paths)} files; the limit is {MAX_COVERED_FILES} (MAX_COVERED_FILES)",
                    )
                )
                break
    probes = {path: Probe(path, (), sign(path, ())) for path in islice(missing, MAX_PROBED)}
    scripts = []
    for place, path in sorted(paths.items()):
        inside = os.path.join(root, place)
        known = digests.look(inside)
        # The way by which the hook comes there, too: it may be turned elsewhere.
        probes[path] = Probe(path, (), sign(path, ()))
        probes[inside] = Probe(inside, known.directories, known.signature)
        if known.problem is not None:
            problems.append(known.problem)
        scripts.append(
            CoveredFile(path=place, role=TrustRole.SCRIPT, sha256=known.sha256, size_bytes=known.size_bytes)
        )
    files = (*map(_hooks_file, hooks), *scripts)
    return Coverage(
        root=root,
        files=files,
        named=named,
        digest=_digest(hooks, files),
        problems=tuple(problems),
        probes=tuple(probes.values()),
    )


def _hooks_file(hooks: HooksText) -> CoveredFile:
    sha256 = hashlib.sha256(hooks.text).hexdigest()
    return CoveredFile(path=hooks.path, role=TrustRole.HOOKS, sha256=sha256, size_bytes=len(hooks.text))


def _digest(hooks: Sequence[HooksText], files: Sequence[CoveredFile]) -> str:
    readers = [(one.source, one.dialect, one.path) for one in hooks]
    contents = [(file.path, file.role.value, file.sha256) for file in files]
    return hashlib.sha256(msgspec.json.encode((1, readers, contents))).hexdigest()


class _Directories:
    """Where hooks run if the event does not say otherwise."""

    def __init__(self, root: str, dialects: Mapping[str, Dialect]) -> None:
        self._dialects = dialects
        self._caller = Caller(session_id="", workspace_path=root, timestamp=0.0)
        self._places = Places(workspace=root, work_area="", daemon_cwd=root)
        self._events: dict[tuple[str, str], Event] = {}

    def usual(self, hook: Hook, name: str) -> str:
        """The directory of a hook that a dialect has read."""
        dialect, native = self._dialects[name], hook.native_event
        event = self._events.get((name, native))
        if event is None:
            payload = dialect.synthetic_payload(native, 0.0)
            event = dialect.event(native, payload, self._caller, background=False)
            self._events[name, native] = event
        return dialect.working_directory(event, hook, self._places)


def _too_many(hook: Hook, what: str) -> ConfigProblem:
    return ConfigProblem(
        severity=Severity.ERROR,
        path=hook.path,
        message=f"this hook {what}; it cannot be pinned",
        line=hook.line,
        hint="name fewer files; put what belongs together into one script",
        file=hook.file,
    )
