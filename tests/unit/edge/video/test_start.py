"""What a start message asks for, and what becomes of what cannot be done."""

from __future__ import annotations

import base64
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.generation import GenerationRequest
from contracts.video import LEAST_SIDE, MAX_PICTURE_PIXELS, MAX_SIDE, Pace, VideoCodec
from services.edge.video.events import StartGeneration
from services.edge.video.messages import SessionStart
from services.edge.video.sizing import extent_of, nearest_size
from services.edge.video.terms import VideoLimits
from tests.unit.edge.video.session_fixture import STANDARD, Conversation, kinds

PICTURE = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()


def asked(**fields: Any) -> GenerationRequest:
    """Return the request of a start that must be taken."""
    (started,) = Conversation().start(**fields)
    assert isinstance(started, StartGeneration), started
    return started.request


def warnings(**fields: Any) -> list[str]:
    """Return the warnings of a start that must be taken."""
    (start,) = [m for m in Conversation().run(**fields) if isinstance(m, dict)]
    return list(start["warnings"])


def refused(talk: Conversation | None = None, **fields: Any) -> dict[str, Any]:
    """Return the error of a start that must end the session with 1008."""
    shown = (talk or Conversation()).start(**fields)
    error = shown[0]
    assert isinstance(error, dict), shown
    assert kinds(shown)[1:] == ["close 1008"]
    return error


def test_a_prompt_is_all_that_is_needed() -> None:
    """WEIR-157: everything else is the model's."""
    request = asked()
    assert request.prompt == "A street."
    assert (request.width, request.height, request.frame_rate, request.num_frames) == (
        0,
        0,
        None,
        None,
    )
    assert request.codec is VideoCodec.H264
    assert request.pace is Pace.FREE
    assert request.initial_credits == 2
    assert not warnings()


@pytest.mark.parametrize("prompt", ["", " \t\n", "x" * 4097, None, 7])
def test_a_prompt_that_is_none_is_refused(prompt: object) -> None:
    """WEIR-157: blank, too long, absent or no text; the text itself is not repeated."""
    assert refused(prompt=prompt)["code"] == "invalid_message"
    assert asked(prompt="x" * 4096).prompt == "x" * 4096


def test_a_prompt_must_be_given() -> None:
    """WEIR-210: the missing field is named."""
    (error, _) = Conversation().send("session.start")
    assert isinstance(error, dict)
    assert error["message"] == "The field prompt of session.start must be given."


SIZES: list[tuple[dict[str, Any], tuple[int, int]]] = [
    ({"width": 640, "height": 384}, (640, 384)),
    ({"size": "640x384"}, (640, 384)),
    ({"size": "640X384"}, (640, 384)),
    ({"sampling_params": {"width": 640, "height": 384}}, (640, 384)),
    ({"width": 640, "height": 384, "size": "320x192"}, (640, 384)),
    ({"size": "640x384", "sampling_params": {"width": 320, "height": 192}}, (640, 384)),
    ({"width": None, "height": None}, (0, 0)),
    ({"width": 1280, "height": 720}, (1280, 720)),
    ({"width": 720, "height": 1280}, (720, 1280)),
]


@pytest.mark.parametrize(("fields", "size"), SIZES)
def test_the_size_is_that_of_the_field_that_wins(
    fields: dict[str, Any], size: tuple[int, int]
) -> None:
    """WEIR-158: width and height, then size, then sampling_params, then the model."""
    request = asked(**fields)
    assert (request.width, request.height) == size


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"width": 640}, "height"),
        ({"height": 384}, "width"),
        ({"width": 640, "size": "640x384"}, "height"),
        ({"sampling_params": {"width": 640}}, "sampling_params.height"),
    ],
)
def test_half_a_size_is_refused(fields: dict[str, Any], field: str) -> None:
    """WEIR-158: the other side is not guessed."""
    error = refused(**fields)
    assert error["code"] == "invalid_message"
    assert f"The field {field} of session.start" in error["message"]


@pytest.mark.parametrize(
    ("size", "nearest"),
    [
        ("641x384", "640x384"),
        ("8x8", "16x16"),
        ("633x379", "640x384"),
        ("1281x721", "1280x720"),
        ("16384x1", "4096x16"),
        ("16x99999", "16x4096"),
        ("8000x100", "4096x96"),
        ("4112x16", "4096x16"),
    ],
)
def test_a_size_that_cannot_be_is_refused_with_the_nearest_one(size: str, nearest: str) -> None:
    """WEIR-158: which is valid itself."""
    error = refused(size=size)
    assert error["code"] == "unsupported_option"
    assert error["message"].endswith(f"the nearest size is {nearest}.")
    width, height = map(int, nearest.split("x"))
    assert (asked(size=nearest).width, asked(size=nearest).height) == (width, height)


def test_the_least_side_is_that_of_the_codec() -> None:
    """WEIR-158: what H.264 can do and AV1 cannot is refused with what AV1 can."""
    both = replace(STANDARD, codecs=(VideoCodec.H264, VideoCodec.AV1))
    error = refused(Conversation(capabilities=both), size="48x32", codec="av1")
    assert error["message"].endswith(
        "from 64 to 4096 with the codec av1; the nearest size is 64x64."
    )
    assert asked(size="48x32").width == 48


sides = st.one_of(
    st.integers(1, 99_999), st.sampled_from([1, 15, 16, 48, 64, 4095, 4096, 4097, 99_999])
)


@given(
    width=sides,
    height=sides,
    codec=st.sampled_from(VideoCodec),
    unit=st.sampled_from([1, 2, 3, 8, 16, 24, 32, 100]),
    max_pixels=st.one_of(st.integers(256, 20_000_000), st.just(921_600)),
)
def test_the_nearest_size_is_always_accepted(
    width: int, height: int, codec: VideoCodec, unit: int, max_pixels: int
) -> None:
    """WEIR-158: whatever is asked for, the size that a refusal names is not refused in turn."""
    model = replace(
        STANDARD, size_multiple=unit, default_width=unit, default_height=unit, codecs=(codec,)
    )
    limits = VideoLimits(max_pixels=max_pixels)
    near = nearest_size(width, height, codec, model, max_pixels)
    least = lcm(unit, 2) * -(-LEAST_SIDE[codec] // lcm(unit, 2))
    if near is None:
        assert least**2 > max_pixels
        return
    start = SessionStart(prompt="A street.", width=near[0], height=near[1], codec=codec.value)
    extent = extent_of(start, codec, model, limits, [])
    assert (extent.width, extent.height) == near
    for side in near:
        assert side % unit == side % 2 == 0
        assert LEAST_SIDE[codec] <= side <= MAX_SIDE
    assert near[0] * near[1] <= min(max_pixels, MAX_PICTURE_PIXELS)
    assert nearest_size(*near, codec, model, max_pixels) == near


def test_without_any_size_within_the_limits_none_is_named() -> None:
    """WEIR-158: never a size that is refused as well."""
    assert nearest_size(64, 64, VideoCodec.AV1, STANDARD, 256) is None


LENGTHS: list[tuple[dict[str, Any], int | None]] = [
    ({}, None),
    ({"num_frames": 99}, 99),
    ({"seconds": "3"}, 72),
    ({"seconds": 3, "fps": 16}, 48),
    ({"seconds": "3", "num_frames": 99}, 99),
    ({"sampling_params": {"num_frames": 50}}, 50),
    ({"seconds": "1", "sampling_params": {"num_frames": 50, "fps": 10}}, 10),
    ({"endless": True}, None),
    ({"endless": False, "num_frames": 1}, 1),
    ({"num_frames": 100_000}, 100_000),
]


@pytest.mark.parametrize(("fields", "frames"), LENGTHS)
def test_the_length_is_that_of_the_field_that_wins(
    fields: dict[str, Any], frames: int | None
) -> None:
    """WEIR-158: num_frames, then seconds at the frame rate, then sampling_params."""
    request = asked(**fields)
    assert request.num_frames == frames
    assert request.endless is bool(fields.get("endless"))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"seconds": "0"}, "invalid_message"),
    ({"seconds": "x"}, "invalid_message"),
    ({"seconds": "-1"}, "invalid_message"),
    ({"num_frames": 0}, "invalid_message"),
    ({"num_frames": 100_001}, "invalid_message"),
    ({"num_frames": 9.5}, "invalid_message"),
    ({"seconds": "99999", "fps": 60}, "invalid_message"),
    ({"endless": True, "num_frames": 9}, "invalid_message"),
    ({"endless": True, "seconds": "9"}, "invalid_message"),
    ({"fps": 0}, "invalid_message"),
    ({"fps": 61}, "invalid_message"),
    ({"fps": True}, "invalid_message"),
    ({"format": "mp4"}, "invalid_message"),
    ({"codec": "vp9"}, "unsupported_option"),
    ({"codec": "h265"}, "invalid_message"),
    ({"pace": "fast"}, "invalid_message"),
    ({"lead_seconds": 31}, "invalid_message"),
    ({"num_inference_steps": 201}, "invalid_message"),
    ({"guidance_scale": -0.1}, "invalid_message"),
    ({"flow_shift": 0}, "invalid_message"),
    ({"boundary_ratio": 1.1}, "invalid_message"),
    ({"seed": 2**63}, "invalid_message"),
    ({"sampling_params": {"seed": "7"}}, "invalid_message"),
    ({"extra_params": {"inverted": 2**60 + 1}}, "invalid_message"),
    ({"extra_params": []}, "invalid_message"),
    ({"size": "640"}, "invalid_message"),
    ({"size": "0x384"}, "invalid_message"),
    ({"negative_prompt": "x" * 4097}, "invalid_message"),
]


@pytest.mark.parametrize(("fields", "code"), BAD)
def test_what_is_out_of_range_is_refused(fields: dict[str, Any], code: str) -> None:
    """WEIR-157: before any work, and the session ends."""
    assert refused(**fields)["code"] == code


def test_a_model_with_an_end_refuses_what_lies_beyond() -> None:
    """WEIR-157: the model's own bound is named."""
    bounded = replace(STANDARD, max_num_frames=240)
    for fields in ({"num_frames": 241}, {"endless": True}):
        error = refused(Conversation(capabilities=bounded), **fields)
        assert error["code"] == "unsupported_option"
        assert "240" in error["message"]
    assert kinds(Conversation(capabilities=bounded).start(num_frames=240)) == ["start"]


IGNORED: list[tuple[dict[str, Any], str]] = [
    ({"model": "BestWishYsh/Helios-Distilled"}, "model is not served; pattern is used"),
    ({"guidance_scale": 1.0}, "guidance_scale is ignored: the model does not read it"),
    ({"sampling_params": {"flow_shift": 3}}, "flow_shift is ignored: the model does not read it"),
    ({"unheard": 1}, "unknown key ignored: session.start.unheard"),
    (
        {"sampling_params": {"eta": 1}},
        "unknown key ignored: session.start.sampling_params.eta",
    ),
    (
        {"extra_params": {"pyramid": [1]}},
        "unknown key ignored: session.start.extra_params.pyramid",
    ),
    ({"lead_seconds": 3}, "lead_seconds is ignored: it counts with the pace realtime only"),
    (
        {"width": 640, "height": 384, "size": "320x192"},
        "size is ignored, since width and height are given",
    ),
    ({"num_frames": 9, "seconds": "9"}, "seconds is ignored, since num_frames is given"),
    (
        {"endless": True, "sampling_params": {"num_frames": 9}},
        "sampling_params.num_frames is ignored, since the video is endless",
    ),
]


@pytest.mark.parametrize(("fields", "warning"), IGNORED)
def test_what_is_ignored_is_told(fields: dict[str, Any], warning: str) -> None:
    """WEIR-141, WEIR-157: an existing client runs, and can see what did not count."""
    assert warnings(**fields) == [warning]


@pytest.mark.parametrize(("fields", "warning"), IGNORED)
def test_a_strict_operator_refuses_what_would_be_ignored(
    fields: dict[str, Any], warning: str
) -> None:
    """WEIR-157: and the error says all of it."""
    error = refused(Conversation(strict=True), **fields)
    assert error["code"] == "unsupported_option"
    assert warning in error["message"]


def test_declared_parameters_reach_the_request_and_no_others() -> None:
    """WEIR-157: nothing that nobody declared is passed on."""
    request = asked(
        num_inference_steps=4,
        guidance_scale=2,
        negative_prompt="Blur.",
        extra_params={"inverted": True, "pyramid": 1},
        sampling_params={"seed": 5, "num_inference_steps": 9},
    )
    assert request.options == {"num_inference_steps": 4}
    assert request.negative_prompt == "Blur."
    assert request.extra_params == {"inverted": True}
    assert request.seed == 5


def test_pace_and_codec_are_chosen_by_name() -> None:
    """WEIR-157: the additive options."""
    request = asked(pace="realtime", lead_seconds=0, codec="av1", fps=16)
    assert (request.pace, request.lead_seconds) == (Pace.REALTIME, 0.0)
    assert request.codec is VideoCodec.AV1
    assert request.frame_rate == Fraction(16)


def test_a_model_without_h264_gets_its_own_first_codec() -> None:
    """WEIR-157: a default that is not offered is no default."""
    (started,) = Conversation(capabilities=replace(STANDARD, codecs=(VideoCodec.AV1,))).start()
    assert isinstance(started, StartGeneration)
    assert started.request.codec is VideoCodec.AV1


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp", "PNG"])
def test_a_picture_comes_as_a_data_url(kind: str) -> None:
    """WEIR-159: its bytes go to the service."""
    url = f"data:image/{kind};base64," + base64.b64encode(b"bytes").decode()
    assert asked(image_reference={"image_url": url}).image == b"bytes"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a.png",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "data:image/svg+xml;base64,AAAA",
        "data:text/html;base64,AAAA",
        "data:image/png,AAAA",
        "data:image/png;base64,",
        "data:image/png;base64,####",
        "data:image/png;base64",
        "",
    ],
)
def test_nothing_else_is_a_picture(url: str) -> None:
    """WEIR-159: nothing is fetched, and the URL is not repeated."""
    error = refused(image_reference={"image_url": url})
    assert error["code"] == "invalid_message"
    assert "example" not in error["message"]


def test_a_picture_that_would_be_lost_is_refused() -> None:
    """WEIR-157: unknown keys inside image_reference name a picture that would then be missing."""
    for reference in ({"file_id": "f"}, {"image_url": PICTURE, "file_id": "f"}, {}):
        assert refused(image_reference=reference)["code"] == "invalid_message"
    blind = Conversation(capabilities=replace(STANDARD, image_reference=False))
    assert refused(blind, image_reference={"image_url": PICTURE})["code"] == "unsupported_option"


def test_parameters_that_cannot_travel_are_refused() -> None:
    """WEIR-165: deep nesting and numbers that no double holds."""
    deep: object = 1
    for _ in range(17):
        deep = [deep]
    assert "extra_params" in refused(extra_params={"inverted": deep})["message"]
    assert asked(extra_params={"inverted": deep[0]}).extra_params  # type: ignore[index]  # a list
    assert refused(extra_params={"inverted": 10**400})["code"] == "invalid_message"


def test_what_is_in_force_is_told() -> None:
    """IO-INV-300: the start message names it under public names."""
    start = Conversation().run(width=640, height=384, fps=16, num_frames=99, seed=42)[1]
    assert isinstance(start, dict)
    assert start["type"] == "video.start"
    assert start["request_id"] == "video_stream-1"
    assert (start["format"], start["codec"]) == ("m4s", "h264")
    assert start["mime_type"].startswith("video/mp4")
    config = start["config"]
    assert (config["width"], config["height"], config["fps"]) == (640, 384, 16)
    assert (config["num_frames"], config["seed"], config["model"]) == (99, 42, "pattern")
    assert start["capabilities"]["event_fields"] == ["brightness"]
    assert start["limits"]["session_s"] == 1800
