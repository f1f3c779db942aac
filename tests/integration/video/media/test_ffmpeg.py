"""Saved streams through FFmpeg's own programs, of another version than the library we encode with.

They are the distribution's; without them these tests are skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.video.media.codecs import CODECS
from services.video.media.encoder import ChunkEncoder
from services.video.media.formats import VideoFormat
from tests.unit.video.media.colours import Rgb, flat, moving

pytestmark = pytest.mark.skipif(
    not (shutil.which("ffmpeg") and shutil.which("ffprobe")),
    reason="needs the programs ffmpeg and ffprobe",
)

SIZES = (1, 33, 9, 12, 1)
RATES = (1, 24, 60, Fraction(30_000, 1_001))
TIMEOUT_S = 60


def run(*arguments: str) -> bytes:
    """Standard output of a program that must not complain about anything."""
    done = subprocess.run(arguments, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def probe(path: Path) -> dict[str, Any]:
    """What ffprobe finds in the video stream, every frame decoded."""
    shown = ("-count_frames", "-show_streams", "-show_frames", "-of", "json")
    found: dict[str, Any] = json.loads(run("ffprobe", "-v", "warning", *shown, str(path)))
    return found


def saved(path: Path, codec: str, video: VideoFormat) -> Path:
    """All payloads of a stream in a row."""
    encoder = ChunkEncoder(video, codec=codec)
    with path.open("wb") as file:
        for count in SIZES:
            frames = moving(count, video.width, video.height, encoder.num_frames)
            file.write(encoder.encode(frames).data)
        file.write(encoder.trailer())
    encoder.close()
    return path


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("fps", RATES)
def test_ffprobe_finds_the_frames_the_duration_and_a_constant_rate(
    tmp_path: Path, codec: str, fps: int | Fraction
) -> None:
    """WEIR-197, WEIR-198: without a warning; key pictures where chunks start."""
    found = probe(saved(tmp_path / "stream.mp4", codec, VideoFormat(98, 66, fps)))
    (stream,), frames = found["streams"], found["frames"]
    count = sum(SIZES)
    assert int(stream["nb_read_frames"]) == count
    assert Fraction(stream["r_frame_rate"]) == Fraction(stream["avg_frame_rate"]) == fps
    assert float(stream["duration"]) == pytest.approx(float(count / Fraction(fps)), abs=1e-6)
    ticks = VideoFormat(98, 66, fps).picture_ticks
    assert [frame["pts"] for frame in frames] == [index * ticks for index in range(count)]
    starts = [sum(SIZES[:index]) for index in range(len(SIZES))]
    assert [index for index, frame in enumerate(frames) if frame["key_frame"]] == starts


@pytest.mark.parametrize(
    ("codec", "fields"),
    [
        ("h264", {"codec_tag_string": "avc1", "profile": "Constrained Baseline", "level": 31}),
        ("vp9", {"codec_tag_string": "vp09", "profile": "Profile 0"}),
        ("av1", {"codec_tag_string": "av01", "profile": "Main", "level": 1}),
    ],
)
def test_ffprobe_reads_what_is_announced(
    tmp_path: Path, codec: str, fields: dict[str, object]
) -> None:
    """WEIR-196, WEIR-197: codec, profile, size, and the colours as they are converted."""
    found = probe(saved(tmp_path / "stream.mp4", codec, VideoFormat(640, 384, 24)))
    (stream,) = found["streams"]
    expected = {
        "codec_name": codec,
        "width": 640,
        "height": 384,
        "pix_fmt": "yuv420p",
        "color_range": "tv",
        "color_space": "bt709",
        "color_transfer": "bt709",
        "color_primaries": "bt709",
        **fields,
    }
    assert {name: stream[name] for name in expected} == expected


@pytest.mark.parametrize("codec", CODECS)
def test_ffmpeg_decodes_a_saved_stream_without_a_complaint(tmp_path: Path, codec: str) -> None:
    """WEIR-197: every picture, with errors made fatal."""
    path = saved(tmp_path / "stream.mp4", codec, VideoFormat(256, 144, 24))
    strict = ("-v", "warning", "-xerror", "-err_detect", "explode")
    frames = run("ffmpeg", *strict, "-i", str(path), "-f", "rawvideo", "-")
    assert len(frames) == sum(SIZES) * 256 * 144 * 3 // 2


SECONDS: list[Rgb] = [(250, 20, 20), (20, 250, 20), (20, 20, 250), (240, 240, 20)]
"""The colour of each second of a stream for seeking."""


def four_seconds(codec: str) -> tuple[bytes, bytes]:
    """Four chunks, each a second of one colour, and the trailer."""
    encoder = ChunkEncoder(VideoFormat(64, 64, 24), codec=codec)
    payloads = [encoder.encode(flat([colour] * 24, 64, 64)).data for colour in SECONDS]
    trailer = encoder.trailer()
    encoder.close()
    return b"".join(payloads), trailer


def second_shown(path: Path, seconds: float) -> int:
    """The second whose colour ffmpeg shows after a seek by the trailer."""
    seek = ("-use_mfra_for", "pts", "-ss", str(seconds), "-i", str(path), "-frames:v", "1")
    pixels = run("ffmpeg", "-v", "error", *seek, "-pix_fmt", "rgb24", "-f", "rawvideo", "-")
    mean = np.frombuffer(pixels, np.uint8).reshape(-1, 3).mean(axis=0)
    distances = np.abs(np.array(SECONDS) - mean).max(axis=1)
    assert distances.min() < 8
    return int(distances.argmin())


@pytest.mark.parametrize("codec", CODECS)
def test_a_saved_stream_seeks_by_its_trailer(tmp_path: Path, codec: str) -> None:
    """WEIR-197: the picture of the time asked for."""
    path = tmp_path / "stream.mp4"
    path.write_bytes(b"".join(four_seconds(codec)))
    assert [second_shown(path, second + 0.5) for second in range(4)] == [0, 1, 2, 3]


def test_a_trailer_that_is_wrong_leads_to_another_picture(tmp_path: Path) -> None:
    """WEIR-197: so what the test above shows is the trailer's work."""
    stream, trailer = four_seconds("h264")
    first = 8 + 12 + 12  # mfra, tfra up to its entries, 19 bytes each, the offset at 8
    entries = [trailer[first + 19 * index :][:19] for index in range(4)]
    exchanged = [entries[0], entries[1][:8] + entries[3][8:], entries[2], entries[3]]
    path = tmp_path / "stream.mp4"
    path.write_bytes(stream + trailer[:first] + b"".join(exchanged) + trailer[first + 76 :])
    assert second_shown(path, 1.5) != 1
