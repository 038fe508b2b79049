"""`hooksd init`: write a starter configuration that explains itself, and never overwrite one."""

from __future__ import annotations

import argparse
import json
import os

from hooksd.cli.daemon_session import add_json_argument, fail, terminal
from hooksd.cli.exit_codes import ExitCode
from hooksd.cli.schema import schema
from hooksd.cli.terminal import safe
from hooksd_client import paths


__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]

NAME = "init"
HELP = "write a starter configuration with an example hook"
EXAMPLES = """\
examples:
  hooksd init                       hooks.json in the configuration directory, for every agent
  hooksd init --dialect chrys       hooks.yaml there, in Chrys' terms
  hooksd init --dialect hooksd      hooksd.toml, every setting explained
  hooksd init --directory ./conf
"""

_GUARD = """\
#!/usr/bin/env bash
# PreToolUse: never force-push. Exit 2 blocks, and what is on stderr is the reason the agent sees.
# The event comes as one JSON object on stdin. Try it: hooksd test PreToolUse
set -euo pipefail
event=$(cat)
if [[ $event =~ git[[:space:]]+push[^\\"]*(--force|[[:space:]]-f)([[:space:]\\"]) ]]; then
    echo "force-pushing is forbidden here" >&2
    exit 2
fi
"""

_HOOKS_YAML = """\
# yaml-language-server: $schema=./hooks.yaml.schema.json
# Hooks in Chrys' terms. They run in the order of this file; scripts are relative to it.
version: 1

settings:
  max_parallel_hooks: 4         # background hooks of this file at the same time

hooks:
  - id: protect-etc
    description: No tool writes below /etc.
    event: before_tool_call
    match:                      # every condition must hold; all are exact
      tool_kind: filesystem.write
      args:
        path: {regex: "^/etc/"}
    run: {type: script, path: scripts/protect_etc.py}
    execution:
      mode: blocking            # the default, fire_and_forget, can stop nothing
      timeout_seconds: 5
      on_error: block           # if the script itself fails
"""

_PROTECT = """\
#!/usr/bin/env python3
# before_tool_call: the event is a JSON file, and so is the answer; nothing in it means no objection.
import json
import os

with open(os.environ["CHRYS_HOOK_PAYLOAD_FILE"]) as file:
    event = json.load(file)
with open(os.environ["CHRYS_HOOK_RESULT"], "w") as file:
    json.dump({"action": "block", "reason": f"{event['tool']['name']} may not write below /etc"}, file)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `init`."""
    parser.add_argument(
        "--dialect",
        choices=["bamboo", "chrys", "hooksd"],
        default="bamboo",
        help="hooks.json, hooks.yaml, or hooksd.toml (default: bamboo)",
    )
    parser.add_argument(
        "--directory", metavar="DIR", help="where to write (default: the configuration directory)"
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Write the files; 1 when the configuration is there already."""
    directory = os.path.abspath(args.directory or paths.config_dir(os.environ))
    files = _FILES[args.dialect](directory)
    main_file = os.path.join(directory, next(iter(files)))
    if os.path.lexists(main_file):
        fail(
            ExitCode.NO,
            f"{safe(main_file)} is there already and was left alone",
            "`hooksd validate` checks it",
        )
    written = []
    try:
        for name, (text, mode) in files.items():
            path = os.path.join(directory, name)
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            if name != next(iter(files)) and os.path.lexists(path):
                continue
            # Exclusive: somebody else's file is never overwritten, not even one made this instant.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
    except OSError as error:
        fail(ExitCode.NO, f"cannot write {safe(error.filename)}: {error.strerror}")
    speaker = terminal()
    if args.json:
        speaker.json({"written": written})
        return ExitCode.DONE
    for path in written:
        speaker.line(f"wrote {safe(path)}")
    if args.dialect == "bamboo":
        speaker.message(
            "Each event has groups; each group a `matcher` (RE2, on the tool name) and hooks, run in order."
        )
        speaker.message("next: `hooksd validate`, then `hooksd test PreToolUse` with the daemon running")
    elif args.dialect == "chrys":
        speaker.message(
            "Hooks run in the order of the file; only those with `mode: blocking` can stop or change anything."
        )
        speaker.message(
            "next: `hooksd validate`, then `hooksd test before_tool_call --dialect chrys` with the daemon running"
        )
    return ExitCode.DONE


def _bamboo_files(directory: str) -> dict[str, tuple[str, int]]:
    body = {
        "$schema": "./hooks.schema.json",
        "lifecycle_hooks": {
            "enabled": True,
            "PreToolUse": [
                {
                    "matcher": "^Bash$",
                    "hooks": [
                        {
                            "type": "script",
                            "path": os.path.join(directory, "hooks", "never-force-push.sh"),
                            "timeout_ms": 5000,
                        }
                    ],
                }
            ],
            "PostToolUse": [],
            "Stop": [],
            "Notification": [],
        },
    }
    return {
        "hooks.json": (json.dumps(body, indent=2) + "\n", 0o600),
        "hooks.schema.json": (json.dumps(schema("hooks.json"), indent=1) + "\n", 0o600),
        "hooks/never-force-push.sh": (_GUARD, 0o700),
    }


def _chrys_files(directory: str) -> dict[str, tuple[str, int]]:
    return {
        "hooks.yaml": (_HOOKS_YAML, 0o600),
        "hooks.yaml.schema.json": (json.dumps(schema("hooks.yaml"), indent=1) + "\n", 0o600),
        "scripts/protect_etc.py": (_PROTECT, 0o700),
    }


def _settings_files(directory: str) -> dict[str, tuple[str, int]]:
    from hooksd.config.settings_template import settings_template

    return {
        "hooksd.toml": ("#:schema ./hooksd.schema.json\n" + settings_template(), 0o600),
        "hooksd.schema.json": (json.dumps(schema("hooksd.toml"), indent=1) + "\n", 0o600),
    }


_FILES = {"bamboo": _bamboo_files, "chrys": _chrys_files, "hooksd": _settings_files}
