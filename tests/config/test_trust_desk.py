"""The methods `trust/*` over real files: what they show, what they refuse, what comes of them."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import math
import os
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hooksd.config import grants as grants_module, trust_desk, trust_review
from hooksd.config.assemble import ConfigPlaces
from hooksd.config.settling import Pending
from hooksd.config.store import ConfigStore
from hooksd.model.errors import ProtocolError
from hooksd.model.sources import SourceState
from hooksd.protocol.errors import ErrorCode
from hooksd.protocol.methods.trust import TrustChange, TrustRole, TrustState


SCRIPT = "#!/bin/sh\nexit 2\n"


def document(*commands: str) -> str:
    hooks = [{"type": "command", "command": command} for command in commands]
    return json.dumps({"lifecycle_hooks": {"enabled": True, "PreToolUse": [{"hooks": hooks}]}})


def write(path: Path, text: str, mode: int = 0o700) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


class Desk:
    """A store, and one project that names one script."""

    def __init__(self, root: Path) -> None:
        root.chmod(0o700)
        self.root = root
        self.project = root / "p"
        self.settings = write(root / "config" / "hooksd.toml", "[projects]\nenabled = true\n", 0o600)
        self.hooks = write(self.project / ".bamboo" / "hooks.json", document("./guard.sh"), 0o600)
        self.script = write(self.project / "guard.sh", SCRIPT)
        self.kinds: list[str] = []
        self.store: ConfigStore

    def start(self) -> None:
        places = ConfigPlaces(
            settings_path=str(self.settings),
            config_dir=str(self.settings.parent),
            state_dir=str(self.root / "state"),
            home=str(self.root),
            env={},
        )
        self.store = ConfigStore(places)
        self.store.load()
        self.store.start(asyncio.get_running_loop(), lambda level, kind, fields: self.kinds.append(kind))

    async def restart(self) -> None:
        await self.store.aclose()
        self.start()

    async def show(self) -> Any:
        return await self.store.trust.show(str(self.project))

    async def grant(self, digest: str | None = None) -> Any:
        return await self.store.trust.grant(str(self.project), digest or (await self.show()).digest)

    async def refused(self, digest: str | None = None) -> ProtocolError:
        with pytest.raises(ProtocolError) as caught:
            await self.grant(digest)
        return caught.value

    async def state(self) -> SourceState | None:
        snapshot = await self.store.open(str(self.project), ())
        return next((one.state for one in snapshot.sources if one.scope == "project"), None)

    async def listed(self) -> list[tuple[str, TrustState]]:
        found = await self.store.trust.list_projects()
        return [(os.path.basename(one.dir), one.state) for one in found.projects]


@pytest.fixture
async def desk(tmp_path: Path, anyio_backend: object) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    made.start()
    yield made
    await made.store.aclose()


# --- show -------------------------------------------------------------------------------------------------------------


async def test_show_before_anything_was_granted(desk: Desk) -> None:
    shown = await desk.show()

    assert (shown.dir, shown.state) == (str(desk.project), TrustState.UNTRUSTED)
    assert (shown.granted_digest, shown.granted_at, shown.problems) == (None, None, ())
    assert [(one.path, one.role, one.change, one.size_bytes) for one in shown.files] == [
        (".bamboo/hooks.json", TrustRole.HOOKS, TrustChange.NEW, len(document("./guard.sh"))),
        ("guard.sh", TrustRole.SCRIPT, TrustChange.NEW, len(SCRIPT)),
    ]
    assert shown.files[1].sha256 == hashlib.sha256(SCRIPT.encode()).hexdigest()
    assert "+++ now/guard.sh\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+exit 2\n" in shown.diff
    assert shown.diff_is_whole
    assert any("imports" in text for text in shown.not_covered)


async def test_show_what_changed(desk: Desk) -> None:
    granted = await desk.grant()
    write(desk.script, "#!/bin/sh\nexit 0\n")
    write(desk.hooks, document("./guard.sh", "./new.sh"), 0o600)
    write(desk.project / "new.sh", "new\n")
    shown = await desk.show()

    assert shown.state is TrustState.CHANGED
    assert (shown.granted_digest, shown.granted_at) == (granted.digest, granted.granted_at)
    assert shown.digest != granted.digest
    assert {one.path: one.change for one in shown.files} == {
        ".bamboo/hooks.json": TrustChange.CHANGED,
        "guard.sh": TrustChange.CHANGED,
        "new.sh": TrustChange.NEW,
    }
    assert (
        "--- granted/guard.sh\n+++ now/guard.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-exit 2\n+exit 0\n"
        in shown.diff
    )


async def test_show_what_is_gone(desk: Desk) -> None:
    await desk.grant()
    desk.script.unlink()
    shown = await desk.show()

    assert (shown.files[-1].path, shown.files[-1].change) == ("guard.sh", TrustChange.MISSING)
    assert "--- granted/guard.sh\n+++ /dev/null\n" in shown.diff


async def test_show_while_projects_are_off(desk: Desk) -> None:
    write(desk.settings, "[projects]\nenabled = false\n", 0o600)
    shown = await desk.show()

    assert len(shown.files) == 2
    assert [one.path for one in shown.problems] == ["projects.enabled"]


async def test_show_a_directory_that_brings_nothing_along(desk: Desk) -> None:
    shown = await desk.store.trust.show(str(desk.root / "none"))

    assert (shown.files, shown.diff) == ((), "")
    assert "brings no hooks along" in shown.problems[0].message


async def test_show_the_project_by_its_real_directory(desk: Desk) -> None:
    (desk.root / "link").symlink_to("p")
    shown = await desk.store.trust.show(f"{desk.root}/link/.bamboo/..")

    assert shown.dir == str(desk.project)


async def test_the_problems_of_hooks_are_shown_and_are_no_obstacle(desk: Desk) -> None:
    bad = {"matcher": "(", "hooks": [{"type": "command", "command": "x"}]}
    text = json.dumps({"lifecycle_hooks": {"enabled": True, "PreToolUse": [bad]}})
    write(desk.hooks, text, 0o600)
    shown = await desk.show()

    assert shown.problems[0].file == str(desk.hooks)
    assert (await desk.grant()).state is TrustState.TRUSTED


async def test_a_large_script_has_no_copy(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust_review, "MAX_COPY_BYTES", 4)
    shown = await desk.show()
    assert "too large for a diff" in shown.diff
    assert not shown.diff_is_whole
    await desk.grant()
    assert await desk.state() is SourceState.LOADED
    write(desk.script, "other")
    assert await desk.state() is SourceState.CHANGED


async def test_copies_are_bounded_in_all(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    write(desk.hooks, document("./guard.sh ./second.sh"), 0o600)
    write(desk.project / "second.sh", SCRIPT)
    monkeypatch.setattr(trust_review, "MAX_COPIES_BYTES", len(SCRIPT))
    shown = await desk.show()

    assert shown.diff.count("too large") == 1


# --- grant ------------------------------------------------------------------------------------------------------------


async def test_grant_takes_effect_at_once_and_is_told(desk: Desk) -> None:
    granted = await desk.grant()

    assert (granted.dir, granted.state) == (str(desk.project), TrustState.TRUSTED)
    assert await desk.state() is SourceState.LOADED
    assert granted.revision == desk.store.revision
    assert desk.kinds.count("config.changed") == 1
    (kept,) = (desk.root / "state" / "trust").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    again = await desk.grant(granted.digest)
    assert (again.state, again.revision) == (TrustState.TRUSTED, granted.revision)


async def test_only_what_is_there_now_can_be_granted(desk: Desk) -> None:
    seen = (await desk.show()).digest
    write(desk.script, "other")
    error = await desk.refused(seen)

    assert (error.code, error.kind) == (ErrorCode.STALE_REVISION, "stale_digest")
    assert await desk.state() is SourceState.UNTRUSTED
    assert (await desk.refused("nonsense")).code == ErrorCode.STALE_REVISION


async def test_nothing_is_granted_while_projects_are_off(desk: Desk) -> None:
    write(desk.settings, "[projects]\nenabled = false\n", 0o600)
    await desk.restart()
    error = await desk.refused()

    assert error.code == ErrorCode.NOT_PERMITTED
    assert "enabled = true" in str(error)
    assert await desk.state() is SourceState.DISABLED


async def test_nothing_is_granted_to_a_directory_without_hooks(desk: Desk) -> None:
    desk.hooks.unlink()

    assert (await desk.refused()).code == ErrorCode.INVALID_PARAMS


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda desk: write(desk.script, SCRIPT, 0o777), "could be changed by others"),
        (lambda desk: desk.hooks.chmod(0o666), "could be changed by others"),
        (lambda desk: write(desk.hooks, "{", 0o600), ""),
    ],
)
async def test_what_cannot_be_relied_on_cannot_be_granted(
    desk: Desk, spoil: Callable[[Desk], object], says: str
) -> None:
    spoil(desk)
    error = await desk.refused()

    assert error.code == ErrorCode.CONFIG_INVALID
    assert says in str(error)
    assert error.problems
    assert (await desk.show()).problems


async def test_a_file_that_changes_while_it_is_looked_at_cannot_be_granted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = (await desk.show()).digest
    read = desk.store.trust._digests.read

    def another(path: str) -> Any:
        known, data = read(path)
        return msgspec.structs.replace(known, sha256="other"), data

    # Digests are remembered from the first look; only copies are read now.
    monkeypatch.setattr(desk.store.trust._digests, "look", lambda path: read(path)[0])
    monkeypatch.setattr(desk.store.trust._digests, "read", another)
    error = await desk.refused(digest)

    assert error.code == ErrorCode.CONFIG_INVALID
    assert "changed while it was looked at" in str(error)
    assert not (desk.root / "state" / "trust").exists()


async def test_a_directory_that_vanishes_meanwhile_cannot_be_granted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust_desk, "identify_directory", lambda root: None)

    assert (await desk.refused()).code == ErrorCode.INVALID_PARAMS


async def test_a_file_that_is_being_written_is_waited_for(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = desk.store.trust._read
    looks = 0

    def once_still_written(*arguments: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks > 1:
            return read(*arguments)
        restless = Pending(signature=(), since_s=0.0, due_s=0.0)
        return tuple(
            msgspec.structs.replace(one, examined=msgspec.structs.replace(one.examined, pending=restless))
            for one in read(*arguments)
        )

    monkeypatch.setattr(trust_desk, "OPEN_PATIENCE_S", 20)
    monkeypatch.setattr(desk.store.trust, "_read", once_still_written)
    assert len((await desk.show()).files) == 2
    assert looks >= 2


async def test_a_file_that_does_not_stand_still_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust_desk, "OPEN_PATIENCE_S", -1)
    read = desk.store.trust._read
    restless = Pending(signature=(), since_s=0.0, due_s=math.inf)

    def still_written(*arguments: Any) -> Any:
        return tuple(
            msgspec.structs.replace(one, examined=msgspec.structs.replace(one.examined, pending=restless))
            for one in read(*arguments)
        )

    monkeypatch.setattr(desk.store.trust, "_read", still_written)
    with pytest.raises(ProtocolError) as caught:
        await desk.show()

    assert (caught.value.code, caught.value.kind) == (ErrorCode.BUSY, "not_still")


async def test_a_grant_that_cannot_be_kept_grants_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device", "/state")

    with monkeypatch.context() as patch:
        patch.setattr(grants_module, "replace_file", full)
        error = await desk.refused()
    assert (error.code, error.kind) == (ErrorCode.NOT_PERMITTED, "not_kept")
    assert "No space left" in str(error)
    assert await desk.state() is SourceState.UNTRUSTED
    monkeypatch.setattr(grants_module, "MAX_GRANTS", 0)
    assert "MAX_GRANTS" in str(await desk.refused())


# --- revoke -----------------------------------------------------------------------------------------------------------


async def test_revoke_takes_effect_at_once_and_is_told(desk: Desk) -> None:
    await desk.grant()
    revoked = await desk.store.trust.revoke(str(desk.project))

    assert (revoked.dir, revoked.revoked) == (str(desk.project), True)
    assert await desk.state() is SourceState.UNTRUSTED
    assert desk.kinds.count("config.changed") == 2
    assert not (await desk.store.trust.revoke(str(desk.project))).revoked


async def test_revoke_frees_the_gates_of_a_project_that_is_gone(desk: Desk) -> None:
    await desk.grant()
    desk.project.rename(desk.root / "moved")
    assert await desk.state() is SourceState.CHANGED
    assert (await desk.store.trust.revoke(str(desk.project))).revoked
    assert await desk.state() is None


async def test_a_grant_that_cannot_be_removed_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.grant()

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", "/state")

    with monkeypatch.context() as patch:
        patch.setattr(grants_module.os, "unlink", refuse)
        with pytest.raises(ProtocolError, match="Read-only"):
            await desk.store.trust.revoke(str(desk.project))
    assert await desk.state() is SourceState.LOADED


# --- list -------------------------------------------------------------------------------------------------------------


async def test_list(desk: Desk) -> None:
    assert await desk.listed() == []
    await desk.state()
    assert await desk.listed() == [("p", TrustState.UNTRUSTED)]
    await desk.grant()
    assert await desk.listed() == [("p", TrustState.TRUSTED)]
    other = desk.root / "q"
    write(other / ".hooksd" / "hooks.json", document("true"), 0o600)
    await desk.store.open(str(other), ())
    await desk.store.open(str(desk.root / "none"), ())
    write(desk.script, "other")
    assert await desk.listed() == [("p", TrustState.CHANGED), ("q", TrustState.UNTRUSTED)]


async def test_list_after_a_restart_and_a_damage(desk: Desk) -> None:
    granted = await desk.grant()
    await desk.restart()
    (listed,) = (await desk.store.trust.list_projects()).projects
    assert (listed.dir, listed.digest, listed.granted_at) == (
        str(desk.project),
        granted.digest,
        granted.granted_at,
    )
    (kept,) = (desk.root / "state" / "trust").iterdir()
    kept.write_bytes(b"\n")
    (listed,) = (await desk.store.trust.list_projects()).projects
    assert (listed.dir, listed.state, listed.granted_at) == ("", TrustState.UNTRUSTED, None)
    assert "is damaged" in listed.problems[0].message
