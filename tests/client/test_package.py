"""The package as a whole: what it exports, what importing it costs, which Pythons can read it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hooksd_client


ROOT = Path(hooksd_client.__file__).parent
MODULES = sorted(path.stem for path in ROOT.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", hooksd_client.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(hooksd_client, name) is not None
    assert name in dir(hooksd_client)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'hooksd_client' has no attribute 'Clients'"):
        _ = hooksd_client.Clients  # type: ignore[attr-defined]


def test_what_type_checkers_are_told_is_what_there_is() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text())
    told = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hooksd_client")
        for alias in node.names
    }

    assert told == set(hooksd_client.__all__) - {"__version__"}


def test_all_errors_are_exported() -> None:
    from hooksd_client import errors

    assert set(errors.__all__) - {"request_failed"} <= set(hooksd_client.__all__)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="it does not know the names of its own library")
@pytest.mark.parametrize("module", MODULES)
def test_only_the_standard_library(module: str) -> None:
    tree = ast.parse((ROOT / f"{module}.py").read_text())
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])

    # typing_extensions is for type checkers only.
    assert imported <= set(sys.stdlib_module_names) | {"hooksd_client", "typing_extensions"}


@pytest.mark.parametrize("module", MODULES)
def test_the_oldest_python_can_read_it(module: str) -> None:
    text = (ROOT / f"{module}.py").read_text()

    ast.parse(text, feature_version=(3, 9))
    assert "from __future__ import annotations" in text


def test_the_blocking_client_needs_no_asyncio() -> None:
    code = "import sys; from hooksd_client import Client; assert 'asyncio' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
