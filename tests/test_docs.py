"""What the documentation says about the program is what the program says about itself."""

from __future__ import annotations

import argparse
import itertools
import re
import runpy
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from hooksd.cli import main as entry


ROOT = Path(__file__).parent.parent
GENERATED = runpy.run_path(str(ROOT / "docs" / "generate.py"))
PAGES: dict[str, str] = GENERATED["pages"]()


@pytest.mark.parametrize("name", PAGES)
def test_reference_pages_are_up_to_date(name: str) -> None:
    path = ROOT / "docs" / "reference" / name

    assert path.read_text(encoding="utf-8") == PAGES[name], "run: python docs/generate.py"


@pytest.mark.parametrize(
    "path",
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_problem_kind_and_error_code_has_a_meaning() -> None:
    for name in ("problems.md", "errors.md"):
        rows = [line for line in PAGES[name].splitlines() if line.startswith("| `")]
        assert rows
        assert all(row.rstrip(" |").split("|")[-1].strip() not in ("", "`") for row in rows)
        assert not [row for row in rows if row.endswith("|  |")]


def _shown() -> list[tuple[str, str]]:
    """Every command line that a page or a help text shows, and where."""
    texts = {
        str(path.relative_to(ROOT)): "\n".join(
            re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        )
        for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")]
    }
    texts["hooksd -h"] = entry._help().partition("usage:")[0]
    for name, module in entry.COMMANDS.items():
        texts[f"hooksd {name} -h"] = import_module(module).EXAMPLES
    return [
        (place, line.strip())
        for place, text in texts.items()
        for line in text.splitlines()
        if line.strip().startswith("hooksd ")
    ]


@pytest.mark.parametrize(("place", "line"), _shown())
def test_every_command_that_is_shown_is_one(place: str, line: str) -> None:
    # A help text explains its examples behind two spaces; a page does so in a comment.
    line = re.split(r" {2,}", line)[0]
    words = itertools.takewhile(lambda word: word not in {"|", ">", "&"}, shlex.split(line, comments=True))
    _, name, *arguments = words
    parser = argparse.ArgumentParser(prog=f"hooksd {name}", allow_abbrev=False)
    import_module(entry.COMMANDS[name]).add_arguments(parser)

    parser.parse_args(arguments)


def test_the_shown_commands_were_found() -> None:
    assert {place for place, _ in _shown()} >= {"README.md", "hooksd -h", "hooksd test -h"}


CASES = (
    (ROOT / "docs" / "dialects" / "chrys.md")
    .read_text(encoding="utf-8")
    .partition("## Chrys' own test cases")[2]
)


def test_every_case_of_chrys_is_accounted_for_once() -> None:
    numbers = [
        number
        for first, last in re.findall(r"^\| (\d+)(?:\u2013(\d+))? \|", CASES, re.MULTILINE)
        for number in range(int(first), int(last or first) + 1)
    ]

    assert numbers == list(range(1, 189))
    assert "| open" not in CASES


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`([\w/]*test_\w+\.py)(?:::(\w+…?))?`", CASES))))
def test_the_tests_of_those_cases_are_there(named: tuple[str, str]) -> None:
    path, test = named
    text = (ROOT / (path if "/" in path else f"tests/dialects/{path}")).read_text(encoding="utf-8")

    assert f"def {test.removesuffix('…')}" in text, f"there is no {test} in {path}"
