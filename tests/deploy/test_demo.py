"""`make demo` without make and without a model: the tone adapter speaks."""

from __future__ import annotations

import json
import os
import wave
from pathlib import Path

import pytest

from services.tts.models.manifest import DEFAULT_GROUPS, assets_of
from services.tts.models.store import ModelStore
from tests.deploy.tools_runs import tool
from tests.processes import ROOT
from tools.demo.client import DemonstrationError, Segment, Utterance
from tools.demo.speech import COLUMNS, check
from tools.demo.texts import SCRIPTS, tokens

MODEL_DIR = Path(os.environ.get("TTS_MODEL_DIR") or ROOT / ".models").absolute()
FILES = {
    "english.wav",
    "english.words.json",
    "chinese.wav",
    "chinese.words.json",
    "english-buffered.wav",
    "video.mp4",
    "video.png",
    "services.log",
}


def written(folder: Path) -> set[str]:
    """The names of the files in a folder."""
    return {path.name for path in folder.iterdir()}


async def test_it_speaks_every_text_and_writes_the_files(tmp_path: Path) -> None:
    """WEIR-388: what is printed and written is what the services did."""
    async with tool("tools.demo", "--output", str(tmp_path)) as run:
        assert await run.ended() == 0, run.printed
    assert written(tmp_path) == FILES
    rows = [line.split("\t") for line in run.lines if "\t" in line]
    texts = [row[-1] for row in rows if row[0].isdigit() and len(row) == len(COLUMNS)]
    for script in SCRIPTS:
        spoken = [text for text in texts if text in script.text]
        assert len(spoken) > 1
        assert "".join(spoken).replace(" ", "") == script.text.replace(" ", "")
    for name in sorted(FILES):
        if name.endswith(".wav"):
            with wave.open(str(tmp_path / name), "rb") as file:
                assert any(file.readframes(file.getnframes())), name


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_it_speaks_with_the_embedded_voices(tmp_path: Path) -> None:
    """WEIR-388: English and Chinese, as somebody who has just cloned the repository hears them."""
    missing = ModelStore(MODEL_DIR).missing(assets_of(DEFAULT_GROUPS))
    if missing:
        pytest.skip(f"{len(missing)} files of the voices are not there: make models")
    voices = {"TTS_ADAPTER": "embedded", "TTS_MODEL_DIR": str(MODEL_DIR)}
    async with tool("tools.demo", "--output", str(tmp_path), **voices) as run:
        assert await run.ended() == 0, run.printed
    assert written(tmp_path) == FILES


async def test_word_times_are_those_of_the_whole_file(tmp_path: Path) -> None:
    """WEIR-388: the times of later segments are moved to where they are heard."""
    async with tool("tools.demo", "--part", "speech", "--output", str(tmp_path)) as run:
        assert await run.ended() == 0, run.printed
    words = json.loads((tmp_path / "english.words.json").read_text("utf-8"))
    with wave.open(str(tmp_path / "english.wav"), "rb") as file:
        length_ms = 1000 * file.getnframes() / file.getframerate()
    starts = [word["start_ms"] for word in words]
    assert starts == sorted(starts)
    assert words[-1]["end_ms"] <= length_ms + 1
    assert words[-1]["word"].startswith("water")


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"TTS_ADAPTER_OPTIONS": "fail_marker=kg"}, "english: segment_failed"),
        ({"TTS_ADAPTER_OPTIONS": "align=false"}, "english: no word times"),
        ({"TTS_ADAPTER": "nobody"}, "services.tts ended with status 2 before it was ready"),
    ],
)
async def test_anything_that_fails_fails_the_demonstration(
    tmp_path: Path, environment: dict[str, str], told: str
) -> None:
    """WEIR-388: a demonstration that did not work does not end well."""
    arguments = ("--part", "speech", "--output", str(tmp_path))
    async with tool("tools.demo", *arguments, **environment) as run:
        assert await run.ended() == 1
    assert told in run.printed


def test_the_pieces_are_the_text_and_always_the_same() -> None:
    """WEIR-388: the demonstration can be repeated."""
    for script in SCRIPTS:
        assert "".join(tokens(script.text)) == script.text
        assert list(tokens(script.text)) == list(tokens(script.text))
        assert max(map(len, tokens(script.text))) <= 5


def segment(text: str, start: int) -> Segment:
    """A segment that was well spoken."""
    words = [{"word": text, "start_ms": 0, "end_ms": 10}]
    pcm = bytearray(b"\x00\x40" * 240)
    return Segment(text, start, start + len(text), 0.0, 0.0, 0.0, pcm, words)


SILENT = segment("One.", 0)
SILENT.pcm = bytearray(480)
WORDLESS = segment("One.", 0)
WORDLESS.words = None


@pytest.mark.parametrize(
    ("segments", "told"),
    [
        ([segment("One.", 0)], "never spoken: ' Two.'"),
        ([segment(" Two.", 4)], "never spoken: 'One.'"),
        ([segment("One,", 0), segment(" Two.", 4)], "not the source"),
        ([SILENT, segment(" Two.", 4)], "no sound"),
        ([WORDLESS, segment(" Two.", 4)], "no word times"),
    ],
    ids=["end-lost", "beginning-lost", "changed", "silent", "wordless"],
)
def test_what_was_not_spoken_is_noticed(segments: list[Segment], told: str) -> None:
    """WEIR-388: the demonstration checks what it shows."""
    with pytest.raises(DemonstrationError, match=told):
        check(Utterance(segments, 24000), "One. Two.")


def test_what_was_spoken_is_accepted() -> None:
    """WEIR-388: white space between and after segments has no sound."""
    check(Utterance([segment("One.", 0), segment(" Two.", 4)], 24000), "One. Two. ")
