from __future__ import annotations

import os
import sys
from pathlib import Path
from pwd import getpwuid

import pytest

from hooksd_client import paths
from hooksd_client.paths import SocketPathError


def private(path: str, uid: int) -> bool:
    return path == f"/run/user/{uid}" and uid == 1000


@pytest.mark.parametrize(
    ("env", "override", "platform", "uid", "expected"),
    [
        ({"HOOKSD_SOCKET": "/s", "XDG_RUNTIME_DIR": "/r"}, "/o/x.sock", "linux", 1000, "/o/x.sock"),
        ({"HOOKSD_SOCKET": "/s", "XDG_RUNTIME_DIR": "/r"}, None, "linux", 1000, "/s"),
        ({"HOOKSD_SOCKET": "", "XDG_RUNTIME_DIR": "/r/"}, None, "linux", 1000, "/r/hooksd/hooksd.sock"),
        ({"XDG_RUNTIME_DIR": "/r"}, None, "darwin", 501, "/r/hooksd/hooksd.sock"),
        ({}, None, "linux", 1000, "/run/user/1000/hooksd/hooksd.sock"),
        ({"XDG_RUNTIME_DIR": ""}, None, "linux", 1000, "/run/user/1000/hooksd/hooksd.sock"),
        ({"XDG_RUNTIME_DIR": "relative"}, None, "linux", 1000, "/run/user/1000/hooksd/hooksd.sock"),
        ({"HOME": "/h"}, None, "linux", 1001, "/tmp/hooksd-1001/hooksd.sock"),
        ({"TMPDIR": "/elsewhere"}, None, "darwin", 501, "/var/folders/ab/T/hooksd/hooksd.sock"),
        ({}, None, "freebsd14", 1001, "/tmp/hooksd-1001/hooksd.sock"),
        ({"HOOKSD_SOCKET": r"\\.\pipe\mine"}, None, "win32", 0, r"\\.\pipe\mine"),
        ({}, r"\\.\pipe\other", "win32", 0, r"\\.\pipe\other"),
        ({}, None, "win32", 0, r"\\.\pipe\hooksd-d7dc06764bd183e25c83a3d362e68cf6"),
    ],
)
def test_socket_path(
    env: dict[str, str], override: str | None, platform: str, uid: int, expected: str
) -> None:
    path = paths.socket_path(
        env,
        override,
        platform=platform,
        uid=uid,
        sid="S-1-5-21-1",
        is_private=private,
        user_temp_dir=lambda: "/var/folders/ab/T/",
    )

    assert path == expected


def test_a_relative_override_is_meant_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert paths.socket_path({}, "my.sock") == f"{tmp_path}/my.sock"


@pytest.mark.parametrize(
    ("env", "override", "platform", "message"),
    [
        ({}, "", "linux", "it is empty"),
        ({"HOOKSD_SOCKET": "run/x.sock"}, None, "linux", "HOOKSD_SOCKET must be an absolute path"),
        ({"HOOKSD_SOCKET": "/a\0b"}, None, "linux", "NUL"),
        (
            {"HOOKSD_SOCKET": "/" + "x" * 107},
            None,
            "linux",
            "108 bytes, and a socket address takes at most 107",
        ),
        ({"XDG_RUNTIME_DIR": "/" + "x" * 100}, None, "linux", "at most 107"),
        (
            {"HOOKSD_SOCKET": "/" + "x" * 103},
            None,
            "darwin",
            "104 bytes, and a socket address takes at most 103",
        ),
        ({"HOOKSD_SOCKET": "/" + "é" * 54}, None, "linux", "109 bytes"),
        ({}, None, "win32", "SID"),
    ],
)
def test_socket_path_errors(env: dict[str, str], override: str | None, platform: str, message: str) -> None:
    with pytest.raises(SocketPathError, match=message) as caught:
        paths.socket_path(env, override, platform=platform, uid=1, is_private=private)

    assert caught.value.reason in str(caught.value)
    assert repr(caught.value.path) in str(caught.value)


@pytest.mark.parametrize(("platform", "limit"), [("linux", 107), ("darwin", 103), ("win32", None)])
def test_the_longest_path_is_taken(platform: str, limit: int | None) -> None:
    path = "/" + "x" * ((limit or 200) - 1)

    assert paths.socket_path_limit(platform) == limit
    assert paths.socket_path({"HOOKSD_SOCKET": path}, platform=platform) == path


def test_socket_path_of_this_process() -> None:
    """With all defaults: this platform, the effective user, the disk as it is."""
    uid = os.geteuid()
    base = f"/run/user/{uid}" if paths.is_private_directory(f"/run/user/{uid}", uid) else None
    expected = f"{base}/hooksd/hooksd.sock" if base else f"/tmp/hooksd-{uid}/hooksd.sock"

    assert paths.socket_path({}, platform="linux") == expected


def test_pipe_names_differ_by_user() -> None:
    assert paths.pipe_name("S-1-5-21-1") != paths.pipe_name("S-1-5-21-2")
    assert paths.pipe_name("S-1-5-21-1") == paths.pipe_name("S-1-5-21-1")


LINUX = {"HOME": "/h"}
XDG = {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"}
WINDOWS = {"USERPROFILE": r"C:\U", "APPDATA": r"C:\A", "LOCALAPPDATA": r"C:\L"}
MAC_SUPPORT = "/h/Library/Application Support/hooksd"


@pytest.mark.parametrize(
    ("env", "platform", "config", "state", "log"),
    [
        (LINUX, "linux", "/h/.config/hooksd", "/h/.local/state/hooksd", "/h/.local/state/hooksd/hooksd.log"),
        (XDG, "linux", "/c/hooksd", "/s/hooksd", "/s/hooksd/hooksd.log"),
        (
            {**LINUX, "XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": ""},
            "linux",
            "/h/.config/hooksd",
            "/h/.local/state/hooksd",
            "/h/.local/state/hooksd/hooksd.log",
        ),
        (LINUX, "darwin", MAC_SUPPORT, MAC_SUPPORT, "/h/Library/Logs/hooksd/hooksd.log"),
        (XDG, "darwin", "/c/hooksd", "/s/hooksd", "/s/hooksd/hooksd.log"),
        (WINDOWS, "win32", r"C:\A\hooksd", r"C:\L\hooksd", r"C:\L\hooksd\Logs\hooksd.log"),
        (
            {"USERPROFILE": r"C:\U"},
            "win32",
            r"C:\U\AppData\Roaming\hooksd",
            r"C:\U\AppData\Local\hooksd",
            r"C:\U\AppData\Local\hooksd\Logs\hooksd.log",
        ),
    ],
)
def test_directories(env: dict[str, str], platform: str, config: str, state: str, log: str) -> None:
    separator = "\\" if platform == "win32" else "/"

    assert paths.config_dir(env, platform=platform, is_directory=lambda _: False) == config
    assert paths.state_dir(env, platform=platform) == state
    assert paths.log_path(env, platform=platform) == log
    assert paths.guards_file(env, platform=platform) == f"{state}{separator}guards.json"
    assert paths.launch_file(env, platform=platform) == f"{state}{separator}launch.json"
    assert (
        paths.config_file(env, platform=platform, is_directory=lambda _: False)
        == f"{config}{separator}hooksd.toml"
    )


def test_macos_keeps_a_dot_config_that_is_there() -> None:
    def found(path: str) -> bool:
        return path == "/h/.config/hooksd"

    assert paths.config_dir(LINUX, platform="darwin", is_directory=found) == "/h/.config/hooksd"


def test_files_that_were_moved() -> None:
    assert paths.config_file({"HOOKSD_CONFIG": "/x.toml"}) == "/x.toml"
    assert paths.guards_file({}, state="/st") == "/st/guards.json"
    assert paths.launch_file({}, state="/st") == "/st/launch.json"
    assert paths.log_path({}, state="/st") == "/st/hooksd.log"
    assert paths.log_path({}, platform="darwin", state="/st") == "/st/hooksd.log"


def test_runtime_dir() -> None:
    assert paths.runtime_dir(XDG, platform="linux") == "/r/hooksd"
    assert paths.runtime_dir({}, platform="linux", uid=7, is_private=private) == "/tmp/hooksd-7"
    assert paths.runtime_dir({}, platform="linux", uid=1000, is_private=private) == "/run/user/1000/hooksd"
    assert paths.runtime_dir(WINDOWS, platform="win32") == r"C:\L\hooksd\Run"


@pytest.mark.parametrize(
    ("env", "home"),
    [({"HOME": "/h/"}, "/h"), ({"HOME": "/"}, "/"), ({"HOME": "h"}, None), ({}, None)],
)
def test_home(env: dict[str, str], home: str | None) -> None:
    assert paths.home_dir(env, platform="linux") == (home or getpwuid(os.geteuid()).pw_dir)


def test_windows_home_without_a_profile_is_what_the_system_knows() -> None:
    assert paths.home_dir({}, platform="win32") == os.path.expanduser("~")


@pytest.mark.skipif(sys.platform == "darwin", reason="there it has an answer")
def test_the_temporary_directory_of_macos_is_asked_from_the_system() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        paths.darwin_user_temp_dir()


@pytest.mark.parametrize("answer", ["/var/folders/ab/T/", None])
def test_darwin_user_temp_dir(answer: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of another system cannot be had here, so it is put in its place."""
    monkeypatch.setattr(os, "confstr", lambda name: answer if name == 65537 else "")

    if answer is None:
        with pytest.raises(SocketPathError, match="HOOKSD_SOCKET"):
            paths.darwin_user_temp_dir()
    else:
        assert paths.socket_path({}, platform="darwin") == "/var/folders/ab/T/hooksd/hooksd.sock"


class TestDirectoryFault:
    def test_a_private_directory_has_none(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o700)

        assert paths.directory_fault(str(tmp_path)) is None
        assert paths.is_private_directory(str(tmp_path), os.geteuid())

    @pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o600, 0o1777])
    def test_mode(self, tmp_path: Path, mode: int) -> None:
        tmp_path.chmod(mode)

        fault = paths.directory_fault(str(tmp_path))

        assert fault == f"{tmp_path} has mode {mode & 0o777:04o}, not 0700"
        assert not paths.is_private_directory(str(tmp_path), os.geteuid())

    def test_owner(self, tmp_path: Path) -> None:
        fault = paths.directory_fault(str(tmp_path), os.geteuid() + 1)

        assert fault == f"{tmp_path} belongs to uid {os.geteuid()}, not to uid {os.geteuid() + 1}"

    def test_symbolic_link(self, tmp_path: Path) -> None:
        real, link = tmp_path / "real", tmp_path / "link"
        real.mkdir(mode=0o700)
        link.symlink_to(real)

        assert paths.directory_fault(str(link)) == f"{link} is a symbolic link"

    def test_file(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.touch(mode=0o700)

        assert paths.directory_fault(str(file)) == f"{file} is not a directory"

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            paths.directory_fault(str(tmp_path / "no"))
        assert not paths.is_private_directory(str(tmp_path / "no"), os.geteuid())
