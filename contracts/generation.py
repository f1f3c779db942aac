"""A video generation as it is asked for, and what comes back, validated.

Owns: the request and the messages of one generation in both directions. Does not own: their wire
form (`weir.video.v1`), what a model can do (`contracts.video`). Enforces: IO-INV-001 (a payload's
modality is its type), IO-INV-101 (chunks, their terminal and the outcome are different types),
WEIR-148 (ranges).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from contracts.errors import Failure
from contracts.speech import INT64_MAX, INT64_MIN
from contracts.video import (
    MAX_EVENT_ID_CHARACTERS,
    MAX_FRAMES,
    MAX_PROMPT_CHARACTERS,
    GenerationIdentity,
    Pace,
    VideoCodec,
)

MAX_LEAD_SECONDS = 30.0
DEFAULT_LEAD_SECONDS = 2.0

OPTION_RANGES: Mapping[str, tuple[float, float]] = {
    "num_inference_steps": (1, 200),
    "guidance_scale": (0, 20),
    "guidance_scale_2": (0, 20),
    "true_cfg_scale": (0, 20),
    "boundary_ratio": (0, 1),
    "flow_shift": (0, 1000),
}
"""Inclusive range of every numeric option."""


def check_prompt(prompt: str) -> None:
    """Raise ValueError for a prompt that is blank or too long."""
    if not prompt.strip():
        raise ValueError("a prompt is not blank")
    if len(prompt) > MAX_PROMPT_CHARACTERS:
        raise ValueError(f"a prompt has at most {MAX_PROMPT_CHARACTERS} characters")


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """What to generate. None or 0: the model's default. `image` is one encoded picture."""

    identity: GenerationIdentity
    prompt: str
    initial_credits: int
    negative_prompt: str | None = None
    width: int = 0
    height: int = 0
    frame_rate: Fraction | None = None
    codec: VideoCodec = VideoCodec.H264
    num_frames: int | None = None
    endless: bool = False
    options: Mapping[str, int | float] = field(default_factory=dict)
    seed: int | None = None
    image: bytes | None = None
    extra_params: Mapping[str, object] = field(default_factory=dict)
    pace: Pace = Pace.FREE
    lead_seconds: float = DEFAULT_LEAD_SECONDS

    def __post_init__(self) -> None:
        check_prompt(self.prompt)
        if self.initial_credits < 1:
            raise ValueError("initial_credits is at least 1")
        if self.endless and self.num_frames is not None:
            raise ValueError("an endless video has no num_frames")
        if self.num_frames is not None and not 1 <= self.num_frames <= MAX_FRAMES:
            raise ValueError(f"num_frames is 1 to {MAX_FRAMES}")
        if self.seed is not None and not INT64_MIN <= self.seed <= INT64_MAX:
            raise ValueError("seed is a signed 64-bit integer")
        if not 0 <= self.lead_seconds <= MAX_LEAD_SECONDS:
            raise ValueError(f"lead_seconds is 0 to {MAX_LEAD_SECONDS:g}")
        for name, value in self.options.items():
            low, high = OPTION_RANGES[name]
            if not low <= value <= high:
                raise ValueError(f"{name} is {low:g} to {high:g}")


@dataclass(frozen=True, slots=True)
class Interaction:
    """A new prompt. `transition_chunks` None: the model's default. Compared as it came."""

    event_id: str
    prompt: str
    transition_chunks: int | None = None
    event_fields: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= len(self.event_id) <= MAX_EVENT_ID_CHARACTERS:
            raise ValueError(f"an event_id has 1 to {MAX_EVENT_ID_CHARACTERS} characters")
        check_prompt(self.prompt)
        if self.transition_chunks is not None and self.transition_chunks < 0:
            raise ValueError("transition_chunks is not negative")


@dataclass(frozen=True, slots=True)
class Credit:
    """Room for further chunks."""

    chunks: int

    def __post_init__(self) -> None:
        if self.chunks < 1:
            raise ValueError("a credit is for at least one chunk")


@dataclass(frozen=True, slots=True)
class Pause:
    """Stand still at the next boundary."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on."""


@dataclass(frozen=True, slots=True)
class Playback:
    """How far the viewer has come, in seconds from the start of the video."""

    position_seconds: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.position_seconds) or self.position_seconds < 0:
            raise ValueError("position_seconds is finite and not negative")


@dataclass(frozen=True, slots=True)
class Stop:
    """Finish the chunk in progress, then end."""


Control = Interaction | Credit | Pause | Resume | Playback | Stop
"""What a client may send after `accepted`."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What is in force. `num_frames` None: there is no end."""

    width: int
    height: int
    frame_rate: Fraction
    codec: VideoCodec
    mime_type: str
    first_chunk_frames: int
    chunk_frames: int
    num_frames: int | None
    default_transition_chunks: int
    seed: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """One payload with what it shows.

    A trailer has no generation chunk index, no frames, empty lists, no progress and no time.
    """

    transport_chunk_index: int
    generation_chunk_index: int | None
    num_frames: int
    data: bytes
    started: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    prompt_progress: float | None = None
    pts_seconds: float | None = None

    def __post_init__(self) -> None:
        if not self.data:
            raise ValueError("a payload is never empty")
        if (self.generation_chunk_index is None) != (self.num_frames == 0):
            raise ValueError("exactly the trailer has no frames")


@dataclass(frozen=True, slots=True)
class InteractionQueued:
    """An interaction is recorded and queued."""

    event_id: str


@dataclass(frozen=True, slots=True)
class InteractionFailed:
    """A recorded interaction could not be carried out."""

    event_id: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class InteractionRefused:
    """An interaction was not recorded; it may be sent again."""

    event_id: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class Paused:
    """Generation stands still."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Generation goes on."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A sign of life between chunks."""

    generation_chunk_index: int
    steps: int


class WaitReason(StrEnum):
    """What a generation waits for."""

    PAUSE = "pause"
    PLAYBACK = "playback"
    CREDIT = "credit"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Generation waits for the client; the next progress or chunk ends it."""

    reason: WaitReason


@dataclass(frozen=True, slots=True)
class VideoCompleted:
    """Terminal of the video: counts of everything that was sent."""

    transport_chunk_count: int
    generation_chunk_count: int
    total_frames: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Last message. `failure` None: the generation completed, or was stopped."""

    failure: Failure | None
    stopped: bool
    transport_chunk_count: int
    superseded: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


GenerationUpdate = (
    Accepted
    | Chunk
    | InteractionQueued
    | InteractionFailed
    | InteractionRefused
    | Paused
    | Resumed
    | Progress
    | Waiting
    | VideoCompleted
    | Outcome
)
