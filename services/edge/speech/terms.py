"""What holds for a speech session from its first moment.

Owns: the limits of one session and the operator's decisions. Does not own: where they come from
(`services.edge.settings`), what a client configures (`negotiation`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.edge.speech.negotiation import Agreement, NegotiationPolicy
from services.edge.text.frontend import StreamingTextFrontend


@dataclass(frozen=True, slots=True)
class SpeechLimits:
    """Bounds of one session. Published by `GET /v1/capabilities`."""

    config_timeout_s: float = 10.0
    idle_timeout_s: float = 30.0
    config_message_characters: int = 4 * 1024 * 1024
    message_characters: int = 128 * 1024
    utterance_characters: int = 131_072
    pending_characters: int = 4096
    ready_segments: int = 8
    segment_file_bytes: int = 64 * 1024 * 1024


FrontendOpener = Callable[[Agreement, int], StreamingTextFrontend]
"""Makes the frontend of one utterance from the agreement and the limit of pending code points."""


@dataclass(frozen=True, slots=True)
class SpeechTerms:
    """What holds for a session from its first moment."""

    session_id: str
    policy: NegotiationPolicy
    limits: SpeechLimits
    open_frontend: FrontendOpener
