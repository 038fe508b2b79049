"""The owner of what is in force: answers from memory while nothing changed, has the rest read off the loop.

Looking at the files is cheap and done for every opening; reading and compiling is done in one thread, in rounds. The
watcher, a timer for files that do not stand still yet, openings and reloads differ only in why they ask for a round.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, TypeVar

import msgspec

from hooksd.config.assemble import SETTINGS_DIALECT, SETTINGS_SOURCE, Assembler, Base, ConfigPlaces, Project
from hooksd.config.check import check_file, check_text, has_errors
from hooksd.config.current import Current, Waiting
from hooksd.config.digests import FileDigests
from hooksd.config.examine import Examined
from hooksd.config.grants import Grants
from hooksd.config.guards_file import guards_json
from hooksd.config.last_good import InForce, LastGood
from hooksd.config.projects import Roots
from hooksd.config.rounds import Request, Rounds
from hooksd.config.settings import Settings
from hooksd.config.settling import OPEN_PATIENCE_S, Clock
from hooksd.config.show import shown_documents, source_problems
from hooksd.config.snapshot import Snapshot
from hooksd.config.tell import (
    Record,
    base_records,
    internal_record,
    loaded_record,
    note_record,
    problems_record,
    project_records,
    shared_id_records,
    waiting_record,
)
from hooksd.config.trust import Judge
from hooksd.config.trust_desk import TrustDesk
from hooksd.config.watch import POLL_S, Watcher
from hooksd.config.write import StaleRevision, WriteTarget, write_checked
from hooksd.dialects import DIALECTS
from hooksd.dialects.base import Dialect
from hooksd.model.hooks import Hook, Scope
from hooksd.model.problems import ConfigProblem
from hooksd.model.records import Recorder
from hooksd.model.sources import SourceReport, SourceState
from hooksd.protocol.errors import ErrorCode, protocol_error
from hooksd.protocol.methods.config import (
    ConfigReloadResult,
    ConfigShowResult,
    ConfigValidateResult,
    ConfigWriteResult,
)


__all__ = ["ConfigStatus", "ConfigStore"]

T = TypeVar("T")


class ConfigStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration as `daemon/status` tells it.

    Attributes:
        revision: In force.
        digest: Of what is in force without a workspace.
        state: `degraded` while a source is invalid or a last good `hooksd.toml` serves (design rule 4).
        hooks_may_run: False where `hooksd.toml` is invalid and there is no last good version of it.
        sources: Every source, those of the known projects included.
        problems: What belongs to no source: the settings file, guards, files that do not stand still.
    """

    revision: int
    digest: str
    state: Literal["ready", "degraded"]
    hooks_may_run: bool
    sources: tuple[SourceReport, ...]
    problems: tuple[ConfigProblem, ...]


class ConfigStore:
    """What is in force, and how it comes to be so.

    Call `load`, then `start` on the loop's thread, then anything; `aclose` at the end.

    Args:
        places: Where configuration and state lie.
        dialects: Those that are built in.

    Attributes:
        trust: The methods `trust/*`.
    """

    def __init__(self, places: ConfigPlaces, *, dialects: Mapping[str, Dialect] = DIALECTS) -> None:
        self._dialects = dialects
        self._notes: deque[Record] = deque()
        """Told by other threads; given to the recorder on the loop's."""
        self._last_good = LastGood(places.state_dir, self._note)
        self._grants = Grants(places.state_dir, self._note)
        judge = Judge(self._grants, dialects, FileDigests())
        self._assembler = Assembler(places, dialects, judge, self._last_good)
        self.trust = TrustDesk(self, self._assembler, judge, self._grants, dialects)
        self._roots = Roots()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hooksd-config")
        self._watch_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hooksd-watch")
        self._programmatic: tuple[Hook, ...] = ()
        """Those that were last opened with: what is told about the configuration is told with them."""
        self._told_waiting: set[str] = set()
        self._told_problems: tuple[ConfigProblem, ...] = ()
        self._following = self._follow_again = False
        self._closed = False

    # ------------------------------------------------------------------------------------------------------------------
    # Life

    def load(self) -> None:
        """Read everything once, in the calling thread; afterwards `settings` is in force. Never fails.

        A file that somebody is just writing is waited for, as by `open`.
        """
        self._last_good.tidy()
        base = self._assembler.base(None, clock := Clock.now())
        deadline_s = clock.now_s + OPEN_PATIENCE_S
        while base.due_s is not None and (now_s := time.monotonic()) < deadline_s:
            time.sleep(max(min(base.due_s, deadline_s) - now_s, 0.0))
            base = self._assembler.base(base, Clock.now())
        saved = self._last_good.load_in_force()
        revision = 1 if saved is None else saved.revision + (saved.digest != base.in_force)
        self._current = Current(base, revision)

    def start(self, loop: asyncio.AbstractEventLoop, record: Recorder) -> None:
        """Follow changes from now on, and tell `record` what happens. `load` must have been called."""
        self._record = record
        self._loop = loop
        self._rounds = Rounds(loop, self._round, lambda error: self._tell([internal_record(error)]))
        self._watcher = Watcher(
            loop,
            lambda: self._rounds.ask_in(0),
            lambda message, hint: self._notes.append(note_record(message, hint)),
        )
        current = self._current
        self._tell([loaded_record(current.base, current.revision)])
        self._tell(base_records(None, current.base, current.revision))
        self._tell_guards()
        self._keep(self._persist, current.base, current.revision)
        self._follow()
        self._arrange_next()

    async def aclose(self) -> None:
        """End the threads. Waits for what is being written, at most half a second for the watcher."""
        self._closed = True
        await self._rounds.aclose()
        await self._loop.run_in_executor(self._watch_thread, self._watcher.close)
        await self._loop.run_in_executor(self._thread, _nothing)
        self._watch_thread.shutdown()
        self._thread.shutdown()

    # ------------------------------------------------------------------------------------------------------------------
    # Snapshots

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._current.base.policy.settings

    @property
    def revision(self) -> int:
        """The revision in force."""
        return self._current.revision

    @property
    def hooks_may_run(self) -> bool:
        """False where `hooksd.toml` is invalid and there is no last good version of it (design rule 4)."""
        return self._current.base.hooks_may_run

    def try_open(self, workspace: str, programmatic: tuple[Hook, ...]) -> Snapshot | None:
        """The snapshot for a new execution, if nothing has to be read for it; looks at every source.

        Args:
            workspace: The execution's workspace, which need not exist; "" for none.
            programmatic: The hooks of connected clients; the same tuple as long as they are the same.
        """
        self._programmatic = programmatic
        root = self._roots.root(workspace)
        current = self._current
        if not current.looks_current(root):
            return None
        if root is not None:
            current.used(root)
        return current.snapshot(root, programmatic)

    async def open(self, workspace: str, programmatic: tuple[Hook, ...]) -> Snapshot:
        """The same, reading what has changed. All who wait share one reading.

        A file that does not stand still is waited for at most `OPEN_PATIENCE_S`; then what was in force before serves,
        and the snapshot's problems say so.
        """
        self._programmatic = programmatic
        root = self._roots.root(workspace)
        waiting = await self._look(root)
        if root is not None:
            self._current.used(root)
        return self._current.snapshot(root, programmatic, waiting)

    def current(self, workspace: str, programmatic: tuple[Hook, ...]) -> Snapshot:
        """What is in force now, without a look at the sources.

        A workspace that is not known (any more) is read at once in the background; until then it has no sources.
        """
        root = self._roots.remembered(workspace)
        if root is not None and self._current.project(root) is None:
            self._rounds.ask(root)
        return self._current.snapshot(root, programmatic)

    # ------------------------------------------------------------------------------------------------------------------
    # The methods of protocol section 2.9

    def status(self) -> ConfigStatus:
        """How the configuration is."""
        current = self._current
        snapshot = current.snapshot(None, self._programmatic, current.waiting(None, everything=True))
        return ConfigStatus(
            revision=current.revision,
            digest=snapshot.digest,
            state="degraded" if current.degraded else "ready",
            hooks_may_run=current.base.hooks_may_run,
            sources=current.reports(),
            problems=snapshot.problems,
        )

    async def show(self, workspace: str | None = None) -> ConfigShowResult:
        """The texts that are in force; `hooksd.toml` is the last of the documents."""
        snapshot = await self.open(workspace or "", self._programmatic)
        current = self._current
        root = self._roots.root(workspace or "")
        project = current.project(root) if root else None
        documents = shown_documents(current.base, project, current.revision)
        return ConfigShowResult(
            documents=documents,
            revision=snapshot.revision,
            digest=snapshot.digest,
            problems=(*snapshot.problems, *source_problems(snapshot.sources)),
        )

    async def validate(
        self, dialect: str, content: str | None = None, path: str | None = None
    ) -> ConfigValidateResult:
        """Check a text, or a file; nothing comes of it.

        Raises:
            ProtocolError: There is no such dialect (-32015).
        """
        if path is not None:
            check = functools.partial(check_file, path, dialect, self._dialects)
        else:
            check = functools.partial(check_text, _encoded(content or ""), dialect, self._dialects)
        problems = await self._loop.run_in_executor(self._thread, check)
        return ConfigValidateResult(valid=not has_errors(problems), problems=problems)

    async def reload(self) -> ConfigReloadResult:
        """Read everything again, whether or not it looks the same; returns when it is in force."""
        before = self._current.revision
        waiting = await self._look(None, everything=True)
        snapshot = self._current.snapshot(None, self._programmatic, waiting)
        reports = self._current.reports()
        return ConfigReloadResult(
            revision=self._current.revision,
            changed=self._current.revision != before,
            problems=(*snapshot.problems, *source_problems(reports)),
        )

    async def write(self, source: str, expected_revision: int, content: str) -> ConfigWriteResult:
        """Replace the file of a source, or `hooksd.toml` under that name, by a text that was found good.

        Raises:
            StaleRevision: Another revision is in force than the writer saw, or the file is just being changed.
            ProtocolError: No such source (-32602), a text with errors (-32013), a file that cannot be written (-32016).
        """
        waiting = await self._look(None)
        if expected_revision != self._current.revision:
            raise StaleRevision(expected_revision, self._current.revision)
        target = self._write_target(source)
        if any(one.source == source for one in waiting):
            raise StaleRevision(expected_revision, self._current.revision)
        write = functools.partial(write_checked, target, _encoded(content), expected_revision, self._dialects)
        await self._loop.run_in_executor(self._thread, write)
        await self._look(None)
        return ConfigWriteResult(
            revision=self._current.revision, problems=self._write_target(source).examined.problems
        )

    def _write_target(self, name: str) -> WriteTarget:
        base = self._current.base
        if name == SETTINGS_SOURCE:
            return WriteTarget(dialect=SETTINGS_DIALECT, name=name, scope=Scope.USER, examined=base.settings)
        for file in base.files:
            if file.source.name != name:
                continue
            if file.source.disabled is not None or file.examined.state is SourceState.DISABLED:
                raise protocol_error(
                    ErrorCode.INVALID_PARAMS, f"source: {name} is not read: {file.source.disabled}"
                )
            return WriteTarget(
                dialect=file.source.dialect, name=name, scope=file.source.scope, examined=file.examined
            )
        known = ", ".join([*(file.source.name for file in base.files), SETTINGS_SOURCE])
        raise protocol_error(
            ErrorCode.INVALID_PARAMS, f"source: there is no source {name!r} to write; there are: {known}"
        )

    # ------------------------------------------------------------------------------------------------------------------
    # For the methods of trust (`trust_desk.StoreView`)

    def trust_base(self) -> Base:
        """What is in force besides projects."""
        return self._current.base

    def trust_projects(self) -> Mapping[str, Project]:
        """The workspaces that are known, by their real directories."""
        return self._current.projects

    async def in_thread(self, job: Callable[[], T]) -> T:
        """Do something in the thread that reads the configuration."""
        return await self._loop.run_in_executor(self._thread, job)

    async def look_at(self, root: str) -> None:
        """Have a workspace looked at from now on, and what is new of it put in force."""
        await self._look(root)

    # ------------------------------------------------------------------------------------------------------------------
    # Rounds

    async def _look(self, root: str | None, *, everything: bool = False) -> list[Waiting]:
        """Have everything looked at from now on; gives the files that did not stand still in time."""
        deadline_s = time.monotonic() + OPEN_PATIENCE_S
        afresh = everything
        while True:
            await asyncio.shield(self._rounds.ask(root, everything=everything, afresh=afresh))
            waiting = self._current.waiting(root, everything=everything)
            now_s = time.monotonic()
            if not waiting or now_s >= deadline_s:
                self._tell_waiting(waiting)
                return waiting
            afresh = False
            due_s = min(deadline_s, *(one.due_s for one in waiting))
            # A loop's clock may be some milliseconds behind: then it is looked once more.
            await asyncio.sleep(max(due_s - now_s, 0.001))

    async def _round(self, request: Request) -> None:
        current = self._current
        roots = set(current.projects) | request.roots if request.everything else request.roots
        wanted = {root: current.projects.get(root) for root in roots}
        assemble = functools.partial(
            self._assemble, current.base, wanted, dict(current.projects), afresh=request.afresh
        )
        base, projects = await self._loop.run_in_executor(self._thread, assemble)
        before, projects_before = current.base, dict(current.projects)
        current.apply(base, projects)
        if base is not before:
            self._tell(base_records(before, base, current.revision))
            self._tell_guards()
        for project in projects:
            if project is not projects_before.get(project.root):
                self._tell(project_records(projects_before.get(project.root), project, current.revision))
        for root, project in current.projects.items():
            project_before = projects_before.get(root)
            if base is not before or project is not project_before:
                self._tell(shared_id_records((before, project_before), (base, project), current.revision))
        self._told_waiting &= {one.source for one in current.waiting(None, everything=True)}
        if base is not before or projects:
            self._keep(self._persist, base, current.revision)
        self._tell(())
        self._follow()
        self._arrange_next()

    def _assemble(
        self, before: Base, wanted: dict[str, Project | None], known: dict[str, Project], *, afresh: bool
    ) -> tuple[Base, list[Project]]:
        """In the thread: look at everything, read what changed."""
        clock = Clock.now()
        if afresh:
            self._grants.forget_remembered()
        base = self._assembler.base(before, clock, afresh=afresh)
        if base.policy is not before.policy or base.identities is not before.identities:
            # What was put together with the old ones does not fit any more.
            wanted = {**known, **wanted}
        return base, [
            self._assembler.project(root, base, project, clock, afresh=afresh)
            for root, project in wanted.items()
        ]

    def _keep(self, job: Callable[..., None], *arguments: object) -> None:
        """Have something kept for a restart; nobody waits for it."""
        self._thread.submit(job, *arguments).add_done_callback(self._kept)

    def _kept(self, future: Future[None]) -> None:
        error = future.exception()
        if isinstance(error, Exception):
            self._notes.append(internal_record(error))

    def _persist(self, base: Base, revision: int) -> None:
        """In the thread: keep what a restart must know."""
        self._last_good.save_in_force(InForce(revision=revision, digest=base.in_force))
        self._keep_copy(base.settings, SETTINGS_DIALECT, base.settings.path)
        for file in base.files:
            self._keep_copy(file.examined, file.source.dialect, file.source.candidates[0])

    def _keep_copy(self, examined: Examined[Any], dialect: str, path: str) -> None:
        if examined.pending is not None:
            return
        if examined.state is SourceState.LOADED and examined.in_force is not None:
            self._last_good.save(path, dialect, examined.in_force.text)
        elif examined.state is SourceState.MISSING:
            self._last_good.forget(path, dialect)

    def _arrange_next(self) -> None:
        """Look again when a file may stand still, or where nobody tells of changes."""
        due = [one.due_s - time.monotonic() for one in self._current.waiting(None, everything=True)]
        if self._watcher.failing:
            due.append(POLL_S)
        if due:
            self._rounds.ask_in(min(due))

    def _follow(self) -> None:
        """Have the watcher watch what matters now; one at a time, the last one with the newest state."""
        self._follow_again = self._following
        if self._following:
            return
        self._following = True
        future = self._loop.run_in_executor(
            self._watch_thread, self._watcher.follow, self._current.files_to_watch()
        )
        future.add_done_callback(self._followed)

    def _followed(self, future: asyncio.Future[bool]) -> None:
        self._following = False
        error = future.exception()
        if self._closed:
            return
        if isinstance(error, Exception):
            self._watcher.failing = True
            self._tell([internal_record(error)])
        elif future.result():
            self._rounds.ask_in(0)
        self._tell(())
        if self._watcher.failing:
            self._arrange_next()
        if self._follow_again:
            self._follow()

    # ------------------------------------------------------------------------------------------------------------------
    # Telling

    def _note(self, message: str) -> None:
        self._notes.append(note_record(message))

    def _tell(self, records: Iterable[Record]) -> None:
        while self._notes:
            self._record(*self._notes.popleft())
        for record in records:
            self._record(*record)

    def _tell_guards(self) -> None:
        """What no single file is to blame for, such as a guard that no hook answers to."""
        snapshot = self._current.snapshot(None, self._programmatic)
        problems = snapshot.problems[len(self._current.base.problems) :]
        if problems != self._told_problems:
            self._told_problems = problems
            if problems:
                self._tell([problems_record(problems, self._current.revision)])
        if self._current.base.hooks_may_run:
            # Otherwise nobody knows what its guards would be: those of the last good settings stay.
            self._keep(self._last_good.save_guards, guards_json(snapshot, self._dialects))

    def _tell_waiting(self, waiting: list[Waiting]) -> None:
        for one in waiting:
            if one.source not in self._told_waiting:
                self._told_waiting.add(one.source)
                self._tell([waiting_record(one, self._current.revision)])


def _nothing() -> None:
    """Comes after everything that was given to a thread before."""


def _encoded(content: str) -> bytes:
    # A lone surrogate is for the reader to refuse, not for us to stumble over.
    return content.encode("utf-8", "surrogatepass")
