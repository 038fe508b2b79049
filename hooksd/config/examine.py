"""One configuration file over time: what was seen of it last, and what is in force of it.

`examine` looks at a file and gives its next state: the same object if nothing changed, a state that waits while
somebody may be writing, else what the new version means, with the last good one in force where the new one is bad
(design rule 4). It serves hook sources and `hooksd.toml` alike; what a text means is told by a reader.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

import msgspec

from hooksd.config.files import Signature, follow, is_missing, read_file, sign
from hooksd.config.settling import Clock, Pending, is_blank, observe
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import SourceState


__all__ = [
    "Examined",
    "Probe",
    "Subject",
    "Version",
    "carry_over",
    "examine",
    "identify",
    "quick_probes",
    "unchanged",
]

T = TypeVar("T")


class Probe(NamedTuple):
    """A path and what it looked like when it was examined."""

    path: str
    directories: tuple[str, ...]
    signature: Signature


class Version(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A version of a file that can be in force: what it means, its text, the SHA-256 of that, where it was read from."""

    value: T
    text: bytes
    digest: str
    path: str


class Subject(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What there is to know about a file before looking at it.

    Attributes:
        candidates: Absolute paths; the first that exists is the file.
        read: Gives the meaning of a text read from a path, None if it cannot be used, and what is wrong with it.
        last_good: Gives the copy that an earlier daemon kept, None if there is none.
        disabled: Why it is not to be read; None when it is.
        problems: Told where the file exists; with an error among them it is not read.
        required: The file must be there: missing means invalid.
    """

    candidates: tuple[str, ...]
    read: Callable[[bytes, str], tuple[T | None, tuple[ConfigProblem, ...]]]
    last_good: Callable[[], bytes | None]
    disabled: str | None = None
    problems: tuple[ConfigProblem, ...] = ()
    required: bool = False


class Examined(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What was seen of a file, and what is in force of it.

    Attributes:
        path: The file; the first candidate where there is none.
        state: What became of it.
        in_force: The version in force; None where there is none.
        problems: What is wrong with the newest version.
        probes: The candidates that were looked at, up to the file. While they look the same there is nothing to do.
        pending: A newer version that may not be finished; None when there is none.
    """

    path: str
    state: SourceState
    in_force: Version[T] | None = None
    problems: tuple[ConfigProblem, ...] = ()
    probes: tuple[Probe, ...] = ()
    pending: Pending | None = None

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode of the file as it was examined, None if there is none."""
        return _identity(self.probes)


def unchanged(probes: tuple[Probe, ...]) -> bool:
    """Whether everything still looks as it was; about a microsecond for each path."""
    for path, directories, signature in probes:  # noqa: SIM110 - a generator would double the cost of each opening
        if sign(path, directories) != signature:
            return False
    return True


def quick_probes(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    """As few looks as say the same: many files that are missing in one missing directory are one look at that."""
    quick: dict[Probe, None] = {}
    for probe in probes:
        quick[_missing_ancestor(probe) if is_missing(probe.signature) else probe] = None
    return tuple(quick)


def _missing_ancestor(probe: Probe) -> Probe:
    path = probe.path
    while (parent := os.path.dirname(path)) != path and is_missing(sign(parent, ())):
        path = parent
    return probe if path == probe.path else Probe(path, (), sign(path, ()))


def identify(candidates: tuple[str, ...]) -> tuple[int, int] | None:
    """Device and inode of the first candidate that exists, None if none does."""
    return _identity(_look(candidates))


def carry_over(subject: Subject[T], before: Examined[T]) -> Examined[T]:
    """What stays of an examined file when what is to be known about it changed: its text, read again."""
    version = before.in_force
    if version is not None:
        value, _ = subject.read(version.text, version.path)
        version = None if value is None else msgspec.structs.replace(version, value=value)
    return Examined(path=before.path, state=before.state, in_force=version)


def examine(
    subject: Subject[T], before: Examined[T] | None, clock: Clock, *, afresh: bool = False
) -> Examined[T]:
    """Look at a file; makes system calls and may take long for a large file, so call it off the loop.

    Args:
        subject: The file.
        before: What this function (or `carry_over`) said last; None at the very first look.
        clock: Now.
        afresh: Read it even if it looks the same.

    Returns:
        The new state; `before` itself if there is nothing new. Where `pending` is set, all else is as it was before.
    """
    if (
        before is not None
        and before.probes
        and before.pending is None
        and not afresh
        and unchanged(before.probes)
    ):
        return before
    probes = _look(subject.candidates)
    if subject.disabled is not None or any(
        problem.severity is Severity.ERROR for problem in subject.problems
    ):
        return _not_read(subject, probes)
    if before is None:
        before = _first(subject, probes)
    pending: Pending | None = None
    if before.probes != probes:
        pending = _observe(_newest(probes, before), before, clock)
        if pending.due_s > clock.now_s:
            return msgspec.structs.replace(before, pending=pending)
    elif not afresh:
        return msgspec.structs.replace(before, pending=None)
    path, directories, signature = probes[-1]
    if is_missing(signature):
        return _gone(subject, probes, before)
    reading = read_file(path, signature, directories)
    if reading.changed:
        return msgspec.structs.replace(before, pending=_observe(sign(path, directories), before, clock))
    if reading.file is None:
        return _invalid(path, probes, before, (reading.problem,) if reading.problem else ())
    data = reading.file.data
    if (
        pending is not None
        and is_blank(data)
        and before.in_force is not None
        and not is_blank(before.in_force.text)
    ):
        half_written = pending.blank(clock.now_s)
        if half_written is not None:
            return msgspec.structs.replace(before, pending=half_written)
    return _taken(subject, path, probes, before, data)


# ----------------------------------------------------------------------------------------------------------------------
# Looking


def _look(candidates: tuple[str, ...]) -> tuple[Probe, ...]:
    probes: list[Probe] = []
    for path in candidates:
        signature = sign(path, ())
        if is_missing(signature):
            probes.append(Probe(path, (), signature))
            continue
        _, directories = follow(path)
        probes.append(Probe(path, directories, sign(path, directories)))
        break
    return tuple(probes)


def _identity(probes: tuple[Probe, ...]) -> tuple[int, int] | None:
    signature = probes[-1].signature if probes else ()
    return (signature[0], signature[1]) if len(signature) > 1 else None


def _newest(probes: tuple[Probe, ...], before: Examined[T]) -> Signature:
    """The signature that is new. A file that vanished counts before one that would now take its place."""
    if before.identity is not None:
        for probe in probes:
            if probe.path == before.path:
                return probe.signature
    return probes[-1].signature


def _observe(signature: Signature, before: Examined[T], clock: Clock) -> Pending:
    return observe(
        signature,
        known=before.probes[-1].signature if before.probes else None,
        was_there=before.in_force is not None,
        before=before.pending,
        clock=clock,
    )


# ----------------------------------------------------------------------------------------------------------------------
# What a look comes to


def _first(subject: Subject[T], probes: tuple[Probe, ...]) -> Examined[T]:
    """Before the first look: what an earlier daemon knew."""
    path = subject.candidates[0] if is_missing(probes[-1].signature) else probes[-1].path
    text = subject.last_good()
    value = None if text is None else subject.read(text, path)[0]
    if text is None or value is None:
        return Examined(path=path, state=SourceState.MISSING)
    return Examined(path=path, state=SourceState.LOADED, in_force=_version(value, text, path))


def _not_read(subject: Subject[T], probes: tuple[Probe, ...]) -> Examined[T]:
    if is_missing(probes[-1].signature):
        return Examined(path=subject.candidates[0], state=SourceState.MISSING, probes=probes)
    state = SourceState.INVALID if subject.disabled is None else SourceState.DISABLED
    return Examined(path=probes[-1].path, state=state, problems=subject.problems, probes=probes)


def _gone(subject: Subject[T], probes: tuple[Probe, ...], before: Examined[T]) -> Examined[T]:
    path = subject.candidates[0]
    problems: tuple[ConfigProblem, ...] = ()
    if os.path.islink(path):
        problems = (
            ConfigProblem(
                severity=Severity.ERROR if subject.required else Severity.WARNING,
                path="",
                message=f"the file is a symbolic link to {os.readlink(path)}, which is not there",
                hint="correct the link, or remove it",
            ),
        )
    if not subject.required:
        return Examined(path=path, state=SourceState.MISSING, problems=problems, probes=probes)
    if not problems:
        problems = (
            ConfigProblem(
                severity=Severity.ERROR,
                path="",
                message="the file does not exist",
                hint="give the path of a file that is there, or none to use the default one",
            ),
        )
    return _invalid(path, probes, before, problems)


def _taken(
    subject: Subject[T], path: str, probes: tuple[Probe, ...], before: Examined[T], data: bytes
) -> Examined[T]:
    value, problems = subject.read(data, path)
    problems = (*subject.problems, *problems)
    if value is None:
        return _invalid(path, probes, before, problems)
    version = _version(value, data, path)
    return Examined(path=path, state=SourceState.LOADED, in_force=version, problems=problems, probes=probes)


def _invalid(
    path: str, probes: tuple[Probe, ...], before: Examined[T], problems: tuple[ConfigProblem, ...]
) -> Examined[T]:
    """A version that cannot be used: what was in force stays so, and everybody is told that it does."""
    if before.in_force is not None:
        note = "the last good version of this file stays in force"
    else:
        note = "there is no last good version of this file: nothing of it is in force"
    return Examined(
        path=path,
        state=SourceState.INVALID,
        in_force=before.in_force,
        problems=(
            *problems,
            ConfigProblem(
                severity=Severity.WARNING,
                path="",
                message=note,
                hint="correct the file; it is read again as soon as it changes",
            ),
        ),
        probes=probes,
    )


def _version(value: T, text: bytes, path: str) -> Version[T]:
    return Version(value=value, text=text, digest=hashlib.sha256(text).hexdigest(), path=path)
