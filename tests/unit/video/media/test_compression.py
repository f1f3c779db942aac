"""Packets that do not answer their pictures one for one.

The encoders on offer give one packet for one picture as they are driven here. What if one stopped
doing so is shown with a real context behind a queue that gives its packets out in other portions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import av
import pytest

from services.video.media.codecs import CODECS
from services.video.media.compression import Compressor, EncoderError
from services.video.media.encoder import ChunkEncoder
from services.video.media.formats import EncoderSettings, VideoFormat
from services.video.media.pictures import PictureConverter
from tests.unit.video.media.colours import decoded, moving
from tests.unit.video.media.parsing import fragments

VIDEO = VideoFormat(96, 64, 24)


class Queueing:
    """A codec context whose packets leave in portions of the given sizes, then one by one."""

    def __init__(self, context: av.VideoCodecContext, portions: Iterable[int]) -> None:
        self._context = context
        self._portions = iter(portions)
        self._held: list[av.Packet[Any]] = []

    def encode(self, picture: av.VideoFrame | None) -> list[av.Packet[Any]]:
        """Take a picture, or the end for None."""
        self._held += self._context.encode(picture)
        count = next(self._portions, 1)
        given, self._held = self._held[:count], self._held[count:]
        return given


def queueing(portions: Iterable[int]) -> Callable[[Compressor], Any]:
    """A replacement of `Compressor._open` that puts the queue behind the real context."""
    real = Compressor._open
    return lambda compressor: Queueing(real(compressor), portions)


def pictures(count: int) -> list[av.VideoFrame]:
    """Pictures as an encoder takes them."""
    converter = PictureConverter()
    return [converter.convert(frame) for frame in moving(count, VIDEO.width, VIDEO.height)]


@pytest.mark.parametrize(
    ("portions", "message"),
    [
        ([1, 0, 2], r"gave packets \[\] for picture 1"),
        ([0, 2], r"gave packets \[\] for picture 0"),
        ([1, 0, 1, 1], r"gave packets \[\] for picture 1"),
    ],
)
def test_a_packet_that_is_missing_is_an_error(
    monkeypatch: pytest.MonkeyPatch, portions: list[int], message: str
) -> None:
    """WEIR-199: at the picture whose packet did not come, not one later."""
    monkeypatch.setattr(Compressor, "_open", queueing(portions))
    compressor = Compressor(CODECS["h264"], VIDEO, EncoderSettings())
    with pytest.raises(EncoderError, match=message):
        compressor.compress(pictures(4))
    compressor.close()


def test_a_packet_of_another_picture_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEIR-199: one that was left over from the chunk before, though the count is right."""
    monkeypatch.setattr(Compressor, "_open", queueing([1, 0]))
    compressor = Compressor(CODECS["h264"], VIDEO, EncoderSettings())
    with pytest.raises(EncoderError):
        compressor.compress(pictures(2))
    with pytest.raises(EncoderError, match=r"gave packets \[\(1, 1\)\] for picture 2"):
        compressor.compress(pictures(1))
    compressor.close()


def test_two_packets_for_a_picture_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEIR-199: a second one would be a frame too many."""
    monkeypatch.setattr(Compressor, "_open", queueing([0, 2]))
    compressor = Compressor(CODECS["h264"], VIDEO, EncoderSettings())
    with pytest.raises(EncoderError):
        compressor.compress(pictures(1))
    with pytest.raises(EncoderError, match=r"gave packets \[\(0, 0\), \(1, 1\)\] for picture 1"):
        compressor.compress(pictures(1))
    compressor.close()


def test_one_packet_a_picture_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """WEIR-196: the same queue that gives each packet at once is no error."""
    monkeypatch.setattr(Compressor, "_open", queueing([1, 1]))
    compressor = Compressor(CODECS["h264"], VIDEO, EncoderSettings())
    _, samples = compressor.compress(pictures(4))
    assert [sample.is_key for sample in samples] == [True, False, False, False]
    compressor.close()


def test_no_picture_is_an_error() -> None:
    """WEIR-199: a chunk without a packet has no description."""
    compressor = Compressor(CODECS["h264"], VIDEO, EncoderSettings())
    with pytest.raises(EncoderError, match="no picture"):
        compressor.compress([])
    compressor.close()


def test_what_a_failed_context_held_back_never_reaches_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """WEIR-199: the chunk after the one that failed has its own pictures, and all of them."""
    encoder = ChunkEncoder(VIDEO)
    with monkeypatch.context() as patch:
        patch.setattr(Compressor, "_open", queueing([1, 1, 1, 1, 0]))
        data = encoder.encode(moving(3, VIDEO.width, VIDEO.height)).data
        with pytest.raises(EncoderError, match=r"gave packets \[\] for picture 4"):
            encoder.encode(moving(3, VIDEO.width, VIDEO.height))
    data += encoder.encode(moving(2, VIDEO.width, VIDEO.height, first=3)).data
    encoder.close()
    assert [len(fragment.samples) for fragment in fragments(data)] == [3, 2]
    assert len(list(decoded(data))) == 5
