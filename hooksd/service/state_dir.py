"""The state directory: trust, last good configuration, logs; ours alone."""

from __future__ import annotations

import os
import stat

from hooksd.model.errors import ServiceError, UnsafePermissions


__all__ = ["prepare_state_directory"]


def prepare_state_directory(path: str) -> None:
    """Make sure that the directory is there, ours, and closed to others (0700).

    A directory of ours that is open to others is closed, since it may have been made by hand.

    Raises:
        UnsafePermissions: It belongs to somebody else.
        ServiceError: It cannot be made or is no directory.
    """
    try:
        os.makedirs(os.path.dirname(path) or "/", mode=0o755, exist_ok=True)
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise ServiceError(f"cannot make the state directory {path}: {error.strerror}") from error
    try:
        # The state directory may be a symlink of the user's (to another disk): what counts is where it leads.
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            raise ServiceError(f"the state directory {path} is no directory")
        if status.st_uid != os.geteuid():
            raise UnsafePermissions(
                path, f"it belongs to uid {status.st_uid}, not to us (uid {os.geteuid()})"
            )
        if stat.S_IMODE(status.st_mode) & 0o077:
            os.chmod(path, 0o700)
    except OSError as error:
        raise ServiceError(f"cannot use the state directory {path}: {error.strerror}") from error
