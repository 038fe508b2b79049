"""`hooksd schema`: JSON Schemas for editors and programs, made from the structs that read the real thing."""

from __future__ import annotations

import argparse
from typing import Any

from hooksd.cli.daemon_session import fail, terminal
from hooksd.cli.exit_codes import ExitCode


__all__ = ["EXAMPLES", "HELP", "NAME", "SCHEMAS", "add_arguments", "run", "schema"]

NAME = "schema"
HELP = "print the JSON Schema of a configuration file or of the wire methods"
EXAMPLES = """\
examples:
  hooksd schema hooks.json > hooks.schema.json
  hooksd schema hooks.yaml > hooks.yaml.schema.json
  hooksd schema hooksd.toml
  hooksd schema methods
"""

SCHEMAS = ("hooks.json", "hooks.yaml", "hooksd.toml", "methods")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `schema`."""
    parser.add_argument("name", metavar="NAME", choices=SCHEMAS, help=f"one of {', '.join(SCHEMAS)}")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    terminal().json(schema(args.name))
    return ExitCode.DONE


def schema(name: str) -> dict[str, Any]:
    """The schema of that name as an object (JSON Schema 2020-12)."""
    if name == "hooks.json":
        from hooksd.dialects.bamboo_schema import hooks_json_schema

        return hooks_json_schema()
    if name == "hooks.yaml":
        from hooksd.dialects.chrys_schema import hooks_yaml_schema

        return hooks_yaml_schema()
    if name == "hooksd.toml":
        from hooksd.config.settings_schema import settings_schema

        return settings_schema()
    if name == "methods":
        from hooksd.protocol.schema import methods_schema

        return methods_schema()
    fail(ExitCode.USAGE, f"no schema {name!r}; there are {', '.join(SCHEMAS)}")
