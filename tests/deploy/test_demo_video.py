"""The video part of `make demo`, without make: the pattern adapter paints."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from tests.deploy.tools_runs import ToolRun, tool
from tools.demo.client import DemonstrationError
from tools.demo.contact_sheet import DecodedClip, decode, draw
from tools.demo.video import CHANGES, COLUMNS, PROMPT, check, start_fields
from tools.demo.video_client import Chunk, Clip

NUM_FRAMES = 240
EDGES = np.cumsum([9, *[12] * 19, 3])
"""Where the chunks end, in frames."""


def written(folder: Path) -> set[str]:
    """The names of the files in a folder."""
    return {path.name for path in folder.iterdir()}


def columns(run: ToolRun) -> dict[str, list[str]]:
    """The cells of the printed table, by the column's name."""
    rows = [line.split("\t") for line in run.lines if line.count("\t") == len(COLUMNS) - 1]
    assert tuple(rows[0]) == COLUMNS
    return {name: [row[i] for row in rows[1:]] for i, name in enumerate(COLUMNS)}


async def test_it_makes_a_clip_and_changes_the_prompt_twice(tmp_path: Path) -> None:
    """WEIR-388: the table, the file and the page tell of the same video."""
    async with tool("tools.demo", "--part", "video", "--output", str(tmp_path)) as run:
        assert await run.ended() == 0, run.printed
    assert written(tmp_path) == {"video.mp4", "video.png", "services.log"}
    table = columns(run)
    assert [int(cell) for cell in table["frames"]] == np.diff(EDGES, prepend=0).tolist()
    assert table["started"].count("lanterns") == table["active"].count("lanterns") == 1
    assert table["active"].count("blossom") == 3
    assert [cell for cell in table["progress"] if cell != "-"] == ["1.00", "0.33", "0.67", "1.00"]
    assert re.search(r"first chunk \d+ ms after session.start", run.printed)
    with av.open(str(tmp_path / "video.mp4")) as container:
        assert sum(1 for _ in container.decode(video=0)) == NUM_FRAMES
    with Image.open(tmp_path / "video.png") as page:
        pixels = np.asarray(page.convert("RGB")).reshape(-1, 3)
    for prompt in (PROMPT, *(change.prompt for change in CHANGES)):
        colour = np.frombuffer(bytes.fromhex(prompt.partition("#")[2]), np.uint8)
        near = np.abs(pixels.astype(int) - colour).max(axis=1) <= 3
        assert near.mean() > 0.02, f"{prompt} is not on the page"


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"VIDEO_ADAPTER_OPTIONS": "fail_chunk=3"}, "demo: video: "),
        ({"VIDEO_ADAPTER_OPTIONS": "fail_marker=blossom"}, "demo: video: interaction_failed"),
        ({"VIDEO_ADAPTER_OPTIONS": "prompt_updates=false"}, "demo: video: interaction_failed"),
        ({"VIDEO_ADAPTER": "nobody"}, "services.video ended with status 2 before it was ready"),
    ],
    ids=["chunk-fails", "prompt-fails", "no-updates", "no-adapter"],
)
async def test_anything_that_fails_fails_the_demonstration(
    tmp_path: Path, environment: dict[str, str], told: str
) -> None:
    """WEIR-388: a video that did not come about does not end well."""
    arguments = ("--part", "video", "--output", str(tmp_path))
    async with tool("tools.demo", *arguments, **environment) as run:
        assert await run.ended() == 1
    assert told in run.printed


def metadata(index: int, count: int) -> dict[str, Any]:
    """What the 21 chunks of a good clip say: a hard change in 6, one over three chunks from 12."""
    ids: dict[str, Any] = {f"{k}_event_ids": [] for k in ("started", "active", "completed")}
    progress: float | None = None
    for event_id, first, last in (("lanterns", 6, 6), ("blossom", 12, 14)):
        if first <= index <= last:
            progress = (index - first + 1) / (last - first + 1)
            ids["active_event_ids"] = [event_id]
        if index == first:
            ids["started_event_ids"] = [event_id]
        if index == last:
            ids["completed_event_ids"] = [event_id]
    return {
        **ids,
        "superseded_event_ids": [],
        "generation_chunk_index": index,
        "num_frames": count,
        "pts_seconds": 0.0,
        "prompt_progress": progress,
    }


def good() -> tuple[Clip, DecodedClip]:
    """A clip with which nothing is wrong, and what decoding it gave."""
    counts = np.diff(EDGES, prepend=0).tolist()
    chunks = [Chunk(metadata(i, count), b"", 0.0) for i, count in enumerate(counts)]
    levels = [0] * 6 + [90] * 6 + [120, 150] + [180] * 7
    middles = tuple(np.full((32, 32, 3), level, np.uint8) for level in levels)
    config = {"num_frames": NUM_FRAMES, "width": 32, "height": 32, "fps": 24, "model": "m"}
    clip = Clip({"config": config}, chunks, b"trailer", ["lanterns", "blossom"])
    clip.done = {"chunks": len(chunks) + 1, "stopped": False}
    return clip, DecodedClip(NUM_FRAMES, middles)


def test_a_good_clip_is_accepted_and_drawn() -> None:
    """WEIR-388: the other direction of every refusal below."""
    clip, decoded = good()
    check(clip, decoded)
    assert draw(clip, decoded, PROMPT, CHANGES).height > 0


def lose_the_trailer(clip: Clip) -> None:
    """Nothing after the last chunk."""
    clip.trailer = b""


def forget_to_queue(clip: Clip) -> None:
    """One change is never acknowledged."""
    clip.queued.remove("blossom")


def never_complete(clip: Clip) -> None:
    """One change stops before its target."""
    clip.chunks[14].metadata["completed_event_ids"] = []


def start_from_nothing(clip: Clip) -> None:
    """A transition that wastes its first chunk."""
    clip.chunks[12].metadata["prompt_progress"] = 0.0


def stop(clip: Clip) -> None:
    """Somebody stopped it."""
    clip.done["stopped"] = True


def announce_more(clip: Clip) -> None:
    """Frames that are not there."""
    clip.chunks[3].metadata["num_frames"] += 1


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lose_the_trailer, "no trailer"),
        (forget_to_queue, "blossom was not queued"),
        (never_complete, r"blossom started in \[12\], completed in \[\]"),
        (start_from_nothing, "blossom went through"),
        (stop, "session.done does not fit"),
        (announce_more, "240 frames decoded, 241 announced"),
    ],
)
def test_what_did_not_come_about_is_noticed(spoil: Callable[[Clip], None], told: str) -> None:
    """WEIR-388: the demonstration checks what the messages say."""
    clip, decoded = good()
    spoil(clip)
    with pytest.raises(DemonstrationError, match=told):
        check(clip, decoded)


def test_a_frame_that_is_missing_or_a_change_that_is_not_seen_is_noticed() -> None:
    """WEIR-388: the demonstration checks what the pictures show."""
    clip, decoded = good()
    with pytest.raises(DemonstrationError, match="239 frames decoded"):
        check(clip, replace(decoded, num_frames=NUM_FRAMES - 1))
    with pytest.raises(DemonstrationError, match="lanterns is not to be seen"):
        check(clip, replace(decoded, middles=(decoded.middles[0],) * len(clip.chunks)))


def test_a_file_that_is_no_video_is_refused() -> None:
    """WEIR-388: decoding is real."""
    with pytest.raises(av.error.FFmpegError):
        decode(b"not a video" * 100, [])


@pytest.mark.parametrize(
    ("fps", "most", "num_frames"), [(24, None, 240), (16, 81, 81), (30, 10_000, 300)]
)
def test_a_clip_is_ten_seconds_or_what_the_model_can(
    fps: int, most: int | None, num_frames: int
) -> None:
    """WEIR-388: the demonstration asks no model for more than it declares."""
    assert start_fields({"fps": fps, "max_num_frames": most})["num_frames"] == num_frames
