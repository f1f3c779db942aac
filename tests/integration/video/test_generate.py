"""One generation over a real connection: order, identity, counts and pixels."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any

import pytest
from PIL import Image
from weir.media.v1 import modality_pb2, video_pb2
from weir.video.v1 import video_pb2 as service_pb2

from contracts.errors import GrpcCode, Reason
from tests.integration.video.serving import failure_in, refusal_of, serving, viewing
from tests.unit.video.support import (
    IDENTITY,
    close_to,
    colour_in,
    config,
    control,
    credit,
    frames_in,
    number_of,
    pattern,
    seed_of,
)

MP4 = video_pb2.VIDEO_CONTAINER_FRAGMENTED_MP4


def media_kinds(kinds: list[str | None]) -> list[str | None]:
    """Return the kinds without signs of life, which come when they come."""
    return [kind for kind in kinds if kind not in ("progress", "waiting")]


async def test_the_messages_come_in_order_and_count_up() -> None:
    """IO-INV-100, IO-INV-101, WEIR-224: accepted, chunks, trailer, terminal, outcome, OK."""
    async with serving(pattern()) as replica:
        async with viewing(replica.stub, config(num_frames=9, seed=7)) as viewer:
            outcome = await viewer.watch()
            assert await viewer.end() is None
        await replica.idle()
    assert media_kinds(viewer.kinds) == [
        "accepted",
        *["chunk"] * 4,
        "video_completed",
        "outcome",
    ]
    for response in viewer.received:
        who = response.identity
        assert (who.session_id, who.request_id, who.attempt) == (
            IDENTITY.session_id,
            IDENTITY.request_id,
            IDENTITY.attempt,
        )
    videos = [chunk.video for chunk in viewer.chunks]
    assert [video.modality for video in videos] == [modality_pb2.MODALITY_VIDEO] * 4
    assert [video.transport_chunk_index for video in videos] == [0, 1, 2, 3]
    assert [video.num_frames for video in videos] == [3, 4, 2, 0]
    assert [video.generation_chunk_index for video in videos[:3]] == [0, 1, 2]
    assert not videos[3].HasField("generation_chunk_index")
    assert [chunk.pts_seconds for chunk in viewer.media] == [0, 3 / 24, 7 / 24]
    trailer = viewer.chunks[3]
    assert not trailer.HasField("pts_seconds")
    assert not trailer.HasField("prompt_progress")
    assert b"mfra" in trailer.video.data
    completed = viewer.received[-2].video_completed
    assert (completed.transport_chunk_count, completed.generation_chunk_count) == (4, 3)
    assert completed.total_frames == 9
    assert completed.total_bytes == sum(len(data) for data in viewer.payloads)
    assert outcome.transport_chunk_count == 4
    assert not outcome.stopped
    assert failure_in(outcome) is None


async def test_accepted_says_what_is_in_force() -> None:
    """WEIR-224: the model's defaults where the request says nothing; a seed in any case."""
    async with serving(pattern()) as replica:
        async with viewing(replica.stub) as viewer:
            accepted = viewer.received[0].accepted
            assert (accepted.format.width, accepted.format.height) == (64, 64)
            rate = accepted.format.frame_rate_numerator, accepted.format.frame_rate_denominator
            assert rate == (24, 1)
            assert accepted.format.container == MP4
            assert accepted.format.codec == video_pb2.VIDEO_CODEC_H264
            assert accepted.mime_type.startswith('video/mp4; codecs="avc1.')
            assert (accepted.first_chunk_frames, accepted.chunk_frames) == (3, 4)
            assert accepted.num_frames == 11
            assert accepted.default_transition_chunks == 3
            await viewer.watch()
        async with viewing(replica.stub, config(seed=-3)) as viewer:
            assert viewer.received[0].accepted.seed == -3


async def test_every_payload_shows_its_own_frames_and_all_of_them() -> None:
    """WEIR-221, WEIR-224: numbers, seed and colour are read back from what was sent."""
    output = video_pb2.VideoFormat(
        container=MP4, width=96, height=80, frame_rate_numerator=30000, frame_rate_denominator=1001
    )
    async with (
        serving(pattern()) as replica,
        viewing(replica.stub, config("#c02080", output=output, num_frames=10, seed=4711)) as viewer,
    ):
        await viewer.watch()
    shown = 0
    for count in range(1, 4):
        # A prefix of payloads decodes to exactly its frames: nothing is held back.
        frames = frames_in(viewer.payloads[:count])
        shown += viewer.media[count - 1].video.num_frames
        assert [number_of(frame) for frame in frames] == list(range(shown))
    frames = frames_in(viewer.payloads)
    assert {(frame.width, frame.height) for frame in frames} == {(96, 80)}
    assert {seed_of(frame) for frame in frames} == {4711}
    for frame in frames:
        assert close_to(colour_in(frame), (0xC0, 0x20, 0x80))
    assert viewer.media[1].pts_seconds == pytest.approx(float(3 / Fraction(30000, 1001)))


async def test_the_same_seed_gives_the_same_bytes() -> None:
    """WEIR-221: on the same replica, whatever ran in between."""
    async with serving(pattern()) as replica:
        payloads = []
        for seed in (5, 6, 5):
            async with viewing(replica.stub, config(seed=seed)) as viewer:
                await viewer.watch()
                await viewer.end()
            payloads.append(viewer.payloads)
    assert payloads[0] == payloads[2]
    assert payloads[0] != payloads[1]


CODECS = [
    (video_pb2.VIDEO_CODEC_UNSPECIFIED, "avc1."),
    (video_pb2.VIDEO_CODEC_H264, "avc1."),
    (video_pb2.VIDEO_CODEC_VP9, "vp09."),
    (video_pb2.VIDEO_CODEC_AV1, "av01."),
]


@pytest.mark.parametrize(("codec", "announced"), CODECS)
async def test_every_codec_on_offer_is_what_it_is_called(codec: Any, announced: str) -> None:
    """WEIR-224: the mime type and the frames of each; unspecified is H.264."""
    output = video_pb2.VideoFormat(container=MP4, codec=codec)
    async with (
        serving(pattern()) as replica,
        viewing(replica.stub, config(output=output, num_frames=5)) as viewer,
    ):
        accepted = viewer.received[0].accepted
        assert f'codecs="{announced}' in accepted.mime_type
        assert accepted.format.codec == codec or video_pb2.VIDEO_CODEC_H264
        await viewer.watch()
    assert [number_of(frame) for frame in frames_in(viewer.payloads)] == list(range(5))


async def test_the_first_frame_can_be_given() -> None:
    """WEIR-226: scaled to cover the size, its centre kept; the prompt rules from then on."""
    picture = Image.new("RGB", (200, 100), (10, 200, 30))
    picture.paste((250, 0, 0), (0, 0, 40, 100))
    data = io.BytesIO()
    picture.save(data, "PNG")
    async with (
        serving(pattern()) as replica,
        viewing(
            replica.stub, config("#0000ff", num_frames=3, image_reference=data.getvalue())
        ) as viewer,
    ):
        await viewer.watch()
    frames = frames_in(viewer.payloads)
    # The red margin lies outside the centre.
    assert close_to(colour_in(frames[0]), (10, 200, 30))
    assert close_to(colour_in(frames[1]), (0, 0, 255))


async def test_declared_parameters_reach_the_model() -> None:
    """WEIR-225: an extra parameter changes the picture, an option the count of steps."""
    first = config("#204060", num_frames=3, num_inference_steps=2)
    first.config.extra_params["inverted"] = True
    async with serving(pattern()) as replica, viewing(replica.stub, first) as viewer:
        await viewer.watch()
    (frame, *_) = frames_in(viewer.payloads)
    assert close_to(colour_in(frame), (255 - 0x20, 255 - 0x40, 255 - 0x60))


def _changed(**changes: Any) -> Any:
    first = config()
    first.config.MergeFrom(service_pb2.GenerationConfig(**changes))
    return first


def _output(**fields: Any) -> Any:
    return _changed(output=video_pb2.VideoFormat(container=MP4, **fields))


def _extra(name: str, value: Any) -> Any:
    first = config()
    first.config.extra_params[name] = value
    return first


UNSUPPORTED = [
    (_output(width=70, height=64), "output.width", "nearest size is 64x64"),
    (_output(width=64, height=71), "output.height", "nearest size is 64x64"),
    (_output(width=6400, height=6400), "output.width", "at most"),
    (_output(width=32, height=32, codec=video_pb2.VIDEO_CODEC_AV1), "output", "go together"),
    (_output(frame_rate_numerator=61, frame_rate_denominator=1), "output", "frame rate"),
    (_changed(guidance_scale=3.0), "guidance_scale", "does not read"),
    (_changed(num_frames=101), "num_frames", "at most 100"),
    (_changed(endless=True), "endless", "after 100 frames"),
    (_extra("sharpness", 3), "extra_params", "reads: inverted"),
    (_extra("inverted", 3), "config", "accepts"),
]


@pytest.mark.parametrize(("first", "field", "rule"), UNSUPPORTED)
async def test_what_the_model_does_not_do_is_refused_and_named(
    first: Any, field: str, rule: str
) -> None:
    """WEIR-225, WEIR-237: UNSUPPORTED_OPTION before anything is accepted; no slot is held."""
    async with serving(pattern(max_num_frames=100)) as replica:
        refused = await refusal_of(replica.stub, first)
        assert refused.reason is Reason.UNSUPPORTED_OPTION
        assert refused.code is GrpcCode.INVALID_ARGUMENT
        (violation,) = refused.violations
        assert violation.field == field
        assert rule in violation.description
        await replica.idle()


async def test_a_picture_is_refused_where_none_is_read_and_where_it_is_none() -> None:
    """WEIR-225, WEIR-226: UNSUPPORTED_OPTION there, INVALID_MESSAGE here."""
    first = config(image_reference=b"GIF89a no picture of ours")
    async with serving(pattern(image_reference=False)) as replica:
        refused = await refusal_of(replica.stub, first)
        assert refused.reason is Reason.UNSUPPORTED_OPTION
    async with serving(pattern()) as replica:
        refused = await refusal_of(replica.stub, first)
        assert refused.reason is Reason.INVALID_MESSAGE
        await replica.idle()


async def test_a_first_prompt_that_the_model_cannot_read_is_refused() -> None:
    """WEIR-237: INVALID_MESSAGE, without the prompt's text."""
    async with serving(pattern(fail_marker="secret")) as replica:
        refused = await refusal_of(replica.stub, config("a secret"))
        assert refused.reason is Reason.INVALID_MESSAGE
        assert "secret" not in str(refused)
        await replica.idle()


async def test_stop_delivers_the_chunk_in_progress_and_the_trailer() -> None:
    """WEIR-224, WEIR-235: with an endless video, which nothing else ends."""
    async with (
        serving(pattern()) as replica,
        viewing(replica.stub, config(endless=True, credits=1)) as viewer,
    ):
        assert not viewer.received[0].accepted.HasField("num_frames")
        await viewer.until("waiting")
        await viewer.send(credit(), control("stop"))
        outcome = await viewer.until("outcome")
        assert await viewer.end() is None
    assert outcome.stopped
    assert len(viewer.media) in (1, 2)
    assert len(viewer.chunks) == len(viewer.media) + 1 == outcome.transport_chunk_count
    assert [number_of(frame) for frame in frames_in(viewer.payloads)] == list(
        range(sum(chunk.video.num_frames for chunk in viewer.media))
    )


async def test_a_half_close_is_a_stop_and_waives_credits() -> None:
    """WEIR-222: nothing is waited for any more; the trailer comes, then OK."""
    async with (
        serving(pattern()) as replica,
        viewing(replica.stub, config(endless=True, credits=1)) as viewer,
    ):
        await viewer.until("waiting")
        assert await viewer.end() is None
    assert viewer.received[-1].outcome.stopped
    assert len(viewer.media) == 1


async def test_a_stop_before_the_first_chunk_still_gives_a_trailer() -> None:
    """WEIR-224: never an empty binary, whatever came before."""
    async with (
        serving(pattern(step_time_s=0.01)) as replica,
        viewing(replica.stub, config(endless=True)) as viewer,
    ):
        await viewer.send(control("pause"), control("stop"))
        outcome = await viewer.until("outcome")
        assert outcome.stopped
        assert len(viewer.chunks) == len(viewer.media) + 1


async def test_capabilities_are_told() -> None:
    """WEIR-149: what the adapter declares, and the codecs that the encoder offers."""
    async with serving(pattern(), MODEL_NAME="served", CODECS="h264,vp9") as replica:
        answer = await replica.stub.GetCapabilities(service_pb2.GetCapabilitiesRequest())
        declared = answer.capabilities
    assert declared.model == "served"
    assert (declared.first_chunk_frames, declared.chunk_frames) == (3, 4)
    assert declared.prompt_updates
    assert declared.max_num_frames == 0
    assert list(declared.extra_params) == ["inverted"]
    assert list(declared.codecs) == [video_pb2.VIDEO_CODEC_H264, video_pb2.VIDEO_CODEC_VP9]
