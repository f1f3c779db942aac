"""The picture that a client gives as first frame.

Owns: reading it safely and fitting it to the size of the video. Does not own: whether the model
takes one (`services.video.planning`). Enforces: WEIR-226 (nothing but PNG, JPEG and WebP is opened,
and no picture beyond the bound is decoded).
"""

from __future__ import annotations

import io
import warnings

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from contracts.errors import FieldViolation, Reason, WeirError, failure
from services.video.adapters.base import Frames

FORMATS = ("PNG", "JPEG", "WEBP")


def first_frame(data: bytes, width: int, height: int, max_pixels: int) -> Frames:
    """Return the picture as uint8[height, width, 3]: scaled to cover the size, centre kept.

    Turned upright as its camera noted, the first picture of an animation, transparency on black.
    Blocks. Raises WeirError (INVALID_MESSAGE) for anything that is not such a picture and for more
    than `max_pixels`.
    """
    try:
        with warnings.catch_warnings():
            # Pillow warns of pictures far beyond any bound of ours, which are refused below.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            # WEIR-226: other formats have readers that nobody needs here.
            picture = Image.open(io.BytesIO(data), formats=FORMATS)
        with picture:
            # The size stands in the header; nothing has been decoded yet.
            if picture.width * picture.height > max_pixels:
                raise _refused(f"Must have at most {max_pixels} pixels.")
            upright = ImageOps.exif_transpose(picture)
            fitted = ImageOps.fit(_opaque(upright), (width, height), Image.Resampling.LANCZOS)
    except WeirError:
        raise
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError):
        raise _refused("Must be a whole PNG, JPEG or WebP picture.") from None
    except Image.DecompressionBombError:
        raise _refused(f"Must have at most {max_pixels} pixels.") from None
    return np.asarray(fitted, np.uint8).copy()


def _opaque(picture: Image.Image) -> Image.Image:
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layer = picture.convert("RGBA")
    ground = Image.new("RGBA", layer.size, (0, 0, 0, 255))
    return Image.alpha_composite(ground, layer).convert("RGB")


def _refused(rule: str) -> WeirError:
    return WeirError(
        failure(
            Reason.INVALID_MESSAGE,
            "The image reference is refused.",
            violations=(FieldViolation("image_reference", rule),),
        )
    )
