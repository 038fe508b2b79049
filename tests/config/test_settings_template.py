from __future__ import annotations

import re

import msgspec

from hooksd.config.settings import Settings
from hooksd.config.settings_file import read_settings
from hooksd.config.settings_template import settings_template


def test_the_template_changes_nothing() -> None:
    document = read_settings(settings_template().encode())

    assert document.problems == ()
    assert document.settings == Settings()


def test_every_line_that_is_commented_out_is_a_valid_default() -> None:
    tables = settings_template().partition("# A configuration file")[0]
    uncommented = re.sub(r"^# (\w+ = )", r"\1", tables, flags=re.MULTILINE)

    document = read_settings(uncommented.encode())

    assert document.problems == ()
    assert document.settings == Settings()


def test_every_setting_is_there_with_a_reason() -> None:
    lines = settings_template().splitlines()
    for field in msgspec.structs.fields(Settings):
        if not isinstance(field.default, msgspec.Struct):
            continue
        start = lines.index(f"[{field.encode_name}]")
        for key in msgspec.structs.fields(type(field.default)):
            at = next(n for n in range(start, len(lines)) if lines[n].startswith(f"# {key.encode_name} = "))
            assert lines[at - 1].startswith("# "), f"{field.encode_name}.{key.encode_name} has no reason"


def test_the_examples_are_valid_when_uncommented() -> None:
    _, _, examples = settings_template().partition("# A configuration file of your own")
    uncommented = "\n".join(
        line.removeprefix("# ") for line in examples.splitlines() if re.match(r"# (\[\[|\w+ = )", line)
    )

    document = read_settings(uncommented.encode())

    assert document.problems == ()
    assert document.settings is not None
    assert document.settings.source[0].name == "team"
    assert document.settings.guard[0].hooks == "bamboo:*:PreToolUse*"
