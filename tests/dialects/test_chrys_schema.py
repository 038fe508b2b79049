"""The JSON Schema of hooks.yaml says what the reader takes."""

from __future__ import annotations

from typing import get_args

from hooksd.dialects.chrys_schema import EVENTS, Entry, EventWord, hooks_yaml_schema, keys
from hooksd.model.events import EventName


def test_the_schema_names_every_key_and_event() -> None:
    schema = hooks_yaml_schema()
    entry = schema["$defs"]["Entry"]

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert tuple(entry["properties"]) == keys(Entry)
    assert entry["required"] == ["id", "event", "run"]
    assert entry["additionalProperties"] is False
    assert entry["properties"]["event"]["enum"] == sorted(EVENTS)


def test_the_words_for_events_are_the_events() -> None:
    assert get_args(EventWord) == tuple(EVENTS)
    assert len(set(EVENTS.values())) == len(EVENTS)
    assert set(EventName) - set(EVENTS.values()) == {EventName.TURN_FINISH, EventName.NOTIFICATION}
