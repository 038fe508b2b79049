"""What the README shows, done word by word on a machine where nothing is configured."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


pytestmark = pytest.mark.e2e

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
TOUR = re.search(r"^## The tour\n+```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
EXAMPLE = re.search(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_tour_can_be_pasted_into_a_shell(home: Any) -> None:
    assert TOUR is not None
    path = os.pathsep.join([os.path.dirname(sys.executable), home.environment["PATH"]])

    done = subprocess.run(
        ["bash", "-c", TOUR[1] + "\nwait\n"],
        env={**home.environment, "PATH": path},
        cwd=home.root / "home",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert "cannot be reached" not in done.stderr
    assert "1 hook would run" in done.stdout
    assert "PreToolUse → block\nreason      force-pushing is forbidden here" in done.stdout
    assert done.stdout.count("force-pushing is forbidden here") >= 3  # the answer, the log, the history
    assert "has stopped" in done.stdout


def test_the_example_of_a_client_says_what_the_text_promises(home: Any) -> None:
    assert EXAMPLE is not None
    subprocess.run(
        [sys.executable, "-m", "hooksd", "init"], env=home.environment, check=True, capture_output=True
    )
    home.start()

    done = subprocess.run(
        [sys.executable, "-c", EXAMPLE[1]],
        env=home.environment,
        cwd=home.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout == "not allowed: force-pushing is forbidden here\n"
    assert len(EXAMPLE[1].splitlines()) <= 10
