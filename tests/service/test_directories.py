import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hooksd.model.errors import ServiceError, SocketUnusable, UnsafePermissions
from hooksd.service.directories import prepare_runtime_directory, prepare_state_directory


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0, 0o022, 0o277])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


# The directory of the socket


def test_the_directory_is_made_for_us_alone(tmp_path: Path, umask: int) -> None:
    prepare_runtime_directory(str(tmp_path / "run"))

    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


def test_missing_directories_above_it_are_made(tmp_path: Path) -> None:
    prepare_runtime_directory(str(tmp_path / "a" / "b" / "run"))

    assert stat.S_IMODE((tmp_path / "a" / "b" / "run").stat().st_mode) == 0o700


def test_a_directory_that_others_can_only_look_into_is_taken_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    prepare_runtime_directory(str(tmp_path))

    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)

    with pytest.raises(UnsafePermissions, match=f"mode {mode:04o}.*chmod go-w"):
        prepare_runtime_directory(str(tmp_path))


def test_a_symlink_to_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(UnsafePermissions, match="no symlink"):
        prepare_runtime_directory(str(tmp_path / "link"))


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(UnsafePermissions, match="must be a directory"):
        prepare_runtime_directory(str(tmp_path / "file"))
    with pytest.raises(SocketUnusable, match="cannot make the directory"):
        prepare_runtime_directory(str(tmp_path / "file" / "run"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 12_345, 12_345)

    with pytest.raises(UnsafePermissions, match="uid 12345"):
        prepare_runtime_directory(str(tmp_path))


# The state directory


def test_the_state_directory_is_made_for_us_alone(tmp_path: Path, umask: int) -> None:
    prepare_state_directory(str(tmp_path / "hooksd"))

    assert mode(tmp_path / "hooksd") == 0o700


def test_missing_parents_are_made(tmp_path: Path) -> None:
    prepare_state_directory(str(tmp_path / ".local" / "state" / "hooksd"))

    assert mode(tmp_path / ".local" / "state" / "hooksd") == 0o700


def test_one_that_is_open_to_others_is_closed(tmp_path: Path) -> None:
    (tmp_path / "hooksd").mkdir(mode=0o755)

    prepare_state_directory(str(tmp_path / "hooksd"))

    assert mode(tmp_path / "hooksd") == 0o700


def test_it_may_lie_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "hooksd").symlink_to(tmp_path / "disk")

    prepare_state_directory(str(tmp_path / "hooksd"))


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hooksd").write_text("")

    with pytest.raises(ServiceError, match="no directory"):
        prepare_state_directory(str(tmp_path / "hooksd"))
    with pytest.raises(ServiceError, match="exists"):
        prepare_state_directory(str(tmp_path / "hooksd" / "deeper"))


def test_a_dangling_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hooksd").symlink_to(tmp_path / "nowhere")

    with pytest.raises(ServiceError, match="cannot use"):
        prepare_state_directory(str(tmp_path / "hooksd"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_one_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 12_345, 12_345)

    with pytest.raises(UnsafePermissions, match="uid 12345"):
        prepare_state_directory(str(tmp_path))
