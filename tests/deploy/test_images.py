"""The Dockerfiles, checked without a container engine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from services.runtime.settings import read_settings
from tests.deploy.settings_records import RECORDS
from tests.processes import ROOT

DOCKERFILES = sorted((ROOT / "deploy").glob("*.Dockerfile"))
NAMES = [path.name for path in DOCKERFILES]


def instructions(path: Path) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile: keyword and arguments, continued lines joined."""
    joined = path.read_text("utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines()]
    words = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    return [(keyword, rest) for keyword, rest in words]


def of_kind(path: Path, keyword: str) -> list[str]:
    """The arguments of every instruction with this keyword."""
    return [rest for found, rest in instructions(path) if found == keyword]


def hadolint(path: Path) -> subprocess.CompletedProcess[str]:
    """Run the linter on one file."""
    linter = Path(sys.executable).parent / "hadolint"
    return subprocess.run([linter, path], capture_output=True, text=True, check=False)


def test_there_is_one_for_each_process() -> None:
    """WEIR-383: every process has an image."""
    assert [f"{name}.Dockerfile" for name in sorted(RECORDS)] == NAMES


@pytest.mark.parametrize("path", DOCKERFILES, ids=NAMES)
def test_the_linter_has_nothing_to_say(path: Path) -> None:
    """WEIR-383: the Dockerfiles follow the rules of the trade."""
    result = hadolint(path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_linter_refuses_a_bad_file(tmp_path: Path) -> None:
    """WEIR-383: the check above can fail."""
    bad = tmp_path / "bad.Dockerfile"
    bad.write_text("FROM debian\nRUN cd /tmp && sudo ls\n", encoding="utf-8")
    assert hadolint(bad).returncode != 0


@pytest.mark.parametrize("path", DOCKERFILES, ids=NAMES)
def test_every_copied_path_exists_and_is_in_the_build_context(path: Path) -> None:
    """WEIR-383: a build never fails over a path."""
    allowed = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    copies = [rest.split() for rest in of_kind(path, "COPY") if not rest.startswith("--from")]
    sources = [source for words in copies for source in words[:-1]]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert Path(source).parts[0] in allowed, source


@pytest.mark.parametrize("path", DOCKERFILES, ids=NAMES)
def test_the_process_does_not_run_as_root(path: Path) -> None:
    """WEIR-383: the last USER is a number, so a cluster can check it."""
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", of_kind(path, "USER")[-1])


@pytest.mark.parametrize("path", DOCKERFILES, ids=NAMES)
def test_the_process_gets_signals_itself_and_is_probed(path: Path) -> None:
    """WEIR-383: an exec-form entry point drains on SIGTERM; a probe tells whether it serves."""
    name = path.name.partition(".")[0]
    assert of_kind(path, "ENTRYPOINT")[-1] == f'["python", "-m", "services.{name}"]'
    assert "/opt/weir/probe.py" in of_kind(path, "HEALTHCHECK")[-1]


@pytest.mark.parametrize("path", DOCKERFILES, ids=NAMES)
def test_every_variable_is_a_setting(path: Path) -> None:
    """WEIR-050: nothing is set that the process would refuse to start with."""
    name = path.name.partition(".")[0]
    pairs = dict(word.split("=", 1) for rest in of_kind(path, "ENV") for word in rest.split())
    own = {key: value for key, value in pairs.items() if key.startswith(f"{name.upper()}_")}
    assert own
    # What compose adds; without it the edge refuses to listen beyond loopback.
    targets = {"EDGE_TTS_TARGETS": "tts:50051", "EDGE_VIDEO_TARGETS": "video:50052"}
    anonymous = {"EDGE_ALLOW_ANONYMOUS": "1", **targets}
    read_settings(RECORDS[name], own | (anonymous if name == "edge" else {}))


def test_the_edge_is_installed_without_a_model_library() -> None:
    """WEIR-383: the edge's image takes the extra `edge` and no other."""
    runs = " ".join(of_kind(ROOT / "deploy" / "edge.Dockerfile", "RUN"))
    assert re.findall(r'"\.\[(.*?)\]"', runs) == ["edge"]
