"""VP9 in an ISO base media file (VP Codec ISO Media File Format Binding).

Owns: the options of libvpx, levels, `vpcC` and the `vp09.` string. Does not own: driving the
encoder. Enforces: WEIR-196 (no picture waits for a later one, none is hidden or dropped).
"""

from __future__ import annotations

from services.video.media.boxes import full_box, uint16
from services.video.media.formats import EncoderSettings, VideoFormat
from services.video.media.initialization import SampleDescription

_PROFILE = 0  # 8 bits, 4:2:0
_BIT_DEPTH = 8
_VERTICAL_SITING = 0  # of 4:2:0; the format knows no centred one
_BT709 = 1
_LIMITED_RANGE = 0

_FRAME_MARKER_AND_PROFILE = 0b10_00
_SHOWN_KEY_FRAME = 0b0_0_1  # shows no existing frame, is a key frame, is shown
_SYNC_CODE = bytes.fromhex("498342")

# Level: most luma samples per second, most per picture, most kbit/s.
_LEVELS = (
    (10, 829_440, 36_864, 200),
    (11, 2_764_800, 73_728, 800),
    (20, 4_608_000, 122_880, 1_800),
    (21, 9_216_000, 245_760, 3_600),
    (30, 20_736_000, 552_960, 7_200),
    (31, 36_864_000, 983_040, 12_000),
    (40, 83_558_400, 2_228_224, 18_000),
    (41, 160_432_128, 2_228_224, 30_000),
    (50, 311_951_360, 8_912_896, 60_000),
    (51, 588_251_136, 8_912_896, 120_000),
)


def options(_video: VideoFormat, settings: EncoderSettings) -> dict[str, str]:
    """Return the options of libvpx."""
    rate = f"{settings.max_kbit_per_s}k"
    return {
        "deadline": "realtime",
        "cpu-used": "8",
        "lag-in-frames": "0",
        "auto-alt-ref": "0",
        "row-mt": "1",
        # A rate with a bound on quality: constant quality overshoots it by far, and constant rate
        # was seen to leave a change of colour half done.
        "b": rate,
        "maxrate": rate,
        "bufsize": rate,
        "qmin": str(settings.vp9_min_quantizer),
        "drop-threshold": "0",
    }


def describe(packet: bytes, video: VideoFormat, settings: EncoderSettings) -> SampleDescription:
    """Return the sample entry of a stream that starts with `packet`, a key picture.

    Raises ValueError when it is no key picture of the profile that is announced.
    """
    head = (_FRAME_MARKER_AND_PROFILE << 4) | (_SHOWN_KEY_FRAME << 1)
    # The lowest bit is that of error resilience, which says nothing about the stream.
    if len(packet) < 4 or packet[0] & 0xFE != head or packet[1:4] != _SYNC_CODE:
        raise ValueError("not a key picture of VP9 profile 0")
    level = level_of(video, settings.max_kbit_per_s)
    depth_and_sampling = _BIT_DEPTH << 4 | _VERTICAL_SITING << 1 | _LIMITED_RANGE
    colours = bytes([_BT709, _BT709, _BT709])
    configuration = full_box(
        b"vpcC", 1, 0, bytes([_PROFILE, level, depth_and_sampling]), colours, uint16(0)
    )
    return SampleDescription(b"vp09", configuration, f"vp09.00.{level}.08.00.01.01.01.00")


def sample(packet: bytes) -> bytes:
    """Return the picture as it lies in the file: as the encoder gave it."""
    return packet


def level_of(video: VideoFormat, kbit_per_s: int) -> int:
    """Return ten times the lowest level that holds the stream."""
    pixels = video.width * video.height
    for level, per_second, per_picture, rate in _LEVELS:
        if pixels * video.fps <= per_second and pixels <= per_picture and kbit_per_s <= rate:
            return level
    raise ValueError(f"no level of VP9 holds {video} at {kbit_per_s} kbit/s")
