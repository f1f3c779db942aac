"""The committed stubs are those of the protos, and the declared runtime can load them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.generate_stubs import STUBS, differences

ROOT = Path(__file__).parents[2]
_PROTOBUF = re.compile(r"^# Protobuf Python Version: (\d+)\.(\d+)\.(\d+)$", re.MULTILINE)
_GRPC = re.compile(r"^GRPC_GENERATED_VERSION = '(\d+)\.(\d+)\.(\d+)'$", re.MULTILINE)

Version = tuple[int, ...]


def floor(package: str) -> Version:
    """Return the least version of a dependency that pyproject.toml allows."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    line = next(entry for entry in declared if re.match(rf"{package}\W", entry))
    found = re.search(r">=([\d.]+)", line)
    assert found is not None
    return tuple(int(part) for part in found[1].split("."))


def generated_by(pattern: re.Pattern[str], suffix: str) -> set[Version]:
    """Return the versions that the stubs with this suffix name."""
    texts = [path.read_text() for path in STUBS.rglob(f"*{suffix}")]
    return {tuple(map(int, match)) for text in texts for match in pattern.findall(text)}


def test_the_committed_stubs_are_those_of_the_protos() -> None:
    """WEIR-002: regenerated and compared, byte for byte."""
    checked = subprocess.run(
        [sys.executable, "-m", "tools.generate_stubs", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_drift_is_found(tmp_path: Path) -> None:
    """WEIR-002: a changed, a missing and an additional file are each named."""
    one, other = tmp_path / "one", tmp_path / "other"
    for side in (one, other):
        side.mkdir()
        (side / "same").write_text("same")
        (side / "changed").write_text(side.name)
    (one / "missing").touch()
    (other / "additional").touch()
    assert differences(one, other) == ["additional", "changed", "missing"]


@pytest.mark.parametrize(
    ("package", "pattern", "suffix"),
    [("protobuf", _PROTOBUF, "_pb2.py"), ("grpcio", _GRPC, "_pb2_grpc.py")],
)
def test_the_declared_floor_is_not_below_the_generator(
    package: str, pattern: re.Pattern[str], suffix: str
) -> None:
    """WEIR-002: an older runtime refuses newer stubs at import, so it must not be installable."""
    versions = generated_by(pattern, suffix)
    assert len(versions) == 1  # one generator made them all
    (generator,) = versions
    lowest = floor(package)
    # `>=7.35` allows 7.35.0.
    assert lowest + (0,) * (len(generator) - len(lowest)) >= generator
