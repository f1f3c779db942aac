"""Driving FFmpeg's encoder: pictures in, one packet a picture out.

Owns: one codec context, and what must be true of its packets. Does not own: boxes, times of the
stream (`encoder`). Enforces: WEIR-196 (every picture is one packet, at once; a key picture
is asked for where a chunk starts), WEIR-199 (a packet that is missing, empty or late is an error).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction

import av
from av.codec.codec import UnknownCodecError
from av.video.frame import PictureType
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc

from services.video.media.codecs import Codec
from services.video.media.formats import EncoderSettings, VideoFormat
from services.video.media.fragments import Sample
from services.video.media.initialization import SampleDescription
from services.video.media.pictures import PIXEL_FORMAT

_NO_KEY_PICTURE_OF_ITS_OWN = 1 << 20  # pictures: longer than any chunk


class EncoderError(Exception):
    """The encoder did not do what it must. The text is for the log, not for a client."""


class Compressor:
    """One codec context of libavcodec. Used by one thread at a time; to be closed.

    Raises EncoderError when this FFmpeg cannot open the encoder.
    """

    def __init__(self, codec: Codec, video: VideoFormat, settings: EncoderSettings) -> None:
        self._codec = codec
        self._video = video
        self._settings = settings
        self._time_base = 1 / Fraction(video.fps)
        self._taken = 0
        try:
            self._context = self._open()
        except (av.FFmpegError, UnknownCodecError) as error:
            raise EncoderError(f"{codec.encoder} does not open: {error}") from error

    def compress(self, pictures: Iterable[av.VideoFrame]) -> tuple[SampleDescription, list[Sample]]:
        """Return the description of the first picture and the sample of every one.

        Raises EncoderError; the context is of no further use then.
        """
        description: SampleDescription | None = None
        samples: list[Sample] = []
        for picture in pictures:
            packet = self._packet(picture, is_first=not samples)
            data = bytes(packet)
            try:
                description = description or self._describe(data)
                sample = Sample(self._codec.sample(data), packet.is_keyframe)
            except ValueError as error:
                raise EncoderError(f"{self._codec.encoder} wrote {error}") from error
            if not sample.data:
                raise EncoderError(f"{self._codec.encoder} gave no bytes for a picture")
            samples.append(sample)
        if description is None:
            raise EncoderError("no picture to compress")
        return description, samples

    def close(self) -> None:
        """End the encoder's own threads. Idempotent; nothing is compressed after it."""
        # SVT-AV1 wants to be told of the end before it is freed. Whatever comes out is no chunk's.
        with suppress(av.FFmpegError):
            self._context.encode(None)

    def _open(self) -> av.VideoCodecContext:
        # SVT-AV1 writes to standard error past every logger, and can be told only here: errors.
        os.environ.setdefault("SVT_LOG", "1")
        context = av.CodecContext.create(self._codec.encoder, "w")
        assert isinstance(context, av.VideoCodecContext)  # the table names video encoders only
        context.width, context.height = self._video.width, self._video.height
        context.pix_fmt = PIXEL_FORMAT
        context.time_base, context.framerate = self._time_base, Fraction(self._video.fps)
        context.thread_count = self._settings.threads
        context.max_b_frames = 0
        context.gop_size = _NO_KEY_PICTURE_OF_ITS_OWN
        context.color_range = ColorRange.MPEG
        context.colorspace = Colorspace.ITU709
        context.color_trc = ColorTrc.BT709
        context.color_primaries = ColorPrimaries.BT709
        context.options = self._codec.options(self._video, self._settings)
        context.open()
        return context

    def _packet(self, picture: av.VideoFrame, *, is_first: bool) -> av.Packet[av.VideoStream]:
        number = self._taken
        self._taken += 1
        picture.pts, picture.time_base = number, self._time_base
        # WEIR-196: a key picture first, so that nobody needs an earlier chunk.
        picture.pict_type = PictureType.I if is_first else PictureType.NONE
        try:
            packets = self._context.encode(picture)
        except av.FFmpegError as error:
            raise EncoderError(f"{self._codec.encoder} failed: {error}") from error
        # WEIR-199: one that comes late would belong to the next chunk, or be lost.
        if len(packets) != 1 or packets[0].pts != number or packets[0].dts != number:
            raise EncoderError(
                f"{self._codec.encoder} gave packets {[(p.pts, p.dts) for p in packets]} "
                f"for picture {number}"
            )
        return packets[0]

    def _describe(self, packet: bytes) -> SampleDescription:
        return self._codec.describe(packet, self._video, self._settings)
