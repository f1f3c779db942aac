"""Generation chunks into the payloads of one continuous fragmented MP4.

Owns: the order of the stream (initialization, chunks, trailer), its times and offsets. Does not
own: the codec (`compression`), the boxes, who sends the payloads. Enforces: WEIR-196 (a payload
decodes at once to exactly the frames of its chunk), WEIR-197 (all payloads in a row are one valid
file, and the initialization segment with any later chunk is one too), WEIR-198 (time goes on from
chunk to chunk exactly), WEIR-199 (a failed call changes nothing).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from services.video.media.codecs import DEFAULT_CODEC, codec_named
from services.video.media.compression import Compressor, EncoderError
from services.video.media.formats import EncoderSettings, VideoFormat
from services.video.media.fragments import FragmentTiming, Sample, media_fragment
from services.video.media.initialization import Track, initialization_segment
from services.video.media.pictures import PictureConverter, check_frames
from services.video.media.random_access import RandomAccessPoints

__all__ = ["ChunkEncoder", "EncodedChunk", "EncoderError"]

_DEFAULT_SETTINGS = EncoderSettings()


@dataclass(frozen=True, slots=True)
class EncodedChunk:
    """One payload: `data`, the count of its frames, when the first is shown, and for how long all
    of them are, in seconds since the start of the stream."""

    data: bytes
    num_frames: int
    pts_seconds: float
    duration_seconds: float


class ChunkEncoder:
    """Encodes one stream. Used by one thread at a time; every call blocks while it works.

    The constructor raises ValueError for an unknown codec or a picture too small for it, and
    EncoderError when FFmpeg cannot open the encoder. It codes one picture that nobody gets, so
    these are known before any chunk:

    - `codec_string`, `mime_type`: what Media Source Extensions want to be told;
    - `initialization`: `ftyp` and `moov`, for who joins late.
    """

    def __init__(
        self,
        video: VideoFormat,
        settings: EncoderSettings = _DEFAULT_SETTINGS,
        codec: str = DEFAULT_CODEC,
    ) -> None:
        self._video = video
        self._settings = settings
        self._codec = codec_named(codec)
        least = self._codec.min_side
        if min(video.width, video.height) < least:
            raise ValueError(f"{codec} needs a width and a height of {least}")
        self._converter = PictureConverter()
        with closing(self._opened()) as probe:
            # Parameters follow from the settings alone: those of a black picture are the stream's.
            self._description, _ = probe.compress([self._converter.convert(_black(video))])
        self.codec_string = self._description.codec_string
        self.mime_type = f'video/mp4; codecs="{self.codec_string}"'
        self.initialization = initialization_segment(
            Track(video.width, video.height, video.timescale, self._description)
        )
        self._compressor: Compressor | None = None
        self._points = RandomAccessPoints()
        self._chunks = 0
        self._frames = 0
        self._written_bytes = 0
        self._trailer: bytes | None = None
        self._closed = False

    @property
    def num_frames(self) -> int:
        """Frames in all chunks so far."""
        return self._frames

    @property
    def pts_seconds(self) -> float:
        """When the first frame of the next chunk is shown."""
        return self._seconds(self._frames)

    def encode(self, frames: NDArray[np.uint8]) -> EncodedChunk:
        """Encode a chunk of uint8[T, height, width, 3], RGB, T from 1 to 1,000.

        The first payload starts with `initialization`. Raises ValueError for frames of another
        kind; EncoderError after `trailer` or `close`, and when the encoder fails. Neither changes
        anything: the next chunk may be encoded as if the call had not been.
        """
        if self._closed or self._trailer is not None:
            raise EncoderError("the stream has ended")
        check_frames(frames, self._video)
        try:
            samples = self._compressed(frames)
        except BaseException:
            # WEIR-199: pictures of this chunk are inside the context. The next chunk gets another
            # one, which starts with a key picture like every chunk.
            self._release()
            raise
        ticks = self._video.picture_ticks
        timing = FragmentTiming(self._chunks + 1, self._frames * ticks, ticks)
        return self._commit(media_fragment(timing, samples), timing, len(samples))

    def trailer(self) -> bytes:
        """End the stream and return `mfra`, with every chunk as a place to start. Idempotent.

        Without a chunk it tells of no place, and `initialization` stands in front of it, so that
        the stream is a video of no frames. Raises EncoderError after `close`.
        """
        if self._trailer is None:
            if self._closed:
                raise EncoderError("the stream has ended")
            # WEIR-197: `mfra` alone is no file that a player opens.
            head = b"" if self._chunks else self.initialization
            self._trailer = head + self._points.trailer()
            self._release()
        return self._trailer

    def close(self) -> None:
        """Free the encoder's memory and threads. Idempotent, and allowed at any time."""
        self._closed = True
        self._release()

    def _compressed(self, frames: NDArray[np.uint8]) -> list[Sample]:
        if self._compressor is None:
            self._compressor = self._opened()
        description, samples = self._compressor.compress(map(self._converter.convert, frames))
        if description != self._description:
            raise EncoderError(f"{self._codec.encoder} changed its parameters in the stream")
        return samples

    def _commit(self, fragment: bytes, timing: FragmentTiming, num_frames: int) -> EncodedChunk:
        head = b"" if self._chunks else self.initialization
        # WEIR-197: offsets count from the first byte of the first payload.
        self._points.add(timing.start, self._written_bytes + len(head))
        first = self._frames
        self._chunks += 1
        # WEIR-198: frames are counted and only then divided, so no error adds up.
        self._frames += num_frames
        self._written_bytes += len(head) + len(fragment)
        return EncodedChunk(
            head + fragment, num_frames, self._seconds(first), self._seconds(num_frames)
        )

    def _opened(self) -> Compressor:
        return Compressor(self._codec, self._video, self._settings)

    def _release(self) -> None:
        compressor, self._compressor = self._compressor, None
        if compressor is not None:
            compressor.close()

    def _seconds(self, frames: int) -> float:
        return float(frames / Fraction(self._video.fps))


def _black(video: VideoFormat) -> NDArray[np.uint8]:
    return np.zeros((video.height, video.width, 3), np.uint8)
