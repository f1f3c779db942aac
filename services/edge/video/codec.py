"""Text frames of the video endpoint to messages and back.

Owns: which messages there are for the codec, and which of them may be long. Does not own: the
decoding and its rules (`services.edge.frames`), the fields (`messages`), what a message does
(`core`).
"""

from __future__ import annotations

from contracts.errors import Failure
from services.edge.frames import DecodedFrame, FrameCodec, encode
from services.edge.video.messages import CLIENT_MESSAGES, ClientMessage, SessionStart
from services.edge.video.terms import VideoLimits

__all__ = ["DecodedFrame", "decode", "encode"]

_CODEC: FrameCodec[ClientMessage] = FrameCodec(CLIENT_MESSAGES, large=SessionStart)


def decode(frame: str, limits: VideoLimits) -> DecodedFrame[ClientMessage] | Failure:
    """Decode one text frame; a `Failure` for one that is not a valid message."""
    return _CODEC.decode(
        frame,
        max_large_characters=limits.start_message_characters,
        max_message_characters=limits.message_characters,
    )
