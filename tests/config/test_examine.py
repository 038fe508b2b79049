"""One file over time, with real files and moments that are made up."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from hooksd.config.examine import (
    Examined,
    Probe,
    Subject,
    carry_over,
    examine,
    identify,
    quick_probes,
    unchanged,
)
from hooksd.config.settling import BLANK_S, MISSING_S, STILL_S, Clock
from hooksd.model.problems import ConfigProblem, Severity
from hooksd.model.sources import SourceState


WARNING = ConfigProblem(severity=Severity.WARNING, path="", message="odd")
BAD = ConfigProblem(severity=Severity.ERROR, path="", message="bad")


def meaning(text: bytes, path: str) -> tuple[str | None, tuple[ConfigProblem, ...]]:
    """The dialect of these tests: a text with `bad` in it cannot be used, one with `odd` in it has a warning."""
    if b"bad" in text:
        return None, (BAD,)
    return text.decode(), (WARNING,) if b"odd" in text else ()


class House:
    """A file, the time, and what is known."""

    def __init__(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o700)
        self.path = tmp_path / "hooks.json"
        self.subject: Subject[str] = Subject(
            candidates=(str(self.path),),
            read=meaning,
            last_good=lambda: None,
        )
        self.state: Examined[str] | None = None
        self.passed_s = 10.0

    def write(self, text: str, name: str = "hooks.json") -> None:
        path = self.path.with_name(name)
        path.write_text(text)
        path.chmod(0o600)

    def look(self, after_s: float = 10.0, *, afresh: bool = False) -> Examined[str]:
        """Look again after some time, in which the times of files stand still."""
        self.passed_s += after_s
        real = Clock.now()
        moment = Clock(real.now_s + self.passed_s, real.wall_ns + int(self.passed_s * 1e9))
        self.state = examine(self.subject, self.state, moment, afresh=afresh)
        return self.state

    def be(self, **changes: object) -> None:
        self.subject = msgspec.structs.replace(self.subject, **changes)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def value(examined: Examined[str]) -> str | None:
    return examined.in_force.value if examined.in_force else None


def test_a_file_is_loaded(house: House) -> None:
    house.write("odd one")
    found = house.look()

    assert (found.state, value(found), found.problems) == (SourceState.LOADED, "odd one", (WARNING,))
    assert found.path == str(house.path)
    assert found.identity == (house.path.stat().st_dev, house.path.stat().st_ino)
    assert found.pending is None
    assert unchanged(found.probes)


def test_nothing_new_is_the_same_object(house: House) -> None:
    house.write("one")

    assert house.look() is house.look()


def test_afresh_reads_what_looks_the_same(house: House) -> None:
    house.write("one")
    before = house.look()

    assert house.look(afresh=True) is not before
    assert house.look(0, afresh=True).pending is None


def test_a_missing_file_is_missing_without_ado(house: House) -> None:
    found = house.look()

    assert (found.state, value(found), found.problems, found.pending) == (SourceState.MISSING, None, (), None)


def test_a_changed_file_waits_until_it_stands_still(house: House) -> None:
    house.write("one")
    house.look()
    house.passed_s = -1e-3
    house.write("two")
    waiting = house.look(0)

    assert value(waiting) == "one"
    assert waiting.pending is not None
    assert value(house.look(STILL_S)) == "two"


def test_a_change_taken_back_in_time_is_none(house: House) -> None:
    house.write("one")
    before = house.look()
    house.path.rename(house.path.with_name("aside"))
    assert house.look(0).pending is not None
    house.path.with_name("aside").rename(house.path)
    # Renaming changed the ctime: another version with the same text.
    found = house.look()

    assert value(found) == "one"
    assert found.pending is None
    assert before.in_force == found.in_force


def test_a_look_like_before_drops_what_was_pending(house: House) -> None:
    house.write("one")
    before = house.look()
    house.path.parent.chmod(0o750)
    assert house.look(0) is not before
    waiting = msgspec.structs.replace(before, pending=house.look(0).pending)
    house.path.parent.chmod(0o700)
    house.state = msgspec.structs.replace(waiting, probes=before.probes)

    assert house.look(0).pending is None


def test_a_deleted_file_goes_after_a_while(house: House) -> None:
    house.write("one")
    house.look()
    house.path.unlink()

    assert value(house.look(0)) == "one"
    assert value(house.look(MISSING_S - 0.01)) == "one"
    found = house.look(0.02)
    assert (found.state, value(found)) == (SourceState.MISSING, None)


def test_a_bad_version_leaves_the_last_good_one_in_force(house: House) -> None:
    house.write("one")
    house.look()
    house.write("bad")
    found = house.look()

    assert (found.state, value(found)) == (SourceState.INVALID, "one")
    assert found.problems[0] == BAD
    assert "last good version of this file stays in force" in found.problems[1].message
    assert unchanged(found.probes)
    assert house.look() is found


def test_a_bad_first_version_has_nothing_in_force(house: House) -> None:
    house.write("bad")
    found = house.look()

    assert (found.state, value(found)) == (SourceState.INVALID, None)
    assert "there is no last good version" in found.problems[-1].message


def test_a_bad_first_version_has_what_an_earlier_daemon_kept(house: House) -> None:
    house.be(last_good=lambda: b"kept")
    house.write("bad")
    found = house.look()

    assert (found.state, value(found)) == (SourceState.INVALID, "kept")


def test_a_kept_copy_that_is_bad_itself_does_not_count(house: House) -> None:
    house.be(last_good=lambda: b"bad too")
    house.write("bad")

    assert value(house.look()) is None


def test_a_file_deleted_while_no_daemon_ran_goes_after_a_while(house: House) -> None:
    house.be(last_good=lambda: b"kept")

    assert value(house.look(0)) == "kept"
    assert value(house.look(MISSING_S)) is None


def test_a_recovered_file_is_loaded(house: House) -> None:
    house.write("one")
    house.look()
    house.write("bad")
    house.look()
    house.write("two")
    found = house.look()

    assert (found.state, value(found), found.problems) == (SourceState.LOADED, "two", ())


def test_a_file_that_others_can_write_is_invalid(house: House) -> None:
    house.write("one")
    house.look()
    house.path.chmod(0o666)
    found = house.look()

    assert (found.state, value(found)) == (SourceState.INVALID, "one")
    assert "writable by everyone" in found.problems[0].message


def test_a_directory_that_others_can_write_is_noticed(house: House) -> None:
    house.write("one")
    house.look()
    house.path.parent.chmod(0o777)

    assert house.look().state is SourceState.INVALID


def test_a_file_that_became_blank_is_half_written_for_a_second(house: House) -> None:
    house.write("one")
    house.look()
    house.passed_s = 0
    house.write("")

    assert value(house.look(STILL_S)) == "one"
    assert value(house.look(BLANK_S / 2)) == "one"
    assert value(house.look(BLANK_S / 2)) == ""
    house.write("  ")
    assert value(house.look()) == "  "


def test_a_blank_file_that_was_blank_before_is_no_half_of_anything(house: House) -> None:
    house.write("")
    house.look()
    house.passed_s = 0
    house.write("\n")

    assert value(house.look(STILL_S)) == "\n"


def test_a_file_that_changes_while_it_is_read_waits(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write("one")
    house.look()
    house.write("two")
    really_open = os.open

    def write_and_open(path: str, flags: int) -> int:
        descriptor = really_open(path, flags)
        house.write("three")
        return descriptor

    monkeypatch.setattr(os, "open", write_and_open)
    waiting = house.look()
    monkeypatch.undo()

    assert value(waiting) == "one"
    assert waiting.pending is not None
    assert value(house.look()) == "three"


# -- candidates


def test_the_first_candidate_that_exists_is_the_file(house: House) -> None:
    house.be(candidates=tuple(str(house.path.with_name(name)) for name in ("a", "b", "c")))
    house.write("from b", "b")
    house.write("from c", "c")
    assert value(house.look()) == "from b"
    house.write("from a", "a")
    assert value(house.look()) == "from a"


def test_another_candidate_takes_over_only_after_a_while(house: House) -> None:
    house.be(candidates=tuple(str(house.path.with_name(name)) for name in ("a", "b")))
    house.write("from a", "a")
    house.write("from b", "b")
    house.look()
    house.path.with_name("a").unlink()

    assert value(house.look(0)) == "from a"
    assert value(house.look(MISSING_S)) == "from b"


def test_candidates_that_exist_are_known_by_device_and_inode(house: House) -> None:
    house.write("one")
    status = house.path.stat()

    assert identify((f"{house.path}.none", str(house.path))) == (status.st_dev, status.st_ino)
    assert identify((f"{house.path}.none",)) is None


# -- what is not read


def test_a_disabled_file_is_not_read(house: House) -> None:
    house.be(disabled="switched off", problems=(WARNING,))
    missing = house.look()
    house.write("bad")
    found = house.look()

    assert (missing.state, missing.problems) == (SourceState.MISSING, ())
    assert (found.state, value(found), found.problems) == (SourceState.DISABLED, None, (WARNING,))


def test_a_file_whose_source_is_wrong_is_invalid(house: House) -> None:
    house.be(problems=(BAD,))
    house.write("one")

    assert house.look().state is SourceState.INVALID


def test_a_problem_of_the_source_is_told_with_those_of_the_file(house: House) -> None:
    house.be(problems=(WARNING,))
    house.write("odd")

    assert house.look().problems == (WARNING, WARNING)


def test_a_required_file_must_be_there(house: House) -> None:
    house.be(required=True)
    missing = house.look()
    house.write("one")
    loaded = house.look()
    house.path.unlink()
    house.look(0)
    gone = house.look()

    assert (missing.state, value(missing)) == (SourceState.INVALID, None)
    assert "does not exist" in missing.problems[0].message
    assert loaded.state is SourceState.LOADED
    assert (gone.state, value(gone)) == (SourceState.INVALID, "one")


@pytest.mark.parametrize("required", [False, True])
def test_a_link_to_nothing_is_told(house: House, required: bool) -> None:
    house.be(required=required)
    house.path.symlink_to("nowhere")
    found = house.look()

    assert found.state is (SourceState.INVALID if required else SourceState.MISSING)
    assert "symbolic link to nowhere" in found.problems[0].message


# -- changed settings


def test_what_is_in_force_is_read_again_when_its_source_changed(house: House) -> None:
    house.write("one")
    before = house.look()
    house.be(read=lambda text, path: (text.decode().upper(), ()))
    house.state = carry_over(house.subject, before)
    assert value(house.state) == "ONE"
    house.be(read=lambda text, path: (None, (BAD,)))
    assert value(carry_over(house.subject, before)) is None
    assert value(carry_over(house.subject, Examined(path="", state=SourceState.MISSING))) is None


# -- fewer looks


def test_files_that_are_missing_together_are_one_look(tmp_path: Path) -> None:
    missing = [f"{tmp_path}/a/b/{name}" for name in "xyz"]
    probes = [Probe(path, (), (2,)) for path in missing]
    quick = quick_probes(probes)

    assert [probe.path for probe in quick] == [f"{tmp_path}/a"]
    assert unchanged(quick)
    (tmp_path / "a").mkdir()
    assert not unchanged(quick)
    (tmp_path / "a" / "b").mkdir()
    assert [probe.path for probe in quick_probes(probes)] == missing


def test_a_file_that_is_there_is_looked_at_itself(house: House) -> None:
    house.write("one")
    probes = house.look().probes

    assert quick_probes(probes) == probes
