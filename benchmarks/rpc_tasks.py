"""The daemon's listener with one method that needs a task and does nothing: what a task costs by itself.

Run as `python -m benchmarks.rpc_tasks PATH`.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from typing import Any

from hooksd.config.settings import Limits
from hooksd.protocol.methods import METHODS
from hooksd.server.connection import Connection
from hooksd.server.listener import Listener
from hooksd.server.table import Entry, MethodTable, Step


class Served:
    """`execution/drain`, which does as little as the yardstick's."""

    def __init__(self) -> None:
        self.table: MethodTable[Connection] = {
            "execution/drain": Entry(
                METHODS["execution/drain"], lambda _, __: Step(self._drain()), names_execution=True
            )
        }

    async def _drain(self) -> Any:
        return {"finished": (), "cancelled": (), "still_running": ()}

    def half_closed(self, connection: Connection) -> None:
        """Nothing is kept."""

    def gone(self, connection: Connection) -> None:
        """Nothing is kept."""


async def serve(path: str) -> None:
    """Serve until killed."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.setblocking(False)
        listening.bind(path)
        listening.listen()
        listener = Listener(served=Served(), record=lambda *_: None, limits=Limits)
        await listener.start(listening)
        gc.freeze()
        await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(sys.argv[1]))
    else:
        uvloop.run(serve(sys.argv[1]))
