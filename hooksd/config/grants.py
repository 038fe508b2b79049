"""Grants of trust on disk: what was granted to which directory, with copies of the texts.

One file per project, 0600, in the 0700 directory `trust` of the state directory: a line of JSON that says whose it is
and what the digest of the rest is, then the grant. What cannot be read, is damaged, or could have been written by
somebody else is told and does not count: then nothing is granted.

A grant belongs to a *directory*: its real path, and the inode (and, until the next boot, the device) that was there.
So it is not carried along when the directory is renamed, copied or mounted elsewhere, nor taken over by another one
that is put in its place. The device counts only within one boot, because many file systems get a new number at each
mount, and a reboot must not make every project a changed one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from hooksd.config.replace import replace_file
from hooksd.model.errors import HooksdError
from hooksd.protocol.methods.trust import TrustRole


__all__ = [
    "MAX_COPY_BYTES",
    "MAX_GRANTS",
    "MAX_GRANT_BYTES",
    "DirectoryIdentity",
    "Grant",
    "GrantDamaged",
    "GrantedFile",
    "Grants",
    "identify_directory",
]

MAX_GRANTS: Final = 4096
"""Projects that can be trusted at a time."""

MAX_COPY_BYTES: Final = 262_144
"""Largest script of which a copy is kept; of a larger one only the digest, so that there is no diff of it."""

MAX_GRANT_BYTES: Final = 33_554_432
"""Largest grant with all its copies, as it is written."""

_DIRECTORY: Final = "trust"
_HEADER_BYTES: Final = 64 * 1024
_OPEN: Final = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
)
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


class DirectoryIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Which directory it is, besides its path.

    Attributes:
        device: Number of its file system, as long as the system is not booted again.
        inode: Its number there.
        boot: Which boot that was; "" where the system does not tell, and then the device does not count.
    """

    device: int
    inode: int
    boot: str

    def is_same(self, other: DirectoryIdentity) -> bool:
        """Whether both are one directory, as far as can be told."""
        if self.inode != other.inode:
            return False
        return not self.boot or self.boot != other.boot or self.device == other.device


class GrantedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was granted.

    Attributes:
        path: Relative to the project's directory.
        role: Why it is covered.
        sha256: Of its content.
        size_bytes: Of its content.
        text: The content; None for a script that is too large to be kept.
        source: Of a hooks file, the name of its source.
        dialect: Of a hooks file, the dialect that reads it.
    """

    path: str
    role: TrustRole
    sha256: str
    size_bytes: int
    text: bytes | None
    source: str = ""
    dialect: str = ""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What was granted to one directory.

    Attributes:
        root: Its real path.
        identity: Which directory it was.
        granted_at: Seconds since the epoch.
        digest: Of everything that is covered.
        files: What is covered.
    """

    root: str
    identity: DirectoryIdentity
    granted_at: float
    digest: str
    files: tuple[GrantedFile, ...]


class GrantDamaged(HooksdError):
    """A grant on disk that does not count; `root` is whose it is, "" where not even that can be read."""

    def __init__(self, root: str, path: str, why: str) -> None:
        self.root = root
        self.path = path
        super().__init__(f"the trust granted to {root or 'a project'} does not count: {path} {why}")


class _Header(msgspec.Struct, frozen=True, kw_only=True):
    root: str
    sha256: str
    version: int = 1


def identify_directory(root: str) -> DirectoryIdentity | None:
    """Which directory lies there now; None if none does."""
    try:
        status = os.stat(root, follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    return DirectoryIdentity(device=status.st_dev, inode=status.st_ino, boot=_boot())


def _boot() -> str:
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read(64).strip()
    except OSError:
        return ""


class Grants:
    """The grants in one state directory. Makes system calls; belongs to one thread.

    Args:
        state_dir: Absolute path of the state directory; it need not exist.
        tell: Told once about each different thing that is wrong.
    """

    def __init__(self, state_dir: str, tell: Callable[[str], None]) -> None:
        self._directory = os.path.join(state_dir, _DIRECTORY)
        self._tell = tell
        self._told: set[str] = set()
        self._known: dict[str, Grant | None] = {}

    def get(self, root: str) -> Grant | None:
        """What was granted to a directory, remembered until it changes through here."""
        if root not in self._known:
            if len(self._known) >= MAX_GRANTS:
                self._known.clear()
            try:
                self._known[root] = self._load(self._file(root), root)
            except GrantDamaged as damaged:
                self._report(str(damaged))
                self._known[root] = None
        return self._known[root]

    def damage(self, root: str) -> str | None:
        """Why what was granted to a directory does not count; None where it does, or nothing was."""
        try:
            self._load(self._file(root), root)
        except GrantDamaged as damaged:
            return str(damaged)
        return None

    def all(self) -> Iterator[Grant | GrantDamaged]:
        """Every grant on disk, read afresh, in no order."""
        for path in self._paths():
            try:
                grant = self._load(path, None)
            except GrantDamaged as damaged:
                yield damaged
            else:
                if grant is not None:
                    yield grant

    def forget_remembered(self) -> None:
        """Read afresh what is asked for from now on."""
        self._known.clear()

    def save(self, grant: Grant) -> None:
        """Keep a grant, in place of an earlier one to the same directory.

        Raises:
            OSError: It cannot be written; then nothing has changed.
            HooksdError: It is too large, or there are too many.
        """
        path = self._file(grant.root)
        body = msgspec.json.encode(grant)
        if len(body) > MAX_GRANT_BYTES:
            raise HooksdError(
                f"the files that a grant to {grant.root} covers take {len(body)} bytes; "
                f"the limit is {MAX_GRANT_BYTES} (MAX_GRANT_BYTES)"
            )
        if not os.path.exists(path) and sum(1 for _ in self._paths()) >= MAX_GRANTS:
            raise HooksdError(
                f"{MAX_GRANTS} projects are trusted (MAX_GRANTS); revoke one first, see `hooksd trust list`"
            )
        header = msgspec.json.encode(_Header(root=grant.root, sha256=_digest(body)))
        # One after the other: `makedirs` gives its mode to the last one only.
        os.makedirs(os.path.dirname(self._directory), mode=0o700, exist_ok=True)
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        replace_file(path, header + b"\n" + body, mode=0o600)
        self._known[grant.root] = grant

    def remove(self, root: str) -> bool:
        """Take a grant back, a damaged one too; whether there was one.

        Raises:
            OSError: It cannot be removed; it stays in force.
        """
        try:
            os.unlink(self._file(root))
        except FileNotFoundError:
            existed = False
        else:
            existed = True
            _sync(self._directory)
        self._known[root] = None
        return existed

    def _file(self, root: str) -> str:
        return os.path.join(self._directory, _digest(root.encode("utf-8", "surrogateescape"))[:32] + ".grant")

    def _paths(self) -> Iterator[str]:
        try:
            with os.scandir(self._directory) as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(".grant"))
        except FileNotFoundError:
            return
        except OSError as error:
            self._report(
                f"the trust granted to projects cannot be read ({self._directory}: {error.strerror})"
            )
            return
        for name in names[: 2 * MAX_GRANTS]:
            yield os.path.join(self._directory, name)

    def _load(self, path: str, root: str | None) -> Grant | None:
        """The grant in a file, which must be that of `root` if one is given; None if there is none."""
        whose = root or ""
        try:
            descriptor = os.open(path, _OPEN)
            try:
                why = _fault(os.fstat(descriptor))
                raw = b"" if why else _read_all(descriptor, MAX_GRANT_BYTES + _HEADER_BYTES)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            why = "is a symbolic link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
            raise GrantDamaged(whose, path, why) from None
        if why:
            raise GrantDamaged(whose, path, why)
        line, _, body = raw.partition(b"\n")
        try:
            header = msgspec.json.decode(line, type=_Header)
            whose = header.root
            if header.sha256 != _digest(body):
                raise GrantDamaged(whose, path, "is damaged")
            grant = msgspec.json.decode(body, type=Grant)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise GrantDamaged(whose, path, "is damaged") from None
        if grant.root != whose or self._file(whose) != path or whose != (root or whose):
            raise GrantDamaged(whose, path, "is that of another directory")
        return grant

    def _report(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._tell(message)


def _fault(status: os.stat_result) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "is no regular file"
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        return "is not ours alone (it must be ours, with mode 0600)"
    return None


def _read_all(descriptor: int, limit: int) -> bytes:
    parts: list[bytes] = []
    while limit > 0 and (part := os.read(descriptor, limit)):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _sync(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
