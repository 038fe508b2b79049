"""A small daemon on a real Unix socket that answers as a test tells it, and both clients behind one blocking face."""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hooksd_client import AsyncClient, AsyncEventStream, AsyncExecution, AsyncRegistration, Client


PATIENCE_S = 10.0
"""After which a test that waits has failed; far beyond what anything here takes."""

ANSWERS: dict[str, Any] = {
    "initialize": {
        "protocol_version": 1,
        "server": {"name": "hooksd", "version": "9"},
        "limits": {"max_depth": 4},
    },
    "daemon/ping": {"pong": True},
    "daemon/shutdown": {},
    "daemon/status": {"pid": 7, "version": "9", "state": "ready"},
    "execution/open": {"execution_id": "run-1", "revision": 3},
    "execution/close": {"finished": ["inv-1"], "cancelled": [], "still_running": []},
    "execution/drain": {"finished": [], "cancelled": ["inv-2"], "still_running": []},
    "execution/list": {"executions": [{"execution_id": "run-1", "agent": "bamboo"}]},
    "hook/dispatch": {"event": "PreToolUse", "decision": "block", "reason": "no", "revision": 3},
    "hook/notify": {"accepted": True, "invocation_ids": ["inv-3"]},
    "hook/explain": {"plan": [], "not_matched": [{"hook": "h", "why": "other tool"}], "revision": 3},
    "hook/result": {"report": {"hook": "h", "status": "ok"}, "stdout": "out"},
    "hook/test": {"exit_code": 2, "stdout": "", "stderr": "no"},
    "hook/register": {"registration_id": "reg-1"},
    "hook/unregister": {},
    "config/show": {"documents": [], "revision": 3, "digest": "d", "problems": []},
    "config/validate": {"valid": True, "problems": []},
    "config/reload": {"revision": 4, "changed": True, "problems": []},
    "config/write": {"revision": 5, "problems": []},
    "trust/list": {
        "projects": [{"dir": "/p", "state": "trusted", "digest": "d", "granted_at": 1.5, "problems": []}]
    },
    "trust/show": {
        "dir": "/p",
        "state": "changed",
        "digest": "d",
        "granted_digest": None,
        "granted_at": None,
        "files": [{"path": "a.sh", "role": "script", "change": "changed"}],
        "diff": "-a\n",
        "diff_is_whole": False,
        "not_covered": ["imports"],
        "problems": [],
    },
    "trust/grant": {"dir": "/p", "state": "trusted", "revision": 6},
    "trust/revoke": {"dir": "/p", "revoked": True, "revision": 7},
    "outbox/list": {
        "jobs": [{"job_id": "job-1", "hook": "h", "event": "e", "state": "failed", "attempts": 3}]
    },
    "outbox/retry": {"retried": 2},
    "outbox/discard": {"discarded": 3},
    "events/subscribe": {"subscription_id": "sub-1", "seq": 10},
    "events/unsubscribe": {},
}


class Peer:
    """One connection, seen from the daemon."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()
        """What the client answered to requests of the daemon."""

    def send(self, message: dict[str, Any]) -> None:
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def record(self, seq: int, **fields: Any) -> None:
        """Send a record of the event stream to the only subscription."""
        params = {
            "subscription_id": "sub-1",
            "seq": seq,
            "ts": "t",
            "level": "info",
            "event": "hook.finished",
            **fields,
        }
        self.send({"method": "events/event", "params": params})

    def invoke(
        self, registration_id: str = "reg-1", envelope: Any = None, request_id: Any = "d-1"
    ) -> dict[str, Any]:
        """Call a hook of the client and wait for its answer."""
        params = {"registration_id": registration_id, "envelope": envelope or {}, "deadline_ms": 1000}
        self.send({"id": request_id, "method": "hook/invoke", "params": params})
        return self.answers.get(timeout=PATIENCE_S)

    def hang_up(self) -> None:
        """End the connection, as a daemon that dies does."""
        with contextlib.suppress(OSError):  # the client was first
            self.socket.shutdown(socket.SHUT_RDWR)


class Daemon:
    """Answers every method from `ANSWERS`, unless a test has put something else there with `on`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.requests: list[dict[str, Any]] = []
        self.peers: list[Peer] = []
        self._answers: dict[str, Any] = dict(ANSWERS)
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None

    def on(self, method: str, answer: Any) -> None:
        """Answer a method with a result, or by calling `answer(peer, message)`; None from it: no answer."""
        self._answers[method] = answer

    def answer_of(self, method: str) -> Any:
        return self._answers[method]

    def fail(self, method: str, code: int, message: str = "no", **data: Any) -> None:
        """Answer a method with an error."""
        error = {"code": code, "message": message, "data": {"kind": "some_kind", **data}}
        self.on(method, lambda peer, asked: peer.send({"id": asked["id"], "error": error}))

    def hold(self, method: str) -> None:
        """Do not answer a method."""
        self.on(method, lambda peer, asked: None)

    def start(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(16)
        self._spawn(self._accept, self._listener)

    def stop(self) -> None:
        """Go away: the listener and every connection."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener = None
            Path(self.path).unlink()
        for peer in self.peers:
            peer.hang_up()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        self._threads.clear()

    def asked(self, method: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until a method was asked for so many times; its messages."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._of(method)) >= count, PATIENCE_S), self.requests
            return self._of(method)

    def peer(self, number: int = 1) -> Peer:
        """Wait for the so-manieth connection."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.peers) >= number, PATIENCE_S)
            return self.peers[number - 1]

    def methods(self) -> list[str]:
        with self._changed:
            return [message["method"] for message in self.requests]

    def _of(self, method: str) -> list[dict[str, Any]]:
        return [message for message in self.requests if message["method"] == method]

    def _spawn(self, run: Callable[[Any], None], argument: Any) -> None:
        thread = threading.Thread(target=run, args=(argument,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with listener:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                peer = Peer(sock)
                with self._changed:
                    self.peers.append(peer)
                    self._changed.notify_all()
                self._spawn(self._serve, peer)

    def _serve(self, peer: Peer) -> None:
        with peer.socket, peer.socket.makefile("rb") as lines:
            try:
                for line in lines:
                    self._receive(peer, json.loads(line))
            except OSError:
                return

    def _receive(self, peer: Peer, message: dict[str, Any]) -> None:
        if "method" not in message:
            peer.answers.put(message)
            return
        with self._changed:
            self.requests.append(message)
            self._changed.notify_all()
        answer = self._answers.get(message["method"])
        if callable(answer):
            answer(peer, message)
        elif answer is not None:
            peer.send({"id": message["id"], "result": answer})


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    found = Daemon(str(tmp_path / "d.sock"))
    found.start()
    yield found
    found.stop()


class Loop:
    """An event loop on a thread of its own."""

    def __init__(self, factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._loop = factory()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_S)

    def close(self) -> None:
        self.run(self._no_task_left())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    async def _no_task_left(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            assert time.monotonic() < deadline, others
            await asyncio.wait(others, timeout=0.1)


class Blocking:
    """An asynchronous client, or what it hands out, behind the verbs of the blocking one."""

    def __init__(self, inner: Any, loop: Loop) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            async def run() -> Any:
                found = value(*args, **kwargs)
                return await found if asyncio.iscoroutine(found) else found

            return self._wrapped(self._loop.run(run()))

        return call

    def __enter__(self) -> Any:
        return self._wrapped(self._loop.run(self._inner.__aenter__()))

    def __exit__(self, *raised: object) -> None:
        self._loop.run(self._inner.__aexit__(*raised))

    def __iter__(self) -> Any:
        assert self._inner.__aiter__() is self._inner
        return self

    def __next__(self) -> Any:
        async def following() -> Any:
            try:
                return await self._inner.__anext__()
            except StopAsyncIteration:
                return self  # no record is this; StopIteration cannot leave a coroutine

        found = self._loop.run(following())
        if found is self:
            raise StopIteration
        return found

    def _wrapped(self, value: Any) -> Any:
        handles = (AsyncClient, AsyncExecution, AsyncRegistration, AsyncEventStream)
        return Blocking(value, self._loop) if isinstance(value, handles) else value


@pytest.fixture(params=["blocking", "asyncio", "uvloop"])
def make_client(
    request: pytest.FixtureRequest, daemon: Daemon, tmp_path: Path
) -> Iterator[Callable[..., Any]]:
    """Makes clients of the `daemon`, each test with each kind; closed at its end. Their state directory is `tmp_path`."""
    loop = None
    if request.param != "blocking":
        uvloop = pytest.importorskip("uvloop") if request.param == "uvloop" else None
        loop = Loop(uvloop.new_event_loop if uvloop else asyncio.new_event_loop)
    made: list[Any] = []

    def make(path: str | None = None, **options: Any) -> Any:
        options = {"state_dir": str(tmp_path), **options}
        kind: Any = Client if loop is None else AsyncClient
        client = kind(path or daemon.path, **options)
        made.append(client if loop is None else Blocking(client, loop))
        return made[-1]

    yield make
    for client in made:
        client.close()
    if loop is not None:
        loop.close()


@pytest.fixture
def client(make_client: Callable[..., Any]) -> Any:
    """A client of the `daemon`."""
    return make_client()


@pytest.fixture
def background() -> Iterator[Callable[..., Any]]:
    """Runs a function on a thread; gives a function that waits for its result or raises what it raised."""
    threads: list[threading.Thread] = []

    def start(run: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[[], Any]:
        done: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue()

        def work() -> None:
            try:
                done.put((run(*args, **kwargs), None))
            except BaseException as error:
                done.put((None, error))

        threads.append(threading.Thread(target=work, daemon=True))
        threads[-1].start()

        def result() -> Any:
            value, error = done.get(timeout=PATIENCE_S)
            if error is not None:
                raise error
            return value

        return result

    yield start
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
