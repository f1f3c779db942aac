"""Pictures that tests can recognise, and what is left of them after coding.

Owns: flat and moving pictures, the decoding of a stream with an FFmpeg decoder, and the way back
from its planes to RGB, written out here so that it does not lean on the code under test.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import av
import numpy as np
from numpy.typing import NDArray

Rgb = tuple[int, int, int]

CORNERS: tuple[Rgb, ...] = tuple(
    (red, green, blue) for red in (0, 255) for green in (0, 255) for blue in (0, 255)
)
"""Black, white and the six colours at the corners of the cube."""


def random_colours(count: int, seed: int = 0) -> list[Rgb]:
    """Colours from all over the cube, the same every time."""
    drawn = np.random.default_rng(seed).integers(0, 256, (count, 3))
    return [(int(red), int(green), int(blue)) for red, green, blue in drawn]


def flat(colours: Sequence[Rgb], width: int, height: int) -> NDArray[np.uint8]:
    """One flat picture for each colour, uint8[T, height, width, 3]."""
    pictures = np.empty((len(colours), height, width, 3), np.uint8)
    for picture, colour in zip(pictures, colours, strict=True):
        picture[:] = colour
    return pictures


def moving(count: int, width: int, height: int, first: int = 0) -> NDArray[np.uint8]:
    """Gradients that slide, with a noisy patch; picture `first` + i at index i."""
    rows, columns = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(5).integers(0, 256, (height // 4, width // 4, 3), np.uint8)
    pictures = np.empty((count, height, width, 3), np.uint8)
    for index, picture in enumerate(pictures, start=first):
        picture[..., 0] = columns + 3 * index
        picture[..., 1] = rows + 2 * index
        picture[..., 2] = columns + rows + index
        picture[: height // 4, : width // 4] = np.roll(noise, index, axis=1)
    return pictures


def decoded(data: bytes) -> Iterator[av.VideoFrame]:
    """The frames of a stream, each as soon as its packet is in: the decoder is never flushed."""
    with av.open(io.BytesIO(data), "r") as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        for packet in container.demux(stream):
            if packet.size:
                yield from stream.codec_context.decode(packet)


def mean_rgb(frame: av.VideoFrame) -> NDArray[np.float64]:
    """The mean colour of a yuv420p frame, read as BT.709 with limited range."""
    luma, blue, red = (_plane(plane).mean() for plane in frame.planes)
    light = (luma - 16) / 219
    blue_part, red_part = (blue - 128) / 224, (red - 128) / 224
    rgb = (
        light + 1.5748 * red_part,
        light - 0.1873 * blue_part - 0.4681 * red_part,
        light + 1.8556 * blue_part,
    )
    return 255 * np.array(rgb)


def planes(frame: av.VideoFrame) -> list[NDArray[np.float64]]:
    """The three planes of a yuv420p frame."""
    return [_plane(plane) for plane in frame.planes]


def _plane(plane: av.video.plane.VideoPlane) -> NDArray[np.float64]:
    lines = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)
    samples: NDArray[np.float64] = lines[:, : plane.width].astype(np.float64)
    return samples
