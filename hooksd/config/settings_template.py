"""A `hooksd.toml` that explains itself: every setting with its default and its reason, all commented out.

It is made from `settings.py`, so it cannot tell something else than the program does.
"""

from __future__ import annotations

import json
import textwrap
from typing import Any

import msgspec

from hooksd.config.settings import Settings
from hooksd.config.settings_schema import descriptions


__all__ = ["settings_template"]

_WIDTH = 110
_EXAMPLES = """\
# A configuration file of your own; the default sources need no entry.
# [[source]]
# name = "team"
# dialect = "bamboo"
# path = "~/team/hooks.json"
# scope = "user"          # user | managed
# agents = ["*"]          # for whose events; default: the dialect's own agent

# Make hooks fail closed: every way of not giving a valid answer becomes a block.
# [[guard]]
# hooks = "bamboo:*:PreToolUse*"    # only * is special
# events = ["PreToolUse"]           # default: every gate
# on_failure = "block"
# on_missing = "warn"               # "block": also when no such hook is there (needs `events`)
"""


def settings_template() -> str:
    """The text; it is a valid `hooksd.toml` that changes nothing, and stays one when lines are uncommented."""
    told = descriptions()
    parts = ["# Settings of hooksd. Everything is optional; what is commented out is the default.\n"]
    for field in msgspec.structs.fields(Settings):
        if not isinstance(field.default, msgspec.Struct):
            continue
        kind = type(field.default)
        lines = [f"[{field.encode_name}]"]
        for key in msgspec.structs.fields(kind):
            comment = told.get(kind.__name__, {}).get(key.name, "")
            lines += [f"# {line}" for line in textwrap.wrap(comment, _WIDTH)]
            lines.append(f"# {key.encode_name} = {_toml(getattr(field.default, key.name))}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join([*parts, _EXAMPLES])


def _toml(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"{value:_}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{}"
    # The JSON forms of texts, truth values and numbers are TOML, too.
    return json.dumps(value, ensure_ascii=False)
