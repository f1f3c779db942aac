"""The page about dependencies, held to pyproject.toml."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib

import pytest

from tests.processes import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAGE = (ROOT / "docs" / "reference" / "dependencies.md").read_text("utf-8")
GROUPS = {"Every process": PROJECT["dependencies"]} | {
    f"`{extra}`": requirements for extra, requirements in PROJECT["optional-dependencies"].items()
}


def on_page(heading: str) -> dict[str, str]:
    """Package and range of every row below a heading."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\S+) \| `(\S+)` \| ([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)
    assert all(licence.strip() and reason.strip() for _, _, licence, reason in rows)
    return {package: versions for package, versions, _, _ in rows}


def in_project(requirements: list[str]) -> dict[str, str]:
    """Package and range of every requirement; extras of a package are left out."""
    pattern = re.compile(r"([\w.-]+)(?:\[[\w,]+\])?(.*)")
    matches = [match for text in requirements if (match := pattern.fullmatch(text))]
    assert len(matches) == len(requirements)
    return {match[1]: match[2] for match in matches}


@pytest.mark.parametrize("heading", GROUPS)
def test_the_page_names_every_dependency_with_its_range(heading: str) -> None:
    """WEIR-387: nothing is installed that the page does not explain, and nothing else explained."""
    assert on_page(heading) == in_project(GROUPS[heading])


@pytest.mark.parametrize("requirements", GROUPS.values(), ids=GROUPS)
def test_every_dependency_is_bounded(requirements: list[str]) -> None:
    """WEIR-387: a new major version never arrives by itself."""
    for package, versions in in_project(requirements).items():
        assert re.fullmatch(r"==[\w.]+|>=[\w.]+,<[\w.]+", versions), package


def test_nothing_here_needs_torch() -> None:
    """WEIR-387: only the video models that run on it bring it in."""
    groups = [group for name, group in GROUPS.items() if "diffusers" not in name]
    names = {package for group in groups for package in in_project(group)}
    assert names
    assert "torch" not in names
    for package in names:
        try:
            requires = importlib.metadata.requires(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # an extra that this environment was made without
        needed = [r for r in requires if re.match(r"torch\b", r) and "extra" not in r]
        assert needed == [], package
