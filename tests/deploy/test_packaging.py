"""What an image installs is what the repository holds."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.processes import ROOT

SOURCES = ("contracts", "services")
NOT_INSTALLED = (
    "contracts/vectors/",
    "contracts/baseline/",
    "contracts/invariants/",
    "contracts/gen/",
)
"""Read by tests, checks and people only, or installed under another name."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The names in a wheel built from a copy, so that nothing is left in the repository."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    build = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    result = subprocess.run(
        [sys.executable, "-c", build], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        return frozenset(archive.namelist())


def expected() -> list[str]:
    """Every file of the packages, by its name in the repository."""
    files = [path for name in SOURCES for path in (ROOT / name).rglob("*") if path.is_file()]
    names = [str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts]
    return [name for name in names if not name.startswith(NOT_INSTALLED)]


def test_the_wheel_holds_every_module_and_data_file(wheel: frozenset[str]) -> None:
    """WEIR-384: an installed process finds all it finds in a checkout."""
    documents = {name for name in expected() if name.endswith(".md")}
    assert sorted(set(expected()) - documents - wheel) == []


def test_the_wheel_holds_the_stubs_under_their_import_name(wheel: frozenset[str]) -> None:
    """WEIR-384: `weir` is importable where the wheel is installed."""
    gen = ROOT / "contracts" / "gen"
    files = [path for path in gen.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    stubs = {str(path.relative_to(gen)) for path in files}
    assert "weir/py.typed" in stubs
    assert sorted(stubs - wheel) == []


def test_the_wheel_holds_nothing_else(wheel: frozenset[str]) -> None:
    """WEIR-384: no test, tool or document travels into an image."""
    tops = {Path(name).parts[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {*SOURCES, "weir"}


def test_every_package_is_named_in_pyproject() -> None:
    """WEIR-384: the list is written by hand, so it is compared with the folders."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    named = set(project["tool"]["setuptools"]["packages"])
    folders = [path.parent for name in SOURCES for path in (ROOT / name).rglob("__init__.py")]
    names = {".".join(path.relative_to(ROOT).parts) for path in folders}
    found = {name.removeprefix("contracts.gen.") for name in names}
    assert found == named
