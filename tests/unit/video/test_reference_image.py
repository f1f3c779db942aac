"""The picture that a client gives as first frame."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from contracts.errors import Reason, WeirError
from services.video.reference_image import first_frame

BOUND = 16_000_000


def coded(picture: Image.Image, form: str, **options: object) -> bytes:
    data = io.BytesIO()
    picture.save(data, form, **options)
    return data.getvalue()


def quarters() -> Image.Image:
    """Return 80x40: red, green, blue and white from left to right."""
    picture = Image.new("RGB", (80, 40))
    for place, colour in enumerate([(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)]):
        picture.paste(colour, (20 * place, 0, 20 * place + 20, 40))
    return picture


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_a_picture_of_each_kind_covers_the_frame(form: str) -> None:
    """WEIR-226: scaled to cover 64x64, so green and blue in the middle are left of 80x40."""
    options = {"lossless": True} if form == "WEBP" else {"quality": 95} if form == "JPEG" else {}
    frame = first_frame(coded(quarters(), form, **options), 64, 64, BOUND)
    assert frame.shape == (64, 64, 3)
    assert frame.dtype == np.uint8
    assert frame.flags.writeable
    assert np.abs(frame[32, 8].astype(int) - (0, 255, 0)).max() < 20
    assert np.abs(frame[32, 56].astype(int) - (0, 0, 255)).max() < 20


def test_a_camera_may_have_lain_on_its_side() -> None:
    """WEIR-226: turned upright as the picture says."""
    picture = quarters()
    exif = picture.getexif()
    exif[0x0112] = 6
    frame = first_frame(coded(picture, "JPEG", exif=exif, quality=95), 40, 80, BOUND)
    assert np.abs(frame[10, 20].astype(int) - (255, 0, 0)).max() < 20
    assert np.abs(frame[70, 20].astype(int) - (255, 255, 255)).max() < 20


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "CMYK", "I;16"])
def test_every_kind_of_pixel_becomes_rgb(mode: str) -> None:
    """WEIR-226: grey, palette, transparency, print colours, sixteen bits."""
    form = "JPEG" if mode == "CMYK" else "PNG"
    base = Image.new(mode, (32, 32)) if mode == "I;16" else quarters().convert(mode)
    assert first_frame(coded(base, form), 32, 32, BOUND).shape == (32, 32, 3)


def test_what_cannot_be_seen_is_black() -> None:
    """WEIR-226: not the colour that happens to lie under it."""
    frame = first_frame(coded(Image.new("RGBA", (8, 8), (255, 0, 0, 0)), "PNG"), 8, 8, BOUND)
    assert not frame.any()


def _header_only(width: int, height: int) -> bytes:
    """Return a PNG that claims a size and holds next to nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


REFUSED = [
    (b"", "whole PNG"),
    (b"nothing at all", "whole PNG"),
    (coded(quarters(), "GIF"), "whole PNG"),
    (coded(quarters(), "TIFF"), "whole PNG"),
    (coded(quarters(), "BMP"), "whole PNG"),
    (coded(quarters(), "PNG")[:60], "whole PNG"),
    (coded(quarters(), "JPEG")[:300], "whole PNG"),
    (_header_only(4001, 4000), "at most 16000000"),
    (_header_only(60_000, 60_000), "at most 16000000"),
    (_header_only(4000, 4000), "whole PNG"),
]


@pytest.mark.parametrize(("data", "rule"), REFUSED, ids=range(len(REFUSED)))
def test_anything_else_is_refused_with_what_it_must_be(data: bytes, rule: str) -> None:
    """WEIR-226: INVALID_MESSAGE; a size beyond the bound is known without decoding."""
    with pytest.raises(WeirError) as raised:
        first_frame(data, 64, 64, BOUND)
    refused = raised.value.failure
    assert refused.reason is Reason.INVALID_MESSAGE
    (violation,) = refused.violations
    assert violation.field == "image_reference"
    assert rule in violation.description
