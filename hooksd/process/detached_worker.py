"""The worker of a detached hook: a small program of its own that outlives the daemon.

Run as `python -I -S detached_worker.py DIRECTORY`, with the log of the hook as stdout and stderr, and the lock of the
directory as descriptor 3. It needs nothing of hooksd, so that an update under its feet does not matter. The directory
is described in `detached_files.py`.

What is secret is removed as early as can be: the order when it was read, the payload when the hook has ended. How the
hook ended is left behind for a daemon, this one's or the next one's, which then removes the directory.

Exit status: 0 if the hook exited with 0; 1 if it did not, or could not be started; 2 for a wrong call.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any


LOCK_DESCRIPTOR = 3


def main(arguments: list[str]) -> int:
    """Run the hook that the directory orders."""
    if len(arguments) != 1:
        print("usage: detached_worker.py DIRECTORY", file=sys.stderr)  # noqa: T201 - its log
        return 2
    directory = arguments[0]
    try:
        _hold_lock(directory)
        with open(f"{directory}/order.json", encoding="ascii") as file:
            order = json.load(file)
        os.unlink(f"{directory}/order.json")
        commands, env, cwd = order["commands"], order["env"], order["cwd"]
        descriptors = order["descriptors"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"hooksd: the order of this detached hook cannot be used: {error!r}", file=sys.stderr)  # noqa: T201 - its log
        return 1
    end = _run(commands, env, cwd, descriptors)
    for name in ("payload.json", "answer.json"):
        with suppress(OSError):
            os.unlink(f"{directory}/{name}")
    _leave(directory, end)
    return 0 if end.get("exit_code") == 0 else 1


def _hold_lock(directory: str) -> None:
    """Hold the lock, also where a program in between did not hand the descriptor on; never hand it on to the hook."""
    os.closerange(LOCK_DESCRIPTOR + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    with suppress(OSError):
        os.set_inheritable(LOCK_DESCRIPTOR, False)
    fcntl.flock(os.open(f"{directory}/lock", os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_SH)


def _run(commands: list[list[str]], env: dict[str, str], cwd: str, descriptors: int | None) -> dict[str, Any]:
    # The daemon's own limit is a high one, and programs that use `select` break with it.
    if descriptors is not None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # SIGTERM is for the hook, which is in a session of its own; the worker then tells how it ended.
    process: subprocess.Popen[bytes] | None = None
    failure: dict[str, Any] = {}
    began_at = time.monotonic()
    for command in commands:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, cwd=cwd, env=env, start_new_session=True
            )
        except (OSError, ValueError) as error:
            failure = {"command": command, "errno": getattr(error, "errno", None), "why": str(error)}
            failure["file"] = getattr(error, "filename", None)
            if isinstance(error, FileNotFoundError):
                continue
        break
    if process is None:
        return {"failure": failure}
    running = process
    signal.signal(signal.SIGTERM, lambda *_: running.terminate())
    status = running.wait()
    return {
        "pid": running.pid,
        "command": running.args,
        "exit_code": status if status >= 0 else None,
        "signal": -status if status < 0 else None,
        "duration_s": time.monotonic() - began_at,
    }


def _leave(directory: str, end: dict[str, Any]) -> None:
    path = f"{directory}/end.json"
    descriptor = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        json.dump(end, file)
        file.flush()
        # A durable job that is done must not be started again because the machine went down a moment later.
        os.fsync(file.fileno())
    os.rename(f"{path}.new", path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
