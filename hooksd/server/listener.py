"""The listening socket: lets clients in, knows every connection, closes them at the end.

It takes a socket that is already bound and listening; where that comes from is the service room's business.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import sys
from collections.abc import Callable
from typing import Any, Final, cast

from hooksd.config.settings import Limits
from hooksd.model.records import Level, Recorder
from hooksd.server.connection import Connection, House
from hooksd.server.hangup import hangup_watch
from hooksd.server.peer import Peer, peer_of
from hooksd.server.table import Served


__all__ = ["Listener"]

MAX_CONNECTIONS: Final = 4_096
"""Connections at once, where the system's own limit on descriptors allows that many."""

BACKLOG: Final = 4_096
"""Clients that wait to be accepted. The loop listens once more, with 100 where nothing is said: a crowd of agents that
start together would find that full."""


class Listener:
    """Accepts clients of our own user, and of root, until it is closed.

    Args:
        served: The methods, and what they keep for each connection.
        record: Takes the records.
        limits: The limits that are in force now.
        max_connections: Connections at once. Default: `MAX_CONNECTIONS`, but never more than half of the descriptors
            that the process may have, so that hooks always find some.
    """

    def __init__(
        self,
        *,
        served: Served[Connection],
        record: Recorder,
        limits: Callable[[], Limits],
        max_connections: int | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._record = record
        self._hangups = hangup_watch(loop)
        self._house = House(
            served=served,
            record=record,
            hangups=self._hangups,
            limits=limits,
            admit=self._admit,
            closed=self._closed,
        )
        self._max_connections = max_connections or _default_limit()
        self._connections: set[Connection] = set()
        self._server: asyncio.AbstractServer | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        """Open connections."""
        return len(self._connections)

    async def start(self, listening: socket.socket) -> None:
        """Accept on a socket that is bound and listens; the caller keeps owning it, and closes it after `aclose`."""
        loop = asyncio.get_running_loop()
        options: dict[str, Any] = {}
        if sys.version_info >= (3, 13) and isinstance(loop, asyncio.SelectorEventLoop):
            options["cleanup_socket"] = False  # else it would remove the socket of a service manager, too
        self._server = await loop.create_unix_server(
            cast("Callable[[], asyncio.Protocol]", lambda: Connection(self._house)),
            sock=listening.dup(),  # the loop closes what it is given
            backlog=BACKLOG,
            **options,
        )

    def stop_accepting(self) -> None:
        """Take no new clients; the ones that are connected are served on."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def aclose(self, grace_s: float) -> None:
        """Close every connection once it has what was written to it, at the latest after `grace_s`.

        A second time changes nothing.
        """
        self.stop_accepting()
        for connection in list(self._connections):
            connection.close()
        try:
            async with asyncio.timeout(grace_s):
                await self._empty.wait()
        except TimeoutError:
            for connection in list(self._connections):
                connection.abort()
            await self._empty.wait()
        self._hangups.close()

    def _admit(self, client: socket.socket, connection: Connection) -> Peer | None:
        try:
            peer = peer_of(client)
        except OSError as error:
            self._refuse("credentials", error=error.strerror or type(error).__name__)
            return None
        if peer.uid not in (os.geteuid(), 0):
            self._refuse("uid", uid=peer.uid, pid=peer.pid)
            return None
        if len(self._connections) >= self._max_connections:
            self._refuse("max_connections", limit=self._max_connections, uid=peer.uid, pid=peer.pid)
            return None
        self._connections.add(connection)
        self._empty.clear()
        return peer

    def _refuse(self, why: str, **fields: object) -> None:
        self._record(Level.WARNING, "daemon.connection_refused", {"why": why, **fields})

    def _closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()


def _default_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(MAX_CONNECTIONS, soft // 2))
