"""What holds for a video session from its first moment.

Owns: the limits of one session and the operator's decisions. Does not own: where they come from
(`services.edge.settings`), what a client asks for (`negotiation`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from contracts.video import MAX_FRAMES, MAX_PROMPT_CHARACTERS


@dataclass(frozen=True, slots=True)
class VideoLimits:
    """Bounds of one session. Published by `GET /v1/capabilities` and in `video.start`."""

    start_timeout_s: float = 10.0
    start_message_characters: int = 4 * 1024 * 1024
    message_characters: int = 128 * 1024
    stall_timeout_s: float = 60.0
    gated_timeout_s: float = 120.0
    session_s: float = 1800.0
    drain_s: float = 15.0
    max_pixels: int = 1280 * 720
    max_frames_per_second: int = 60
    max_num_frames: int = MAX_FRAMES
    prompt_characters: int = MAX_PROMPT_CHARACTERS
    pending_interactions: int = 64
    chunks_ahead: int = 2


MakeId = Callable[[], str]
"""Makes the id of an interaction that has none: unique, 1 to 128 characters."""


@dataclass(frozen=True, slots=True)
class VideoTerms:
    """What holds for a session from its first moment. `strict` refuses what is else ignored."""

    session_id: str
    request_id: str
    limits: VideoLimits
    make_id: MakeId
    strict: bool = False
