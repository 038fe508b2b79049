"""A pipeline with everything real about it: configuration files, the Bamboo dialect, processes."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hooksd.config.assemble import ConfigPlaces
from hooksd.config.store import ConfigStore
from hooksd.dialects import DIALECTS
from hooksd.model.outcome import Outcome
from hooksd.model.records import Level
from hooksd.outbox.jobs import OutboxLimits
from hooksd.outbox.outbox import Outbox
from hooksd.pipeline.dispatch import DispatchOptions, Pipeline
from hooksd.pipeline.execution import Execution
from hooksd.process.detached import DetachedHooks
from hooksd.process.detached_files import DetachedFiles
from hooksd.process.detached_place import DetachedPlace, Keeping
from hooksd.process.exchange_files import ExchangeFiles
from hooksd.process.runner import Runner
from hooksd.protocol.methods.executions import ExecutionOpenParams


PAYLOADS: dict[str, dict[str, Any]] = {
    "SessionStart": {"initial_message": "hello hooks", "source": "startup"},
    "UserPromptSubmit": {"prompt": "do it"},
    "PreToolUse": {"tool_name": "Bash", "tool_call_id": "c-1", "parsed_args": {"command": "pwd"}},
    "PostToolUse": {
        "tool_name": "Bash",
        "tool_call_id": "c-1",
        "outcome": {"success": True, "result": "out", "needs_human": False, "duration_ms": 3},
    },
    "Stop": {"stop_hook_active": False},
    "SessionEnd": {"status": "completed"},
    "PreCompact": {
        "estimated_tokens": 10,
        "usage_percent": 1.5,
        "max_context_tokens": 20,
        "trigger_context_tokens": 15,
        "trigger": "manual",
        "phase": "mid-turn",
    },
    "Notification": {"category": "info", "priority": "normal", "title": "t", "body": "b"},
}


class Bench:
    """One daemon's pipeline over files in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = root / "ws"
        self.config = root / "config"
        self.hooks_json = root / "bamboo" / "hooks.json"
        for folder in (self.workspace, self.config, self.hooks_json.parent, root / "state", root / "home"):
            folder.mkdir()
            folder.chmod(0o700)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "BAMBOO_DATA_DIR": str(self.hooks_json.parent),
        }
        self.records: list[tuple[Level, str, dict[str, Any]]] = []
        self.started = False
        self.runner: Runner
        self.outbox: Outbox
        self.store: ConfigStore
        self.pipeline: Pipeline

    async def start(self) -> Pipeline:
        """Read the files and begin; not before they are written."""
        loop = asyncio.get_running_loop()
        places = ConfigPlaces(
            settings_path=str(self.config / "hooksd.toml"),
            config_dir=str(self.config),
            state_dir=str(self.root / "state"),
            home=self.env["HOME"],
            env=self.env,
        )
        self.store = ConfigStore(places)
        self.store.load()
        self.store.start(loop, self.record)
        self.runner = Runner(loop, max_ending=16)
        self.outbox = Outbox(
            str(self.root / "state" / "outbox.sqlite3"),
            record=self.record,
            limits=lambda: OutboxLimits(
                max_jobs=self.store.settings.limits.max_outbox_jobs,
                max_bytes=self.store.settings.limits.max_outbox_bytes,
            ),
        )
        self.pipeline = Pipeline(
            runner=self.runner,
            store=self.store,
            record=self.record,
            dialects=DIALECTS,
            daemon_env=self.env,
            daemon_cwd=str(self.root),
            socket_path="/run/hooksd.sock",
            exchange=ExchangeFiles(str(self.root / "exchange")),
            outbox=self.outbox,
            detached=DetachedHooks(
                loop,
                DetachedFiles(str(self.root / "state" / "detached")),
                DetachedPlace(keeping=Keeping.OWN_SESSION),
                most=lambda: self.store.settings.limits.max_detached,
            ),
        )
        self.started = True
        return self.pipeline

    async def aclose(self) -> None:
        """End everything."""
        if self.started:
            await self.pipeline.aclose()
            await self.runner.aclose(0.2)
            await self.outbox.aclose()
            await self.store.aclose()

    # Configuration

    def settings(self, text: str) -> None:
        """Write `hooksd.toml`."""
        (self.config / "hooksd.toml").write_text(text)

    def configure(self, **events: Any) -> None:
        """Write `hooks.json`: for each event a command, a list of handlers, or whole groups."""
        groups = {name: _groups(hooks) for name, hooks in events.items()}
        self.write(self.hooks_json, json.dumps({"lifecycle_hooks": {"enabled": True, **groups}}))

    def write(self, path: Path, text: str) -> Path:
        """Replace a file, with a time of change that says it has stood still for long."""
        new = path.with_name(path.name + ".new")
        new.write_text(text)
        before = time.time() - 10 - len(self.records)
        os.utime(new, (before, before))
        new.replace(path)
        return path

    # Driving

    def record(self, level: Level, kind: str, fields: Mapping[str, Any]) -> None:
        self.records.append((level, kind, dict(fields)))

    def told(self, kind: str) -> list[dict[str, Any]]:
        """The fields of the records of a kind."""
        return [fields for _, found, fields in self.records if found == kind]

    async def open(self, execution_id: str = "run-1", **more: Any) -> Execution:
        """Open an execution."""
        params = {
            "execution_id": execution_id,
            "agent": "bamboo",
            "session_id": "session-1",
            "workspace_path": str(self.workspace),
            **more,
        }
        owner = params.pop("owner", None)
        return await self.pipeline.executions.open(ExecutionOpenParams(**params), owner)

    async def dispatch(
        self,
        event: str,
        payload: Mapping[str, Any] | None = None,
        *,
        execution: Execution | None = None,
        background: bool = False,
        **options: Any,
    ) -> Outcome:
        """Dispatch an event with a payload that fits, in an execution of its own unless one is given."""
        if execution is None:
            execution = await self.open()
        given = PAYLOADS[event] if payload is None else payload
        made = self.pipeline.prepare(execution, event, given, background=background)
        now = self.pipeline.dispatch_now(execution, made)
        if now is not None:
            return now
        return await self.pipeline.dispatch(execution, made, DispatchOptions(**options))

    def notify(
        self, event: str, *, execution: Execution, background: bool = False, **options: Any
    ) -> tuple[str, ...]:
        """Notify of an event."""
        made = self.pipeline.prepare(execution, event, PAYLOADS[event], background=background)
        return self.pipeline.notify(execution, made, DispatchOptions(**options))

    async def until(self, holds: Callable[[], object], seconds: float = 10) -> None:
        """Wait for something to be so."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "it did not come to be"
            await asyncio.sleep(0.01)


def _groups(hooks: Any) -> list[dict[str, Any]]:
    given = hooks if isinstance(hooks, list) else [hooks]
    if given and isinstance(given[0], dict) and "hooks" in given[0]:
        return given
    return [{"hooks": [_handler(hook) for hook in given]}]


def _handler(hook: Any) -> dict[str, Any]:
    return {"type": "command", "command": hook} if isinstance(hook, str) else hook


@pytest.fixture
async def bench(tmp_path: Path, anyio_backend: object) -> AsyncIterator[Bench]:
    """A bench; `await bench.start()` once its files are written."""
    made = Bench(tmp_path)
    yield made
    await made.aclose()
