"""What an operator can set."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.runtime.settings import SettingsError, read_settings
from services.video.adapters.settings import AdapterSettings
from services.video.media.formats import EncoderSettings
from services.video.settings import VideoSettings


def test_defaults_are_those_of_the_encoder_and_the_protocol() -> None:
    """WEIR-050: nothing has to be set."""
    settings = read_settings(VideoSettings, {})
    assert settings.encoding.for_encoder == EncoderSettings()
    assert settings.encoding.codecs == ("h264", "vp9", "av1")
    assert settings.engine.waiting_interactions == 64
    assert settings.engine.max_image_pixels == 16_000_000
    assert settings.engine.max_pixels == 1280 * 720


def test_the_adapter_is_told_its_part() -> None:
    """WEIR-050: folder, device and options."""
    environ = {
        "VIDEO_MODEL_DIR": "/models",
        "VIDEO_DEVICE": "cpu",
        "VIDEO_ADAPTER_OPTIONS": "steps=2, width=64",
    }
    told = read_settings(VideoSettings, environ).for_adapter
    assert told == AdapterSettings(Path("/models"), "cpu", {"steps": "2", "width": "64"})


WRONG = [
    {"VIDEO_MAX_SESSIONS": "0"},
    {"VIDEO_CODECS": "h264,h265"},
    {"VIDEO_CODECS": ","},
    {"VIDEO_H264_CRF": "0"},
    {"VIDEO_ADAPTER_OPTIONS": "steps"},
    {"VIDEO_SESSIONS": "3"},
]


@pytest.mark.parametrize("environ", WRONG)
def test_what_cannot_be_is_named(environ: dict[str, str]) -> None:
    """WEIR-050: with the variable's name."""
    with pytest.raises(SettingsError) as raised:
        read_settings(VideoSettings, environ)
    (problem,) = raised.value.problems
    assert problem.startswith(next(iter(environ)))
