"""What many a daemon is written like: asyncio streams, `json`, a task for each request. The yardstick of throughput.

Run as `python rpc_streams.py PATH TASKS`; with TASKS 0 every request is answered in the reading loop.
"""

from __future__ import annotations

import asyncio
import json
import sys


RESULTS = {
    "daemon/ping": {"pong": True},
    "execution/drain": {"finished": [], "cancelled": [], "still_running": []},
}


async def answer(line: bytes, writer: asyncio.StreamWriter) -> None:
    """Answer one request."""
    request = json.loads(line)
    result = RESULTS[request["method"]]
    writer.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\n")
    await writer.drain()


async def serve(path: str, tasks: bool) -> None:
    """Serve until killed."""
    running = set()

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if not tasks:
                await answer(line, writer)
                continue
            task = asyncio.create_task(answer(line, writer))
            running.add(task)
            task.add_done_callback(running.discard)

    server = await asyncio.start_unix_server(client, path)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2] == "1"))
