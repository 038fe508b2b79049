"""The configuration of a running daemon: real files, the real watcher, both loops."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import shutil
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from watchdog import observers
from watchdog.utils import BaseThread

from hooksd.config import current, settling, store as store_module
from hooksd.config.assemble import ConfigPlaces
from hooksd.config.snapshot import Snapshot
from hooksd.config.store import ConfigStore
from hooksd.config.write import StaleRevision
from hooksd.dialects import DIALECTS
from hooksd.model.errors import ProtocolError
from hooksd.model.events import EventName
from hooksd.model.hooks import Hook, ShellCommand
from hooksd.model.records import Level
from hooksd.model.sources import Document, Origin, SourceState
from hooksd.protocol.errors import ErrorCode


LONG_S = 20.0


def document(*commands: str, **more: Any) -> str:
    hooks = [{"type": "command", "command": command} for command in commands]
    return json.dumps({"lifecycle_hooks": {"enabled": True, "PreToolUse": [{"hooks": hooks}], **more}})


def commands_of(snapshot: Snapshot) -> list[str]:
    hooks = [planned.hook for planned in snapshot.plan("bamboo", EventName.TOOL_BEFORE).hooks]
    return [hook.handler.command for hook in hooks if isinstance(hook.handler, ShellCommand)]


class House:
    """A home directory, and a daemon's store that can be started again and again."""

    def __init__(self, root: Path) -> None:
        root.chmod(0o700)
        self.root = root
        self.hooks = root / "home" / ".bamboo" / "hooks.json"
        self.settings = root / "config" / "hooksd.toml"
        self.state = root / "state"
        self.workspace = root / "work"
        for directory in (self.hooks.parent, self.settings.parent, self.workspace):
            directory.mkdir(parents=True)
        self.dialects = dict(DIALECTS)
        self.required = False
        self.records: list[tuple[Level, str, Mapping[str, Any]]] = []
        self.recorded = asyncio.Event()
        self.running: ConfigStore | None = None

    @property
    def store(self) -> ConfigStore:
        assert self.running is not None
        return self.running

    def make(self) -> ConfigStore:
        places = ConfigPlaces(
            settings_path=str(self.settings),
            settings_required=self.required,
            config_dir=str(self.settings.parent),
            state_dir=str(self.state),
            home=str(self.root / "home"),
            env={},
        )
        return ConfigStore(places, dialects=self.dialects)

    def start(self) -> ConfigStore:
        self.records.clear()
        self.running = self.make()
        self.running.load()
        self.running.start(asyncio.get_running_loop(), self.record)
        return self.running

    async def stop(self) -> None:
        if self.running is not None:
            await self.running.aclose()
            self.running = None

    async def restart(self) -> ConfigStore:
        await self.stop()
        return self.start()

    def record(self, level: Level, kind: str, fields: Mapping[str, Any]) -> None:
        json.dumps(fields)
        self.records.append((level, kind, fields))
        self.recorded.set()

    def kinds(self, source: str | None = None) -> list[str]:
        return [kind for _, kind, fields in self.records if source is None or fields.get("source") == source]

    def last(self, kind: str) -> Mapping[str, Any]:
        return [fields for _, told, fields in self.records if told == kind][-1]

    def now(self, workspace: str = "") -> list[str]:
        return commands_of(self.store.current(workspace, ()))

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LONG_S
        while not condition():
            assert time.monotonic() < deadline, self.records
            self.recorded.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.recorded.wait(), 0.02)

    async def open(self, workspace: Path | str = "") -> Snapshot:
        return await asyncio.wait_for(self.store.open(str(workspace), ()), LONG_S)

    async def watching(self) -> None:
        """Wait until the watcher has nothing left to begin with."""
        await self.until(lambda: not self.store._following and self.store._rounds._timer is None)
        await self.open()
        await self.until(lambda: not self.store._following)

    def source(self, name: str) -> Any:
        return next(source for source in self.store.status().sources if source.name == name)


def write(path: Path, text: str | bytes, mode: int = 0o600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)


def save_by_renaming(path: Path, text: str) -> None:
    write(path.with_name("." + path.name), text)
    path.with_name("." + path.name).rename(path)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path / "house") if (tmp_path / "house").mkdir() is None else None
    assert house is not None
    yield house
    await house.stop()


# ----------------------------------------------------------------------------------------------------------------------
# Opening


async def test_what_is_there_at_the_start_is_in_force(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    snapshot = store.try_open("", ())

    assert snapshot is not None
    assert commands_of(snapshot) == ["one"]
    assert snapshot.revision == store.revision == 1
    assert [(report.name, report.state, report.hooks) for report in snapshot.sources] == [
        ("bamboo", SourceState.LOADED, 1),
        ("chrys", SourceState.MISSING, 0),
        ("shared-json", SourceState.MISSING, 0),
        ("shared-yaml", SourceState.MISSING, 0),
    ]
    assert snapshot.problems == ()
    assert snapshot.hooks_may_run
    assert store.status().state == "ready"
    assert house.kinds() == ["config.loaded"]


async def test_nothing_at_all_is_fine(house: House) -> None:
    store = house.start()
    snapshot = await house.open()

    assert commands_of(snapshot) == []
    assert store.status().problems == ()


async def test_opening_gives_the_same_snapshot_as_long_as_nothing_changes(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    snapshot = await house.open(house.workspace)

    assert store.try_open(str(house.workspace), ()) is snapshot
    assert await house.open(house.workspace) is snapshot
    assert store.current(str(house.workspace), ()) is snapshot
    assert snapshot.revision == 1


async def test_workspaces_that_bring_nothing_share_a_snapshot(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()
    (house.root / "other").mkdir()

    assert await house.open(house.workspace) is await house.open(house.root / "other")


async def test_programmatic_hooks_are_part_of_a_snapshot(
    house: House, make_hook: Callable[..., Hook]
) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    hooks = (make_hook("client", priority=50),)
    snapshot = store.try_open("", hooks)

    assert snapshot is not None
    assert [planned.hook.name for planned in snapshot.plan("bamboo", EventName.TOOL_BEFORE).hooks] == [
        hooks[0].name,
        "bamboo:user:bamboo:PreToolUse[0].hooks[0]",
    ]
    assert store.try_open("", hooks) is snapshot
    assert snapshot is not store.try_open("", ())
    assert snapshot.revision == 1


async def test_a_workspace_need_not_exist(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()

    for workspace in (house.root / "none", "relative", "zero\0byte", "surrogate\udc80", "/dev/null/below"):
        assert commands_of(await house.open(workspace)) == ["one"]


async def test_many_openings_share_one_reading(house: House) -> None:
    reads: list[Origin] = []

    class Counting:
        """The Bamboo dialect, which counts what it reads."""

        def __getattr__(self, name: str) -> Any:
            return getattr(DIALECTS["bamboo"], name)

        def read(self, text: bytes, origin: Origin) -> Document:
            reads.append(origin)
            return DIALECTS["bamboo"].read(text, origin)

    house.dialects["bamboo"] = Counting()  # type: ignore[assignment]
    write(house.hooks, document("one"))
    store = house.start()
    reads.clear()
    write(house.hooks, document("two"))
    assert store.try_open("", ()) is None
    snapshots = await asyncio.gather(*(house.open() for _ in range(20)))

    assert len({id(snapshot) for snapshot in snapshots}) == 1
    assert commands_of(snapshots[0]) == ["two"]
    assert len(reads) == 1


async def test_a_snapshot_never_changes(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()
    before = await house.open()
    write(house.hooks, document("two"))
    after = await house.open()

    assert commands_of(before) == ["one"]
    assert before.revision == 1
    assert commands_of(after) == ["two"]
    assert after.revision == 2
    assert before.digest != after.digest


# ----------------------------------------------------------------------------------------------------------------------
# Reloading, by opening and by watching


async def test_a_save_in_place(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    await house.watching()
    write(house.hooks, document("two"))
    await house.until(lambda: house.now() == ["two"])

    assert house.kinds("bamboo") == ["config.changed"]
    assert house.last("config.changed")["revision"] == store.revision == 2


async def test_an_opening_depends_on_no_watcher(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()
    for command in ("two", "three", "four"):
        write(house.hooks, document(command))
        assert commands_of(await house.open()) == [command]


async def test_saves_by_renaming_one_after_the_other(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()
    await house.watching()
    for command in ("two", "three", "four"):
        save_by_renaming(house.hooks, document(command))
        await house.until(lambda command=command: house.now() == [command])

    assert house.kinds("bamboo") == ["config.changed"] * 3


async def test_a_file_made_later(house: House) -> None:
    shutil.rmtree(house.hooks.parent)
    house.start()
    await house.watching()
    write(house.hooks, document("one"))
    await house.until(lambda: house.now() == ["one"])

    assert house.last("config.changed")["state"] == "loaded"


async def test_a_deleted_file_goes(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    await house.watching()
    house.hooks.unlink()
    await house.until(lambda: house.now() == [])

    assert house.last("config.changed")["state"] == "missing"
    assert store.revision == 2


async def test_an_opening_waits_for_a_save_by_renaming(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    # However slow this machine is.
    monkeypatch.setattr(settling, "MISSING_S", 3600.0)
    write(house.hooks, document("one"))
    house.start()
    house.hooks.rename(house.hooks.with_name("aside"))
    opening = asyncio.ensure_future(house.open())
    await asyncio.sleep(0)
    write(house.hooks.with_name("aside"), document("two"))
    house.hooks.with_name("aside").rename(house.hooks)

    assert commands_of(await opening) == ["two"]


async def test_an_opening_finds_a_deleted_file_gone(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()
    house.hooks.unlink()

    assert commands_of(await house.open()) == []


async def test_a_directory_swapped_by_a_link(house: House) -> None:
    for version in ("v1", "v2"):
        write(house.root / version / "hooks.json", document(version))
    house.hooks.parent.rmdir()
    house.hooks.parent.symlink_to(house.root / "v1")
    house.start()
    await house.watching()
    assert house.now() == ["v1"]
    (house.root / "new").symlink_to(house.root / "v2")
    (house.root / "new").rename(house.hooks.parent)
    await house.until(lambda: house.now() == ["v2"])


async def test_a_link_to_another_file(house: House) -> None:
    for version in ("v1", "v2"):
        write(house.root / version / "real.json", document(version))
    house.hooks.symlink_to("../../v1/real.json")
    house.start()
    await house.watching()
    house.hooks.unlink()
    house.hooks.symlink_to("../../v2/real.json")
    await house.until(lambda: house.now() == ["v2"])
    save_by_renaming(house.root / "v2" / "real.json", document("v3"))
    await house.until(lambda: house.now() == ["v3"])


async def test_a_directory_removed_and_made_again(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()
    await house.watching()
    shutil.rmtree(house.hooks.parent)
    write(house.hooks, document("two"))
    await house.until(lambda: house.now() == ["two"])
    await house.watching()
    write(house.hooks, document("three"))
    await house.until(lambda: house.now() == ["three"])


class Writer(threading.Thread):
    """Somebody who never stops writing a file."""

    def __init__(self, path: Path, texts: list[str]) -> None:
        super().__init__()
        self.path = path
        self.texts = texts
        self.end = threading.Event()
        self.began = threading.Event()

    def run(self) -> None:
        while not self.end.wait(0.005):
            for text in self.texts:
                self.path.write_text(text)
            self.began.set()


async def test_a_file_that_does_not_stand_still_does_not_hold_openings_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    # As if somebody went on writing, however slow this machine is.
    monkeypatch.setattr(settling, "STILL_S", 3600.0)
    write(house.hooks, document("two"))
    began = time.monotonic()
    snapshot = await house.open()
    took_s = time.monotonic() - began

    assert commands_of(snapshot) == ["one"]
    assert took_s >= settling.OPEN_PATIENCE_S
    (problem,) = snapshot.problems
    assert "bamboo is being written" in problem.message
    assert problem.file == str(house.hooks)
    assert house.kinds("bamboo") == ["config.problem"]
    assert "being written" in house.last("config.problem")["problems"][0]["message"]
    assert store.status().problems == (problem,)
    assert (await store.reload()).problems == (problem,)
    assert house.kinds("bamboo") == ["config.problem"]

    monkeypatch.undo()
    assert commands_of(await house.open()) == ["two"]
    assert store.status().problems == ()


async def test_a_half_written_file_is_not_taken(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    write(house.hooks, document("one"))
    house.start()
    await house.watching()
    # Longer than a thread is ever kept from going on.
    monkeypatch.setattr(settling, "STILL_S", 0.5)
    writer = Writer(house.hooks, ["", document("two")[:25], document("two")])
    writer.start()
    try:
        await asyncio.get_running_loop().run_in_executor(None, writer.began.wait)
    finally:
        writer.end.set()
        writer.join()
    await house.until(lambda: house.now() == ["two"])

    assert house.kinds("bamboo") == ["config.changed"]


async def test_a_file_truncated_to_nothing_counts_as_half_written_for_a_second(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    house.hooks.write_bytes(b"")
    snapshot = await house.open()

    assert commands_of(snapshot) == ["one"]
    assert "being written" in snapshot.problems[0].message
    assert house.kinds("bamboo") == ["config.problem"]
    await house.until(lambda: store.status().state == "degraded")
    assert house.now() == ["one"]
    assert house.last("config.invalid")["last_good"] is True


async def test_an_invalid_file_leaves_the_last_good_one_in_force_and_says_so(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    write(house.hooks, '{"lifecycle_hooks": {"enabled": tru')
    snapshot = await house.open()

    assert commands_of(snapshot) == ["one"]
    assert snapshot.revision == 1
    assert house.source("bamboo").state is SourceState.INVALID
    assert store.status().state == "degraded"
    assert store.status().hooks_may_run
    assert house.kinds("bamboo") == ["config.invalid"]
    told = house.last("config.invalid")
    assert told["path"] == str(house.hooks)
    assert told["problems"][0]["line"] == 1
    await house.open()
    assert house.kinds("bamboo") == ["config.invalid"]

    write(house.hooks, document("two"))
    assert commands_of(await house.open()) == ["two"]
    assert house.kinds("bamboo") == ["config.invalid", "config.recovered"]
    assert store.status().state == "ready"
    assert store.revision == 2


async def test_an_invalid_file_that_is_deleted_goes(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    write(house.hooks, "{")
    await house.open()
    house.hooks.unlink()

    assert commands_of(await house.open()) == []
    assert store.status().state == "ready"
    assert house.kinds("bamboo") == ["config.invalid", "config.changed"]


async def test_a_file_that_others_can_write_is_refused(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    house.hooks.chmod(0o666)
    snapshot = await house.open()

    assert commands_of(snapshot) == ["one"]
    assert "writable by everyone" in house.source("bamboo").problems[0].message
    house.hooks.chmod(0o600)
    assert commands_of(await house.open()) == ["one"]
    assert house.kinds("bamboo") == ["config.invalid", "config.recovered"]
    assert store.revision == 1


async def test_a_byte_order_mark_is_no_harm(house: House) -> None:
    write(house.hooks, document("one").encode("utf-8-sig"))
    house.start()

    assert commands_of(await house.open()) == ["one"]


async def test_warnings_are_told_at_the_start_and_at_each_change(house: House) -> None:
    write(house.hooks, document("one", preToolUse=[]))
    house.start()
    assert house.kinds("bamboo") == ["config.problem"]
    assert "preToolUse" in json.dumps(house.last("config.problem"))
    star = {"matcher": "*", "hooks": [{"type": "command", "command": "star"}]}
    write(house.hooks, document("one", PostToolUse=[star]))
    await house.open()

    assert house.kinds("bamboo") == ["config.problem", "config.changed"]
    assert "PostToolUse[0].matcher" in json.dumps(house.last("config.changed"))


async def test_many_problems_are_told_in_part(house: House) -> None:
    write(house.hooks, document("one", **{f"Event{number}": [] for number in range(30)}))
    house.start()

    assert len(house.last("config.problem")["problems"]) == 20
    assert house.last("config.problem")["problems_left_out"] == 10


async def test_where_nothing_can_be_watched_files_are_looked_at(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    monkeypatch.setattr(observers.Observer, "schedule", refuse)
    monkeypatch.setattr(store_module, "POLL_S", 0.05)
    write(house.hooks, document("one"))
    house.start()
    await house.until(lambda: "config.problem" in house.kinds())
    assert "cannot be watched" in house.last("config.problem")["message"]
    write(house.hooks, document("two"))
    await house.until(lambda: house.now() == ["two"])
    assert house.kinds().count("config.problem") == 1


async def test_a_fault_of_ours_is_told_and_what_is_in_force_stays(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    write(house.hooks, document("one"))
    store = house.start()
    await house.watching()
    monkeypatch.setattr(store._assembler, "base", fail)
    write(house.hooks, document("two"))
    with pytest.raises(ZeroDivisionError):
        await house.open()
    assert "fault of hooksd" in house.last("config.problem")["message"]
    assert house.now() == ["one"]
    monkeypatch.undo()
    assert commands_of(await house.open()) == ["two"]


async def test_a_fault_of_the_watcher_is_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("ours")

    store = house.start()
    await house.watching()
    monkeypatch.setattr(store._watcher, "follow", fail)
    await house.open()
    await store.reload()
    await house.until(lambda: "config.problem" in house.kinds())

    assert "fault of hooksd" in house.last("config.problem")["message"]


async def test_closing_ends_every_thread(house: House) -> None:
    def ours() -> list[threading.Thread]:
        return [
            one
            for one in threading.enumerate()
            if isinstance(one, BaseThread) or one.name.startswith("hooksd-")
        ]

    house.start()
    await house.watching()
    assert ours()
    await house.stop()

    assert not ours()


# ----------------------------------------------------------------------------------------------------------------------
# Restarts


async def test_a_restart_with_a_bad_file_drops_no_gate(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()
    await house.stop()
    write(house.hooks, "{")
    store = house.start()
    snapshot = await house.open()

    assert commands_of(snapshot) == ["one"]
    assert snapshot.revision == 1
    assert store.status().state == "degraded"
    assert house.kinds("bamboo") == ["config.invalid"]


async def test_a_start_removes_what_a_killed_daemon_left_half_written(house: House) -> None:
    house.state.mkdir(mode=0o700)
    left = house.state / ".revision.json.0123456789abcdef.tmp"
    left.write_bytes(b"")
    os.utime(left, (0, 0))
    house.start()

    assert not left.exists()


async def test_a_restart_does_not_repeat_a_revision(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()
    write(house.hooks, document("two"))
    await house.open()
    store = await house.restart()
    assert store.revision == 2
    await house.stop()
    write(house.hooks, document("three"))
    assert house.start().revision == 3


async def test_a_file_deleted_meanwhile_is_forgotten(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()
    await house.stop()
    house.hooks.unlink()
    house.start()
    assert commands_of(await house.open()) == []
    await house.stop()
    write(house.hooks, "{")
    house.start()

    assert commands_of(await house.open()) == []


async def test_a_file_that_is_being_written_at_the_start_is_waited_for(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()
    await house.stop()
    write(house.hooks, "")
    store = house.start()

    assert house.now() == ["one"]
    assert store.status().problems[0].file == str(house.hooks)


async def test_a_fault_of_ours_while_keeping_is_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(ConfigStore, "_persist", fail)
    house.start()
    await house.watching()
    await house.store.reload()

    assert "fault of hooksd" in house.last("config.problem")["message"]


async def test_a_state_directory_that_cannot_be_written_is_told(house: House) -> None:
    house.state.write_text("a file in its place")
    write(house.hooks, document("one"))
    house.start()
    await house.until(lambda: any("cannot be kept" in str(fields) for _, _, fields in house.records))

    assert commands_of(await house.open()) == ["one"]


# ----------------------------------------------------------------------------------------------------------------------
# hooksd.toml


async def test_settings_change_while_running(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    write(house.settings, "[limits]\nmax_depth = 9\n")
    snapshot = await house.open()

    assert store.settings.limits.max_depth == snapshot.settings.limits.max_depth == 9
    assert store.revision == 2
    assert house.kinds("hooksd.toml") == ["config.changed"]


async def test_a_comment_in_the_settings_is_no_new_revision(house: House) -> None:
    write(house.settings, "[limits]\nmax_depth = 9\n")
    store = house.start()
    write(house.settings, "# more\n[limits]\nmax_depth = 9\n")
    await house.open()

    assert store.revision == 1


async def test_invalid_settings_leave_the_last_good_ones_in_force(house: House) -> None:
    write(house.settings, "[limits]\nmax_depth = 9\n")
    store = house.start()
    write(house.settings, "[limits]\nmax_dept = 9\n")
    snapshot = await house.open()

    assert store.settings.limits.max_depth == 9
    assert snapshot.hooks_may_run
    assert store.status().state == "degraded"
    assert snapshot.problems[0].file == str(house.settings)
    assert snapshot.problems[0].line == 2
    assert house.kinds("hooksd.toml") == ["config.invalid"]
    await house.restart()
    assert house.store.settings.limits.max_depth == 9
    assert house.store.hooks_may_run
    write(house.settings, "[limits]\nmax_depth = 8\n")
    assert (await house.open()).problems == ()
    assert house.store.settings.limits.max_depth == 8
    assert house.kinds("hooksd.toml") == ["config.invalid", "config.recovered"]


async def test_invalid_settings_without_a_last_good_version_let_no_hook_run(house: House) -> None:
    write(house.hooks, document("one"))
    write(house.settings, "limits = 1")
    store = house.start()
    snapshot = await house.open()

    assert not store.hooks_may_run
    assert not snapshot.hooks_may_run
    assert not store.status().hooks_may_run
    assert store.status().state == "degraded"
    assert "limits" in snapshot.problems[0].describe()
    await house.until((house.state / "revision.json").exists)
    assert not (house.state / "guards.json").exists()
    write(house.settings, "")
    assert (await house.open()).hooks_may_run
    assert not snapshot.hooks_may_run


async def test_settings_named_on_purpose_must_be_there(house: House) -> None:
    house.required = True
    store = house.start()
    assert not store.hooks_may_run
    assert "does not exist" in store.status().problems[0].message
    write(house.settings, "")
    await house.open()
    assert store.hooks_may_run


async def test_sources_come_and_go_with_the_settings(house: House) -> None:
    extra = house.root / "team" / "hooks.json"
    write(house.hooks, document("one"))
    write(extra, document("two"))
    entry = f'[[source]]\nname = "team"\ndialect = "bamboo"\npath = "{extra}"\n'
    store = house.start()
    write(house.settings, entry)
    assert commands_of(await house.open()) == ["one", "two"]
    assert "config.changed" in house.kinds("team")
    write(house.settings, entry + 'scope = "managed"\n')
    snapshot = await house.open()
    assert commands_of(snapshot) == ["two", "one"]
    plan = snapshot.plan("bamboo", EventName.TOOL_BEFORE)
    assert plan.hooks[0].hook.name == "bamboo:managed:team:PreToolUse[0].hooks[0]"
    write(house.settings, entry + "enabled = false\n")
    assert commands_of(await house.open()) == ["one"]
    assert house.source("team").state is SourceState.DISABLED
    write(house.settings, "# nothing")
    await house.open()
    assert "team" not in [source.name for source in store.status().sources]


async def test_a_source_taken_out_is_told(house: House) -> None:
    write(house.hooks, document("one"))
    house.start()
    write(house.settings, "[sources]\ndefaults = false\n")
    assert commands_of(await house.open()) == []

    assert house.last("config.changed")["state"] == "removed"


async def test_guards_are_written_for_clients(house: House) -> None:
    write(house.hooks, document("one"))
    write(house.settings, '[[guard]]\nhooks = "bamboo:user:bamboo:PreToolUse*"\n')
    house.start()
    guards = house.state / "guards.json"
    await house.until(guards.exists)

    assert "PreToolUse" in guards.read_text()
    assert stat.S_IMODE(guards.stat().st_mode) == 0o600
    write(house.settings, "# nothing")
    await house.open()
    await house.until(lambda: "PreToolUse" not in guards.read_text())


async def test_a_guard_that_no_hook_answers_to_is_told_once(house: House) -> None:
    write(house.settings, '[[guard]]\nhooks = "bamboo:user:bamboo:PreToolUse*"\n')
    house.start()
    assert "PreToolUse*" in house.last("config.problem")["problems"][0]["message"]
    write(house.settings, '[[guard]]\nhooks = "bamboo:user:bamboo:PreToolUse*"\n# \n')
    await house.open()
    told = len(house.kinds())
    write(house.hooks, document("one"))
    assert (await house.open()).problems == ()

    assert len(house.kinds()) == told + 1


# ----------------------------------------------------------------------------------------------------------------------
# Projects


def project_file(house: House) -> Path:
    return house.workspace / ".bamboo" / "hooks.json"


async def test_a_project_is_not_read_unless_projects_are_enabled(house: House) -> None:
    write(project_file(house), document("project"))
    house.start()
    snapshot = await house.open(house.workspace)

    assert commands_of(snapshot) == []
    report = snapshot.sources[-1]
    assert (report.name, report.state) == ("project-bamboo", SourceState.DISABLED)
    assert "[projects] enabled" in str(report.problems[0].hint)
    assert house.kinds("project-bamboo") == ["config.problem"]
    assert (await house.open()).sources[-1].name == "shared-yaml"


async def test_a_project_runs_only_once_trusted(house: House) -> None:
    write(house.settings, "[projects]\nenabled = true\n")
    write(house.hooks, document("user"))
    write(project_file(house), document("project"))
    house.start()
    snapshot = await house.open(house.workspace)

    assert commands_of(snapshot) == ["user"]
    assert snapshot.sources[-1].state is SourceState.UNTRUSTED
    assert f"hooksd trust show {house.workspace}" in str(snapshot.sources[-1].problems[0].hint)
    assert snapshot.revision == 1
    await grant(house, house.workspace)
    after = await house.open(house.workspace)
    assert commands_of(after) == ["project", "user"]
    assert after.sources[-1].state is SourceState.LOADED
    assert after.revision == 2
    assert house.last("config.changed")["source"] == "project-bamboo"
    assert commands_of(snapshot) == ["user"]


async def grant(house: House, directory: Path) -> None:
    shown = await house.store.trust.show(str(directory))
    await house.store.trust.grant(str(directory), shown.digest)


async def trusting(house: House) -> None:
    write(house.settings, "[projects]\nenabled = true\n")
    write(house.hooks, document("user"))
    write(project_file(house), document("project"))
    house.start()
    await grant(house, house.workspace)
    await house.open(house.workspace)


async def test_120_an_id_in_both_layers_is_told_when_it_is_new_and_at_every_opening(house: House) -> None:
    def chrys(*ids: str) -> str:
        run = {"type": "shell", "shell": "true"}
        return json.dumps({"hooks": [{"id": one, "event": "after_turn", "run": run} for one in ids]})

    def told() -> list[str]:
        records = [fields for _, kind, fields in house.records if kind == "config.problem"]
        messages = [problem["message"] for fields in records for problem in fields["problems"]]
        return [message for message in messages if "both hooks run" in message]

    theirs, mine = (
        house.workspace / ".chrys" / "hooks" / "hooks.yaml",
        house.root / "home/.chrys/hooks/hooks.yaml",
    )
    write(house.settings, "[projects]\nenabled = true\n")
    write(mine, chrys("b"))
    write(theirs, chrys("a"))
    house.start()
    assert (await house.open(house.workspace)).problems == ()

    write(theirs, chrys("a", "b"))
    await house.open(house.workspace)
    # Nobody trusts it yet, so that nothing of it runs.
    assert told() == []
    await grant(house, house.workspace)
    message = f"the id 'b' is in {mine} too: both hooks run, the project's first"
    for _ in range(2):
        (problem,) = (await house.open(house.workspace)).problems
        assert (problem.message, problem.file, problem.path) == (message, str(theirs), "hooks[1].id")
    assert message in [problem.message for problem in (await house.store.show(str(house.workspace))).problems]
    assert told() == [message]

    # The user's file has it from now on too.
    write(mine, chrys("a", "b"))
    await house.until(lambda: len(told()) == 2)
    assert told()[1].startswith("the ids 'a', 'b' are in ")


async def test_a_project_is_followed(house: House) -> None:
    await trusting(house)
    await house.watching()
    write(project_file(house), document("changed"))
    await house.until(lambda: "changed" in [one.state for one in house.store.status().sources])
    assert house.last("config.changed")["source"] == "project-bamboo"
    await grant(house, house.workspace)
    assert commands_of(await house.open(house.workspace)) == ["changed", "user"]


async def test_a_changed_base_reaches_every_project(house: House) -> None:
    await trusting(house)
    write(house.hooks, document("other"))
    await house.open()
    assert house.now(str(house.workspace)) == ["project", "other"]
    write(house.settings, "[projects]\nenabled = false\n")
    await house.open()
    assert house.now(str(house.workspace)) == ["other"]


async def test_a_workspace_is_one_by_whatever_path(house: House) -> None:
    await trusting(house)
    (house.root / "link").symlink_to("work")

    assert await house.open(house.root / "link") is await house.open(house.workspace)
    other = house.root / "other"
    write(other / ".bamboo" / "hooks.json", document("other"))
    await grant(house, other)
    (house.root / "link").unlink()
    (house.root / "link").symlink_to("other")
    assert commands_of(await house.open(house.root / "link")) == ["other", "user"]


async def test_a_project_that_is_the_users_own_file_does_not_count_twice(house: House) -> None:
    write(house.settings, "[projects]\nenabled = true\n")
    write(house.hooks, document("user"))
    house.start()
    snapshot = await house.open(house.root / "home")

    assert commands_of(snapshot) == ["user"]
    assert "project-bamboo" not in [report.name for report in snapshot.sources]
    assert house.kinds() == ["config.loaded"]


async def test_only_so_many_projects_are_remembered(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "MAX_WORKSPACES", 2)
    await trusting(house)
    for name in ("a", "b"):
        write(house.root / name / ".bamboo" / "hooks.json", document(name))
        await grant(house, house.root / name)

    assert list(house.store._current.projects) == [str(house.root / "a"), str(house.root / "b")]
    # Not known any more: read in the background, and until then without its own hooks.
    assert house.now(str(house.workspace)) == ["user"]
    await house.until(lambda: house.now(str(house.workspace)) == ["project", "user"])


async def test_only_so_many_projects_are_watched(house: House) -> None:
    await trusting(house)
    assert str(project_file(house)) in house.store._current.files_to_watch()
    write(house.settings, "[projects]\nenabled = true\n[limits]\nwatched_workspaces = 0\n")
    await house.open(house.workspace)

    await house.until(lambda: str(project_file(house)) not in house.store._current.files_to_watch())


# ----------------------------------------------------------------------------------------------------------------------
# config/*


async def test_show(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    shown = await store.show()
    first = shown.documents[0]

    assert (first.name, first.path, first.state) == ("bamboo", str(house.hooks), SourceState.LOADED)
    assert first.content == document("one")
    assert first.hooks == ("bamboo:user:bamboo:PreToolUse[0].hooks[0]",)
    assert shown.documents[1].content is None
    assert (shown.documents[-1].name, shown.documents[-1].content) == ("hooksd.toml", None)
    assert (shown.revision, first.revision) == (1, 1)
    assert shown.digest == store.status().digest
    write(house.hooks, "{")
    shown = await store.show()
    assert shown.documents[0].content == document("one")
    assert shown.problems[0].file == str(house.hooks)


async def test_show_with_a_workspace(house: House) -> None:
    await trusting(house)
    shown = await house.store.show(str(house.workspace))

    assert [one.content for one in shown.documents if one.name == "project-bamboo"] == [document("project")]


async def test_validate_keeps_nothing(house: House) -> None:
    store = house.start()
    good = await store.validate("bamboo", document("one"))
    odd = await store.validate("bamboo", document("one", preToolUse=[]))
    bad = await store.validate("bamboo", "{")
    surrogate = await store.validate("bamboo", '"\udc80"')

    assert (good.valid, good.problems) == (True, ())
    assert "preToolUse" in odd.problems[0].message
    assert (bad.valid, bad.problems[0].line) == (False, 1)
    assert not surrogate.valid
    assert not (await store.validate("hooksd", "a = 1")).valid
    assert (await store.validate("hooksd", "")).valid
    assert store.revision == 1


async def test_validate_a_file(house: House) -> None:
    write(house.root / "ours.json", document("one"))
    write(house.root / "bad.json", "{")
    write(house.root / "open.json", document("one"), mode=0o666)
    store = house.start()

    def path(name: str) -> str:
        return str(house.root / name)

    assert (await store.validate("bamboo", path=path("ours.json"))).valid
    for name, told in (
        ("bad.json", "JSON"),
        ("open.json", "writable by everyone"),
        ("none.json", "does not exist"),
    ):
        result = await store.validate("bamboo", path=path(name))
        assert not result.valid
        assert told in result.problems[0].message
        assert result.problems[0].file == path(name)


async def test_validate_in_no_dialect(house: House) -> None:
    store = house.start()
    with pytest.raises(ProtocolError, match="'klingon'") as caught:
        await store.validate("klingon", "")

    assert caught.value.code == ErrorCode.UNKNOWN_EVENT


async def test_reload_reads_everything_again(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    nothing_new = await store.reload()
    write(house.hooks, document("two", preToolUse=[]))
    result = await store.reload()

    assert (nothing_new.revision, nothing_new.changed, nothing_new.problems) == (1, False, ())
    assert (result.revision, result.changed) == (2, True)
    assert "preToolUse" in result.problems[0].message
    assert house.now() == ["two"]


async def test_reload_asks_for_trust_again(house: House) -> None:
    await trusting(house)
    for kept in (house.state / "trust").iterdir():
        kept.unlink()
    assert (await house.store.reload()).changed

    assert house.now(str(house.workspace)) == ["user"]


async def test_write(house: House) -> None:
    write(house.hooks, document("one"), mode=0o640)
    store = house.start()
    await house.watching()
    result = await store.write("bamboo", 1, document("two"))

    assert (result.revision, result.problems) == (2, ())
    assert house.now() == ["two"]
    assert house.hooks.read_text() == document("two")
    assert stat.S_IMODE(house.hooks.stat().st_mode) == 0o640
    await house.watching()
    assert house.kinds("bamboo") == ["config.changed"]
    assert os.listdir(house.hooks.parent) == ["hooks.json"]


async def test_write_through_a_link(house: House) -> None:
    write(house.root / "real" / "hooks.json", document("one"))
    house.hooks.symlink_to("../../real/hooks.json")
    store = house.start()
    await store.write("bamboo", 1, document("two"))

    assert house.hooks.is_symlink()
    assert (house.root / "real" / "hooks.json").read_text() == document("two")


async def test_write_makes_a_file_that_is_not_there(house: House) -> None:
    house.hooks.parent.rmdir()
    store = house.start()
    await store.write("bamboo", 1, document("one"))

    assert house.now() == ["one"]
    assert stat.S_IMODE(house.hooks.stat().st_mode) == 0o600
    assert stat.S_IMODE(house.hooks.parent.stat().st_mode) == 0o700


async def test_write_the_settings(house: House) -> None:
    store = house.start()
    await store.write("hooksd.toml", 1, "[limits]\nmax_depth = 9\n")

    assert store.settings.limits.max_depth == 9


async def test_write_from_a_stale_revision(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    write(house.hooks, document("two"))
    with pytest.raises(StaleRevision) as caught:
        await store.write("bamboo", 1, document("three"))

    assert caught.value.code == ErrorCode.STALE_REVISION
    assert (caught.value.expected, caught.value.revision) == (1, 2)
    assert house.hooks.read_text() == document("two")


async def test_of_two_writers_one_is_stale(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    results = await asyncio.gather(
        store.write("bamboo", 1, document("two")),
        store.write("bamboo", 1, document("three")),
        return_exceptions=True,
    )

    assert sorted(type(result).__name__ for result in results) == ["ConfigWriteResult", "StaleRevision"]


async def test_write_while_somebody_writes(house: House) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    writer = Writer(house.hooks, [document("two"), document("three")])
    writer.start()
    try:
        await asyncio.get_running_loop().run_in_executor(None, writer.began.wait)
        with pytest.raises(StaleRevision):
            await store.write("bamboo", 1, document("four"))
    finally:
        writer.end.set()
        writer.join()


@pytest.mark.parametrize("content", ["{", '{"lifecycle_hooks": 1}'])
async def test_write_a_bad_text(house: House, content: str) -> None:
    write(house.hooks, document("one"))
    store = house.start()
    with pytest.raises(ProtocolError) as caught:
        await store.write("bamboo", 1, content)

    assert caught.value.code == ErrorCode.CONFIG_INVALID
    assert caught.value.problems
    assert house.hooks.read_text() == document("one")


@pytest.mark.parametrize(
    ("source", "told"), [("nobody", "there are: bamboo"), ("shared-json", "switched off")]
)
async def test_write_what_is_no_source(house: House, source: str, told: str) -> None:
    write(house.settings, '[[source]]\nname = "shared-json"\nenabled = false\n')
    store = house.start()
    with pytest.raises(ProtocolError, match=told) as caught:
        await store.write(source, 1, document("one"))

    assert caught.value.code == ErrorCode.INVALID_PARAMS


async def test_write_what_cannot_be_written(house: House) -> None:
    shutil.rmtree(house.hooks.parent)
    house.hooks.parent.write_text("a file in the way")
    store = house.start()
    with pytest.raises(ProtocolError, match="cannot be written") as caught:
        await store.write("bamboo", 1, document("one"))

    assert caught.value.code == ErrorCode.NOT_PERMITTED


async def test_write_to_a_place_that_others_can_write_is_told(house: House) -> None:
    write(house.hooks, document("one"))
    house.hooks.parent.chmod(0o777)
    store = house.start()
    result = await store.write("bamboo", 1, document("two"))

    assert "writable by everyone" in result.problems[0].message
