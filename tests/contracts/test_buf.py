"""The protos keep to the style, and no released wire version is broken."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUF = Path(sys.executable).with_name("buf")
BASELINES = sorted((ROOT / "contracts" / "baseline").glob("*.binpb"))


def buf(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run buf and return how it ended."""
    return subprocess.run(
        [str(BUF), *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Return a copy of the protos that a test may change."""
    shutil.copytree(ROOT / "protos", tmp_path / "protos")
    shutil.copy(ROOT / "buf.yaml", tmp_path)
    return tmp_path


def edit(scratch: Path, file: str, old: str, new: str) -> None:
    """Replace `old`, which must be there once."""
    path = scratch / "protos" / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_the_protos_keep_the_standard_rules_and_every_part_has_a_comment() -> None:
    """WEIR-003: buf lint with STANDARD and COMMENTS."""
    linted = buf("lint")
    assert linted.returncode == 0, linted.stdout


def test_the_protos_are_formatted() -> None:
    """WEIR-003: buf format would change nothing."""
    formatted = buf("format", "--diff", "--exit-code")
    assert formatted.returncode == 0, formatted.stdout


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  // Name to ask for.\n", ""),
        ("service TtsService {", "service Tts {"),
        ("  TASK_TYPE_UNSPECIFIED = 0;", "  TASK_TYPE_NONE = 0;"),
    ],
)
def test_a_proto_that_breaks_the_style_is_refused(scratch: Path, old: str, new: str) -> None:
    """WEIR-003: a missing comment, a name without its suffix."""
    edit(scratch, "weir/tts/v1/tts.proto", old, new)
    assert buf("lint", cwd=scratch).returncode != 0


def test_the_version_has_a_baseline() -> None:
    """WEIR-300: each released wire version has an image, the present one among them."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"v{version}.binpb" in [path.name for path in BASELINES]


@pytest.mark.parametrize("baseline", BASELINES, ids=lambda path: path.stem)
def test_no_released_wire_version_is_broken(baseline: Path) -> None:
    """WEIR-300: buf breaking (FILE) against the image of each version."""
    checked = buf("breaking", "--against", str(baseline))
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param(
            "weir/media/v1/audio.proto", "  uint64 total_bytes = 3;\n", "", id="a removed field"
        ),
        pytest.param(
            "weir/media/v1/audio.proto",
            "uint64 total_bytes = 3;",
            "uint64 total_bytes = 5;",
            id="another number",
        ),
        pytest.param(
            "weir/media/v1/identity.proto",
            "uint32 attempt = 5;",
            "string attempt = 5;",
            id="another type",
        ),
        pytest.param(
            "weir/tts/v1/tts.proto",
            "  TASK_TYPE_BASE = 3;\n",
            "",
            id="a removed value",
        ),
        pytest.param(
            "weir/tts/v1/tts.proto",
            "rpc Synthesize(SynthesizeRequest) returns (stream SynthesizeResponse);",
            "rpc Synthesize(SynthesizeRequest) returns (SynthesizeResponse);",
            id="no stream any more",
        ),
    ],
)
def test_a_change_that_breaks_the_wire_is_refused(
    scratch: Path, file: str, old: str, new: str
) -> None:
    """WEIR-300: against every baseline."""
    edit(scratch, file, old, new)
    for baseline in BASELINES:
        assert buf("breaking", "--against", str(baseline), cwd=scratch).returncode != 0


def test_a_further_field_breaks_nothing(scratch: Path) -> None:
    """WEIR-300: adding is what a version may do."""
    old = "  uint64 total_bytes = 3;\n"
    further = f"{old}  // Whatever a newer version needs.\n  uint64 more = 9;\n"
    edit(scratch, "weir/media/v1/audio.proto", old, further)
    for baseline in BASELINES:
        checked = buf("breaking", "--against", str(baseline), cwd=scratch)
        assert checked.returncode == 0, checked.stdout
