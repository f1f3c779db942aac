"""RGB into planar 4:2:0: exact, and nothing else is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from services.video.media.formats import VideoFormat
from services.video.media.pictures import MAX_CHUNK_FRAMES, PictureConverter, check_frames
from tests.unit.video.media.colours import planes

TOLERANCE = 0.51
VIDEO = VideoFormat(32, 16, 24)


def exact(rgb: NDArray[Any]) -> list[NDArray[np.float64]]:
    """BT.709 with limited range, from its definition, a colour sample for four pixels."""
    red, green, blue = np.moveaxis(rgb.astype(np.float64) / 255, -1, 0)
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue

    def quartered(plane: NDArray[np.float64]) -> NDArray[np.float64]:
        rows: NDArray[np.float64] = (plane[::2] + plane[1::2]) / 2
        return (rows[:, ::2] + rows[:, 1::2]) / 2

    return [
        16 + 219 * light,
        128 + 224 * quartered((blue - light) / 1.8556),
        128 + 224 * quartered((red - light) / 1.5748),
    ]


def furthest(rgb: NDArray[np.uint8]) -> float:
    """The greatest distance of a converted sample from the exact value."""
    pairs = zip(planes(PictureConverter().convert(rgb)), exact(rgb), strict=True)
    return max(float(np.abs(found - expected).max()) for found, expected in pairs)


def test_flat_colours_are_correctly_rounded() -> None:
    """WEIR-196: 4,096 colours from all over the cube."""
    values = np.array([0, 1, 2, 16, 31, 64, 100, 127, 128, 150, 191, 200, 220, 235, 254, 255])
    cube = np.stack(np.meshgrid(values, values, values), -1).reshape(64, 64, 3).astype(np.uint8)
    picture = cube.repeat(2, axis=0).repeat(2, axis=1)
    assert furthest(picture) <= TOLERANCE


@pytest.mark.parametrize(("width", "height"), [(16, 16), (18, 34), (258, 144), (640, 384)])
def test_a_colour_sample_is_the_mean_of_its_four_pixels(width: int, height: int) -> None:
    """WEIR-196: noise, the worst there is, at sizes that are no multiple of a vector."""
    picture = np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8)
    assert furthest(picture) <= TOLERANCE


def test_frames_are_tagged_as_they_are_converted() -> None:
    """WEIR-196: BT.709 three times, limited range."""
    frame = PictureConverter().convert(np.zeros((16, 32, 3), np.uint8))
    assert frame.format.name == "yuv420p"
    tags = (frame.colorspace, frame.color_primaries, frame.color_trc, frame.color_range)
    assert tags == (1, 1, 1, 1)


def test_the_layout_of_the_array_in_memory_does_not_matter() -> None:
    """WEIR-196: a mirrored view is another picture, not the same memory."""
    picture = np.random.default_rng(2).integers(0, 256, (16, 32, 3), np.uint8)
    mirrored = picture[:, ::-1]
    assert furthest(mirrored) <= TOLERANCE


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (np.zeros((1, 16, 32, 3), np.float32), "uint8 array, not float32"),
        ([[[[0, 0, 0]]]], "uint8 array, not <class 'list'>"),
        (np.zeros((16, 32, 3), np.uint8), "have the shape"),
        (np.zeros((1, 32, 16, 3), np.uint8), "have the shape"),
        (np.zeros((1, 16, 32, 4), np.uint8), "have the shape"),
        (np.zeros((1, 3, 16, 32), np.uint8), "have the shape"),
        (np.zeros((0, 16, 32, 3), np.uint8), "1 to 1000 frames, not 0"),
        (np.zeros((MAX_CHUNK_FRAMES + 1, 16, 32, 3), np.uint8), "1 to 1000 frames, not 1001"),
    ],
)
def test_frames_of_another_kind_are_refused(frames: Any, message: str) -> None:
    """WEIR-199: with what was expected and what came."""
    with pytest.raises(ValueError, match=message):
        check_frames(frames, VIDEO)


@pytest.mark.parametrize("count", [1, MAX_CHUNK_FRAMES])
def test_frames_of_the_right_kind_pass(count: int) -> None:
    """WEIR-199: both ends of the allowed counts."""
    check_frames(np.zeros((count, 16, 32, 3), np.uint8), VIDEO)
