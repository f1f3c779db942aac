"""Which module may import which."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")


def test_the_import_contracts_hold() -> None:
    """WEIR-001: as pyproject.toml states them for import-linter."""
    linted = subprocess.run(
        [str(LINT_IMPORTS), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize(
    ("module", "statement", "allowed"),
    [
        ("contracts/a.py", "import services.b", False),
        ("contracts/a.py", "import json", True),
        ("services/b.py", "import contracts.a", True),
    ],
)
def test_an_import_against_the_direction_is_found(
    tmp_path: Path, module: str, statement: str, allowed: bool
) -> None:
    """WEIR-001: the check above can fail."""
    for package in ("contracts", "services"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "contracts" / "a.py").touch()
    (tmp_path / "services" / "b.py").touch()
    (tmp_path / module).write_text(f"{statement}\n")
    (tmp_path / ".importlinter").write_text(
        "[importlinter]\nroot_packages =\n  contracts\n  services\n"
        "[importlinter:contract:1]\nname = one way\ntype = forbidden\n"
        "source_modules =\n  contracts\nforbidden_modules =\n  services\n"
    )
    linted = subprocess.run(
        [str(LINT_IMPORTS), "--no-cache"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (linted.returncode == 0) is allowed, linted.stdout
