"""Whether a project is what was trusted, and what becomes of its hooks: real files, a real store."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hooksd.config import trust_review
from hooksd.config.assemble import ConfigPlaces
from hooksd.config.plan import Plan
from hooksd.config.snapshot import Snapshot
from hooksd.config.store import ConfigStore
from hooksd.model.events import EventName
from hooksd.model.problems import ProblemKind
from hooksd.model.records import Level
from hooksd.model.sources import SourceReport, SourceState
from hooksd.protocol.methods.trust import TrustState


LONG_S = 20.0
ENABLED = "[projects]\nenabled = true\n"


def document(*commands: str, event: str = "PreToolUse") -> str:
    hooks = [{"type": "command", "command": command} for command in commands]
    return json.dumps({"lifecycle_hooks": {"enabled": True, event: [{"hooks": hooks}]}})


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.chmod(mode)
    new.replace(path)
    return path


class House:
    """A store with one project."""

    def __init__(self, root: Path) -> None:
        root.chmod(0o700)
        self.root = root
        self.project = root / "p"
        self.hooks = self.project / ".bamboo" / "hooks.json"
        self.script = self.project / "guard.sh"
        self.settings = root / "config" / "hooksd.toml"
        self.records: list[tuple[Level, str, Mapping[str, Any]]] = []
        self.running: ConfigStore | None = None
        (root / "home").mkdir()
        write(self.settings, ENABLED)
        write(self.hooks, document("./guard.sh"))
        write(self.script, "#!/bin/sh\nexit 2\n", 0o700)

    @property
    def store(self) -> ConfigStore:
        assert self.running is not None
        return self.running

    async def start(self) -> ConfigStore:
        if self.running is not None:
            await self.running.aclose()
        places = ConfigPlaces(
            settings_path=str(self.settings),
            config_dir=str(self.settings.parent),
            state_dir=str(self.root / "state"),
            home=str(self.root / "home"),
            env={},
        )
        self.running = ConfigStore(places)
        self.running.load()
        self.running.start(asyncio.get_running_loop(), self.record)
        return self.running

    def record(self, level: Level, kind: str, fields: Mapping[str, Any]) -> None:
        json.dumps(fields)
        self.records.append((level, kind, fields))

    async def grant(self, directory: Path | None = None) -> None:
        where = str(directory or self.project)
        shown = await self.store.trust.show(where)
        assert (await self.store.trust.grant(where, shown.digest)).state is TrustState.TRUSTED

    async def open(self, directory: Path | str | None = None) -> Snapshot:
        where = str(self.project if directory is None else directory)
        # What does not stand still is waited for; twice, for a machine that is slow.
        await asyncio.wait_for(self.store.open(where, ()), LONG_S)
        return await asyncio.wait_for(self.store.open(where, ()), LONG_S)

    async def state(self, directory: Path | str | None = None) -> TrustState | None:
        """Of a project, as an execution sees it; None where it brings nothing along."""
        found = [one for one in (await self.open(directory)).sources if one.scope == "project"]
        if not found:
            return None
        words = {SourceState.LOADED: TrustState.TRUSTED, SourceState.CHANGED: TrustState.CHANGED}
        return words.get(found[0].state, TrustState.UNTRUSTED)


def plan(snapshot: Snapshot, event: EventName = EventName.TOOL_BEFORE) -> Plan:
    return snapshot.plan("bamboo", event)


def report(snapshot: Snapshot, name: str = "project-bamboo") -> SourceReport:
    return next(one for one in snapshot.sources if one.name == name)


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: object) -> AsyncIterator[House]:
    made = House(tmp_path)
    await made.start()
    yield made
    await made.store.aclose()


# ----------------------------------------------------------------------------------------------------------------------
# States


async def test_an_untrusted_project_has_no_hooks(house: House) -> None:
    snapshot = await house.open()
    found = report(snapshot)

    assert plan(snapshot).hooks == ()
    assert (found.state, found.hooks) == (SourceState.UNTRUSTED, 0)
    assert found.problems[0].message == "this project is not trusted: its hooks do not run"
    assert f"`hooksd trust grant {house.project}`" in str(found.problems[0].hint)
    assert snapshot.revision == 1


async def test_a_hostile_project_does_not_degrade_the_daemon(house: House) -> None:
    write(house.hooks, "{ this is no JSON")
    snapshot = await house.open()

    assert report(snapshot).state is SourceState.UNTRUSTED
    assert house.store.status().state == "ready"
    house.hooks.unlink()
    os.mkfifo(house.hooks)
    assert report(await house.open()).state is SourceState.INVALID
    assert house.store.status().state == "ready"


async def test_a_trusted_project_runs_pinned(house: House) -> None:
    await house.grant()
    snapshot = await house.open()
    (planned,) = plan(snapshot).hooks

    assert report(snapshot).state is SourceState.LOADED
    assert planned.hook.withheld is None
    assert planned.hook.pins is not None
    assert planned.hook.pins.root == str(house.project)
    assert [path for path, _ in planned.hook.pins.files] == ["guard.sh"]
    assert snapshot.revision == 2
    assert [kind for _, kind, _ in house.records if kind == "config.changed"] == ["config.changed"]


async def test_trust_survives_a_restart(house: House) -> None:
    await house.grant()
    before = await house.open()
    await house.start()
    after = await house.open()

    assert await house.state() is TrustState.TRUSTED
    assert [one.hook for one in plan(after).hooks] == [one.hook for one in plan(before).hooks]


CHANGES: dict[str, Callable[[House], object]] = {
    "script": lambda house: write(house.script, "#!/bin/sh\nexit 0\n", 0o700),
    "script in place": lambda house: house.script.write_text("#!/bin/sh\nexit 0\n"),
    "script gone": lambda house: house.script.unlink(),
    "hooks": lambda house: write(house.hooks, document("true")),
    "hooks emptied": lambda house: write(house.hooks, '{"lifecycle_hooks": {"enabled": false}}'),
    "hooks broken": lambda house: write(house.hooks, "{"),
    "hooks gone": lambda house: house.hooks.unlink(),
    "folder gone": lambda house: shutil.rmtree(house.hooks.parent),
    "further hooks": lambda house: write(house.project / ".hooksd" / "hooks.json", document("./new.sh")),
    "project gone": lambda house: shutil.rmtree(house.project),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("restart", [False, True])
async def test_the_gates_of_a_changed_project_block(house: House, change: str, restart: bool) -> None:
    """Whatever the files say now, the hooks that were granted stay known."""
    await house.grant()
    before = await house.open()
    CHANGES[change](house)
    if restart:
        await house.start()
    snapshot = await house.open()
    (planned,) = plan(snapshot).hooks
    found = report(snapshot)

    assert found.state is SourceState.CHANGED
    assert found.hooks == 0
    assert "has changed since it was trusted" in found.problems[0].message
    assert "hooksd trust show" in str(found.problems[0].hint)
    withheld = planned.hook.withheld
    assert withheld is not None
    assert (withheld.kind, withheld.blocks) == (ProblemKind.CHANGED, True)
    assert planned.hook.name == plan(before).hooks[0].hook.name
    assert snapshot.revision > before.revision


async def test_what_else_changes_in_a_changed_project_decides_nothing_new(house: House) -> None:
    await house.grant()
    CHANGES["script"](house)
    first = await house.open()
    CHANGES["hooks"](house)
    second = await house.open()

    assert second.revision == first.revision
    assert report(second).problems != report(first).problems


async def test_what_is_put_back_is_trusted_again(house: House) -> None:
    await house.grant()
    text = house.script.read_text()
    write(house.script, "other", 0o700)
    assert await house.state() is TrustState.CHANGED
    write(house.script, text, 0o700)
    assert await house.state() is TrustState.TRUSTED


async def test_a_changed_project_can_be_skipped(house: House) -> None:
    write(house.settings, f'{ENABLED}on_changed = "skip"\n')
    await house.grant()
    CHANGES["script"](house)
    (planned,) = plan(await house.open()).hooks

    assert planned.hook.withheld is not None
    assert not planned.hook.withheld.blocks


async def test_an_open_execution_keeps_its_snapshot(house: House) -> None:
    await house.grant()
    before = await house.open()
    await house.store.trust.revoke(str(house.project))

    assert len(plan(before).hooks) == 1
    assert plan(await house.open()).hooks == ()


async def test_a_file_that_others_can_write_is_refused_and_what_was_granted_stays(house: House) -> None:
    house.hooks.chmod(0o666)
    snapshot = await house.open()
    assert report(snapshot).state is SourceState.INVALID
    assert plan(snapshot).hooks == ()
    house.hooks.chmod(0o600)
    await house.grant()
    house.hooks.chmod(0o666)
    snapshot = await house.open()
    assert report(snapshot).state is SourceState.INVALID
    assert report(snapshot).problems[-1].message == "what was granted of this file stays in force"
    assert [one.hook.withheld for one in plan(snapshot).hooks] == [None]
    await house.start()
    assert len(plan(await house.open()).hooks) == 1


async def test_a_project_whose_files_cannot_be_relied_on_is_changed(house: House) -> None:
    await house.grant()
    house.script.chmod(0o777)
    snapshot = await house.open()

    assert report(snapshot).state is SourceState.CHANGED
    assert "could be changed by others" in report(snapshot).problems[0].message


async def test_a_damaged_grant_is_none_and_is_told(house: House) -> None:
    await house.grant()
    (kept,) = (house.root / "state" / "trust").iterdir()
    kept.write_bytes(kept.read_bytes()[:-5])
    await house.start()
    snapshot = await house.open()

    assert report(snapshot).state is SourceState.UNTRUSTED
    assert "is damaged" in report(snapshot).problems[0].message
    assert any("is damaged" in str(fields.get("message")) for _, _, fields in house.records)


async def test_two_hooks_files_are_one_project(house: House) -> None:
    other = house.project / ".hooksd" / "hooks.json"
    write(other, document("./other.sh", event="Stop"))
    await house.grant()
    assert [one.state for one in (await house.open()).sources if one.scope == "project"] == [
        SourceState.LOADED,
        SourceState.LOADED,
    ]
    write(other, document("./another.sh", event="Stop"))
    snapshot = await house.open()
    assert report(snapshot).state is SourceState.CHANGED
    assert report(snapshot, "project-json").state is SourceState.CHANGED
    assert len(plan(snapshot, EventName.TURN_FINISH).hooks) == 1


async def test_a_file_that_is_new_in_a_changed_project_runs_nothing(house: House) -> None:
    await house.grant()
    CHANGES["further hooks"](house)
    snapshot = await house.open()

    assert report(snapshot, "project-json").state is SourceState.CHANGED
    assert "this file was not granted" in report(snapshot, "project-json").problems[0].message
    assert [one.hook.source for one in plan(snapshot).hooks] == ["project-bamboo"]


async def test_a_source_that_is_switched_off_is_no_part_of_a_project(house: House) -> None:
    write(house.settings, f'{ENABLED}[[source]]\nname = "project-json"\nenabled = false\n')
    write(house.project / ".hooksd" / "hooks.json", document("./other.sh"))
    await house.grant()
    snapshot = await house.open()
    assert report(snapshot, "project-json").state is SourceState.DISABLED
    assert report(snapshot).state is SourceState.LOADED
    write(house.project / ".hooksd" / "hooks.json", document("./another.sh"))
    assert await house.state() is TrustState.TRUSTED


async def test_a_new_file_that_is_refused_takes_nothing_away(house: House) -> None:
    await house.grant()
    write(house.project / ".hooksd" / "hooks.json", document("true"), 0o666)
    snapshot = await house.open()

    assert report(snapshot).state is SourceState.LOADED
    assert house.store.status().state == "degraded"
    refused = report(snapshot, "project-json")
    assert (refused.state, refused.hooks) == (SourceState.INVALID, 0)
    assert "nothing of it was granted" in refused.problems[-1].message


async def test_a_project_that_is_read_by_another_dialect_is_a_changed_one(house: House) -> None:
    write(house.project / ".hooksd" / "hooks.json", document("true"))
    await house.grant()
    write(house.settings, f'{ENABLED}[[source]]\nname = "project-json"\ndialect = "chrys"\n')

    assert "read otherwise now" in report(await house.open()).problems[0].message


async def test_many_changes_are_told_by_the_first_few(house: House) -> None:
    write(house.hooks, document("a b c d e"))
    for name in "abcde":
        write(house.project / name, "")
    await house.grant()
    for name in "abcde":
        write(house.project / name, "x")

    assert "(a, b, c and 2 more)" in report(await house.open()).problems[0].message


async def test_a_grant_that_this_version_cannot_read_runs_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an older version found usable may not be so to a newer one."""
    write(house.hooks, "{")
    with monkeypatch.context() as patch:
        patch.setattr(trust_review.Review, "obstacles", ())
        await house.grant()
    snapshot = await house.open()
    assert report(snapshot).state is SourceState.INVALID
    assert plan(snapshot).hooks == ()


async def test_the_project_comes_before_the_user(house: House) -> None:
    write(house.root / "home" / ".bamboo" / "hooks.json", document("user"))
    await house.grant()

    assert [one.hook.source for one in plan(await house.open()).hooks] == ["project-bamboo", "bamboo"]


# ----------------------------------------------------------------------------------------------------------------------
# Guards


GUARD = '[[guard]]\nhooks = "bamboo:project:*"\n'


async def test_a_guard_keeps_untrusted_hooks_in_the_plan(house: House) -> None:
    write(house.settings, ENABLED + GUARD)
    snapshot = await house.open()
    (planned,) = plan(snapshot).hooks

    assert planned.guard is not None
    assert planned.hook.withheld is not None
    assert planned.hook.withheld.kind is ProblemKind.UNTRUSTED
    assert report(snapshot).hooks == 0
    # What a guard makes of an untrusted file decides something, so it has a revision.
    write(house.hooks, document("one", "two"))
    assert (await house.open()).revision == snapshot.revision + 1


@pytest.mark.parametrize("on_failure", ["block", "warn"])
async def test_an_untrusted_file_does_not_stand_for_a_hook_that_is_missing(
    house: House, on_failure: str
) -> None:
    """Otherwise anybody's workspace could take the place of the user's own guard."""
    write(
        house.settings,
        f'{ENABLED}[[guard]]\nhooks = "bamboo:*:PreToolUse*"\nevents = ["PreToolUse"]\n'
        f'on_missing = "block"\non_failure = "{on_failure}"\n',
    )
    assert [guard.hooks for guard in plan(await house.open()).missing] == ["bamboo:*:PreToolUse*"]
    await house.grant()
    assert plan(await house.open()).missing == ()


# ----------------------------------------------------------------------------------------------------------------------
# Tricks with paths: trust is not carried elsewhere


async def test_a_symbolic_link_to_a_trusted_project_is_that_project(house: House) -> None:
    await house.grant()
    (house.root / "link").symlink_to("p")

    assert await house.state(house.root / "link") is TrustState.TRUSTED
    assert await house.state(f"{house.root}/home/../p/.") is TrustState.TRUSTED


async def test_a_link_that_is_turned_elsewhere_carries_nothing(house: House) -> None:
    shutil.copytree(house.project, house.root / "evil")
    (house.root / "link").symlink_to("p")
    await house.grant(house.root / "link")
    assert await house.state(house.root / "link") is TrustState.TRUSTED
    (house.root / "link").unlink()
    (house.root / "link").symlink_to("evil")
    assert await house.state(house.root / "link") is TrustState.UNTRUSTED
    assert await house.state() is TrustState.TRUSTED


@pytest.mark.parametrize("name", ["P", "p2", "p/", "sub/p"])
async def test_a_copy_is_not_trusted(house: House, name: str) -> None:
    await house.grant()
    other = house.root / name
    if name != "p/":
        other.parent.mkdir(exist_ok=True)
        shutil.copytree(house.project, other)

    assert await house.state(other) is (TrustState.TRUSTED if name == "p/" else TrustState.UNTRUSTED)


async def test_a_project_below_a_trusted_one_is_another(house: House) -> None:
    await house.grant()
    write(house.project / "sub" / ".bamboo" / "hooks.json", document("./guard.sh"))

    assert await house.state(house.project / "sub") is TrustState.UNTRUSTED


async def test_a_renamed_directory_leaves_its_trust_behind(house: House) -> None:
    await house.grant()
    house.project.rename(house.root / "moved")
    assert await house.state(house.root / "moved") is TrustState.UNTRUSTED
    assert await house.state() is TrustState.CHANGED
    (house.root / "moved").rename(house.project)
    assert await house.state() is TrustState.TRUSTED


@pytest.mark.parametrize("restart", [False, True])
async def test_another_directory_in_its_place_does_not_inherit(house: House, restart: bool) -> None:
    """With the very same files, even: what they import may be another thing there."""
    await house.grant()
    await house.open()
    shutil.copytree(house.project, house.root / "evil")
    house.project.rename(house.root / "moved")
    (house.root / "evil").rename(house.project)
    if restart:
        await house.start()
    snapshot = await house.open()

    assert report(snapshot).state is SourceState.CHANGED
    assert "another directory lies in its place" in report(snapshot).problems[0].message
    assert [bool(one.hook.withheld) for one in plan(snapshot).hooks] == [True]
    await house.grant()
    assert await house.state() is TrustState.TRUSTED


async def test_hard_links_to_the_same_files_do_not_inherit(house: House) -> None:
    await house.grant()
    await house.open()
    house.project.rename(house.root / "moved")
    house.hooks.parent.mkdir(parents=True)
    os.link(house.root / "moved" / ".bamboo" / "hooks.json", house.hooks)
    os.link(house.root / "moved" / "guard.sh", house.script)

    assert await house.state() is TrustState.CHANGED


def mount(*arguments: str) -> bool:
    done = subprocess.run(["mount", *arguments], capture_output=True, check=False)
    return done.returncode == 0


async def test_a_bind_mount_carries_nothing(house: House) -> None:
    await house.grant()
    elsewhere = house.root / "elsewhere"
    elsewhere.mkdir()
    if not mount("--bind", str(house.project), str(elsewhere)):
        pytest.skip("bind mounts are not permitted here")
    try:
        assert await house.state(elsewhere) is TrustState.UNTRUSTED
        assert await house.state() is TrustState.TRUSTED
    finally:
        subprocess.run(["umount", str(elsewhere)], check=True)


async def test_a_mount_over_a_trusted_project_does_not_inherit(house: House) -> None:
    await house.grant()
    evil = house.root / "evil"
    shutil.copytree(house.project, evil)
    if not mount("--bind", str(evil), str(house.project)):
        pytest.skip("bind mounts are not permitted here")
    try:
        assert await house.state() is TrustState.CHANGED
    finally:
        subprocess.run(["umount", str(house.project)], check=True)
    assert await house.state() is TrustState.TRUSTED


async def test_a_hooks_file_that_is_a_link_is_pinned_to_what_it_leads_to(house: House) -> None:
    outside = write(house.root / "shared.json", document("./guard.sh"))
    house.hooks.unlink()
    house.hooks.symlink_to(outside)
    await house.grant()
    assert await house.state() is TrustState.TRUSTED
    write(outside, document("./other.sh"))
    assert await house.state() is TrustState.CHANGED
