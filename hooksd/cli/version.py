"""`hooksd version`: of hooksd and of what it runs on."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata

from hooksd import __version__
from hooksd.cli.daemon_session import add_json_argument, terminal
from hooksd.cli.exit_codes import ExitCode


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "version"
HELP = "print the versions of hooksd and its parts"
EXAMPLES = """\
examples:
  hooksd version
  hooksd version --json
"""

_PARTS = ("hooksd-client", "msgspec", "uvloop", "watchdog", "structlog", "google-re2", "PyYAML", "regex")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `version`."""
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print them."""
    versions = {"hooksd": __version__, "python": platform.python_version(), "protocol": "1"}
    for part in _PARTS:
        try:
            versions[part] = metadata.version(part)
        except metadata.PackageNotFoundError:
            versions[part] = "not installed"
    if args.json:
        terminal().json(versions)
    else:
        terminal().line(f"hooksd {__version__}")
        terminal().table(
            [[name, version] for name, version in versions.items() if name != "hooksd"], indent="  "
        )
    return ExitCode.DONE
