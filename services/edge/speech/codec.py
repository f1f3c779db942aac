"""Text frames of the speech endpoint to messages and back.

Owns: which messages there are for the codec, and which of them may be long. Does not own: the
decoding and its rules (`services.edge.frames`), the fields (`messages`), what a message does
(`core`).
"""

from __future__ import annotations

from contracts.errors import Failure
from services.edge.frames import DecodedFrame, FrameCodec, encode
from services.edge.speech.messages import CLIENT_MESSAGES, ClientMessage, SessionConfig

__all__ = ["DecodedFrame", "decode", "encode"]

_CODEC: FrameCodec[ClientMessage] = FrameCodec(CLIENT_MESSAGES, large=SessionConfig)


def decode(
    frame: str, *, max_config_characters: int, max_message_characters: int
) -> DecodedFrame[ClientMessage] | Failure:
    """Decode one text frame; a `Failure` for one that is not a valid message."""
    return _CODEC.decode(
        frame,
        max_large_characters=max_config_characters,
        max_message_characters=max_message_characters,
    )
