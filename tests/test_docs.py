"""What the documentation says about the program is what the program says about itself."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest


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
