"""A listener on a real socket with methods made for tests, and a client that sends bytes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest

from hooksd.config.assemble import ConfigPlaces
from hooksd.config.settings import Limits
from hooksd.config.store import ConfigStore
from hooksd.dialects import DIALECTS
from hooksd.model.errors import ProtocolError
from hooksd.model.records import Level
from hooksd.observe.journal import Journal
from hooksd.observe.metrics import Metrics
from hooksd.observe.stream import EventStream
from hooksd.pipeline.dispatch import Pipeline
from hooksd.process.detached import DetachedHooks
from hooksd.process.detached_files import DetachedFiles
from hooksd.process.detached_place import DetachedPlace, Keeping
from hooksd.process.exchange_files import ExchangeFiles
from hooksd.process.runner import Runner
from hooksd.protocol.methods.base import Method, MethodKind
from hooksd.protocol.methods.daemon import DaemonState, DaemonStatusResult, HookCounts, OutboxCounts
from hooksd.server.connection import Connection
from hooksd.server.listener import Listener
from hooksd.server.methods import Methods
from hooksd.server.table import Entry, Step


DEADLINE_S = 20.0
"""Longest wait for anything: only a hang takes as long."""


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of every method of the tests."""

    execution_id: str = ""
    value: Any = None
    name: str = ""


class Client:
    """The other end, byte by byte."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._held = bytearray()

    @classmethod
    async def connect(cls, path: str) -> Client:
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, path)
        return cls(connection)

    async def send(self, data: bytes) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.get_running_loop().sock_sendall(self.socket, data)

    async def call(self, method: str, params: Any = None, *, request_id: Any = 1) -> None:
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}
        await self.send(json.dumps(message).encode() + b"\n")

    async def notify(self, method: str, params: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        await self.send(json.dumps(message).encode() + b"\n")

    async def line(self) -> bytes:
        """The next line; b"" at the end of the stream."""
        async with asyncio.timeout(DEADLINE_S):
            while (end := self._held.find(b"\n")) < 0:
                try:
                    data = await asyncio.get_running_loop().sock_recv(self.socket, 1 << 20)
                except ConnectionResetError:
                    data = b""
                if not data:
                    left = bytes(self._held)
                    self._held.clear()
                    return left
                self._held += data
            line = bytes(self._held[:end])
            del self._held[: end + 1]
            return line

    async def answer(self) -> Any:
        return json.loads(await self.line())

    async def ask(self, method: str, params: Any = None, *, request_id: Any = 1) -> Any:
        """One request, and its answer where nothing else is under way."""
        await self.call(method, params, request_id=request_id)
        return await self.answer()

    async def error(self) -> tuple[int, str, Any]:
        """Code, message and id of the next answer, which is an error with the data that every error has."""
        answer = await self.answer()
        assert answer["jsonrpc"] == "2.0"
        assert set(answer) == {"jsonrpc", "id", "error"}, answer
        assert set(answer["error"]) == {"code", "message", "data"}
        assert set(answer["error"]["data"]) <= {"kind", "detail", "problems"}
        assert answer["error"]["data"]["kind"]
        return answer["error"]["code"], answer["error"]["message"], answer["id"]

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.socket.close()


class Served:
    """Methods for tests: `echo` answers at once, the others do what they are called."""

    def __init__(self) -> None:
        self.started: list[str] = []
        """The `name` of every request, in the order of its start."""
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self.events: list[str] = []
        self._doors: dict[str, asyncio.Event] = {}
        self.connections: list[Connection] = []
        handlers = {
            "echo": self._echo,
            "wait": lambda connection, params: Step(self._wait(params)),
            "gate": lambda connection, params: Step(self._wait(params), for_client=True),
            "open": lambda connection, params: Step(self._wait(params), changes=params.execution_id),
            "open_gate": lambda connection, params: Step(
                self._open_then_wait(params), changes=params.execution_id
            ),
            "refuse": self._refuse,
            "refuse_later": lambda connection, params: Step(self._refuse_later(params)),
            "boom": self._boom,
            "boom_later": lambda connection, params: Step(self._boom_later()),
            "unencodable": lambda connection, params: object(),
            "cancel": lambda connection, params: connection.cancel(params.value),
            "owe": lambda connection, params: connection.owe(params.value),
            "big": lambda connection, params: "x" * params.value,
        }
        self.table = {
            name: Entry(
                Method(
                    name=name, kind=MethodKind.REQUEST, params=Params, result=None, summary="", section=""
                ),
                handler,
                names_execution=True,
            )
            for name, handler in handlers.items()
        }

    def door(self, name: str) -> asyncio.Event:
        """What `wait` of that name waits for."""
        return self._doors.setdefault(name, asyncio.Event())

    def half_closed(self, connection: Connection) -> None:
        self.events.append("half_closed")

    def gone(self, connection: Connection) -> None:
        self.events.append("gone")

    def _echo(self, connection: Connection, params: Params) -> Any:
        self.started.append(params.name)
        if connection not in self.connections:
            self.connections.append(connection)
        return {"value": params.value}

    async def _wait(self, params: Params) -> Any:
        self.started.append(params.name)
        try:
            await self.door(params.name).wait()
        except asyncio.CancelledError:
            self.cancelled.append(params.name)
            raise
        self.ended.append(params.name)
        return {"waited": params.name}

    async def _open_then_wait(self, params: Params) -> Step:
        await self.door(f"{params.name} opened").wait()
        return Step(self._wait(params), for_client=True)

    def _refuse(self, connection: Connection, params: Params) -> Any:
        raise ProtocolError(-32010, "no", kind="execution_conflict", detail="agent")

    async def _refuse_later(self, params: Params) -> Any:
        raise ProtocolError(-32011, "unknown", kind="unknown_execution")

    def _boom(self, connection: Connection, params: Params) -> Any:
        raise RuntimeError("a secret")

    async def _boom_later(self) -> Any:
        raise RuntimeError("a secret")


class Server:
    """A listener on a socket."""

    def __init__(self, path: str, served: Any, listener: Listener, records: list[Any]) -> None:
        self.path = path
        self.served = served
        self.listener = listener
        self.records = records
        self._clients: list[Client] = []

    async def connect(self) -> Client:
        client = await Client.connect(self.path)
        self._clients.append(client)
        return client

    def recorded(self, kind: str) -> list[dict[str, Any]]:
        return [fields for _, event, fields in self.records if event == kind]

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()


StartServer = Callable[..., Awaitable[Server]]


@pytest.fixture
def socket_path() -> Iterator[str]:
    """A path short enough for a socket address."""
    directory = tempfile.mkdtemp(prefix="hooksd-")
    yield f"{directory}/s"
    shutil.rmtree(directory)


@pytest.fixture
async def start_server(socket_path: str) -> AsyncIterator[StartServer]:
    """Start a listener; it is closed after the test."""
    servers: list[Server] = []
    sockets: list[socket.socket] = []

    async def start(
        *, limits: Limits | None = None, served: Any = None, records: Any = None, **options: Any
    ) -> Server:
        listening = socket.socket(socket.AF_UNIX)
        sockets.append(listening)
        listening.setblocking(False)
        path = f"{socket_path}{len(servers)}"
        listening.bind(path)
        listening.listen(64)
        records = [] if records is None else records
        served = served or Served()
        listener = Listener(
            served=served,
            record=lambda level, event, fields: records.append((level, event, dict(fields))),
            limits=lambda: limits or Limits(),
            **options,
        )
        await listener.start(listening)
        servers.append(Server(path, served, listener, records))
        return servers[-1]

    yield start
    for server in servers:
        server.close_clients()
        await server.listener.aclose(1.0)
        assert len(server.listener) == 0
    for listening in sockets:
        listening.close()
    left = [task for task in asyncio.all_tasks() if "_carry_out" in repr(task)]
    assert left == []


async def until(condition: Callable[[], Any]) -> Any:
    """Wait until something is true, and give it."""
    async with asyncio.timeout(DEADLINE_S):
        while not (value := condition()):
            await asyncio.sleep(0.002)
        return value


@pytest.fixture(name="until")
def until_fixture() -> Callable[[Callable[[], Any]], Awaitable[Any]]:
    """Poll for a condition, with a deadline."""
    return until


class Control:
    """The daemon, as far as the methods need it."""

    def __init__(self, store: ConfigStore) -> None:
        self._store = store
        self.shutdowns: list[float | None] = []

    def status(self) -> DaemonStatusResult:
        config = self._store.status()
        return DaemonStatusResult(
            pid=os.getpid(),
            version="0",
            uptime_s=0.0,
            socket="",
            state=DaemonState(config.state),
            revision=config.revision,
            sources=config.sources,
            executions=0,
            hooks=HookCounts(running=0, queued=0, total=0, failed=0, timed_out=0, blocked=0),
            outbox=OutboxCounts(),
            latency_ms={},
            warm={},
            problems=config.problems,
        )

    def shutdown(self, grace_s: float | None = None) -> None:
        self.shutdowns.append(grace_s)


class WholeHouse:
    """Everything but the daemon's own life."""

    def __init__(
        self, root: str, server: Server, pipeline: Pipeline, runner: Runner, journal: Journal
    ) -> None:
        self.root = root
        self.hooks_path = f"{root}/bamboo/hooks.json"
        self.server = server
        self.listener = server.listener
        self.connect = server.connect
        self.recorded = server.recorded
        self.pipeline = pipeline
        self.runner = runner
        self.journal = journal
        self.control: Control
        self.stream: EventStream

    def write_hooks(self, document: Any) -> None:
        write_settled(self.hooks_path, json.dumps(document))

    def stream_is_idle(self) -> bool:
        return not self.stream._subscriptions


def write_settled(path: str, text: str) -> None:
    """Write a file as if it had been there for a while: one that just changed is waited for."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.new", "w") as file:
        file.write(text)
    os.rename(f"{path}.new", path)


@pytest.fixture
async def start_house(
    start_server: StartServer, socket_path: str
) -> AsyncIterator[Callable[..., Awaitable[WholeHouse]]]:
    """Start the rooms of the daemon on a Bamboo document and a `hooksd.toml`."""
    closing: list[Callable[[], Awaitable[None]]] = []

    async def start(hooks: Any, *, toml: str = "", max_subscribers: int = 8) -> WholeHouse:
        root = os.path.dirname(socket_path)
        write_settled(f"{root}/bamboo/hooks.json", json.dumps(hooks))
        write_settled(f"{root}/config/hooksd.toml", toml)
        os.makedirs(f"{root}/state", mode=0o700)
        env = {"PATH": os.environ["PATH"], "HOME": root, "BAMBOO_DATA_DIR": f"{root}/bamboo"}
        store = ConfigStore(
            ConfigPlaces(
                settings_path=f"{root}/config/hooksd.toml",
                config_dir=f"{root}/config",
                state_dir=f"{root}/state",
                home=root,
                env=env,
            )
        )
        stream = EventStream(max_subscribers)
        records: list[Any] = []
        journal = Journal(write=lambda line: None, stream=stream, metrics=Metrics(), max_field_bytes=100_000)

        def record(level: Level, event: str, fields: Any) -> None:
            records.append((level, event, dict(fields)))
            journal(level, event, fields)

        store.load()
        loop = asyncio.get_running_loop()
        runner = Runner(loop, max_ending=16, record=record)
        pipeline = Pipeline(
            runner=runner,
            store=store,
            record=record,
            dialects=DIALECTS,
            daemon_env=env,
            daemon_cwd="/",
            socket_path=f"{socket_path}0",
            exchange=ExchangeFiles(f"{socket_path}.exchange"),
            detached=DetachedHooks(
                loop,
                DetachedFiles(f"{root}/detached"),
                DetachedPlace(keeping=Keeping.OWN_SESSION),
                most=lambda: store.settings.limits.max_detached,
            ),
        )
        store.start(loop, record)
        control = Control(store)
        served = Methods(
            pipeline=pipeline, store=store, stream=stream, control=control, record=record, dialects=DIALECTS
        )
        server = await start_server(served=served, limits=store.settings.limits, records=records)
        house = WholeHouse(root, server, pipeline, runner, journal)
        house.control, house.stream = control, stream

        async def close() -> None:
            server.close_clients()
            await server.listener.aclose(1.0)
            await pipeline.aclose()
            await runner.aclose(0.0)
            await store.aclose()

        closing.append(close)
        return house

    yield start
    for close in closing:
        await close()
