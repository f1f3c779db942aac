"""A speech session on a WebSocket: the dull shell around the pure core.

Owns: the tasks of one connection (reader, one writer, one pump per segment in flight) and its
clean-up. Does not own: the socket and its writer (`services.edge.link`), the rules of the protocol
(`core`), retries, replicas (`backends`).
Enforces: WEIR-162 (only the writer sends; the reader never waits for synthesis), WEIR-163 (each
backend call is cancelled at most once, promptly), WEIR-160 (bounded queues).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from contracts.capabilities import SpeechCapabilities
from contracts.errors import INTERNAL_MESSAGE, Failure, Reason, WeirError, failure
from contracts.modality import AudioChunk, IdentifiedUpdate
from contracts.speech import SegmentRequest
from services.edge.link import ClientLink, LinkSettings, SessionTimer
from services.edge.speech.codec import decode, encode
from services.edge.speech.core import SpeechSession
from services.edge.speech.events import (
    AbortSegment,
    Action,
    CapabilitiesChanged,
    ClockReached,
    Close,
    Event,
    FrameReceived,
    FrameRejected,
    PeerVanished,
    SegmentFailed,
    SegmentUpdated,
    SendAudio,
    SendMessage,
    ShutdownRequested,
    StartSegment,
)
from services.edge.speech.messages import InputText, SessionConfig
from services.edge.speech.metrics import SpeechMetrics
from services.edge.speech.refusals import error_message
from services.edge.speech.terms import SpeechTerms
from services.edge.stall import GuardedConnection
from services.runtime.logging import get_logger, log_context

_LOGGER = get_logger(__name__)

_LONG_TEXT = 2048
"""Characters beyond which a text would hold up every other session noticeably."""

BINARY_FRAME = failure(
    Reason.INVALID_MESSAGE, "Binary messages are not accepted; messages are JSON text."
)


class SpeechBackend(Protocol):
    """What the driver needs of the TTS replicas."""

    def capabilities(self) -> SpeechCapabilities | None:
        """What all reachable replicas declare; None when none is reachable."""
        ...

    def synthesize(
        self, request: SegmentRequest, *, deadline_s: float, retry_after_accept: bool = False
    ) -> AsyncGenerator[IdentifiedUpdate, None]:
        """Speak one segment; closing the generator cancels the call."""
        ...


@dataclass(frozen=True, slots=True)
class Transmission:
    """How a connection is driven. Durations are seconds."""

    retry_deadline_s: float
    link: LinkSettings


class SpeechConnection:
    """Drives one session until its connection has ended."""

    def __init__(
        self,
        websocket: GuardedConnection,
        backend: SpeechBackend,
        terms: SpeechTerms,
        transmission: Transmission,
        metrics: SpeechMetrics,
    ) -> None:
        self._backend = backend
        self._terms = terms
        self._transmission = transmission
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._core = SpeechSession(terms, self._loop.time())
        self._link = ClientLink(websocket, transmission.link, stalled=metrics.connections.stalled)
        self._outbox = self._link.outbox
        self._timer = SessionTimer(lambda: self._dispatch(ClockReached()))
        self._group = asyncio.TaskGroup()
        self._segments: dict[str, asyncio.Task[None]] = {}
        self._held: deque[Event] = deque()
        self._digested = asyncio.Event()
        self._digested.set()

    async def run(self) -> None:
        """Serve the connection to its end. Only cancellation of the task leaves by an exception."""
        with log_context(session_id=self._terms.session_id), self._metrics.connections.session():
            sorry = error_message(failure(Reason.INTERNAL, INTERNAL_MESSAGE))
            await self._link.serve(
                self._group, self._read, name="speech", sorry=encode(sorry.message)
            )

    def shut_down(self, *, final: bool) -> None:
        """Tell the session that the process is ending; `final`: end it at once."""
        self._dispatch(ShutdownRequested(final))

    def abort(self) -> None:
        """Drop the connection without a word; for a peer that does not let itself be told."""
        self._link.abort()

    async def _read(self) -> None:
        """Take frames in until the connection has ended. Never waits for synthesis."""
        self._timer.arm(self._core.deadline)
        try:
            async with aclosing(self._link.frames()) as frames:
                async for frame in frames:
                    await self._take_in(frame)
            self._dispatch(PeerVanished())
        finally:
            self._link.end()
            self._timer.disarm()  # a timer must not start a task in a group that has ended

    async def _speak(self, request: SegmentRequest, retry_after_acceptance: bool) -> None:
        """Pump one segment from the backend into the session, no faster than the client reads."""
        request_id = request.identity.request_id
        started = self._loop.time()
        with log_context(request_id=request_id):
            updates = self._backend.synthesize(
                request,
                deadline_s=self._transmission.retry_deadline_s,
                retry_after_accept=retry_after_acceptance,
            )
            outcome, heard = "cancelled", False
            try:
                async with aclosing(updates):
                    async for identified in updates:
                        if not heard and isinstance(identified.update, AudioChunk):
                            heard = True
                            self._metrics.first_audio(self._loop.time() - started)
                        await self._digested.wait()
                        self._dispatch(SegmentUpdated(request_id, identified.update))
                        await self._outbox.room()
                outcome = "spoken"
            except WeirError as error:
                outcome = "failed"
                _LOGGER.warning("segment_failed", reason=error.failure.reason.value)
                self._dispatch(SegmentFailed(request_id, error.failure))
            finally:
                self._segments.pop(request_id, None)
                self._metrics.segment_ended(outcome)

    async def _take_in(self, frame: str | bytes) -> None:
        """Turn one frame into an event of the session."""
        if isinstance(frame, bytes):
            self._reject(BINARY_FRAME)
            return
        limits = self._terms.limits
        decoded = decode(
            frame,
            max_config_characters=limits.config_message_characters,
            max_message_characters=limits.message_characters,
        )
        if isinstance(decoded, Failure):
            self._reject(decoded)
            return
        if isinstance(decoded.message, SessionConfig):
            self._dispatch(CapabilitiesChanged(self._backend.capabilities()))
        received = FrameReceived(decoded.message, decoded.warnings)
        if isinstance(decoded.message, InputText) and len(decoded.message.text) > _LONG_TEXT:
            await self._digest(received)
        else:
            self._dispatch(received)

    def _reject(self, cause: Failure) -> None:
        self._metrics.connections.frame_rejected(cause.reason)
        self._dispatch(FrameRejected(cause))

    async def _digest(self, event: FrameReceived) -> None:
        """Let the session take a long text on a thread: its rules cost microseconds a character.

        What else happens to the session meanwhile comes after it, in order.
        """
        self._digested.clear()
        # When this is cancelled nothing may touch the session again: the thread still does.
        actions = await asyncio.to_thread(self._core.receive, event, self._loop.time())
        self._digested.set()
        self._perform_all(actions)
        while self._held:
            self._dispatch(self._held.popleft())

    def _dispatch(self, event: Event) -> None:
        """Let the session take an event and do what it wants done. Never waits."""
        if self._digested.is_set():
            self._perform_all(self._core.receive(event, self._loop.time()))
        else:
            self._held.append(event)  # a few at most: the pumps wait, and nothing is read

    def _perform_all(self, actions: list[Action]) -> None:
        for action in actions:
            self._perform(action)
        self._timer.arm(self._core.deadline)

    def _perform(self, action: Action) -> None:
        match action:
            case SendAudio(data):
                self._outbox.put(data)
            case SendMessage(message):
                self._outbox.put(encode(message))
            case StartSegment(request, retry):
                name = f"speech-segment {request.identity.request_id}"
                task = self._group.create_task(self._speak(request, retry), name=name)
                self._segments[request.identity.request_id] = task
            case AbortSegment(request_id):
                # WEIR-163: that closes the backend's generator, which cancels its call.
                if task_in_flight := self._segments.pop(request_id, None):
                    task_in_flight.cancel()
            case Close():
                self._link.close(action)
