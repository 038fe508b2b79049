"""Getting a socket that is connected to the user's own daemon, or a clear reason why not. Shared by both shells."""

from __future__ import annotations

import errno
import os
import socket
import struct
import time
from typing import Optional

from hooksd_client import paths
from hooksd_client.deadline import Deadline
from hooksd_client.errors import DaemonNotReachable


__all__ = ["CONNECT_RETRY_S", "CONNECT_TIMEOUT_S", "RECONNECT_MAX_S", "RECONNECT_MIN_S", "try_connect"]

CONNECT_TIMEOUT_S = 5.0
"""Longest wait for a place in the daemon's queue of new connections. A restarting daemon takes about a second."""

CONNECT_RETRY_S = 0.01
"""Pause between two tries while that queue is full: a Unix socket gives no sign when it no longer is."""

RECONNECT_MIN_S = 0.1
RECONNECT_MAX_S = 5.0
"""Pauses between tries to connect again where hooks or events are to be kept up: doubled each time up to the longest."""

_HINTS = {
    errno.ENOENT: "no socket is there; start the daemon with `hooksd serve`",
    errno.ECONNREFUSED: "nobody listens on it; the daemon has stopped, start it with `hooksd serve`",
    errno.EACCES: "permission denied; is it the daemon of another user?",
    errno.ENOTSOCK: "it is not a socket",
}


def try_connect(path: str) -> Optional[socket.socket]:
    """A connected, blocking socket; None while the listener's queue is full: try again after `CONNECT_RETRY_S`.

    Raises:
        DaemonNotReachable: There is no daemon, or the listener belongs to somebody else.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise DaemonNotReachable(path, "this Python has no Unix sockets")
    _check_directory(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Not blocking: a full queue must not hold an event loop, nor a caller past its time limit.
        connection.setblocking(False)
        connection.connect(path)
        _check_listener(connection, path)
        connection.setblocking(True)
    except BlockingIOError:
        connection.close()
        return None
    except OSError as error:
        connection.close()
        if isinstance(error, DaemonNotReachable):
            raise
        reason = _HINTS.get(error.errno or 0) or error.strerror or str(error)
        raise DaemonNotReachable(path, reason) from error
    return connection


class Connecting:
    """One attempt to get a connection, within the time that a full queue may last.

    Args:
        path: The daemon's address.
        deadline: The caller's.
    """

    def __init__(self, path: str, deadline: Deadline) -> None:
        self._path = path
        self._deadline = deadline
        self._give_up = time.monotonic() + CONNECT_TIMEOUT_S

    def once(self) -> Optional[socket.socket]:
        """Try once; None: pause for `CONNECT_RETRY_S`, then try again.

        Raises:
            DaemonNotReachable: See `try_connect`; also when the queue stays full.
            RequestTimeout: The caller's deadline passed.
        """
        connection = try_connect(self._path)
        if connection is None:
            if self._deadline.left() == 0:
                raise self._deadline.error()
            if time.monotonic() > self._give_up:
                raise DaemonNotReachable(self._path, f"it took no connection for {CONNECT_TIMEOUT_S:g} s")
        return connection


def _check_directory(path: str) -> None:
    """Where the socket lies in the shared `/tmp`, anybody could have made its directory first (protocol section 1)."""
    directory = os.path.dirname(path)
    if directory != _shared_directory():
        return
    try:
        fault = paths.directory_fault(directory)
    except OSError:
        return  # connecting will say it better
    if fault is not None:
        raise DaemonNotReachable(path, f"its directory is not safe: {fault}")


def _shared_directory() -> str:
    return f"/tmp/hooksd-{os.geteuid()}"  # noqa: S108  # of paths.runtime_dir


def _check_listener(connection: socket.socket, path: str) -> None:
    """Payloads are for the user's own daemon, or one that root runs. Root itself may talk to anybody's."""
    option = getattr(socket, "SO_PEERCRED", None)
    mine = os.geteuid()
    if option is None or mine == 0:
        return
    _pid, uid, _gid = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, option, 12))
    if uid not in (mine, 0):
        raise DaemonNotReachable(path, f"its listener belongs to uid {uid}, not to uid {mine}")
