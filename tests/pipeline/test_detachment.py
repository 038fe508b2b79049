"""What is kept with a detached run, and what its end means."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hooksd.model.events import EventName
from hooksd.model.hooks import Contract, Hook, OnError, Scope
from hooksd.model.problems import ProblemKind
from hooksd.model.records import Level
from hooksd.model.run import LaunchFailure, ProcessResult
from hooksd.outbox.jobs import Attempt, JobState, NewJob, OutboxLimits, Settled
from hooksd.outbox.outbox import Outbox
from hooksd.outbox.owner import Owner
from hooksd.pipeline.detachment import About, Detachment, fault_of
from hooksd.process.detached import DetachedEnd, DetachedHooks
from hooksd.process.detached_files import DetachedFiles
from hooksd.process.detached_place import DetachedPlace, Keeping


class Desk:
    """A detachment without processes: ends come from the test."""

    def __init__(self, root: Path, outbox: Outbox | None = None) -> None:
        self.records: list[tuple[Level, str, dict[str, Any]]] = []
        self.told: list[tuple[Attempt, Settled]] = []
        self.hooks = DetachedHooks(
            asyncio.get_running_loop(),
            DetachedFiles(str(root / "detached")),
            DetachedPlace(keeping=Keeping.OWN_SESSION),
            most=lambda: 9,
        )
        self.free = 0
        self.made = Detachment(
            self.hooks,
            outbox,
            self.record,
            lambda _, attempt, settled: self.told.append((attempt, settled)),
            self.count_free,
        )

    def count_free(self) -> None:
        self.free += 1

    def record(self, level: Level, kind: str, fields: Any) -> None:
        self.records.append((level, kind, dict(fields)))

    def end(self, about: bytes, result: ProcessResult | None) -> None:
        self.hooks.ended(DetachedEnd(run_id="inv-1", about=about, result=result))


def about(**changes: Any) -> About:
    fields = {"place": {"execution_id": "run-1"}, "hook": "chrys:user:chrys:h", "source": "chrys"}
    return About(**{**fields, "contract": Contract.CHRYS, **changes})


SUCCESS = ProcessResult(argv=("x",), pid=7, exit_code=0, duration_s=0.5)
LAUNCH = ProcessResult(launch_failure=LaunchFailure(kind=ProblemKind.MISSING_RUNTIME, message="gone"))


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    hook = Hook(
        name="chrys:user:chrys:h",
        dialect="chrys",
        contract=Contract.CHRYS,
        source="chrys",
        scope=Scope.USER,
        event=EventName.SESSION_END,
        native_event="session_end",
        handler=None,
        timeout_s=None,
        on_error=OnError.IGNORE,
    )

    made = About.of(hook, {"execution_id": "run-1"}, None)

    assert About.decoded(made.encoded()) == made
    assert (made.on_error, made.job_id, made.lane) == (OnError.IGNORE, None, "")


@pytest.mark.parametrize(
    ("result", "kind", "hint"),
    [
        (SUCCESS, None, ""),
        (ProcessResult(exit_code=3), ProblemKind.EXIT_CODE, "the-log"),
        (ProcessResult(signal=11), ProblemKind.SIGNAL, "the program crashed"),
        (LAUNCH, ProblemKind.MISSING_RUNTIME, "the-log"),
        (None, ProblemKind.SIGNAL, "the-log"),
    ],
)
def test_the_fault_of_an_end(result: ProcessResult | None, kind: ProblemKind | None, hint: str) -> None:
    fault = fault_of(DetachedEnd(run_id="inv-1", about=b"", result=result), "the-log")

    if kind is None:
        assert fault is None
    else:
        assert fault is not None
        assert fault.kind is kind
        assert hint in (fault.hint or "")
        assert fault.detail is None


@pytest.mark.parametrize(
    ("result", "on_error", "status", "level"),
    [
        (SUCCESS, OnError.WARN, "ok", Level.INFO),
        (ProcessResult(exit_code=3), OnError.WARN, "failed", Level.WARNING),
        (ProcessResult(exit_code=3), OnError.IGNORE, "failed", Level.INFO),
        (LAUNCH, OnError.BLOCK, "launch_error", Level.WARNING),
        (None, OnError.WARN, "failed", Level.WARNING),
    ],
)
async def test_the_record_of_an_end(
    tmp_path: Path, result: ProcessResult | None, on_error: OnError, status: str, level: Level
) -> None:
    desk = Desk(tmp_path)

    desk.end(about(on_error=on_error).encoded(), result)

    ((told, kind, fields),) = desk.records
    assert (told, kind, fields["status"]) == (level, "hook.finished", status)
    assert (fields["execution_id"], fields["invocation_id"], fields["mode"]) == ("run-1", "inv-1", "detached")
    await desk.made.aclose()


async def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    desk.end(b"nonsense", SUCCESS)

    ((level, kind, fields),) = desk.records
    assert (level, kind, fields["invocation_id"]) == (Level.WARNING, "hook.finished", "inv-1")
    await desk.made.aclose()


async def test_a_directory_that_cannot_be_looked_at_is_told_and_stops_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "detached").mkdir()
    (tmp_path / "detached" / "runs").write_text("in the way")

    await desk.made.recover()

    ((level, kind, fields),) = desk.records
    assert (level, kind) == (Level.WARNING, "daemon.limited")
    assert str(tmp_path) in fields["message"]
    await desk.made.aclose()


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(
        str(tmp_path / "outbox.sqlite3"),
        record=lambda *_: None,
        limits=lambda: OutboxLimits(max_jobs=9, max_bytes=1 << 24),
    )


@pytest.mark.parametrize("handed_over", [True, False])
@pytest.mark.parametrize(
    ("result", "state"),
    [
        (SUCCESS, JobState.DONE),
        (ProcessResult(exit_code=1), JobState.PENDING),
        (None, JobState.PENDING),
    ],
)
async def test_the_job_of_a_durable_one_is_settled_whoever_has_it(
    tmp_path: Path, outbox: Outbox, result: ProcessResult | None, state: JobState, *, handed_over: bool
) -> None:
    desk = Desk(tmp_path, outbox)
    (job_id,) = await outbox.add([NewJob(hook="h", lane="h", event="e", payload=b"p")])
    assert await outbox.start(job_id) == 1
    if handed_over:
        assert await outbox.hand_over(job_id, Owner.of(1, 4711))

    desk.end(about(job_id=job_id, lane="h", owner=4711).encoded(), result)
    await desk.made.aclose()

    ((_, settled),) = desk.told
    assert settled.state is state
    assert desk.free == 1
    (job,) = await outbox.list()
    assert job.state is state
    await outbox.aclose()


async def test_a_job_that_cannot_be_settled_is_told(tmp_path: Path, outbox: Outbox) -> None:
    desk = Desk(tmp_path, outbox)
    (tmp_path / "outbox.sqlite3").mkdir()

    desk.end(about(job_id="job-0000000000000001", lane="h", owner=4711).encoded(), SUCCESS)
    await desk.made.aclose()

    assert [kind for _, kind, _ in desk.records] == ["hook.finished", "outbox.refused"]
    assert desk.told == []
    assert desk.free == 1
