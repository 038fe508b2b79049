"""Durable hooks, first and further runs, with real processes and a real outbox."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from hooksd.dialects import DIALECTS
from hooksd.model.hooks import Hook, Mode
from hooksd.model.problems import ProblemKind
from hooksd.model.report import Status
from hooksd.model.sources import Document, DocumentSettings
from hooksd.outbox.errors import OutboxUnusable
from hooksd.outbox.jobs import Counts, JobState, NewJob, RetryRules
from hooksd.outbox.outbox import Outbox
from hooksd.pipeline import delivery as deliveries
from hooksd.protocol.methods.executions import DrainScope


Bench = Any
"""The class is in conftest.py, which cannot be imported."""

GATED = "echo x >> started; until [ -e go ]; do sleep 0.02; done; touch done"
GOOD_WHEN_OK = "cat >> told; echo >> told; echo oops >&2; test -e ok"


class Durable:
    """The Bamboo dialect, but its hooks are durable and nobody waits for them."""

    def __init__(self, settings: DocumentSettings) -> None:
        self._settings = settings
        self._bamboo = DIALECTS["bamboo"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bamboo, name)

    def read(self, text: bytes, origin: Any) -> Document:
        read = self._bamboo.read(text, origin)
        hooks = tuple(self._durable(hook) for hook in read.hooks)
        return Document(hooks=hooks, problems=read.problems, usable=read.usable, settings=self._settings)

    @staticmethod
    def _durable(hook: Hook) -> Hook:
        return msgspec.structs.replace(hook, mode=Mode.ASYNC, durable=True)


@pytest.fixture
def durable(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make the hooks of `hooks.json` durable, under these rules."""

    def make(*, max_starts: int = 3, age_s: float = 60.0) -> None:
        settings = DocumentSettings(outbox_max_retries=max_starts, outbox_retry_age_s=age_s)
        monkeypatch.setitem(DIALECTS, "bamboo", Durable(settings))  # type: ignore[arg-type]

    make()
    return make


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed runs come back without a wait."""
    monkeypatch.setattr("hooksd.outbox.schedule.BACKOFF_FIRST_S", 0.0)


def states(bench: Bench) -> Counts:
    counts: Counts = bench.outbox.counts
    return counts


async def jobs(bench: Bench) -> Any:
    return await bench.outbox.list()


async def test_a_hook_is_on_disk_before_its_dispatch_is_answered(bench: Bench, durable: object) -> None:
    bench.configure(SessionEnd=GATED)
    await bench.start()

    outcome = await bench.dispatch("SessionEnd")

    (report,) = outcome.handlers
    assert (report.status, report.problem) == (Status.STARTED, None)
    (job,) = await jobs(bench)
    assert (job.hook, job.event) == (report.hook, "SessionEnd")
    assert [fields["job_id"] for fields in bench.told("outbox.queued")] == [job.job_id]
    (bench.workspace / "go").touch()
    await bench.until(lambda: bench.told("outbox.done"))
    (told,) = bench.told("outbox.done")
    assert (told["job_id"], told["attempts"], told["exit_code"]) == (job.job_id, 1, 0)
    assert told["execution_id"] == "run-1"


async def test_a_start_is_counted_before_the_process_is_there(bench: Bench, durable: object) -> None:
    bench.configure(SessionEnd=GATED)
    await bench.start()
    await bench.dispatch("SessionEnd")

    await bench.until((bench.workspace / "started").exists)
    (job,) = await jobs(bench)
    assert (job.state, job.starts) == (JobState.RUNNING, 1)
    (bench.workspace / "go").touch()
    await bench.until(lambda: states(bench) == Counts(done=1))


async def test_a_run_that_fails_comes_again_with_what_it_was_told_first(
    bench: Bench, durable: object, at_once: None
) -> None:
    bench.configure(SessionEnd=GOOD_WHEN_OK)
    await bench.start()
    execution = await bench.open(env={**bench.env, "MARK": "kept"})
    await bench.dispatch("SessionEnd", execution=execution)
    await bench.until(lambda: bench.told("outbox.retry"))
    (job,) = await jobs(bench)
    assert (job.state, job.error, job.exit_code, job.stderr_tail) == (
        JobState.PENDING, "exit_code: exited with code 1", 1, "oops",
    )  # fmt: skip
    (bench.workspace / "ok").touch()

    bench.pipeline.delivery.start()
    await bench.until(lambda: bench.told("outbox.done"))

    first, second = (json.loads(line) for line in (bench.workspace / "told").read_text().splitlines())
    assert first == second
    ran = bench.told("hook.finished")
    assert [fields["status"] for fields in ran] == ["failed", "ok"]
    assert len({fields["invocation_id"] for fields in ran}) == 2
    assert {fields["execution_id"] for fields in ran} == {"run-1"}
    assert bench.told("outbox.done")[0]["attempts"] == 2


async def test_the_environment_of_the_first_run_is_that_of_the_next(
    bench: Bench, durable: object, at_once: None
) -> None:
    bench.configure(SessionEnd='echo "$MARK" >> marks; test -e ok')
    await bench.start()
    execution = await bench.open(env={**bench.env, "MARK": "kept"})
    await bench.dispatch("SessionEnd", execution=execution)
    await bench.until(lambda: bench.told("outbox.retry"))
    (bench.workspace / "ok").touch()

    bench.pipeline.delivery.start()
    await bench.until(lambda: states(bench) == Counts(done=1))

    assert (bench.workspace / "marks").read_text() == "kept\nkept\n"


async def test_what_never_ends_well_is_a_dead_letter(bench: Bench, durable: object, at_once: None) -> None:
    bench.configure(SessionEnd="echo x >> runs; exit 7")
    await bench.start()
    bench.pipeline.delivery.start()

    await bench.dispatch("SessionEnd")
    await bench.until(lambda: bench.told("outbox.failed"))

    assert (bench.workspace / "runs").read_text() == "x\n" * 3
    (told,) = bench.told("outbox.failed")
    assert (told["attempts"], told["exit_code"]) == (3, 7)
    assert [fields["attempts"] for fields in bench.told("outbox.retry")] == [1, 2]


async def test_an_answer_is_not_an_exit_with_0(bench: Bench, durable: Callable[..., None]) -> None:
    durable(max_starts=1)
    bench.configure(SessionEnd=["echo no JSON", "exit 2"])
    await bench.start()

    await bench.dispatch("SessionEnd")
    await bench.until(lambda: bench.told("outbox.failed") and bench.told("outbox.done"))

    (told,) = bench.told("outbox.failed")
    assert told["exit_code"] == 2


async def test_a_poisoned_job_starves_nobody(bench: Bench, durable: object, at_once: None) -> None:
    bench.settings("limits.max_running_background = 4")
    bench.configure(SessionEnd=["sleep 0.05; exit 1", "touch good"])
    await bench.start()
    await bench.dispatch("SessionEnd")
    await bench.until(lambda: bench.told("outbox.retry") and states(bench).done == 1)
    (bad, _) = await jobs(bench)
    (bench.workspace / "good").unlink()
    for number in range(30):
        await bench.outbox.add([_copy(bad, number)], hold=False)
    await bench.dispatch("SessionEnd")

    bench.pipeline.delivery.start()

    await bench.until(lambda: (bench.workspace / "good").exists() and states(bench).done == 2)
    assert states(bench).failed < 30


def _copy(job: Any, number: int) -> NewJob:
    return NewJob(
        hook=job.hook,
        lane=job.lane,
        event=job.event,
        payload=b"{}",
        rules=RetryRules(max_starts=number % 2 + 1),
    )


async def test_what_cannot_be_read_is_a_dead_letter_too(bench: Bench, durable: object, at_once: None) -> None:
    bench.configure(SessionEnd="true")
    await bench.start()
    await bench.outbox.add([NewJob(hook="h", lane="h", event="e", payload=b"{}")], hold=False)

    bench.pipeline.delivery.start()
    await bench.until(lambda: states(bench) == Counts(failed=1))

    (dead,) = await jobs(bench)
    assert "cannot be read" in dead.error


# ----------------------------------------------------------------------------------------------------------------------
# Jobs that wait


async def test_jobs_of_a_hook_that_is_gone_wait_and_go_on_when_it_is_back(
    bench: Bench, durable: object, at_once: None
) -> None:
    bench.configure(SessionEnd=GOOD_WHEN_OK)
    await bench.start()
    await bench.dispatch("SessionEnd")
    await bench.until(lambda: bench.told("outbox.retry"))
    (bench.workspace / "ok").touch()
    text = bench.hooks_json.read_text()
    bench.configure(Stop="true")
    await bench.store.reload()

    bench.pipeline.delivery.start()
    await bench.until(lambda: bench.told("outbox.waiting"))
    bench.pipeline.delivery.look_again()
    await asyncio.sleep(0.1)
    assert len(bench.told("outbox.waiting")) == 1
    (why,) = bench.pipeline.delivery.waiting.values()
    assert "no hook of this name" in why
    (job,) = await jobs(bench)
    assert (job.state, job.starts) == (JobState.PENDING, 1)

    bench.write(bench.hooks_json, text)
    await bench.store.reload()
    bench.pipeline.delivery.look_again()

    await bench.until(lambda: states(bench) == Counts(done=1))
    assert bench.pipeline.delivery.waiting == {}


async def test_jobs_of_a_hook_that_is_switched_off_wait(bench: Bench, durable: object, at_once: None) -> None:
    bench.configure(SessionEnd="exit 1")
    await bench.start()
    await bench.dispatch("SessionEnd")
    await bench.until(lambda: bench.told("outbox.retry"))
    document = json.loads(bench.hooks_json.read_text())
    document["lifecycle_hooks"]["SessionEnd"][0]["enabled"] = False
    bench.write(bench.hooks_json, json.dumps(document))
    await bench.store.reload()

    bench.pipeline.delivery.start()
    await bench.until(lambda: bench.told("outbox.waiting"))

    assert (await jobs(bench))[0].starts == 1


async def test_a_run_that_finds_no_slot_waits(
    bench: Bench, durable: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hooksd.outbox.schedule.BACKOFF_FIRST_S", 0.0)
    monkeypatch.setattr(deliveries, "BUSY_S", 0.1)
    bench.settings("limits.max_running_background = 1\nlimits.max_queue_s = 0.1")
    bench.configure(SessionEnd="test -e ok", Notification=GATED)
    await bench.start()
    await bench.dispatch("SessionEnd")
    await bench.until(lambda: bench.told("outbox.retry"))
    (bench.workspace / "ok").touch()
    await bench.dispatch("Notification")
    await bench.until((bench.workspace / "started").exists)

    bench.pipeline.delivery.start()
    await bench.until(lambda: bench.told("outbox.waiting"))
    job = (await jobs(bench))[0]
    assert (job.state, job.starts) == (JobState.PENDING, 1)
    (bench.workspace / "go").touch()

    await bench.until(lambda: states(bench) == Counts(done=2))


# ----------------------------------------------------------------------------------------------------------------------
# Ends


async def test_a_drain_of_the_turn_waits_until_the_end_is_on_disk(bench: Bench, durable: object) -> None:
    bench.configure(PreCompact=GATED)
    await bench.start()
    execution = await bench.open()
    outcome = await bench.dispatch("PreCompact", execution=execution)
    draining = asyncio.ensure_future(bench.pipeline.executions.drain("run-1", DrainScope.TURN))
    await bench.until((bench.workspace / "started").exists)
    assert not draining.done()
    (bench.workspace / "go").touch()

    drained = await draining

    assert drained.finished == (outcome.handlers[0].invocation_id,)
    assert states(bench) == Counts(done=1)


async def test_a_first_run_that_is_cut_off_comes_again_after_its_age(bench: Bench, durable: object) -> None:
    bench.configure(SessionEnd=GATED)
    await bench.start()
    await bench.dispatch("SessionEnd")
    await bench.until((bench.workspace / "started").exists)
    before = time.time()

    await bench.pipeline.executions.close("run-1", 0.0)
    await bench.until(lambda: bench.told("outbox.retry"))

    (job,) = await jobs(bench)
    assert (job.state, job.starts) == (JobState.PENDING, 1)
    assert before + 50 < job.due_at < time.time() + 61


async def test_the_shutdown_waits_for_first_runs_only(bench: Bench, durable: object, at_once: None) -> None:
    bench.configure(SessionEnd="echo x >> runs; test -e slow || exit 1; sleep 30", PreCompact=GATED)
    await bench.start()
    await bench.dispatch("SessionEnd")
    await bench.until(lambda: bench.told("outbox.retry"))
    (bench.workspace / "slow").touch()
    bench.pipeline.delivery.start()
    await bench.until(lambda: (bench.workspace / "runs").read_text() == "x\nx\n")
    await bench.dispatch("PreCompact")
    await bench.until((bench.workspace / "started").exists)

    draining = asyncio.ensure_future(bench.pipeline.drain(20.0))
    await bench.until(lambda: len(bench.told("outbox.retry")) == 2)
    assert not draining.done()
    (bench.workspace / "go").touch()
    began = time.monotonic()
    await draining
    await bench.outbox.aclose()

    assert time.monotonic() - began < 10
    assert states(bench) == Counts(pending=1, done=1)


async def test_a_run_that_was_cancelled_before_its_first_step_is_given_back(
    bench: Bench, durable: object
) -> None:
    bench.configure(SessionEnd="touch ran")
    await bench.start()
    await bench.dispatch("SessionEnd")

    await bench.pipeline.aclose()
    await bench.outbox.aclose()

    assert states(bench).pending + states(bench).done == 1
    assert states(bench).running == 0


# ----------------------------------------------------------------------------------------------------------------------
# Without a net


async def test_a_hook_that_cannot_be_kept_runs_and_says_so(
    bench: Bench, durable: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.configure(SessionEnd="touch ran")
    await bench.start()

    async def refuse(*_: object, **__: object) -> None:
        raise OutboxUnusable("/state/outbox.sqlite3", "the disk is full", "make room")

    monkeypatch.setattr(Outbox, "add", refuse)
    outcome = await bench.dispatch("SessionEnd")

    problem = outcome.handlers[0].problem
    assert problem is not None
    assert problem.kind is ProblemKind.NOT_DURABLE
    assert "the disk is full" in problem.message
    assert problem.hint == "make room"
    await bench.until((bench.workspace / "ran").exists)
    assert len(bench.told("outbox.refused")) == 1


async def test_a_full_outbox_tells_its_limit(bench: Bench, durable: object) -> None:
    bench.settings("limits.max_outbox_jobs = 1")
    bench.configure(SessionEnd=GATED)
    await bench.start()
    await bench.dispatch("SessionEnd")

    outcome = await bench.dispatch("SessionEnd")

    assert "limits.max_outbox_jobs is 1" in outcome.handlers[0].problem.message
    (bench.workspace / "go").touch()
    await bench.until(lambda: len(bench.told("hook.finished")) == 2)


async def test_a_start_that_cannot_be_counted_is_made_all_the_same(
    bench: Bench, durable: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.configure(SessionEnd="touch ran")
    await bench.start()

    async def refuse(*_: object) -> None:
        raise OutboxUnusable("/state/outbox.sqlite3", "the disk is full", "make room")

    monkeypatch.setattr(Outbox, "start", refuse)
    await bench.dispatch("SessionEnd")

    await bench.until(lambda: bench.told("hook.finished"))
    assert (bench.workspace / "ran").exists()
    assert states(bench).pending == 1


async def test_a_fault_of_ours_is_told_and_the_others_go_on(
    bench: Bench, durable: object, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    bench.configure(SessionEnd=GOOD_WHEN_OK)
    await bench.start()
    await bench.dispatch("SessionEnd")
    await bench.until(lambda: bench.told("outbox.retry"))
    (bench.workspace / "ok").touch()
    monkeypatch.setattr(deliveries, "_find", lambda *_: 1 / 0)
    bench.pipeline.delivery.start()
    await bench.until(lambda: told)
    monkeypatch.undo()

    bench.pipeline.delivery.look_again()

    assert [context["message"] for context in told] == ["a durable job could not be run"]
    await bench.until(lambda: states(bench) == Counts(done=1))


async def test_no_record_tells_what_a_job_holds(bench: Bench, durable: object, at_once: None) -> None:
    bench.configure(UserPromptSubmit="echo my-secret-output >&2; exit 1")
    await bench.start()
    bench.pipeline.delivery.start()
    execution = await bench.open(env={**bench.env, "TOKEN": "my-secret-env"})

    await bench.dispatch("UserPromptSubmit", {"prompt": "my-secret-prompt"}, execution=execution)
    await bench.until(lambda: states(bench) == Counts(failed=1))

    assert "my-secret" not in repr(bench.records)
    assert os.stat(bench.root / "state" / "outbox.sqlite3").st_mode & 0o077 == 0


async def test_further_runs_give_way_to_gates_but_not_for_ever(
    bench: Bench, durable: object, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.configure(SessionEnd="test -e ok")
    await bench.start()
    await bench.dispatch("SessionEnd")
    await bench.until(lambda: bench.told("outbox.retry"))
    (bench.workspace / "ok").touch()
    gates = 1
    monkeypatch.setattr(bench.pipeline, "gates_running", lambda: gates)
    monkeypatch.setattr(deliveries, "GIVE_WAY_S", 60.0)
    bench.pipeline.delivery.start()
    await asyncio.sleep(0.1)
    assert len(bench.told("outbox.started")) == 0
    gates = 0
    await bench.until(lambda: bench.told("outbox.done"))

    gates = 1
    monkeypatch.setattr(deliveries, "GIVE_WAY_S", 0.05)
    (bench.workspace / "ok").unlink()
    await bench.dispatch("SessionEnd")

    await bench.until(lambda: len(bench.told("outbox.started")) > 1)
