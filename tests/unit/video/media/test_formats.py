"""What can be encoded, and what an operator may set."""

from __future__ import annotations

from dataclasses import astuple
from fractions import Fraction

import pytest

from services.runtime.settings import SettingsError, read_settings
from services.video.media.codecs import CODECS, codec_named
from services.video.media.formats import EncoderSettings, VideoFormat


@pytest.mark.parametrize(
    ("width", "height", "fps", "message"),
    [
        (641, 384, 24, "width 641 is odd"),
        (640, 383, 24, "height 383 is odd"),
        (14, 384, 24, "width 14 is not between 16 and 4096"),
        (640, 4098, 24, "height 4098 is not between 16 and 4096"),
        (4096, 2178, 24, "more than 8912896 pixels"),
        (640, 384, 0, "fps 0 is not between 1 and 60"),
        (640, 384, Fraction(61), "fps 61 is not between 1 and 60"),
        (640, 384, Fraction(99_999, 10_000), "fps 99999/10000 is no rate"),
    ],
)
def test_a_format_that_cannot_be_encoded_is_refused(
    width: int, height: int, fps: int | Fraction, message: str
) -> None:
    """WEIR-196: with the field and what would be allowed."""
    with pytest.raises(ValueError, match=message):
        VideoFormat(width, height, fps)


@pytest.mark.parametrize(
    ("fps", "timescale", "ticks"),
    [
        (1, 1_000, 1_000),
        (24, 24_000, 1_000),
        (60, 60_000, 1_000),
        (Fraction(30_000, 1_001), 30_000_000, 1_001_000),
        (Fraction(25, 2), 25_000, 2_000),
    ],
)
def test_a_picture_lasts_a_whole_number_of_ticks(
    fps: int | Fraction, timescale: int, ticks: int
) -> None:
    """WEIR-198: exactly 1/fps, for whole and broken rates."""
    video = VideoFormat(640, 384, fps)
    assert (video.timescale, video.picture_ticks) == (timescale, ticks)
    assert Fraction(video.picture_ticks, video.timescale) == 1 / Fraction(fps)


@pytest.mark.parametrize(
    ("variable", "low", "high"),
    [
        ("VIDEO_H264_CRF", 0, 51),
        ("VIDEO_VP9_MIN_QUANTIZER", 0, 62),
        ("VIDEO_AV1_MIN_QUANTIZER", 1, 62),
        ("VIDEO_MAX_KBIT_PER_S", 100, 100_000),
        ("VIDEO_ENCODER_THREADS", 1, 16),
    ],
)
def test_a_setting_out_of_bounds_is_refused(variable: str, low: int, high: int) -> None:
    """WEIR-199: both ends are allowed, one step further is not."""
    for value in (low, high):
        assert value in astuple(read_settings(EncoderSettings, {variable: str(value)}))
    for value in (low - 1, high + 1):
        with pytest.raises(SettingsError, match=f"{variable}: {value} is"):
            read_settings(EncoderSettings, {variable: str(value)})


def test_an_unknown_codec_is_refused_with_those_there_are() -> None:
    """WEIR-196: and every codec there is can be named."""
    with pytest.raises(ValueError, match="codec 'hevc' is not one of h264, vp9, av1"):
        codec_named("hevc")
    assert [codec_named(name) for name in CODECS] == list(CODECS.values())


@pytest.mark.parametrize("name", CODECS)
def test_encoder_options_come_from_the_settings_alone(name: str) -> None:
    """WEIR-199: quality, rate and threads of the operator reach the encoder."""
    quality = "h264_crf" if name == "h264" else f"{name}_min_quantizer"
    settings = EncoderSettings(max_kbit_per_s=4_321, **{quality: 37})
    options = " ".join(CODECS[name].options(VideoFormat(640, 384, 24), settings).values())
    assert "37" in options
    assert "4321" in options
