"""When a generation may make its next chunk, and how many frames that has.

Owns: the arithmetic of credits, pause, playback and the count of frames. Does not own: threads and
clocks (times are passed in), what is sent about it (`services.video.run`). Enforces: WEIR-222 (a
chunk is begun only with a credit for it), WEIR-223 (with a realtime pace generation leads playback
by at most `lead_seconds`, or one chunk), WEIR-224 (the frames of all chunks are exactly those asked
for).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from contracts.generation import WaitReason
from contracts.video import Pace


@dataclass(frozen=True, slots=True)
class Pacing:
    """What a gate goes by. `num_frames` None: there is no end. Times in seconds."""

    frame_rate: Fraction
    num_frames: int | None
    first_chunk_frames: int
    chunk_frames: int
    initial_credits: int
    pace: Pace = Pace.FREE
    lead_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ChunkPlace:
    """One generation chunk: its index, its first frame and how many frames of it are wanted."""

    index: int
    first_frame: int
    num_frames: int


class Gate:
    """The gate of one generation. Not thread-safe: `services.video.run` holds the lock."""

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self._credits = pacing.initial_credits
        self._position_s: float | None = None
        self._first_chunk_at: float | None = None
        self.paused = False
        """Whether generation shall stand still at the next boundary."""
        self.chunks = 0
        """Chunks begun."""
        self.frames = 0
        """Frames of the chunks begun, the last one trimmed."""

    @property
    def frame_rate(self) -> Fraction:
        """Frames per second."""
        return self._pacing.frame_rate

    @property
    def next_frames(self) -> int:
        """Frames of the next chunk; 0 when every frame has been begun."""
        pacing = self._pacing
        size = pacing.chunk_frames if self.chunks else pacing.first_chunk_frames
        # WEIR-224: the last chunk is trimmed.
        return size if pacing.num_frames is None else min(size, pacing.num_frames - self.frames)

    def grant(self, chunks: int) -> None:
        """Make room for further chunks."""
        self._credits += chunks

    def report(self, position_s: float) -> None:
        """Note how far the viewer has come."""
        self._position_s = position_s

    def first_chunk_left(self, now: float) -> None:
        """Note when the first chunk was ready: playback is taken to run from then on."""
        if self._first_chunk_at is None:
            self._first_chunk_at = now

    def begin_chunk(self) -> ChunkPlace:
        """Take the next chunk. The caller has looked at `blocked` and `next_frames`."""
        place = ChunkPlace(self.chunks, self.frames, self.next_frames)
        self.chunks += 1
        self.frames += place.num_frames
        return place

    def blocked(self, now: float) -> WaitReason | None:
        """Return what the next chunk waits for, None when it may be made."""
        if self.paused:
            return WaitReason.PAUSE
        if self._pacing.pace is Pace.REALTIME and now < self._opens_at(now):
            return WaitReason.PLAYBACK
        # WEIR-222
        return WaitReason.CREDIT if self.chunks >= self._credits else None

    def opens_at(self, now: float) -> float | None:
        """Return when the passing of time alone changes `blocked`; None when it never does."""
        if self._position_s is not None or self.blocked(now) is not WaitReason.PLAYBACK:
            return None
        opens_at = self._opens_at(now)
        return opens_at if math.isfinite(opens_at) else None

    def _opens_at(self, now: float) -> float:
        """Return the time from which the lead allows the next chunk; inf: not without a report."""
        rate = self._pacing.frame_rate
        begins = float(self.frames / rate)
        ends = float((self.frames + self.next_frames) / rate)
        # WEIR-223: one chunk ahead is always allowed. A player that has run dry stands a frame
        # before the end of what it has, so the last frame counts as played.
        needed = min(ends - self._pacing.lead_seconds, begins - float(1 / rate))
        if self._position_s is not None:
            return now if self._position_s >= needed else math.inf
        if self._first_chunk_at is None:
            return now if needed <= 0 else math.inf
        return self._first_chunk_at + needed
