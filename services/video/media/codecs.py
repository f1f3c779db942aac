"""The codecs on offer.

Owns: the one table that names them, and what a codec has to bring along. Does not own: how any of
them works (`avc`, `vp9`, `av1`), which one a session gets. Enforces: WEIR-196 (a codec stands here
only when each of its chunks decodes at once, which the tests show for every entry).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from contracts.video import LEAST_SIDE, VideoCodec
from services.video.media import av1, avc, vp9
from services.video.media.formats import MIN_SIDE, EncoderSettings, VideoFormat
from services.video.media.initialization import SampleDescription

DEFAULT_CODEC = "h264"


@dataclass(frozen=True, slots=True)
class Codec:
    """How one codec is driven and stored.

    `encoder` is FFmpeg's name of it. `options` are for the encoder, `describe` reads the sample
    entry out of the first packet of a chunk, `sample` makes of a packet what lies in the file; the
    last two raise ValueError for a packet that is not as it must be. `min_side`: least width and
    height in pixels.
    """

    encoder: str
    options: Callable[[VideoFormat, EncoderSettings], dict[str, str]]
    describe: Callable[[bytes, VideoFormat, EncoderSettings], SampleDescription]
    sample: Callable[[bytes], bytes]
    min_side: int = MIN_SIDE


CODECS: Mapping[str, Codec] = MappingProxyType(
    {
        "h264": Codec(
            "libx264", avc.options, avc.describe, avc.sample, LEAST_SIDE[VideoCodec.H264]
        ),
        "vp9": Codec(
            "libvpx-vp9", vp9.options, vp9.describe, vp9.sample, LEAST_SIDE[VideoCodec.VP9]
        ),
        "av1": Codec(
            "libsvtav1", av1.options, av1.describe, av1.sample, LEAST_SIDE[VideoCodec.AV1]
        ),
    }
)


def codec_named(name: str) -> Codec:
    """Return a codec. Raises ValueError, naming those there are, for an unknown one."""
    try:
        return CODECS[name]
    except KeyError:
        raise ValueError(f"codec {name!r} is not one of {', '.join(CODECS)}") from None
