"""The two wheels, built and installed into an environment of their own, without the sources beside them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest


pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parent.parent


def project(directory: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / directory / "pyproject.toml").read_text())["project"]
    return found


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Both wheels, built by the build back end that the projects name."""
    target = tmp_path_factory.mktemp("wheels")
    for directory in ("client", "."):
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)],
            cwd=ROOT / directory,
            check=True,
            capture_output=True,
        )
    return sorted(target.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has only the wheels; third-party packages are those of this environment."""
    venv = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = venv / "bin" / "python"
    # pip of *that* environment: ours would take the wheels for an upgrade of what is installed here, and remove it.
    command = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*command, *wheels], check=True, capture_output=True)
    (site,) = venv.glob("lib/python*/site-packages")
    # They come behind the wheels. The editable installation of this environment does not: no .pth file is read there.
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "dependencies.pth").write_text(f"{ours}\n")
    return venv / "bin"


def test_both_distributions_have_one_version() -> None:
    daemon, client = project("."), project("client")

    assert daemon["version"] == client["version"]
    assert f"hooksd-client=={client['version']}" in daemon["dependencies"]
    assert client["dependencies"] == []
    for package in ("hooksd", "client/hooksd_client"):
        assert f'__version__ = "{daemon["version"]}"' in (ROOT / package / "__init__.py").read_text()


def test_wheels_hold_what_they_need_and_no_more(wheels: list[Path]) -> None:
    names = {wheel.name.split("-")[0]: zipfile.ZipFile(wheel).namelist() for wheel in wheels}

    assert set(names) == {"hooksd", "hooksd_client"}
    assert {
        "hooksd/py.typed",
        "hooksd/_examples/bamboo/hooks.json",
        "hooksd/_examples/chrys/hooks.yaml",
    } <= set(names["hooksd"])
    assert "hooksd_client/py.typed" in names["hooksd_client"]
    for held in names.values():
        tops = {name.split("/")[0] for name in held if ".dist-info" not in name}
        assert tops in ({"hooksd"}, {"hooksd_client"})


def test_installed_from_wheels_the_demo_does_its_job(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [installed / "hooksd", "demo"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "every outcome as it should be" in done.stdout


def test_the_installed_modules_are_those_of_the_wheels(installed: Path, tmp_path: Path) -> None:
    code = "import hooksd, hooksd_client; print(hooksd.__file__, hooksd_client.__file__)"
    done = subprocess.run(
        [installed / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.count(str(installed.parent)) == 2
