"""Who is at the other end of a connection: the kernel's word, never the client's.

One function per way an operating system tells it. Nothing here decides anything.
"""

from __future__ import annotations

import socket
import struct
import sys

import msgspec


__all__ = ["MAX_DEPTH_DIGITS", "Peer", "depth_of_process", "parse_depth", "peer_of"]

MAX_DEPTH_DIGITS = 6
"""Digits of a depth that are believed; a longer number is no depth of ours."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """The process that connected, as it was then.

    Attributes:
        uid: Its effective user id.
        pid: Its process id; None where the system does not tell.
    """

    uid: int
    pid: int | None


def _linux(connection: socket.socket) -> Peer:
    layout = struct.Struct("3i")
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, layout.size)
    pid, uid, _ = layout.unpack(raw)
    return Peer(uid=uid, pid=pid or None)


def _darwin(connection: socket.socket) -> Peer:
    # <sys/un.h>, <sys/ucred.h>: SOL_LOCAL 0, LOCAL_PEERCRED 1, LOCAL_PEERPID 2; struct xucred begins with version, uid.
    head = struct.Struct("Ii")
    raw = connection.getsockopt(0, 1, 76)
    version, uid = head.unpack_from(raw)
    if version != 0:
        raise OSError(f"LOCAL_PEERCRED gave version {version}, only 0 is known")
    (pid,) = struct.unpack("i", connection.getsockopt(0, 2, 4))
    return Peer(uid=uid, pid=pid or None)


def peer_of(connection: socket.socket) -> Peer:
    """The process at the other end of a connected Unix socket.

    Raises:
        OSError: The system does not tell; the connection must then be refused.
    """
    return _darwin(connection) if sys.platform == "darwin" else _linux(connection)


def depth_of_process(pid: int | None) -> int | None:
    """How deep in hooks of ours a process runs: `HOOKSD_DEPTH` of its own environment.

    None where it has none, or where that cannot be read (it has gone, or the system does not show environments); the
    environment that a request names is then all there is.
    """
    if pid is None:
        return None
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError:
        return None
    for variable in environment.split(b"\0"):
        if variable.startswith(b"HOOKSD_DEPTH="):
            return parse_depth(variable[13:].decode("ascii", "replace"))
    return None


def parse_depth(text: str) -> int | None:
    """The number in a `HOOKSD_DEPTH`; None for anything that hooksd does not write there."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DEPTH_DIGITS else None
