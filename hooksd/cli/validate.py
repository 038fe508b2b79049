"""`hooksd validate`: check configuration files, every problem with file, line, path and what to do.

It reads the files itself, so it works without a daemon and on files that no daemon uses yet.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import msgspec

from hooksd.cli import render
from hooksd.cli.daemon_session import add_json_argument, fail, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.terminal import safe
from hooksd.config.files import MAX_FILE_BYTES
from hooksd.config.settings import Settings
from hooksd.config.settings_file import read_settings
from hooksd.config.sources import base_sources
from hooksd.dialects import DIALECTS
from hooksd.model.hooks import Scope
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import Origin
from hooksd_client import paths


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "validate"
HELP = "check configuration files: every problem with file, line, path and hint"
EXAMPLES = """\
examples:
  hooksd validate                             hooksd.toml and every source that it names
  hooksd validate ~/.bamboo/hooks.json
  hooksd validate .chrys/hooks/hooks.yaml
  hooksd validate team.json --dialect bamboo
exit status: 0 no error (warnings are told), 1 an error
"""

_SETTINGS = "hooksd.toml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `validate`."""
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="files to check (default: all that is configured)"
    )
    parser.add_argument(
        "--dialect", choices=[*DIALECTS, "hooksd"], help="what the files are written in (default: by name)"
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Check; 1 when there is an error, not for warnings."""
    wanted = [(file, args.dialect or _dialect_of(file)) for file in args.files] or _configured()
    speaker = terminal()
    told: list[dict[str, Any]] = []
    for file, dialect in wanted:
        problems, hooks = _check(file, dialect)
        told.append({"file": file, "dialect": dialect, "hooks": hooks, "problems": problems})
    errors = any(problem.severity is Severity.ERROR for entry in told for problem in entry["problems"])
    if args.json:
        speaker.json({"valid": not errors, "files": msgspec.to_builtins(told)})
        return ExitCode.NO if errors else ExitCode.DONE
    for entry in told:
        count = len(entry["problems"])
        word = speaker.style("ok", "green") if not count else _counted(count, "problem")
        what = (
            "hooksd"
            if entry["dialect"] == "hooksd"
            else f"{entry['dialect']}, {_counted(entry['hooks'], 'hook')}"
        )
        speaker.line(f"{safe(entry['file'])} ({what}): {word}")
        render.config_problems(
            speaker, msgspec.to_builtins(entry["problems"]), file=entry["file"], indent="  "
        )
    if not told:
        speaker.line("nothing is configured yet; `hooksd init` writes a starter file")
    return ExitCode.NO if errors else ExitCode.DONE


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _dialect_of(file: str) -> str:
    name = os.path.basename(file)
    if name.endswith(".toml"):
        return "hooksd"
    if name.endswith((".yaml", ".yml")):
        return "chrys"
    if name.endswith(".json"):
        return "chrys" if ".chrys" in os.path.abspath(file).split(os.sep) else "bamboo"
    fail(ExitCode.USAGE, f"{safe(file)}: the dialect cannot be told from the name", "say it with --dialect")


def _configured() -> list[tuple[str, str]]:
    settings_path = os.environ.get("HOOKSD_CONFIG") or paths.config_file(os.environ)
    found = []
    settings = Settings()
    if os.path.exists(settings_path):
        found.append((settings_path, "hooksd"))
        try:
            with open(settings_path, "rb") as file:
                settings = read_settings(file.read(MAX_FILE_BYTES), file=settings_path).settings or settings
        except OSError:
            # Told by the check of the file itself.
            pass
    sources = base_sources(
        settings,
        env=os.environ,
        home=paths.home_dir(os.environ),
        config_dir=paths.config_dir(os.environ),
    )
    for source in sources:
        path = next((candidate for candidate in source.candidates if os.path.exists(candidate)), None)
        if path is not None and source.enabled and source.dialect in DIALECTS:
            found.append((path, source.dialect))
    return found


def _check(file: str, dialect: str) -> tuple[list[ConfigProblem], int]:
    try:
        with open(file, "rb") as stream:
            text = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return [_unread(f"cannot be read: {error.strerror}")], 0
    if len(text) > MAX_FILE_BYTES:
        return [_unread(f"is longer than {MAX_FILE_BYTES} bytes (MAX_FILE_BYTES)")], 0
    if dialect == "hooksd":
        return list(read_settings(text, file=file).problems), 0
    document = DIALECTS[dialect].read(
        text, Origin(source="file", scope=Scope.USER, file=os.path.abspath(file))
    )
    active = sum(1 for hook in document.hooks if hook.inactive is None and hook.load_problem is None)
    return list(document.problems), active


def _unread(message: str) -> ConfigProblem:
    return ConfigProblem(severity=Severity.ERROR, path="", message=message)
