"""RGB pictures into what an encoder takes.

Owns: the check of an array of pictures, and the conversion to planar 4:2:0. Does not own: coding.
Enforces: WEIR-196 (a colour is converted to BT.709 limited range as it is tagged, and correctly
rounded: 0.51 of a step at most from the exact value, a colour sample standing for the mean of its
four pixels).
"""

from __future__ import annotations

import av
import numpy as np
from av.video.reformatter import (
    ColorPrimaries,
    ColorRange,
    Colorspace,
    ColorTrc,
    Interpolation,
    VideoReformatter,
)
from numpy.typing import NDArray

from services.video.media.formats import VideoFormat

MAX_CHUNK_FRAMES = 1_000
"""Most pictures in one chunk."""

PIXEL_FORMAT = "yuv420p"

# Other ways of averaging pull a flat colour up to 0.97 of a step away from where it belongs.
_EXACT = Interpolation.AREA | Interpolation.ACCURATE_RND


def check_frames(frames: NDArray[np.uint8], video: VideoFormat) -> None:
    """Raise ValueError unless `frames` is uint8[T, height, width, 3] with a possible T >= 1."""
    if not isinstance(frames, np.ndarray) or frames.dtype != np.uint8:
        raise ValueError(f"frames are a uint8 array, not {getattr(frames, 'dtype', type(frames))}")
    picture = (video.height, video.width, 3)
    if frames.ndim != 4 or frames.shape[1:] != picture:
        raise ValueError(f"frames have the shape [T, {picture}], not {frames.shape}")
    if not 1 <= len(frames) <= MAX_CHUNK_FRAMES:
        raise ValueError(f"a chunk has 1 to {MAX_CHUNK_FRAMES} frames, not {len(frames)}")


class PictureConverter:
    """Converts one picture after the other. Used by one thread at a time."""

    def __init__(self) -> None:
        self._reformatter = VideoReformatter()

    def convert(self, rgb: NDArray[np.uint8]) -> av.VideoFrame:
        """Return uint8[height, width, 3], full-range RGB, as a yuv420p frame tagged as BT.709."""
        source = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24")
        return self._reformatter.reformat(
            source,
            format=PIXEL_FORMAT,
            interpolation=_EXACT,
            src_color_range=ColorRange.JPEG,
            dst_color_range=ColorRange.MPEG,
            dst_colorspace=Colorspace.ITU709,
            dst_color_trc=ColorTrc.BT709,
            dst_color_primaries=ColorPrimaries.BT709,
            threads=1,
        )
