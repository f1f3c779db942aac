"""One video generation as it is asked for, what a model can do, and the updates of a generation.

Owns: the validated records of video, and the questions asked of them. Does not own: their wire form
(`weir.video.v1`), what an interaction does (`services.video.timeline`). Enforces: WEIR-148 (a
record that contradicts itself is refused), WEIR-149 (replicas that differ offer what all declare),
IO-INV-101 (partial and terminal updates are different types).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")

MAX_PROMPT_CHARACTERS = 4096
MAX_EVENT_ID_CHARACTERS = 128
MAX_FRAMES = 100_000

VIDEO_OPTIONS = (
    "negative_prompt",
    "num_inference_steps",
    "guidance_scale",
    "guidance_scale_2",
    "true_cfg_scale",
    "boundary_ratio",
    "flow_shift",
)
"""Optional request fields that only some models read."""


class VideoCodec(StrEnum):
    """Codecs by their public names."""

    H264 = "h264"
    VP9 = "vp9"
    AV1 = "av1"


LEAST_SIDE: Mapping[VideoCodec, int] = MappingProxyType(
    {VideoCodec.H264: 16, VideoCodec.VP9: 16, VideoCodec.AV1: 64}
)
"""Least width and height in pixels: one macroblock of H.264, which VP9 is held to as well; with
less than 64 SVT-AV1 does not control the rate."""
MAX_SIDE = 4096
"""Greatest width and height in pixels, whatever the codec."""
MAX_PICTURE_PIXELS = 4096 * 2176
"""Greatest picture, so that a level of every codec holds it at the greatest rate."""


class Pace(StrEnum):
    """How fast chunks are generated."""

    FREE = "free"
    REALTIME = "realtime"


@dataclass(frozen=True, slots=True)
class GenerationIdentity:
    """Identity of one generation. `attempt` counts from 1; all else never changes (IO-INV-100)."""

    session_id: str
    request_id: str
    attempt: int = 1

    def __post_init__(self) -> None:
        for name in (self.session_id, self.request_id):
            if _NAME.fullmatch(name) is None:
                raise ValueError("ids are 1 to 128 characters of A-Z a-z 0-9 . _ -")
        if self.attempt < 1:
            raise ValueError("attempt counts from 1")

    def next_attempt(self) -> GenerationIdentity:
        """Return the identity of the next attempt at the same generation."""
        return replace(self, attempt=self.attempt + 1)


@dataclass(frozen=True, slots=True)
class VideoCapabilities:
    """Everything a video adapter declares. Sizes in pixels, rates in frames per second."""

    model: str
    frames_per_second: int
    default_num_frames: int
    first_chunk_frames: int
    chunk_frames: int
    size_multiple: int
    default_width: int
    default_height: int
    max_num_frames: int | None = None
    prompt_updates: bool = True
    default_transition_chunks: int = 3
    image_reference: bool = False
    options: frozenset[str] = frozenset()
    extra_params: frozenset[str] = frozenset()
    event_fields: frozenset[str] = frozenset()
    codecs: tuple[VideoCodec, ...] = (VideoCodec.H264,)

    def __post_init__(self) -> None:
        counts = (
            self.frames_per_second,
            self.default_num_frames,
            self.first_chunk_frames,
            self.chunk_frames,
            self.size_multiple,
            self.default_width,
            self.default_height,
        )
        if not self.model or min(counts) < 1 or self.default_transition_chunks < 0:
            raise ValueError("a video model needs a name and positive sizes, rates and counts")
        if self.default_width % self.size_multiple or self.default_height % self.size_multiple:
            raise ValueError("the default size is a multiple of the size multiple")
        if self.max_num_frames is not None and self.max_num_frames < self.default_num_frames:
            raise ValueError("the default count of frames is within the maximum")
        if not self.codecs:
            raise ValueError("a video model offers at least one codec")
        unknown = self.options - frozenset(VIDEO_OPTIONS)
        if unknown:
            raise ValueError(f"model {self.model} declares unknown options: {sorted(unknown)}")

    def nearest_size(self, width: int, height: int) -> tuple[int, int]:
        """Return the valid size nearest to this one; both are at least one multiple."""
        unit = self.size_multiple
        return (max(1, round(width / unit)) * unit, max(1, round(height / unit)) * unit)

    def chunk_sizes(self, num_frames: int) -> Iterable[int]:
        """Yield the count of frames of each chunk of a video; the last one is trimmed."""
        left, size = num_frames, self.first_chunk_frames
        while left > 0:
            yield min(size, left)
            left -= size
            size = self.chunk_frames


def shared_by_all(records: Iterable[VideoCapabilities]) -> VideoCapabilities | None:
    """Return what every one of `records` declares (WEIR-149); None when they do not fit.

    Replicas that chunk, size or pace differently cannot stand for one another.
    """
    merged: VideoCapabilities | None = None
    for record in records:
        if merged is None:
            merged = record
            continue
        fixed = ("model", "frames_per_second", "first_chunk_frames", "chunk_frames")
        if any(getattr(merged, name) != getattr(record, name) for name in fixed):
            return None
        codecs = tuple(codec for codec in merged.codecs if codec in record.codecs)
        if not codecs or merged.size_multiple != record.size_multiple:
            return None
        merged = replace(
            merged,
            prompt_updates=merged.prompt_updates and record.prompt_updates,
            image_reference=merged.image_reference and record.image_reference,
            options=merged.options & record.options,
            extra_params=merged.extra_params & record.extra_params,
            event_fields=merged.event_fields & record.event_fields,
            codecs=codecs,
        )
    return merged
