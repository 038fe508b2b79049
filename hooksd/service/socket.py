"""A Unix socket that is bound safely: nobody's live socket is taken, nothing foreign is removed.

The caller holds the daemon's lock before it comes here, so whatever still lies at the path has no living owner among
our daemons. asyncio's and uvloop's own `path=` are never used: both unlink what lies there, a live socket too.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys

from hooksd.model.errors import SocketUnusable


__all__ = ["MAX_PATH_BYTES", "BoundSocket", "bind"]

MAX_PATH_BYTES = 107 if sys.platform == "linux" else 103
"""Longest path of a Unix socket: `sun_path` less its final zero."""

_BACKLOG = 4096
"""Connections that wait to be accepted; the kernel lowers it to its own limit. Agents start in crowds."""

_PROBE_TIMEOUT_S = 1.0
"""How long a connection attempt may take that finds out whether somebody listens."""


class BoundSocket:
    """A listening socket of ours and the file it made.

    Attributes:
        socket: The listening socket, not blocking.
        path: Where it lies.
        owned: Whether the file is ours to remove; False for a socket that a service manager handed over.
    """

    def __init__(self, listener: socket.socket, path: str, *, owned: bool) -> None:
        self.socket = listener
        self.path = path
        self.owned = owned
        status = os.lstat(path) if owned else None
        self._identity = (status.st_dev, status.st_ino) if status else None

    def close(self) -> None:
        """Close it, and remove the file if it is still the one we made."""
        self.socket.close()
        if self._identity is None:
            return
        try:
            status = os.lstat(self.path)
            if (status.st_dev, status.st_ino) == self._identity:
                os.unlink(self.path)
        except FileNotFoundError:
            pass  # somebody was quicker; it is gone, which is what was wanted


def bind(path: str) -> BoundSocket:
    """Bind and listen, mode 0600, after the removal of a socket that nobody serves any more.

    Raises:
        SocketUnusable: The path is too long, what lies there is no socket of ours, or somebody serves it.
    """
    size = len(os.fsencode(path))
    if size > MAX_PATH_BYTES:
        raise SocketUnusable(
            path, f"it is {size} bytes long, a socket path can have {MAX_PATH_BYTES}; choose a shorter one"
        )
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Between bind and chmod the file has the mode that the umask leaves; until `listen` nobody can connect.
        umask = os.umask(0o077)
        try:
            listener.bind(path)
        finally:
            os.umask(umask)
        os.chmod(path, 0o600)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        return BoundSocket(listener, path, owned=True)
    except OSError as error:
        listener.close()
        raise SocketUnusable(path, error.strerror or str(error)) from error


def _clear(path: str) -> None:
    """Remove a stale socket; leave everything else alone."""
    try:
        status = os.lstat(path)
        if not stat.S_ISSOCK(status.st_mode):
            raise SocketUnusable(
                path, "something that is no socket lies there; move it away or choose another path"
            )
        if status.st_uid != os.geteuid():
            raise SocketUnusable(path, f"a socket of uid {status.st_uid} lies there; choose another path")
        if _is_served(path):
            raise SocketUnusable(
                path, "a program that is no hooksd of this directory listens there; choose another path"
            )
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SocketUnusable(path, error.strerror or str(error)) from error


def _is_served(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_TIMEOUT_S)
        try:
            probe.connect(path)
        except OSError as error:
            # A full backlog (EAGAIN) or no answer in time mean that somebody holds it.
            return error.errno not in {errno.ECONNREFUSED, errno.ENOENT}
        return True
