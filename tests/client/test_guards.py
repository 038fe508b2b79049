from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hooksd_client.guards import GuardsUnreadable, guarded_events, is_guarded


GUARDS = {
    "version": 1,
    "agents": {"bamboo": {"PreToolUse": [{"hooks": "a*"}], "tool.before": [{"hooks": "a*"}]}, "chrys": {}},
    "something_new": 1,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "guards.json"


def test_what_is_guarded(path: Path) -> None:
    path.write_text(json.dumps(GUARDS))

    assert guarded_events(str(path)) == {"bamboo": {"PreToolUse", "tool.before"}, "chrys": set()}
    assert is_guarded(str(path), "bamboo", "PreToolUse")
    assert is_guarded(str(path), "bamboo", "tool.before")
    assert not is_guarded(str(path), "bamboo", "Stop")
    assert not is_guarded(str(path), "chrys", "PreToolUse")
    assert not is_guarded(str(path), "other", "PreToolUse")


def test_without_an_agent_any_guard_counts(path: Path) -> None:
    path.write_text(json.dumps(GUARDS))

    assert is_guarded(str(path), None, "PreToolUse")
    assert not is_guarded(str(path), None, "Stop")


def test_without_a_file_nothing_is_guarded(path: Path) -> None:
    assert guarded_events(str(path)) == {}
    assert not is_guarded(str(path), "bamboo", "PreToolUse")


@pytest.mark.parametrize(
    "document",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"version": 2, "agents": {}}',
        '{"version": 1}',
        '{"version": 1, "agents": []}',
        '{"version": 1, "agents": {"bamboo": []}}',
        "[" * 100_000,
    ],
)
def test_what_cannot_be_understood_guards_everything(path: Path, document: str) -> None:
    path.write_text(document)

    with pytest.raises(GuardsUnreadable) as caught:
        guarded_events(str(path))
    assert caught.value.path == str(path)
    assert str(path) in str(caught.value)
    assert is_guarded(str(path), "bamboo", "Stop")


def test_what_cannot_be_read_guards_everything(path: Path) -> None:
    path.mkdir()

    with pytest.raises(GuardsUnreadable, match="Is a directory"):
        guarded_events(str(path))
    assert is_guarded(str(path), None, "Stop")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(path: Path) -> None:
    path.touch(mode=0)

    assert is_guarded(str(path), "bamboo", "Stop")


def test_bytes_that_are_no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")
    found: Any = None
    with pytest.raises(GuardsUnreadable):
        found = guarded_events(str(path))
    assert found is None
