"""The daemon: builds every room, and leads them through one life.

No decision about hooks is taken here. The order of things is: lock, socket, log, configuration, serve; and backwards
at the end.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from typing import Any

import msgspec

from hooksd import __version__
from hooksd.model.errors import SocketUnusable
from hooksd.service.directories import prepare_runtime_directory, prepare_state_directory
from hooksd.service.lock import DaemonLock, LockInfo
from hooksd.service.signals import SignalActions, Signals
from hooksd.service.socket import bind
from hooksd_client import paths


__all__ = ["ServeOptions", "serve"]

_INTERRUPTED = 130


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `hooksd serve` was asked for; None means the default of the platform or of the settings."""

    socket: str | None = None
    config: str | None = None
    state_dir: str | None = None
    log_file: str | None = None
    log_level: str | None = None
    log_format: str = "json"
    ready_fd: int | None = None


def serve(options: ServeOptions) -> int:
    """Run the daemon until it is told to stop.

    Returns:
        The exit status: 0 after SIGTERM or `daemon/shutdown`, 130 after SIGINT.

    Raises:
        AlreadyRunning: Another daemon serves this socket directory.
        ServiceError: Socket, lock or state directory cannot be used.
    """
    env = dict(os.environ)
    try:
        socket_path = paths.socket_path(env, options.socket)
    except paths.SocketPathError as error:
        raise SocketUnusable(error.path, error.reason) from error
    state_dir = os.path.abspath(options.state_dir) if options.state_dir else paths.state_dir(env)
    directory = os.path.dirname(socket_path)
    prepare_runtime_directory(directory)
    lock = DaemonLock.acquire(f"{directory}/daemon.lock")
    try:
        lock.write(LockInfo(pid=os.getpid(), version=__version__, socket=socket_path))
        prepare_state_directory(state_dir)
        bound = bind(socket_path)
        try:
            return _run(_main(options, bound.socket))
        finally:
            bound.close()
    finally:
        lock.release()


def _run(main: Coroutine[Any, Any, int]) -> int:
    """Run on uvloop where it is there, else on the stock loop."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


async def _main(options: ServeOptions, listener: Any) -> int:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    signals = Signals(
        loop,
        SignalActions(
            drain=lambda _: ended.set(),
            stop_now=lambda _: ended.set(),
            reload=lambda: None,
            reopen_log=lambda: None,
        ),
    )
    server = await loop.create_unix_server(asyncio.Protocol, sock=listener)
    if options.ready_fd is not None:
        os.write(options.ready_fd, b"\n")
        os.close(options.ready_fd)
    await ended.wait()
    server.close()
    signals.remove()
    return _INTERRUPTED if signals.received is signal.SIGINT else 0
