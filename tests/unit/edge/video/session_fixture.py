"""A conversation with the pure video session: client frames, a scripted backend, a fake clock.

Owns: how tests talk to the session and how its actions are shown. Does not own: any rule. Frames go
through the real codec, and every update of the backend is held against the real
`GenerationStream` first, so no test can send what no backend may.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from contracts.errors import Failure, Reason, failure
from contracts.generation import (
    Accepted,
    Chunk,
    Credit,
    GenerationRequest,
    GenerationUpdate,
    InteractionFailed,
    InteractionQueued,
    InteractionRefused,
    Outcome,
    Progress,
    VideoCompleted,
    Waiting,
    WaitReason,
)
from contracts.video import VideoCapabilities, VideoCodec
from services.edge.backends.generation_stream import GenerationStream
from services.edge.session_events import (
    ClockReached,
    Close,
    FrameRejected,
    PeerVanished,
    ShutdownRequested,
)
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
from services.edge.video.terms import VideoLimits, VideoTerms

STANDARD = VideoCapabilities(
    model="pattern",
    frames_per_second=24,
    default_num_frames=120,
    first_chunk_frames=9,
    chunk_frames=12,
    size_multiple=16,
    default_width=320,
    default_height=192,
    image_reference=True,
    options=frozenset({"num_inference_steps", "negative_prompt"}),
    extra_params=frozenset({"inverted"}),
    event_fields=frozenset({"brightness"}),
    codecs=(VideoCodec.H264, VideoCodec.AV1),
)
LIMITS = VideoLimits()
MIME = 'video/mp4; codecs="avc1.42c01f"'
NOT_READ = failure(Reason.INTERACTION_FAILED, "The model could not read the prompt.")
CONFLICT = failure(Reason.EVENT_ID_CONFLICT, "The event_id was used before.")
DOWN = failure(Reason.BACKEND_UNAVAILABLE, "The call ended.")

Shown = dict[str, Any] | bytes | StartGeneration | AbortGeneration | SendControl | Close
"""An action as tests see it: a message as its JSON, a chunk as two of them, the rest as it is."""


def show(actions: Iterable[Action]) -> list[Shown]:
    """Turn actions into what tests compare; messages pass through the real encoder."""
    shown: list[Shown] = []
    for action in actions:
        match action:
            case SendMessage(message):
                shown.append(json.loads(encode(message)))
            case SendChunk(metadata, data):
                shown += [json.loads(encode(metadata)), data]
            case _:
                shown.append(action)
    return shown


def kinds(shown: Iterable[Shown]) -> list[str]:
    """Name each action in a word or two, for tests of order."""
    names: list[str] = []
    for item in shown:
        match item:
            case dict():
                names.append(str(item["code"] if item["type"] == "error" else item["type"]))
            case bytes():
                names.append("binary")
            case StartGeneration():
                names.append("start")
            case AbortGeneration():
                names.append("abort")
            case SendControl(control):
                names.append(type(control).__name__.lower())
            case Close():
                names.append(f"close {item.code}")
    return names


class Conversation:
    """One session with its client, its backend and its clock. `now` is in seconds."""

    def __init__(
        self,
        *,
        capabilities: VideoCapabilities | None = STANDARD,
        limits: VideoLimits = LIMITS,
        strict: bool = False,
    ) -> None:
        self.now = 0.0
        self.limits = limits
        numbers = itertools.count(1)
        self.terms = VideoTerms("s", "video_stream-1", limits, lambda: f"made-{next(numbers)}")
        self.terms = replace(self.terms, strict=strict)
        self.session = VideoSession(self.terms, self.now)
        self.everything: list[Shown] = []
        self.request: GenerationRequest | None = None
        self.stream: GenerationStream | None = None
        self.payloads = self.media = self.frames = self.bytes = 0
        self.replicas(capabilities)

    # The client

    def frame(self, text: str) -> list[Shown]:
        """Send one text frame as it is."""
        decoded = decode(text, self.limits)
        if isinstance(decoded, Failure):
            return self.receive(FrameRejected(decoded))
        return self.receive(FrameReceived(decoded.message, decoded.warnings))

    def send(self, name: str, **fields: Any) -> list[Shown]:
        """Send one message."""
        return self.frame(json.dumps({"type": name, **fields}, ensure_ascii=False))

    def start(self, **fields: Any) -> list[Shown]:
        return self.send("session.start", **{"prompt": "A street.", **fields})

    def interact(self, event_id: str | None = None, prompt: str = "Snow.", **more: Any) -> Any:
        body = {"event": {"prompt": prompt}, **more}
        if event_id is not None:
            body["event_id"] = event_id
        return self.send("session.interaction", interaction=body)

    def vanish(self) -> list[Shown]:
        return self.receive(PeerVanished())

    # The backend

    def run(self, **fields: Any) -> list[Shown]:
        """Start a generation and accept it."""
        return [*self.start(**fields), *self.accept()]

    def accept(self, **changes: Any) -> list[Shown]:
        request = self.request
        assert request is not None
        accepted = Accepted(
            width=request.width or 320,
            height=request.height or 192,
            frame_rate=request.frame_rate or Fraction(24),
            codec=request.codec,
            mime_type=MIME,
            first_chunk_frames=9,
            chunk_frames=12,
            num_frames=None if request.endless else request.num_frames or 120,
            default_transition_chunks=3,
            seed=7 if request.seed is None else request.seed,
        )
        return self.update(replace(accepted, **changes))

    def chunk(self, data: bytes = b"media", *, drained: bool = True, **lists: Any) -> list[Shown]:
        """Send the next media chunk; with `drained` the socket takes it at once."""
        frames = 12 if self.media else 9
        update = Chunk(self.payloads, self.media, frames, data, **lists)
        self.media, self.frames = self.media + 1, self.frames + frames
        return self._payload(update, drained)

    def trailer(self, data: bytes = b"end", *, drained: bool = True) -> list[Shown]:
        return self._payload(Chunk(self.payloads, None, 0, data), drained)

    def _payload(self, update: Chunk, drained: bool) -> list[Shown]:
        self.payloads, self.bytes = self.payloads + 1, self.bytes + len(update.data)
        shown = self.update(update)
        return shown + self.drain() if drained else shown

    def drain(self) -> list[Shown]:
        """Let the socket take the oldest chunk."""
        return self.receive(ChunkDrained())

    def queued(self, event_id: str) -> list[Shown]:
        return self.update(InteractionQueued(event_id))

    def failed(self, event_id: str, cause: Failure = NOT_READ) -> list[Shown]:
        return self.update(InteractionFailed(event_id, cause))

    def refused(self, event_id: str, cause: Failure = CONFLICT) -> list[Shown]:
        return self.update(InteractionRefused(event_id, cause))

    def waits(self, reason: WaitReason) -> list[Shown]:
        return self.update(Waiting(reason))

    def progress(self) -> list[Shown]:
        return self.update(Progress(self.media, 1))

    def complete(self, *, stopped: bool = False, **lists: Any) -> list[Shown]:
        """End the video and the generation."""
        counted = VideoCompleted(self.payloads, self.media, self.frames, self.bytes)
        shown = self.update(counted)
        return shown + self.update(Outcome(None, stopped, self.payloads, **lists))

    def outcome(self, cause: Failure, **lists: Any) -> list[Shown]:
        """End the generation with a failure told in its outcome."""
        return self.update(Outcome(cause, False, self.payloads, **lists))

    def give_up(self, cause: Failure = DOWN) -> list[Shown]:
        return self.receive(GenerationFailed(cause))

    def update(self, update: GenerationUpdate) -> list[Shown]:
        """Send one update of the generation."""
        assert self.stream is not None
        self.stream.receive(update)
        return self.receive(GenerationUpdated(update))

    def replicas(self, capabilities: VideoCapabilities | None) -> list[Shown]:
        return self.receive(CapabilitiesChanged(capabilities))

    # Time and the process

    def wait(self, seconds: float) -> list[Shown]:
        """Let time pass, then let the timer go off."""
        self.now += seconds
        return self.receive(ClockReached())

    def shut_down(self, *, final: bool = False) -> list[Shown]:
        return self.receive(ShutdownRequested(final))

    def receive(self, event: Event) -> list[Shown]:
        """Hand over one event; remember and return what it caused."""
        shown = show(self.session.receive(event, self.now))
        for item in shown:
            if isinstance(item, StartGeneration):
                self.request = item.request
                self.stream = GenerationStream(item.request.initial_credits)
            if isinstance(item, SendControl) and isinstance(item.control, Credit):
                assert self.stream is not None
                self.stream.grant(item.control.chunks)
        self.everything += shown
        return shown
