"""Checking a configuration text or file without putting it in force (`config/validate`, and before `config/write`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from hooksd.config.assemble import SETTINGS_DIALECT
from hooksd.config.files import follow, is_missing, read_file, sign
from hooksd.config.settings_file import read_settings
from hooksd.dialects.base import Dialect
from hooksd.model.hooks import Scope
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import Origin
from hooksd.protocol.errors import ErrorCode, protocol_error


__all__ = ["check_file", "check_text", "has_errors"]


def check_text(
    text: bytes,
    dialect: str,
    dialects: Mapping[str, Dialect],
    *,
    file: str = "",
    source: str = "-",
    scope: Scope = Scope.USER,
) -> tuple[ConfigProblem, ...]:
    """Everything that is wrong with a text.

    Args:
        text: The text.
        dialect: Whose words it is written in; `SETTINGS_DIALECT` for a `hooksd.toml`.
        dialects: Those that are built in.
        file: Where it lies or is going to.
        source: The source it belongs to, which becomes part of the names of its hooks.
        scope: The scope of that source.

    Raises:
        ProtocolError: There is no such dialect (-32015).
    """
    if dialect == SETTINGS_DIALECT:
        return read_settings(text, file=file, dialects=dialects).problems
    reader = dialects.get(dialect)
    if reader is None:
        known = ", ".join([*sorted(dialects), SETTINGS_DIALECT])
        raise protocol_error(
            ErrorCode.UNKNOWN_EVENT,
            f"there is no dialect {dialect!r}; there are: {known}",
            kind="unknown_dialect",
        )
    return reader.read(text, Origin(source=source, scope=scope, file=file)).problems


def check_file(path: str, dialect: str, dialects: Mapping[str, Dialect]) -> tuple[ConfigProblem, ...]:
    """The same for a file, and why it would be refused although its text is good; each problem names the file."""
    _, directories = follow(path)
    signature = sign(path, directories)
    reading = read_file(path, signature, directories)
    if reading.file is not None:
        problems = check_text(reading.file.data, dialect, dialects, file=path)
    elif reading.problem is not None and not is_missing(signature):
        problems = (reading.problem,)
    else:
        message = "the file does not exist" if is_missing(signature) else "the file changed while it was read"
        problems = (ConfigProblem(severity=Severity.ERROR, path="", message=message),)
    return tuple(
        problem if problem.file else msgspec.structs.replace(problem, file=path) for problem in problems
    )


def has_errors(problems: Sequence[ConfigProblem]) -> bool:
    """Whether something does not work, not only looks wrong."""
    return any(problem.severity is Severity.ERROR for problem in problems)
