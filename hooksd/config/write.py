"""Replacing a configuration file: only the version that the writer saw, and only by a text that is good."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from hooksd.config.check import check_text, has_errors
from hooksd.config.examine import Examined, unchanged
from hooksd.config.replace import replace_file
from hooksd.dialects.base import Dialect
from hooksd.model.errors import ProtocolError
from hooksd.model.hooks import Scope
from hooksd.protocol.errors import KINDS, ErrorCode, protocol_error


__all__ = ["StaleRevision", "WriteTarget", "write_checked"]


class StaleRevision(ProtocolError):
    """A write that was made from another revision than the one in force (-32012).

    Attributes:
        expected: What the writer had seen.
        revision: What is in force.
    """

    def __init__(self, expected: int, revision: int) -> None:
        self.expected = expected
        self.revision = revision
        super().__init__(
            ErrorCode.STALE_REVISION,
            f"revision {expected} is no longer in force, {revision} is: read the configuration again, then write",
            kind=KINDS[ErrorCode.STALE_REVISION],
        )


class WriteTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A file that may be written: its source, and what the writer saw of it."""

    name: str
    dialect: str
    scope: Scope
    examined: Examined[Any]


def write_checked(
    target: WriteTarget, content: bytes, expected_revision: int, dialects: Mapping[str, Dialect]
) -> None:
    """Replace a file by a text that has no errors, if the file still is as it was seen; call it off the loop.

    The directory is made (0700) if it is not there.

    Raises:
        StaleRevision: Somebody changed the file in the meantime.
        ProtocolError: The text has errors (-32013), or the file cannot be written (-32016).
    """
    path = target.examined.path
    problems = check_text(
        content, target.dialect, dialects, file=path, source=target.name, scope=target.scope
    )
    if has_errors(problems):
        raise protocol_error(
            ErrorCode.CONFIG_INVALID,
            f"{target.name} was not written: the text has errors, see `problems`",
            problems=problems,
        )
    if not unchanged(target.examined.probes):
        raise StaleRevision(expected_revision, expected_revision)
    try:
        os.makedirs(os.path.dirname(os.path.realpath(path)), mode=0o700, exist_ok=True)
        replace_file(path, content)
    except OSError as error:
        raise protocol_error(
            ErrorCode.NOT_PERMITTED, f"{path} cannot be written: {error.strerror}", kind="write_failed"
        ) from error
