"""What happens to a speech session, and what it wants done.

Owns: the events (past tense) and actions (imperative) that pass between the session core and its
driver. Does not own: those that every session has (`services.edge.session_events`), any behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts.capabilities import SpeechCapabilities
from contracts.errors import Failure
from contracts.modality import SpeechUpdate
from contracts.speech import SegmentRequest
from services.edge.session_events import (
    ClockReached,
    Close,
    FrameRejected,
    LocalProtocolError,
    PeerVanished,
    ShutdownRequested,
)
from services.edge.speech.messages import ClientMessage, ServerMessage

__all__ = [
    "AbortSegment",
    "Action",
    "CapabilitiesChanged",
    "ClockReached",
    "Close",
    "Event",
    "FrameReceived",
    "FrameRejected",
    "LocalProtocolError",
    "PeerVanished",
    "SegmentFailed",
    "SegmentUpdated",
    "SendAudio",
    "SendMessage",
    "ShutdownRequested",
    "StartSegment",
]


@dataclass(frozen=True, slots=True)
class FrameReceived:
    """The peer sent a valid message; `warnings` name what was ignored in it."""

    message: ClientMessage
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CapabilitiesChanged:
    """What all reachable replicas declare; None when none is reachable."""

    capabilities: SpeechCapabilities | None


@dataclass(frozen=True, slots=True)
class SegmentUpdated:
    """The backend sent an update for a segment."""

    request_id: str
    update: SpeechUpdate


@dataclass(frozen=True, slots=True)
class SegmentFailed:
    """The backend gave a segment up."""

    request_id: str
    failure: Failure


Event = (
    FrameReceived
    | FrameRejected
    | CapabilitiesChanged
    | SegmentUpdated
    | SegmentFailed
    | ClockReached
    | PeerVanished
    | ShutdownRequested
)


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Send one JSON message."""

    message: ServerMessage


@dataclass(frozen=True, slots=True)
class SendAudio:
    """Send one binary message."""

    data: bytes


@dataclass(frozen=True, slots=True)
class StartSegment:
    """Begin one synthesis. `retry_after_acceptance` is what the adapter declared."""

    request: SegmentRequest
    retry_after_acceptance: bool


@dataclass(frozen=True, slots=True)
class AbortSegment:
    """Stop one synthesis; nothing more of it is wanted."""

    request_id: str


Action = SendMessage | SendAudio | StartSegment | AbortSegment | Close
