"""The picture that a client gives as first frame, as it travels in a message.

Owns: reading its `data:` URL. Does not own: whether the model takes one (`negotiation`), opening
the picture and its size (the video service). Enforces: WEIR-159 (nothing is ever fetched: only a
`data:` URL of a PNG, JPEG or WebP picture is read).
"""

from __future__ import annotations

import base64
import binascii

from contracts.errors import WeirError
from services.edge.frames import field_failure
from services.edge.video.messages import ImageReference

MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp")
_PATH = "image_reference.image_url"


def picture_of(reference: ImageReference) -> bytes:
    """Return the encoded picture. Raises WeirError (INVALID_MESSAGE) for any other URL."""
    header, comma, body = reference.image_url.partition(",")
    scheme, _, described = header.partition(":")
    media_type, _, encoding = described.partition(";")
    # WEIR-159: an address of any kind would let a client see through our eyes.
    if (
        not comma
        or scheme.lower() != "data"
        or media_type.lower() not in MEDIA_TYPES
        or encoding.lower() != "base64"
    ):
        raise WeirError(
            field_failure("session.start", _PATH, "a base64 data: URL of " + ", ".join(MEDIA_TYPES))
        )
    try:
        picture = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        picture = b""
    if not picture:
        raise WeirError(field_failure("session.start", _PATH, "valid base64 of a picture"))
    return picture
