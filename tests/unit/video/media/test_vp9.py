"""VP9 in the container: levels, `vpcC`, the codec string."""

from __future__ import annotations

from fractions import Fraction

import pytest

from services.video.media import vp9
from services.video.media.formats import EncoderSettings, VideoFormat

KEY = bytes.fromhex("82498342 4027f017")


@pytest.mark.parametrize(
    ("video", "kbit_per_s", "level"),
    [
        (VideoFormat(256, 144, 15), 200, 10),
        (VideoFormat(256, 144, 15), 201, 11),
        (VideoFormat(256, 146, 15), 200, 11),
        (VideoFormat(256, 144, 24), 200, 11),
        (VideoFormat(640, 384, 24), 3_600, 21),
        (VideoFormat(1280, 720, 24), 12_000, 31),
        (VideoFormat(1280, 720, 40), 12_000, 31),
        (VideoFormat(1280, 720, Fraction(40_001, 1_000)), 12_000, 40),
        (VideoFormat(4096, 2176, 60), 100_000, 51),
    ],
)
def test_the_level_is_the_lowest_that_holds_size_rate_and_bits(
    video: VideoFormat, kbit_per_s: int, level: int
) -> None:
    """WEIR-197: each of the three limits decides where it is the one that is passed."""
    assert vp9.level_of(video, kbit_per_s) == level


def test_the_configuration_says_profile_level_depth_and_colour() -> None:
    """WEIR-197: BT.709 with limited range, as the pictures are converted."""
    settings = EncoderSettings(max_kbit_per_s=12_000)
    found = vp9.describe(KEY, VideoFormat(640, 384, 24), settings)
    assert found.kind == b"vp09"
    assert found.codec_string == "vp09.00.31.08.00.01.01.01.00"
    assert found.configuration == bytes.fromhex(
        "00000014 76706343 01000000"  # vpcC, version 1
        "00 1f 80 01 01 01 0000"  # profile, level, depth and sampling, colours, no more data
    )


@pytest.mark.parametrize(
    "packet",
    ["", "8249", "86498342", "92498342", "80498342", "8a498342", "82498343"],
    ids=["empty", "short", "inter", "profile 1", "hidden", "existing", "sync code"],
)
def test_what_is_no_key_picture_of_the_profile_is_refused(packet: str) -> None:
    """WEIR-196: a chunk starts with a picture that is shown and needs no other."""
    with pytest.raises(ValueError, match="not a key picture"):
        vp9.describe(bytes.fromhex(packet), VideoFormat(640, 384, 24), EncoderSettings())


def test_a_packet_lies_in_the_file_as_it_is() -> None:
    """WEIR-197: VP9 needs no framing of its own."""
    assert vp9.sample(KEY) == KEY
