"""Write the reference pages from the program itself: `python docs/generate.py` (a test holds that they are up to date).

Settings, limits, methods, errors, problem kinds, events, commands and exit codes are all taken from the structs, enums
and parsers that the program runs with, so that the pages cannot tell something else.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import sys
from collections.abc import Iterable, Mapping
from enum import EnumMeta
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.main import COMMANDS
from hooksd.config.settings import Settings
from hooksd.config.settings_schema import descriptions
from hooksd.dialects import DIALECTS
from hooksd.model.problems import ProblemKind
from hooksd.protocol import errors
from hooksd.protocol.methods import METHODS


HEAD = "<!-- Made by docs/generate.py from the program; do not edit. -->\n\n"
REFERENCE = Path(__file__).parent / "reference"


def pages() -> dict[str, str]:
    """Every page by its file name."""
    made = {
        "settings.md": settings(),
        "methods.md": methods(),
        "errors.md": error_codes(),
        "problems.md": problem_kinds(),
        "events.md": events(),
        "commands.md": commands(),
    }
    return {name: HEAD + text.rstrip() + "\n" for name, text in made.items()}


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    names = list(header)
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += [
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def member_docs(kind: type | EnumMeta) -> dict[str, str]:
    """The docstrings below the members of an enum or the attributes of a struct."""
    found: dict[str, str] = {}
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)
    for one, below in zip(tree.body, tree.body[1:], strict=False):
        target = one.targets[0] if isinstance(one, ast.Assign) else getattr(one, "target", None)
        if (
            isinstance(target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[target.id] = " ".join(str(below.value.value).split())
    return found


def attributes(doc: str) -> dict[str, str]:
    """The entries of the `Attributes:` section of a Google-style docstring."""
    found: dict[str, str] = {}
    _, _, section = inspect.cleandoc(doc).partition("Attributes:\n")
    name = ""
    for line in section.splitlines():
        if not line.startswith("    "):
            break
        if not line.startswith("     ") and ":" in line:
            name, _, text = line.strip().partition(":")
            found[name] = text.strip()
        elif name:
            found[name] += " " + line.strip()
    return found


def summary(doc: str | None) -> str:
    """The text before the first section."""
    text = inspect.cleandoc(doc or "")
    return text.partition("\n\nAttributes:")[0].strip()


def settings() -> str:
    told = descriptions()
    parts = ["# Settings: `hooksd.toml`\n\nEverything is optional. Unknown keys are errors.\n"]
    for field in msgspec.structs.fields(Settings):
        kind = type(field.default) if isinstance(field.default, msgspec.Struct) else None
        if kind is None:
            args = getattr(field.type, "__args__", ())
            kind = next(arg for arg in args if isinstance(arg, type) and issubclass(arg, msgspec.Struct))
            parts.append(f"## `[[{field.encode_name}]]`\n\n{summary(kind.__doc__)}\n")
        else:
            parts.append(f"## `[{field.encode_name}]`\n\n{summary(kind.__doc__)}\n")
        rows = []
        for key in msgspec.structs.fields(kind):
            required = key.default is msgspec.NODEFAULT and key.default_factory is msgspec.NODEFAULT
            default = "required" if required else f"`{shown(default_of(key))}`"
            rows.append((f"`{key.encode_name}`", default, told.get(kind.__name__, {}).get(key.name, "")))
        parts.append(table(("key", "default", "what it does, and why"), rows))
    return "\n".join(parts)


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def shown(value: Any) -> str:
    if value is None:
        return "none"
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def methods() -> str:
    parts = [
        "# Methods of the wire protocol\n\nOne JSON-RPC 2.0 message, or one batch, per line over the Unix socket. "
        "`hooksd schema methods` prints the same as JSON Schema. An unknown field in params is an error; clients ignore unknown fields in results.\n"
    ]
    for method in METHODS.values():
        parts.append(f"## `{method.name}`\n\n{method.summary} ({method.kind.value})\n")
        parts.append(struct_text("params", method.params))
        if method.result is not None:
            parts.append(struct_text("result", method.result))
    return "\n".join(part for part in parts if part)


def struct_text(title: str, kind: type[msgspec.Struct]) -> str:
    fields = msgspec.structs.fields(kind)
    if not fields:
        return ""
    told = {**attributes(kind.__doc__ or ""), **member_docs(kind)}
    rows = []
    for field in fields:
        required = field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT
        optional = "" if required or title == "result" else "?"
        rows.append(
            (f"`{field.encode_name}`{optional}", f"`{type_text(field.type)}`", told.get(field.name, ""))
        )
    return f"**{title}**: {summary(kind.__doc__)}\n\n" + table(("field", "type", ""), rows)


def type_text(kind: Any) -> str:
    schema = msgspec.json.schema(kind)
    return json_type(schema, schema.get("$defs", {}))


def json_type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        found = definitions.get(name, {})
        return " / ".join(f'"{value}"' for value in found["enum"]) if "enum" in found else name
    if "anyOf" in schema:
        return " / ".join(json_type(one, definitions) for one in schema["anyOf"])
    if "enum" in schema:
        return " / ".join(json.dumps(value) for value in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items")
        return f"[{json_type(items, definitions) if isinstance(items, Mapping) else 'any'}]"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"{{text: {json_type(schema['additionalProperties'], definitions)}}}"
    return {"string": "text", None: "any"}.get(kind, str(kind))


def error_codes() -> str:
    told = member_docs(errors.ErrorCode)
    rows = [
        (f"`{code.value}`", code.name.lower().replace("_", " "), told.get(code.name, ""))
        for code in errors.ErrorCode
    ]
    return (
        "# Error codes\n\n`data` of an error is always `{kind, detail?, problems?}`, never a traceback.\n\n"
        + table(("code", "name", "when"), rows)
    )


def problem_kinds() -> str:
    told = member_docs(ProblemKind)
    rows = [(f"`{kind.value}`", told.get(kind.name, "")) for kind in ProblemKind]
    return (
        "# Kinds of problems\n\nWhat can be wrong with one run of a hook, or with a dispatch (`problem.kind`).\n\n"
        + table(("kind", "meaning"), rows)
    )


def events() -> str:
    parts = [
        "# Events\n\nEvery dialect's own names and the dotted ones; both are accepted wherever an event is named.\n"
    ]
    for name, dialect in DIALECTS.items():
        rows = [
            (f"`{native}`", f"`{normal.value}`", "gate" if native in dialect.gates else "observer")
            for native, normal in dialect.events.items()
        ]
        parts.append(f"## {name}\n\n" + table(("event", "dotted name", "its outcome"), rows))
    return "\n".join(parts)


def commands() -> str:
    parts = ["# Commands\n\nData on stdout, messages on stderr. `--json` is stable.\n"]
    for name, module in COMMANDS.items():
        command = import_module(module)
        parser = argparse.ArgumentParser(prog=f"hooksd {name}", add_help=False, formatter_class=Wide)
        command.add_arguments(parser)
        text = parser.format_help().replace("usage: ", "", 1)
        parts.append(f"## `hooksd {name}`\n\n{command.HELP[:1].upper()}{command.HELP[1:]}.\n")
        parts.append(f"```\n{command.EXAMPLES.rstrip()}\n\n{text.rstrip()}\n```\n")
    told = member_docs(ExitCode)
    rows = [(code.value, code.name.lower().replace("_", " "), told.get(code.name, "")) for code in ExitCode]
    parts.append("## Exit codes\n\n" + table(("code", "name", ""), rows))
    return "\n".join(parts)


class Wide(argparse.HelpFormatter):
    """A fixed width, so that the page does not depend on a terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100, max_help_position=32)


def main() -> int:
    """Write the pages; with `--check`, only say whether they are up to date."""
    check = sys.argv[1:] == ["--check"]
    stale = []
    REFERENCE.mkdir(exist_ok=True)
    for name, text in pages().items():
        path = REFERENCE / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{'stale' if check else 'wrote'} docs/reference/{name}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
