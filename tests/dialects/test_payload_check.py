from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from hooksd.dialects.base import PayloadRefused
from hooksd.dialects.payload_check import MAX_FAULTS, checked, refusal
from hooksd.model.problems import Severity


class Inner(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    size: Annotated[int, msgspec.Meta(ge=0)]
    note: str | None = None


class Shape(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    color: Literal["red", "green"] = "red"
    other: Annotated[Literal["a", "b"] | None, msgspec.Meta(description="x")] = None
    inner: Inner
    anything: Any = None


def faults(given: Any) -> dict[str, tuple[str, str | None]]:
    with pytest.raises(PayloadRefused) as caught:
        checked(given, Shape, "payload", {"args": "write anything"})
    assert all(problem.severity is Severity.ERROR for problem in caught.value.problems)
    return {problem.path: (problem.message, problem.hint) for problem in caught.value.problems}


def test_what_fits_is_converted() -> None:
    shape = checked({"name": "n", "inner": {"size": 1}, "anything": [1]}, Shape, "payload")
    assert shape == Shape(name="n", inner=Inner(size=1), anything=[1])


def test_every_fault_is_told_with_its_path() -> None:
    given = {"name_": 1, "args": 1, "color": "secret", "other": "c", "inner": {"size": -1, "note": 3, "x": 1}}
    assert faults(given) == {
        "payload.name_": ("unknown field", "did you mean name?"),
        "payload.args": ("unknown field", "write anything"),
        "payload.name": ("is missing", None),
        "payload.color": ("must be red or green", None),
        "payload.other": ("must be a or b", None),
        "payload.inner.x": ("unknown field", None),
        "payload.inner.size": ("Expected `int` >= 0", None),
        "payload.inner.note": ("Expected `str | null`, got `int`", None),
    }


def test_values_are_never_repeated() -> None:
    told = faults({"name": "n", "color": "hunter2", "inner": {"size": "hunter2"}})
    assert "hunter2" not in str(told)


@pytest.mark.parametrize("given", [None, 1, "x", [1]])
def test_no_object(given: Any) -> None:
    assert faults(given) == {"payload": ("must be an object", None)}
    assert faults({"name": "n", "inner": given}) == {"payload.inner": ("must be an object", None)}


def test_faults_are_bounded() -> None:
    assert len(faults({f"field-{number}": 1 for number in range(1000)})) == MAX_FAULTS


def test_refusal_reads_well() -> None:
    assert refusal("payload.a", "is missing", "give it").describe() == "payload.a: is missing (give it)"
