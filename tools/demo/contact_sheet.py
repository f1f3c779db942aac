"""A video on one page: a frame of every generation chunk, and what its metadata said.

Owns: decoding a saved video to pictures, the layout of the page. Does not own: what the chunks are
(`video_client`), whether they are right (`video`).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from tools.demo.video_client import Chunk, Clip, PromptChange

Picture = NDArray[np.uint8]
"""One frame, RGB [height, width, 3]."""

COLUMNS = 6
THUMBNAIL_WIDTH = 240
CAPTION_HEIGHT = 66
GAP = 16
LINE_HEIGHT = 26
ENDS = ("started", "completed")
BACKGROUND, PAPER, INK, FAINT = "#f4f2ee", "#ffffff", "#22262b", "#8b9096"
MARKS = ("#c2571a", "#2f6f9f", "#5b7f3a", "#7a4f8f")
"""One colour for each interaction, in the order of the legend."""


@dataclass(frozen=True, slots=True)
class DecodedClip:
    """What decoding the file gave: how many frames, and the middle frame of every chunk."""

    num_frames: int
    middles: tuple[Picture, ...]


def decode(file: bytes, chunks: Sequence[Chunk]) -> DecodedClip:
    """Decode a saved video, keeping one frame a chunk. Raises av.error.FFmpegError."""
    wanted, first = set[int](), 0
    for chunk in chunks:
        wanted.add(first + chunk.num_frames // 2)
        first += chunk.num_frames
    count, middles = 0, list[Picture]()
    with av.open(io.BytesIO(file), "r") as container:
        for count, frame in enumerate(container.decode(video=0), start=1):
            if count - 1 in wanted:
                middles.append(frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False))
    return DecodedClip(count, tuple(middles))


def draw(
    clip: Clip, decoded: DecodedClip, prompt: str, changes: Sequence[PromptChange]
) -> Image.Image:
    """Return the page: the prompts on top, below them a grid of frames with captions."""
    config = clip.start["config"]
    height = round(THUMBNAIL_WIDTH * config["height"] / config["width"])
    rows = -(-len(clip.chunks) // COLUMNS)
    top = 2 * GAP + (len(changes) + 2) * LINE_HEIGHT
    cell_width, cell_height = THUMBNAIL_WIDTH + GAP, height + CAPTION_HEIGHT + GAP
    page = Image.new("RGB", (COLUMNS * cell_width + GAP, top + rows * cell_height), BACKGROUND)
    canvas = ImageDraw.Draw(page)
    marks = {c.event_id: MARKS[i % len(MARKS)] for i, c in enumerate(changes)}
    _legend(canvas, clip, prompt, changes, marks)
    for index, (chunk, picture) in enumerate(zip(clip.chunks, decoded.middles, strict=True)):
        row, column = divmod(index, COLUMNS)
        left, upper = GAP + column * cell_width, top + row * cell_height
        thumbnail = Image.fromarray(picture).resize(
            (THUMBNAIL_WIDTH, height), Image.Resampling.LANCZOS
        )
        canvas.rectangle(
            (left - 1, upper - 1, left + THUMBNAIL_WIDTH, upper + height + CAPTION_HEIGHT), PAPER
        )
        page.paste(thumbnail, (left, upper))
        _caption(canvas, chunk, (left, upper + height), marks)
    return page


def _legend(
    canvas: ImageDraw.ImageDraw,
    clip: Clip,
    prompt: str,
    changes: Sequence[PromptChange],
    marks: dict[str, str],
) -> None:
    config = clip.start["config"]
    seconds = clip.num_frames / config["fps"]
    headline = (
        f"{config['model']}   {config['width']} x {config['height']}   {config['fps']:g} fps   "
        f"{clip.num_frames} frames, {seconds:.1f} s, in {len(clip.chunks)} chunks"
    )
    canvas.text((GAP, GAP), headline, INK, _font(18))
    lines = [(FAINT, f"start: {prompt}")]
    for change in changes:
        over = f"over {change.transition_chunks} chunks" if change.transition_chunks else "hard cut"
        lines.append((marks[change.event_id], f"{change.event_id} ({over}): {change.prompt}"))
    for number, (mark, text) in enumerate(lines, start=1):
        y = GAP + number * LINE_HEIGHT + 4
        canvas.rectangle((GAP, y + 3, GAP + 11, y + 14), mark)
        canvas.text((GAP + 20, y), text, INK, _font(14))


def _caption(
    canvas: ImageDraw.ImageDraw, chunk: Chunk, corner: tuple[int, int], marks: dict[str, str]
) -> None:
    left, upper = corner
    metadata = chunk.metadata
    right = left + THUMBNAIL_WIDTH - 8
    canvas.text((left + 8, upper + 6), f"{metadata['generation_chunk_index']}", INK, _font(18))
    canvas.text(
        (right, upper + 10),
        f"{metadata['pts_seconds']:.2f} s   {chunk.num_frames} frames",
        FAINT,
        _font(12),
        anchor="ra",
    )
    active = chunk.ids("active")
    states = [
        " ".join([event_id, *(word for word in ENDS if event_id in chunk.ids(word))])
        for event_id in active
    ]
    mark = marks.get(active[0], INK) if active else FAINT
    canvas.text((left + 8, upper + 30), ", ".join(states) or "none active", mark, _font(13))
    progress = metadata["prompt_progress"]
    bar = (left + 8, upper + 53, right, upper + 58)
    canvas.rectangle(bar, "#e6e3dd")
    if progress is None:
        return
    canvas.rectangle((*bar[:2], bar[0] + round((bar[2] - bar[0]) * progress), bar[3]), mark)
    canvas.text((right, upper + 31), f"{progress:.0%}", mark, _font(13), anchor="ra")


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
