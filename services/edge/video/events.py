"""What happens to a video session, and what it wants done.

Owns: the events (past tense) and actions (imperative) that pass between the session core and its
driver. Does not own: those that every session has (`services.edge.session_events`), any behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts.errors import Failure
from contracts.generation import Control, GenerationRequest, GenerationUpdate
from contracts.video import VideoCapabilities
from services.edge.session_events import (
    ClockReached,
    Close,
    FrameRejected,
    PeerVanished,
    ShutdownRequested,
)
from services.edge.video.messages import ChunkMetadata, ClientMessage, ServerMessage


@dataclass(frozen=True, slots=True)
class FrameReceived:
    """The peer sent a valid message; `warnings` name what was ignored in it."""

    message: ClientMessage
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CapabilitiesChanged:
    """What all reachable replicas declare; None when none is reachable."""

    capabilities: VideoCapabilities | None


@dataclass(frozen=True, slots=True)
class GenerationUpdated:
    """The backend sent an update of the generation."""

    update: GenerationUpdate


@dataclass(frozen=True, slots=True)
class GenerationFailed:
    """The backend gave the generation up."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class ChunkDrained:
    """The binary of the oldest chunk that was on its way has been written to the socket."""


Event = (
    FrameReceived
    | FrameRejected
    | CapabilitiesChanged
    | GenerationUpdated
    | GenerationFailed
    | ChunkDrained
    | ClockReached
    | PeerVanished
    | ShutdownRequested
)


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Send one JSON message."""

    message: ServerMessage


@dataclass(frozen=True, slots=True)
class SendChunk:
    """Send a metadata message and, with nothing in between, its binary."""

    metadata: ChunkMetadata
    data: bytes


@dataclass(frozen=True, slots=True)
class StartGeneration:
    """Begin the generation."""

    request: GenerationRequest


@dataclass(frozen=True, slots=True)
class SendControl:
    """Pass a control on to the backend."""

    control: Control


@dataclass(frozen=True, slots=True)
class AbortGeneration:
    """Stop the generation; nothing more of it is wanted."""


Action = SendMessage | SendChunk | StartGeneration | SendControl | AbortGeneration | Close
