"""A video session on a WebSocket: the dull shell around the pure core.

Owns: the tasks of one connection (reader, one writer, one pump for the generation) and its
clean-up. Does not own: the socket and its writer (`services.edge.link`), the rules of the protocol
(`core`), replicas (`backends`). Enforces: WEIR-162 (only the writer sends; the reader never waits
for generation), WEIR-163 (the backend call is cancelled at most once, promptly), WEIR-168 (metadata
and binary go into the outbox in one step), WEIR-175 (a credit follows what the socket has taken).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from contracts.errors import INTERNAL_MESSAGE, Failure, Reason, WeirError, failure
from contracts.generation import (
    Accepted,
    Chunk,
    GenerationRequest,
    GenerationUpdate,
    InteractionFailed,
    InteractionQueued,
    InteractionRefused,
    Outcome,
)
from contracts.video import VideoCapabilities
from services.edge.backends.controls import ControlQueue
from services.edge.link import ClientLink, LinkSettings, SessionTimer
from services.edge.outbox import Frame
from services.edge.session_events import (
    ClockReached,
    Close,
    FrameRejected,
    PeerVanished,
    ShutdownRequested,
)
from services.edge.stall import GuardedConnection
from services.edge.video.codec import decode, encode
from services.edge.video.core import VideoSession
from services.edge.video.events import (
    AbortGeneration,
    Action,
    CapabilitiesChanged,
    ChunkDrained,
    Event,
    FrameReceived,
    GenerationFailed,
    GenerationUpdated,
    SendChunk,
    SendControl,
    SendMessage,
    StartGeneration,
)
from services.edge.video.messages import SessionStart
from services.edge.video.metrics import VideoMetrics
from services.edge.video.refusals import error_message
from services.edge.video.terms import VideoTerms
from services.runtime.logging import get_logger, log_context

_LOGGER = get_logger(__name__)

CONTROLS = 256
"""Controls that may wait for the service before the client is read no further."""

BINARY_FRAME = failure(
    Reason.INVALID_MESSAGE, "Binary messages are not accepted; messages are JSON text."
)

_ANSWERS: dict[type, str] = {
    InteractionQueued: "queued",
    InteractionFailed: "failed",
    InteractionRefused: "refused",
}


class VideoBackend(Protocol):
    """What the driver needs of the video replicas."""

    def capabilities(self) -> VideoCapabilities | None:
        """What all reachable replicas declare; None when none is reachable."""
        ...

    def generate(
        self, request: GenerationRequest, controls: ControlQueue
    ) -> AsyncGenerator[GenerationUpdate, None]:
        """Run one generation; closing the generator cancels the call."""
        ...


class VideoConnection:
    """Drives one session until its connection has ended."""

    def __init__(
        self,
        websocket: GuardedConnection,
        backend: VideoBackend,
        terms: VideoTerms,
        link: LinkSettings,
        metrics: VideoMetrics,
    ) -> None:
        self._backend = backend
        self._terms = terms
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._core = VideoSession(terms, self._loop.time())
        self._link = ClientLink(
            websocket, link, stalled=metrics.connections.stalled, sent=self._note_sent
        )
        self._timer = SessionTimer(lambda: self._dispatch(ClockReached()))
        self._controls = ControlQueue(CONTROLS)
        self._group = asyncio.TaskGroup()
        self._pump: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve the connection to its end. Only cancellation of the task leaves by an exception."""
        with (
            log_context(session_id=self._terms.session_id, request_id=self._terms.request_id),
            self._metrics.connections.session(),
        ):
            sorry = error_message(failure(Reason.INTERNAL, INTERNAL_MESSAGE))
            await self._link.serve(
                self._group, self._read, name="video", sorry=encode(sorry.message)
            )

    def shut_down(self, *, final: bool) -> None:
        """Tell the session that the process is ending; `final`: end it at once."""
        self._dispatch(ShutdownRequested(final))

    def abort(self) -> None:
        """Drop the connection without a word; for a peer that does not let itself be told."""
        self._link.abort()

    async def _read(self) -> None:
        """Take frames in until the connection has ended. Never waits for generation."""
        self._timer.arm(self._core.deadline)
        try:
            async with aclosing(self._link.frames()) as frames:
                async for frame in frames:
                    self._take_in(frame)
                    await self._controls.room()
            self._dispatch(PeerVanished())
        finally:
            self._controls.end()
            self._link.end()
            self._timer.disarm()  # a timer must not start a task in a group that has ended

    async def _generate(self, request: GenerationRequest) -> None:
        """Pump the generation from the backend into the session.

        It needs no brake of its own: chunks are bounded by credits, answers by what was asked.
        """
        started = self._loop.time()
        outcome, seen = "cancelled", False
        accepted = False
        updates = self._backend.generate(request, self._controls)
        try:
            async with aclosing(updates):
                async for update in updates:
                    if isinstance(update, Chunk) and not seen:
                        seen = True
                        self._metrics.first_chunk(self._loop.time() - started)
                    accepted = accepted or isinstance(update, Accepted)
                    outcome = _outcome_of(update) or outcome
                    self._note_answer(update)
                    self._dispatch(GenerationUpdated(update))
        except WeirError as error:
            outcome = "failed" if accepted else "refused"
            _LOGGER.warning("generation_failed", reason=error.failure.reason.value)
            self._dispatch(GenerationFailed(error.failure))
        finally:
            self._pump = None
            self._controls.end()
            self._metrics.generation_ended(outcome)

    def _note_answer(self, update: GenerationUpdate) -> None:
        answer = _ANSWERS.get(type(update))
        if answer is not None:
            self._metrics.interaction_answered(answer)

    def _note_sent(self, frame: Frame) -> None:
        """The socket has taken a frame; binary ones are chunks, and nothing else is."""
        if isinstance(frame, bytes):
            self._metrics.chunk_sent(len(frame))
            self._dispatch(ChunkDrained())  # WEIR-175

    def _take_in(self, frame: Frame) -> None:
        """Turn one frame into an event of the session."""
        if isinstance(frame, bytes):
            self._reject(BINARY_FRAME)
            return
        decoded = decode(frame, self._terms.limits)
        if isinstance(decoded, Failure):
            self._reject(decoded)
            return
        if isinstance(decoded.message, SessionStart):
            self._dispatch(CapabilitiesChanged(self._backend.capabilities()))
        self._dispatch(FrameReceived(decoded.message, decoded.warnings))

    def _reject(self, cause: Failure) -> None:
        self._metrics.connections.frame_rejected(cause.reason)
        self._dispatch(FrameRejected(cause))

    def _dispatch(self, event: Event) -> None:
        """Let the session take an event and do what it wants done. Never waits."""
        for action in self._core.receive(event, self._loop.time()):
            self._perform(action)
        self._timer.arm(self._core.deadline)

    def _perform(self, action: Action) -> None:
        match action:
            case SendChunk(metadata, data):
                # WEIR-168: the writer takes frames in order, and nothing runs between these two.
                self._link.outbox.put(encode(metadata))
                self._link.outbox.put(data)
            case SendMessage(message):
                self._link.outbox.put(encode(message))
            case SendControl(control):
                self._controls.put(control)
            case StartGeneration(request):
                self._pump = self._group.create_task(
                    self._generate(request), name=f"video-generation {self._terms.request_id}"
                )
            case AbortGeneration():
                # WEIR-163: that closes the backend's generator, which cancels its call.
                if self._pump is not None:
                    self._pump.cancel()
            case Close():
                self._link.close(action)


def _outcome_of(update: GenerationUpdate) -> str | None:
    """Return how an update ends the generation, for counting; None for one that does not."""
    if not isinstance(update, Outcome):
        return None
    if update.failure is not None:
        return "failed"
    return "stopped" if update.stopped else "completed"
