r"""Where hooksd keeps its things: the socket-path rule of protocol section 1 and the directories of each platform.

Functions of an environment mapping; platform and uid are arguments, so that every rule can be tried anywhere. Where a
rule needs a look at the disk, the look is an argument too. Daemon and clients both use these and so always agree.

Relative values of `XDG_*` variables are ignored, as the XDG specification wants it. On macOS such a variable is obeyed
where it is set, though nothing there sets it by default.
"""

from __future__ import annotations

import os
import stat
import sys


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Mapping

__all__ = [
    "LINUX_SOCKET_LIMIT",
    "OTHER_SOCKET_LIMIT",
    "SOCKET_NAME",
    "SocketPathError",
    "config_dir",
    "config_file",
    "darwin_user_temp_dir",
    "directory_fault",
    "guards_file",
    "home_dir",
    "is_private_directory",
    "launch_file",
    "log_path",
    "pipe_name",
    "runtime_dir",
    "socket_path",
    "socket_path_limit",
    "state_dir",
]

SOCKET_NAME = "hooksd.sock"

LINUX_SOCKET_LIMIT = 107
"""Usable bytes of a socket address: `sun_path` has 108 on Linux, one of them for the final NUL."""

OTHER_SOCKET_LIMIT = 103
"""The same on macOS and the BSDs, where `sun_path` has 104."""

_CS_DARWIN_USER_TEMP_DIR = 65537
_WINDOWS = "win32"
_MACOS = "darwin"


class SocketPathError(ValueError):
    """A socket path that cannot be used.

    Attributes:
        path: The path as it was found.
        reason: What is wrong with it, with the limit where there is one.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"cannot use the socket path {path!r}: {reason}")


def socket_path(
    env: Mapping[str, str],
    override: str | None = None,
    *,
    platform: str = sys.platform,
    uid: int | None = None,
    sid: str | None = None,
    is_private: Callable[[str, int], bool] | None = None,
    user_temp_dir: Callable[[], str] | None = None,
) -> str:
    """The address of the daemon, by the rule of protocol section 1. Absolute, and short enough for an address.

    Args:
        env: The environment; `HOOKSD_SOCKET` and `XDG_RUNTIME_DIR` count.
        override: The value of `--socket`, which wins; relative to the working directory if it is relative.
        platform: As `sys.platform`.
        uid: The user; default: the effective one of this process.
        sid: The user's SID; needed on Windows unless the path is given.
        is_private: See `runtime_dir`.
        user_temp_dir: See `runtime_dir`.

    Raises:
        SocketPathError: The path is empty, relative in the environment, holds a NUL, or is too long for a socket
            address. There is no fallback: two programs must never come to different sockets.
    """
    if override is not None:
        path = override if platform == _WINDOWS or not override else os.path.abspath(override)
    elif env.get("HOOKSD_SOCKET"):
        path = env["HOOKSD_SOCKET"]
        if platform != _WINDOWS and not path.startswith("/"):
            raise SocketPathError(path, "HOOKSD_SOCKET must be an absolute path")
    elif platform == _WINDOWS:
        if sid is None:
            raise SocketPathError("", "on Windows the name of the pipe needs the SID of the user")
        path = pipe_name(sid)
    else:
        directory = runtime_dir(
            env, platform=platform, uid=uid, is_private=is_private, user_temp_dir=user_temp_dir
        )
        path = f"{directory}/{SOCKET_NAME}"
    _check_socket_path(path, platform)
    return path


def _check_socket_path(path: str, platform: str) -> None:
    if not path:
        raise SocketPathError(path, "it is empty")
    if "\0" in path:
        raise SocketPathError(path, "it holds a NUL character")
    limit = socket_path_limit(platform)
    if limit is None:
        return
    size = len(os.fsencode(path))
    if size > limit:
        raise SocketPathError(
            path,
            f"it has {size} bytes, and a socket address takes at most {limit} here; "
            "give a shorter one with --socket or HOOKSD_SOCKET",
        )


def socket_path_limit(platform: str = sys.platform) -> int | None:
    """Bytes that a socket address can hold; None where there is no such limit (Windows pipes)."""
    if platform == _WINDOWS:
        return None
    return LINUX_SOCKET_LIMIT if platform.startswith("linux") else OTHER_SOCKET_LIMIT


def runtime_dir(
    env: Mapping[str, str],
    *,
    platform: str = sys.platform,
    uid: int | None = None,
    is_private: Callable[[str, int], bool] | None = None,
    user_temp_dir: Callable[[], str] | None = None,
) -> str:
    """The directory of the socket, the locks and the short-lived files. It need not exist.

    Args:
        env: The environment; `XDG_RUNTIME_DIR` counts.
        platform: As `sys.platform`.
        uid: The user; default: the effective one of this process.
        is_private: Says whether `/run/user/<uid>` is the user's own with mode 0700; default: `is_private_directory`.
        user_temp_dir: Gives the user's own temporary directory on macOS; default: `darwin_user_temp_dir`.
    """
    if platform == _WINDOWS:
        return _local_app_data(env) + "\\Run"
    base = _absolute(env, "XDG_RUNTIME_DIR")
    if base is not None:
        return f"{base}/hooksd"
    if uid is None:
        uid = os.geteuid()
    if platform == _MACOS:
        return (user_temp_dir or darwin_user_temp_dir)().rstrip("/") + "/hooksd"
    # A login without XDG_RUNTIME_DIR (ssh with a command, cron) still has the directory of the user's manager.
    base = f"/run/user/{uid}"
    if (is_private or is_private_directory)(base, uid):
        return f"{base}/hooksd"
    return f"/tmp/hooksd-{uid}"  # noqa: S108  # its owner and mode are checked by whoever uses it


def directory_fault(path: str, uid: int | None = None) -> str | None:
    """Look at the disk: what keeps a directory from being private to a user, or None if it is.

    Private means: a real directory (no symbolic link), owned by the user, open to the owner only (0700).

    Raises:
        OSError: It cannot be looked at; `FileNotFoundError` if it is not there.
    """
    if uid is None:
        uid = os.geteuid()
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        return f"{path} is a symbolic link"
    if not stat.S_ISDIR(found.st_mode):
        return f"{path} is not a directory"
    if found.st_uid != uid:
        return f"{path} belongs to uid {found.st_uid}, not to uid {uid}"
    if stat.S_IMODE(found.st_mode) & 0o777 != stat.S_IRWXU:
        return f"{path} has mode {stat.S_IMODE(found.st_mode) & 0o777:04o}, not 0700"
    return None


def is_private_directory(path: str, uid: int) -> bool:
    """Whether `path` is there and `directory_fault` finds nothing. Looks at the disk."""
    try:
        return directory_fault(path, uid) is None
    except OSError:
        return False


def darwin_user_temp_dir() -> str:
    """The user's own temporary directory on macOS: from the system, since `TMPDIR` may have been changed."""
    found = os.confstr(_CS_DARWIN_USER_TEMP_DIR)
    if not found:
        raise SocketPathError("", "the system names no temporary directory of the user; set HOOKSD_SOCKET")
    return found


def pipe_name(sid: str) -> str:
    """The name of the Windows pipe of the user with this SID (`S-1-5-21-…`)."""
    from hashlib import sha256  # only Windows needs it

    return "\\\\.\\pipe\\hooksd-" + sha256(sid.encode()).hexdigest()[:32]


def config_dir(
    env: Mapping[str, str],
    *,
    platform: str = sys.platform,
    is_directory: Callable[[str], bool] = os.path.isdir,
) -> str:
    """The directory of `hooksd.toml`, `hooks.json` and `hooks.yaml`.

    Args:
        env: The environment; `XDG_CONFIG_HOME` and `HOME` count (Windows: `APPDATA`, `USERPROFILE`).
        platform: As `sys.platform`.
        is_directory: On macOS says whether `~/.config/hooksd` is there, which wins over `~/Library` if it is.
    """
    if platform == _WINDOWS:
        return (env.get("APPDATA") or home_dir(env, platform=platform) + "\\AppData\\Roaming") + "\\hooksd"
    base = _absolute(env, "XDG_CONFIG_HOME")
    if base is not None:
        return f"{base}/hooksd"
    home = home_dir(env, platform=platform)
    path = f"{home}/.config/hooksd"
    if platform == _MACOS and not is_directory(path):
        return f"{home}/Library/Application Support/hooksd"
    return path


def config_file(
    env: Mapping[str, str],
    *,
    platform: str = sys.platform,
    is_directory: Callable[[str], bool] = os.path.isdir,
) -> str:
    """The file of settings: `HOOKSD_CONFIG`, else `hooksd.toml` in `config_dir`."""
    given = env.get("HOOKSD_CONFIG")
    if given:
        return given
    return _join(config_dir(env, platform=platform, is_directory=is_directory), "hooksd.toml", platform)


def state_dir(env: Mapping[str, str], *, platform: str = sys.platform) -> str:
    """The directory of what must outlive a reboot: outbox, trust, last good configuration, guards."""
    if platform == _WINDOWS:
        return _local_app_data(env)
    base = _absolute(env, "XDG_STATE_HOME")
    if base is not None:
        return f"{base}/hooksd"
    home = home_dir(env, platform=platform)
    if platform == _MACOS:
        return f"{home}/Library/Application Support/hooksd"
    return f"{home}/.local/state/hooksd"


def log_path(env: Mapping[str, str], *, platform: str = sys.platform, state: str | None = None) -> str:
    """The log file. `state` is the state directory where it was given on the command line: the log goes with it."""
    if state is None and platform == _MACOS and _absolute(env, "XDG_STATE_HOME") is None:
        return f"{home_dir(env, platform=platform)}/Library/Logs/hooksd/hooksd.log"
    base = state_dir(env, platform=platform) if state is None else state
    return _join(base, "Logs\\hooksd.log" if platform == _WINDOWS else "hooksd.log", platform)


def guards_file(env: Mapping[str, str], *, platform: str = sys.platform, state: str | None = None) -> str:
    """The events that are answered closed while no daemon can be reached (design rule 2)."""
    return _join(state_dir(env, platform=platform) if state is None else state, "guards.json", platform)


def launch_file(env: Mapping[str, str], *, platform: str = sys.platform, state: str | None = None) -> str:
    """The command that starts a daemon for a client."""
    return _join(state_dir(env, platform=platform) if state is None else state, "launch.json", platform)


def home_dir(env: Mapping[str, str], *, platform: str = sys.platform) -> str:
    """The home directory: `HOME` (Windows: `USERPROFILE`), else, where that is not set, what the system knows."""
    if platform == _WINDOWS:
        return env.get("USERPROFILE") or os.path.expanduser("~")
    home = _absolute(env, "HOME")
    if home is not None:
        return home
    from pwd import getpwuid  # rare: a service or container without HOME

    return getpwuid(os.geteuid()).pw_dir


def _local_app_data(env: Mapping[str, str]) -> str:
    base = env.get("LOCALAPPDATA") or home_dir(env, platform=_WINDOWS) + "\\AppData\\Local"
    return base + "\\hooksd"


def _absolute(env: Mapping[str, str], name: str) -> str | None:
    """The value of a variable that names a directory, without its last slash; None if it is unset or relative."""
    value = env.get(name, "")
    return (value.rstrip("/") or "/") if value.startswith("/") else None


def _join(directory: str, name: str, platform: str) -> str:
    return directory + ("\\" if platform == _WINDOWS else "/") + name
