"""The endpoints of the edge: what a path needs beside the server.

Owns: making the connection of each endpoint from what all of its connections share. Does not own:
listening and admission (`server`), a session (its driver). Enforces: IO-INV-100 (every session has
an id of its own, and so has the one generation of a video session).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from contracts.errors import Failure
from services.edge.backends.replicated import ReplicatedBackend
from services.edge.backends.tts import TtsBackend
from services.edge.backends.video import VideoBackend
from services.edge.connection_metrics import ConnectionMetrics
from services.edge.frames import encode
from services.edge.link import LinkSettings
from services.edge.speech import refusals as speech_refusals
from services.edge.speech.driver import SpeechConnection, Transmission
from services.edge.speech.metrics import SpeechMetrics
from services.edge.speech.terms import SpeechTerms
from services.edge.stall import GuardedConnection
from services.edge.video import refusals as video_refusals
from services.edge.video.driver import VideoConnection
from services.edge.video.metrics import VideoMetrics
from services.edge.video.terms import VideoTerms


class Connection(Protocol):
    """One session on its socket."""

    async def run(self) -> None:
        """Serve it to its end."""
        ...

    def shut_down(self, *, final: bool) -> None:
        """Tell it that the process is ending."""
        ...

    def abort(self) -> None:
        """Drop it without a word."""
        ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What the server needs of an endpoint.

    `connect` makes the connection of a new session; `refusal` the frame that tells a client why it
    is not served.
    """

    backend: ReplicatedBackend[Any]
    connections: ConnectionMetrics
    connect: Callable[[GuardedConnection], Connection]
    refusal: Callable[[Failure], str]


def speech_endpoint(
    backend: TtsBackend, terms: SpeechTerms, transmission: Transmission, metrics: SpeechMetrics
) -> Endpoint:
    """Return `/v1/audio/speech/stream`."""

    def connect(websocket: GuardedConnection) -> Connection:
        own = replace(terms, session_id=f"speech-{uuid.uuid4().hex}")
        return SpeechConnection(websocket, backend, own, transmission, metrics)

    def refusal(cause: Failure) -> str:
        return encode(speech_refusals.error_message(cause).message)

    return Endpoint(backend, metrics.connections, connect, refusal)


def video_endpoint(
    backend: VideoBackend, terms: VideoTerms, link: LinkSettings, metrics: VideoMetrics
) -> Endpoint:
    """Return `/v1/realtime/video`."""

    def connect(websocket: GuardedConnection) -> Connection:
        # IO-INV-100: the request id names the one generation of the connection.
        name = uuid.uuid4().hex
        own = replace(terms, session_id=f"video-{name}", request_id=f"video_stream-{name}")
        return VideoConnection(websocket, backend, own, link, metrics)

    def refusal(cause: Failure) -> str:
        return encode(video_refusals.error_message(cause).message)

    return Endpoint(backend, metrics.connections, connect, refusal)
