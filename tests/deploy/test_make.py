"""The Makefile and the CI script, as far as they can be checked without running everything."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.processes import ROOT

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make without the variables of a make that may be running this test."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_help_names_every_target_with_what_it_does() -> None:
    """WEIR-385: nobody has to read the Makefile."""
    shown = make().stdout
    for target in TARGETS:
        assert re.search(rf"^  {target} +\S", shown, re.MULTILINE), target


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_can_be_planned(target: str) -> None:
    """WEIR-385: make knows how to reach every target it offers."""
    result = make("--dry-run", target)
    assert result.returncode == 0, result.stderr


def test_an_unknown_target_is_refused() -> None:
    """WEIR-385: the check above can fail."""
    assert make("--dry-run", "no-such-target").returncode != 0


@pytest.mark.parametrize("tool", ["generate_stubs", "draw_scanner"])
def test_every_generator_is_checked_for_drift(tool: str) -> None:
    """WEIR-385: `make drift` finds generators by what they can do."""
    assert re.search(rf"\b{tool}\b", make("--dry-run", "drift").stdout)


def test_ci_is_executable_and_stops_at_what_fails() -> None:
    """WEIR-385: a failing step is never passed over."""
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in script.read_text("utf-8").splitlines()
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
