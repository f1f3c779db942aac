"""The primary input and output paths have owners."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES = [
    line.split()
    for line in (ROOT / "CODEOWNERS").read_text().splitlines()
    if line and not line.startswith("#")
]
FALLBACK = "*"
PRIMARY = (
    "protos/weir/tts/v1/tts.proto",
    "protos/weir/media/v1/identity.proto",
    "buf.yaml",
    "contracts/accumulation.py",
    "contracts/baseline/v0.1.0.binpb",
    "contracts/invariants/io.md",
    "services/edge/backends/wire.py",
    "services/edge/speech/codec.py",
    "services/edge/text/frontend.py",
    "services/runtime/errors.py",
    "services/tts/wire.py",
    "services/tts/replies.py",
    "services/tts/servicer.py",
    "tests/contracts/test_codeowners.py",
    "CODEOWNERS",
)


def owners(path: str) -> list[str]:
    """Return the owners of a path: those of the last pattern that matches."""
    found: list[str] = []
    for pattern, *names in LINES:
        anchored = pattern.removeprefix("/")
        below = anchored.endswith("/") and path.startswith(anchored)
        if pattern == FALLBACK or path == anchored or below:
            found = names
    return found


@pytest.mark.parametrize("path", PRIMARY)
def test_a_primary_path_is_owned_by_those_who_own_the_contracts(path: str) -> None:
    """WEIR-004: by a line of its own, not by the fallback."""
    assert (ROOT / path).exists()
    assert "@weir/io-contracts" in owners(path)


def test_everything_else_falls_back_on_purpose() -> None:
    """WEIR-004: the first line owns what no other does."""
    assert LINES[0][0] == FALLBACK
    assert owners("docs/index.md") == LINES[0][1:]


@pytest.mark.parametrize("line", LINES[1:], ids=lambda line: str(line[0]))
def test_a_line_names_a_path_that_exists_and_at_least_one_owner(line: list[str]) -> None:
    """WEIR-004: a path that moved does not lose its owners unnoticed."""
    pattern, *names = line
    assert pattern.startswith("/")
    assert (ROOT / pattern.removeprefix("/")).exists()
    assert names
    assert all(name.startswith("@") for name in names)
