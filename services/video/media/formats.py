"""What a stream is and what the operator lets it cost.

Owns: the picture size and rate of a stream, the encoder's settings, and their bounds. Does not own:
which codecs there are (`codecs`), narrower limits of an adapter or of the protocol. Enforces:
WEIR-198 (times are whole ticks, so that nothing is rounded however long a stream runs).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from contracts.video import LEAST_SIDE, MAX_PICTURE_PIXELS, MAX_SIDE
from services.runtime.settings import setting

MIN_SIDE = min(LEAST_SIDE.values())
"""Least width and height in pixels that any codec can do."""
MIN_FPS = 1
MAX_FPS = 60

_TICKS_PER_PICTURE_UNIT = 1000
_MAX_FPS_NUMERATOR = 60_000


@dataclass(frozen=True, slots=True)
class VideoFormat:
    """Size in pixels, both even; pictures per second, whole or a ratio like 30000/1001.

    Raises ValueError for what cannot be encoded.
    """

    width: int
    height: int
    fps: int | Fraction

    def __post_init__(self) -> None:
        for name, side in (("width", self.width), ("height", self.height)):
            if not MIN_SIDE <= side <= MAX_SIDE:
                raise ValueError(f"{name} {side} is not between {MIN_SIDE} and {MAX_SIDE}")
            if side % 2:
                raise ValueError(f"{name} {side} is odd: two pixels share a colour sample")
        if self.width * self.height > MAX_PICTURE_PIXELS:
            raise ValueError(f"{self.width}x{self.height} is more than {MAX_PICTURE_PIXELS} pixels")
        if not MIN_FPS <= self.fps <= MAX_FPS:
            raise ValueError(f"fps {self.fps} is not between {MIN_FPS} and {MAX_FPS}")
        if Fraction(self.fps).numerator > _MAX_FPS_NUMERATOR:
            raise ValueError(f"fps {self.fps} is no rate that a clock of the container can have")

    @property
    def timescale(self) -> int:
        """Ticks per second of the track."""
        # WEIR-198: a multiple of the rate, so that a picture lasts a whole number of ticks.
        return Fraction(self.fps).numerator * _TICKS_PER_PICTURE_UNIT

    @property
    def picture_ticks(self) -> int:
        """Ticks that every picture lasts."""
        return Fraction(self.fps).denominator * _TICKS_PER_PICTURE_UNIT


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """What the operator sets for each stream; no client reaches it."""

    h264_crf: int = setting(
        "VIDEO_H264_CRF",
        23,
        "Quality of H.264 on the scale of libx264: less is better and larger.",
        minimum=0,
        maximum=51,
    )
    vp9_min_quantizer: int = setting(
        "VIDEO_VP9_MIN_QUANTIZER",
        20,
        "Best quality of VP9 on the scale of libvpx: less is better and larger.",
        minimum=0,
        maximum=62,
    )
    av1_min_quantizer: int = setting(
        "VIDEO_AV1_MIN_QUANTIZER",
        26,
        "Best quality of AV1 on the scale of SVT-AV1: less is better and larger.",
        minimum=1,
        maximum=62,
    )
    max_kbit_per_s: int = setting(
        "VIDEO_MAX_KBIT_PER_S",
        12_000,
        "Rate that the encoder of a stream keeps to over a second, whatever the quality.",
        unit="kbit/s",
        minimum=100,
        maximum=100_000,
    )
    threads: int = setting(
        "VIDEO_ENCODER_THREADS",
        1,
        "Threads of the encoder of one stream; AV1 starts several for each.",
        minimum=1,
        maximum=16,
    )
