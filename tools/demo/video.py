"""The video part of the demonstration: one clip, two prompt changes while it runs.

Owns: the prompts, the checks on what comes back, the files written and the lines printed. Does not
own: the wire (`video_client`), the page of pictures (`contact_sheet`), the services
(`tools.stack`). Enforces: WEIR-388 (what is shown is what the services did, or the demonstration
fails).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import av
import numpy as np

from tools.demo.client import FAILURES, DemonstrationError
from tools.demo.contact_sheet import DecodedClip, decode, draw
from tools.demo.table import print_table
from tools.demo.video_client import Chunk, Clip, PromptChange, watch
from tools.stack import Stack, capabilities

SECONDS = 10
LEAD_SECONDS = 1
SEED = 42
VISIBLE_DIFFERENCE = 4.0
"""Steps of 255 on average; coding the same picture twice differs by far less."""

# Words for a model, and the colour that the `pattern` adapter paints.
PROMPT = "A harbour before sunrise, still water, deep blue #16355c"
CHANGES = (
    PromptChange("lanterns", "All lanterns are lit, warm amber #e8a33d", 0.25, 0),
    PromptChange("blossom", "Cherry blossom drifts in, pale rose #f2c4cf", 0.55, 3),
)

COLUMNS = (
    *("#", "frames", "pts", "bytes", "arrived", "progress"),
    *("started", "active", "completed", "superseded"),
)


async def run(suite: Stack, folder: Path) -> list[str]:
    """Make the clip, write the files into `folder`; return what went wrong."""
    print("\nVideo, the prompt changed twice")
    try:
        await _clip(suite, folder)
    except (*FAILURES, av.error.FFmpegError) as error:
        problem = f"video: {error or type(error).__name__}"
        print(f"failed: {problem}")
        return [problem]
    return []


async def _clip(suite: Stack, folder: Path) -> None:
    served = await asyncio.to_thread(capabilities, suite.edge.address)
    clip = await watch(suite.video_url, start_fields(served["video"]), CHANGES)
    video, sheet = folder / "video.mp4", folder / "video.png"
    video.write_bytes(clip.file)
    decoded = await asyncio.to_thread(decode, clip.file, clip.chunks)
    print_table(COLUMNS, [_row(chunk) for chunk in clip.chunks])
    for warning in clip.start["warnings"]:
        print(f"warning: {warning}")
    check(clip, decoded)
    page = await asyncio.to_thread(draw, clip, decoded, PROMPT, CHANGES)
    page.save(sheet)
    config = clip.start["config"]
    print(
        f"first chunk {clip.chunks[0].arrived_ms:,.0f} ms after session.start; "
        f"{decoded.num_frames} frames decoded, all of them asked for"
    )
    print(
        f"saved {video} ({clip.num_frames / config['fps']:.1f} s, {config['width']}x"
        f"{config['height']}, {len(clip.file):,} bytes) and {sheet} (a frame of every chunk)"
    )


def start_fields(served: dict[str, Any]) -> dict[str, Any]:
    """Return session.start for a clip of ten seconds, or as long as the model can."""
    num_frames = SECONDS * round(served["fps"])
    if served["max_num_frames"] is not None:
        num_frames = min(num_frames, served["max_num_frames"])
    # At the speed of the viewer, so that the changes fall into the middle of the clip.
    pace = {"pace": "realtime", "lead_seconds": LEAD_SECONDS}
    return {"prompt": PROMPT, "num_frames": num_frames, "seed": SEED, **pace}


def check(clip: Clip, decoded: DecodedClip) -> None:
    """Refuse a clip with a frame too many or too few, or a change that did not come about."""
    # WEIR-388: nothing is shown as a success that was not checked first.
    asked = clip.start["config"]["num_frames"]
    if not decoded.num_frames == clip.num_frames == asked:
        raise DemonstrationError(
            f"{decoded.num_frames} frames decoded, {clip.num_frames} announced, {asked} asked for"
        )
    if not clip.trailer:
        raise DemonstrationError("no trailer came")
    if clip.done["chunks"] != len(clip.chunks) + 1 or clip.done["stopped"]:
        raise DemonstrationError(f"session.done does not fit what came: {clip.done}")
    for change in CHANGES:
        check_change(clip, decoded, change)


def check_change(clip: Clip, decoded: DecodedClip, change: PromptChange) -> None:
    """Refuse a change that was not queued, not made in its number of chunks, or not seen."""
    event_id = change.event_id
    if event_id not in clip.queued:
        raise DemonstrationError(f"{event_id} was not queued")
    started = [i for i, chunk in enumerate(clip.chunks) if event_id in chunk.ids("started")]
    completed = [i for i, chunk in enumerate(clip.chunks) if event_id in chunk.ids("completed")]
    if len(started) != 1 or len(completed) != 1:
        raise DemonstrationError(f"{event_id} started in {started}, completed in {completed}")
    first, last = started[0], completed[0]
    expected = [step / max(1, change.transition_chunks) for step in range(1, last - first + 2)]
    shown = [chunk.metadata["prompt_progress"] for chunk in clip.chunks[first : last + 1]]
    if expected[-1] != 1 or not np.allclose(shown, expected):
        raise DemonstrationError(f"{event_id} went through {shown}")
    before, after = decoded.middles[first - 1], decoded.middles[last]
    if np.abs(after.astype(float) - before.astype(float)).mean() < VISIBLE_DIFFERENCE:
        raise DemonstrationError(f"{event_id} is not to be seen in the picture")


def _row(chunk: Chunk) -> tuple[str, ...]:
    metadata, progress = chunk.metadata, chunk.metadata["prompt_progress"]
    ids = (chunk.ids(kind) for kind in ("started", "active", "completed", "superseded"))
    return (
        str(metadata["generation_chunk_index"]),
        str(chunk.num_frames),
        f"{metadata['pts_seconds']:.2f} s",
        f"{len(chunk.payload):,}",
        f"{chunk.arrived_ms:,.0f} ms",
        "-" if progress is None else f"{progress:.2f}",
        *(", ".join(names) or "-" for names in ids),
    )
