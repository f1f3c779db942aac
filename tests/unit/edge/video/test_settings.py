"""What an operator can set about video, and what of it is published."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import msgspec
import pytest

from contracts.errors import Failure, Reason
from services.edge.documents import capabilities_document, video_part
from services.edge.settings import EdgeSettings, VideoSettings
from services.edge.speech.frontends import open_frontend
from services.edge.speech.negotiation import NegotiationPolicy
from services.edge.speech.terms import SpeechLimits, SpeechTerms
from services.edge.video.terms import VideoLimits
from services.runtime.settings import SettingsError, describe, read_settings
from tests.unit.edge.video.session_fixture import STANDARD

SPEECH = SpeechTerms("s", NegotiationPolicy(frozenset(), "p"), SpeechLimits(), open_frontend)


def test_the_defaults_are_the_documented_limits() -> None:
    """WEIR-174: the figures that clients of the endpoint rely on."""
    settings = read_settings(EdgeSettings, {})
    limits = settings.video.limits()
    assert limits == VideoLimits()
    assert (limits.start_timeout_s, limits.stall_timeout_s) == (10, 60)
    assert (limits.gated_timeout_s, limits.session_s) == (120, 1800)
    assert limits.start_message_characters == 4 * 1024 * 1024
    assert limits.message_characters == 128 * 1024
    assert (limits.max_pixels, limits.max_frames_per_second) == (1280 * 720, 60)
    assert (limits.max_num_frames, limits.prompt_characters) == (100_000, 4096)
    assert (limits.pending_interactions, limits.chunks_ahead) == (64, 2)
    assert settings.video_backend.targets == ("127.0.0.1:50052",)
    assert settings.drain.deadline_s > limits.drain_s


def test_every_limit_of_a_session_can_be_set() -> None:
    """WEIR-174: no limit is fixed in code."""
    assert [f.name for f in fields(VideoLimits)] == [f.name for f in fields(VideoSettings)]
    names = [d.env for d in describe(VideoSettings)]
    settings = read_settings(EdgeSettings, dict.fromkeys(names, "1024") | _BOUNDED)
    for name, value in zip(names, fields(VideoLimits), strict=True):
        expected = float(_BOUNDED.get(name, "1024"))
        assert getattr(settings.video.limits(), value.name) == expected


_BOUNDED = {"EDGE_VIDEO_MAX_FPS": "24", "EDGE_VIDEO_CHUNKS_AHEAD": "3"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EDGE_VIDEO_TARGETS", "nowhere"),
        ("EDGE_VIDEO_CHUNKS_AHEAD", "0"),
        ("EDGE_VIDEO_PROMPT_CHARACTERS", "5000"),
        ("EDGE_VIDEO_MAX_NUM_FRAMES", "100001"),
        ("EDGE_VIDEO_RETRY_BACKOFF_FIRST_S", "5"),
        ("EDGE_VIDEO_SPEED", "1"),
    ],
)
def test_a_setting_that_cannot_hold_is_refused(name: str, value: str) -> None:
    """WEIR-050: at start-up, by name or by what it is about."""
    with pytest.raises(SettingsError) as refused:
        read_settings(EdgeSettings, {name: value})
    assert len(refused.value.problems) == 1


def test_capabilities_and_limits_are_published() -> None:
    """IO-INV-300, WEIR-174: beside those of speech, each where its service can be reached."""
    part = video_part(STANDARD, VideoLimits())
    document = json.loads(msgspec.json.encode(capabilities_document(None, SPEECH, part)))
    assert set(document) == {"video"}
    video = document["video"]
    assert video["limits"] == {f.name: getattr(VideoLimits(), f.name) for f in fields(VideoLimits)}
    assert (video["model"], video["fps"], video["size_multiple"]) == ("pattern", 24, 16)
    assert video["codecs"] == ["h264", "av1"]
    assert video["extra_params"] == ["inverted"]
    bounded = video_part(replace(STANDARD, max_num_frames=240), VideoLimits())
    assert isinstance(bounded, dict)
    assert bounded["max_num_frames"] == 240


def test_without_any_service_there_is_no_document() -> None:
    """WEIR-172: a failure that may be retried."""
    assert video_part(None, VideoLimits()) is None
    made = capabilities_document(None, SPEECH, None)
    assert isinstance(made, Failure)
    assert made.reason is Reason.BACKEND_UNAVAILABLE
