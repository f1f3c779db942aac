"""Whole streams through FFmpeg's decoders: every payload alone, and all of them in a row."""

from __future__ import annotations

import io
from collections.abc import Sequence
from fractions import Fraction

import av
import numpy as np
import psutil
import pytest

from services.video.media.codecs import CODECS
from services.video.media.encoder import ChunkEncoder, EncodedChunk
from services.video.media.formats import EncoderSettings, VideoFormat
from tests.unit.video.media.colours import (
    CORNERS,
    Rgb,
    decoded,
    flat,
    mean_rgb,
    moving,
    random_colours,
)
from tests.unit.video.media.parsing import fragments

SIZES = (1, 33, 9, 12, 1, 1, 2)

COLOUR_TOLERANCES = {"h264": 2.0, "vp9": 4.0, "av1": 4.0}
"""Steps of 255 by which a flat colour may come back wrong in any channel. Rounding to 8 bits of
limited range alone takes up to 1.6."""


def stream(
    codec: str, video: VideoFormat, sizes: Sequence[int] = SIZES
) -> tuple[ChunkEncoder, list[EncodedChunk]]:
    """The encoder, and the payloads of one continuous movement cut into chunks."""
    encoder = ChunkEncoder(video, codec=codec)
    payloads = []
    for count in sizes:
        frames = moving(count, video.width, video.height, first=encoder.num_frames)
        payloads.append(encoder.encode(frames))
    return encoder, payloads


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("width", "height"), [(64, 64), (98, 66), (256, 144), (640, 384)])
def test_every_prefix_of_payloads_decodes_to_exactly_its_frames(
    codec: str, width: int, height: int
) -> None:
    """WEIR-196: at once: the decoder gets no packet more, and is not flushed."""
    _, payloads = stream(codec, VideoFormat(width, height, 24))
    data, frames = b"", 0
    for payload in payloads:
        data += payload.data
        frames += payload.num_frames
        found = list(decoded(data))
        assert len(found) == frames
        assert {(frame.width, frame.height) for frame in found} == {(width, height)}
    times = [Fraction(frame.pts or 0) * frame.time_base for frame in found if frame.time_base]
    assert times == [Fraction(index, 24) for index in range(frames)]


@pytest.mark.parametrize("codec", CODECS)
def test_a_late_viewer_starts_with_any_chunk(codec: str) -> None:
    """WEIR-197: the same pictures at the same times as for who was there from the start."""
    encoder, payloads = stream(codec, VideoFormat(256, 144, 24))
    whole = list(decoded(b"".join(payload.data for payload in payloads)))
    for first in range(1, len(payloads)):
        late = b"".join(payload.data for payload in payloads[first:])
        found = list(decoded(encoder.initialization + late))
        missed = sum(SIZES[:first])
        assert [frame.pts for frame in found] == [frame.pts for frame in whole[missed:]]
        assert all(
            np.array_equal(one.to_ndarray(), other.to_ndarray())
            for one, other in zip(found, whole[missed:], strict=True)
        )


@pytest.mark.parametrize("codec", CODECS)
def test_the_trailer_changes_no_picture(codec: str) -> None:
    """WEIR-197: a saved stream decodes with it as without it."""
    encoder, payloads = stream(codec, VideoFormat(96, 64, 24))
    data = b"".join(payload.data for payload in payloads)
    without = [frame.to_ndarray() for frame in decoded(data)]
    with_trailer = [frame.to_ndarray() for frame in decoded(data + encoder.trailer())]
    assert len(with_trailer) == sum(SIZES)
    assert all(map(np.array_equal, with_trailer, without))


@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_without_a_chunk_opens_and_has_no_picture(codec: str) -> None:
    """WEIR-197: what a stop before the first chunk leaves behind is a file all the same."""
    encoder = ChunkEncoder(VideoFormat(96, 64, 24), codec=codec)
    data = encoder.trailer()
    with av.open(io.BytesIO(data)) as container:
        (track,) = container.streams.video
        assert (track.codec_context.width, track.codec_context.height) == (96, 64)
    assert list(decoded(data)) == []


BLENDS: list[Rgb] = [
    (round(200 * step / 64), round(120 - step), round(30 + 225 * step / 64)) for step in range(65)
]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("width", "height"), [(64, 64), (256, 144), (640, 384)])
@pytest.mark.parametrize(
    "colours",
    [
        CORNERS * 2,
        BLENDS,
        [colour for colour in random_colours(20) for _ in range(3)],
        random_colours(90, seed=1),
    ],
    ids=["corners", "blends", "held", "new each frame"],
)
def test_a_flat_colour_comes_back_frame_by_frame(
    codec: str, width: int, height: int, colours: Sequence[Rgb]
) -> None:
    """WEIR-196: within a few steps, whatever came before, so that a blend can be read back."""
    encoder = ChunkEncoder(VideoFormat(width, height, 24), codec=codec)
    data, at = b"", 0
    for count in (1, 9, *[12] * 20):
        part = colours[at : at + count]
        if part:
            data += encoder.encode(flat(part, width, height)).data
        at += count
    encoder.close()
    means = np.array([mean_rgb(frame) for frame in decoded(data)])
    assert means.shape == (len(colours), 3)
    assert np.abs(means - np.array(colours)).max() <= COLOUR_TOLERANCES[codec]


@pytest.mark.parametrize("codec", CODECS)
def test_the_bit_rate_is_bounded_whatever_the_pictures(codec: str) -> None:
    """WEIR-199: noise, which wants many times the rate that the operator allows."""
    noise = np.random.default_rng(0).integers(0, 256, (12, 192, 320, 3), np.uint8)

    def kbit_per_s(limit: int) -> float:
        settings = EncoderSettings(max_kbit_per_s=limit)
        encoder = ChunkEncoder(VideoFormat(320, 192, 24), settings, codec)
        sizes = [len(encoder.encode(noise).data) for _ in range(10)]
        encoder.close()
        # Two seconds fill what the encoder may save up; the three after them must keep to it.
        return sum(sizes[4:]) * 8 / 1000 / 3

    assert kbit_per_s(2_000) < 1.25 * 2_000
    assert kbit_per_s(100_000) > 3 * 2_000


@pytest.mark.parametrize(
    "codec", ["h264", *(pytest.param(name, marks=pytest.mark.slow) for name in ("vp9", "av1"))]
)
def test_memory_stays_constant_over_ten_thousand_frames(codec: str) -> None:
    """WEIR-199: what a stream holds does not grow with its length."""
    encoder = ChunkEncoder(VideoFormat(96, 64, 24), codec=codec)
    process, frames = psutil.Process(), moving(25, 96, 64)
    resident = []
    for _ in range(400):
        payload = encoder.encode(frames)
        assert len(fragments(payload.data)[0].samples) == 25
        resident.append(process.memory_info().rss)
    assert encoder.num_frames == 10_000
    assert len(encoder.trailer()) == 48 + 400 * 19
    encoder.close()
    # A leaked picture would be 9 KiB, or 70 MiB after the first fifth.
    assert max(resident[-50:]) - max(resident[:80]) < 4 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
def test_opening_and_closing_streams_keeps_nothing(codec: str) -> None:
    """WEIR-199: a session after the other, closed in every state, leaves no memory behind."""
    process, frames = psutil.Process(), moving(2, 320, 192)
    resident = []
    for number in range(60):
        encoder = ChunkEncoder(VideoFormat(320, 192, 24), codec=codec)
        for _ in range(number % 3):
            encoder.encode(frames)
        encoder.close()
        resident.append(process.memory_info().rss)
    assert max(resident[-10:]) - max(resident[:20]) < 16 * 2**20
