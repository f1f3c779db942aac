"""A conversation with the pure speech session: client frames, a scripted backend, a fake clock.

Owns: how tests talk to the session and how its actions are shown. Does not own: any rule. Frames go
through the real codec, text through the real frontends, and every update of the backend is held
against the real `contracts.accumulation` first, so no test can send what no backend may.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from contracts.accumulation import SegmentStream
from contracts.capabilities import SpeechCapabilities, TextCommitmentCapabilities, Voice
from contracts.errors import Failure
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioFormat,
    IdentifiedUpdate,
    Outcome,
    SpeechUpdate,
    Usage,
    WordTime,
    WordTimes,
    WordTimesCompleted,
)
from contracts.speech import SegmentRequest
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
from services.edge.speech.frontends import open_frontend
from services.edge.speech.negotiation import NegotiationPolicy
from services.edge.speech.terms import FrontendOpener, SpeechLimits, SpeechTerms

PROFILE = "zh_en_special_v1"
STANDARD = SpeechCapabilities(
    model="tone",
    sample_rate_hz=24000,
    languages=("English", "Chinese"),
    voices=(Voice("Ada", ("English",)), Voice("Lin", ("Chinese",))),
    default_voice="Ada",
    max_text_characters=131_072,
    word_times=True,
    audio_streaming=True,
    text_commitment=(
        TextCommitmentCapabilities(
            PROFILE, ("English", "Chinese"), True, False, True, True, failed_segment_retries=True
        ),
    ),
)
POLICY = NegotiationPolicy(frozenset({PROFILE}), PROFILE)
LIMITS = SpeechLimits()
USAGE = Usage(input_characters=1, output_audio_ms=1, busy_ms=1, queued_ms=0)

STREAMED: dict[str, Any] = {
    "response_format": "pcm",
    "stream_audio": True,
    "split_granularity": "sentence",
}
"""A configuration that sends raw chunks, cut into sentences."""

COMMITTED: dict[str, Any] = {
    "text_input_mode": "commitment",
    "language": "English",
    "response_format": "pcm",
    "stream_audio": True,
}
"""A configuration that commits text as it comes."""

Shown = dict[str, Any] | bytes | StartSegment | AbortSegment | Close
"""An action as tests see it: a message as its JSON, audio as its bytes, the rest as it is."""


def show(actions: Iterable[Action]) -> list[Shown]:
    """Turn actions into what tests compare; messages pass through the real encoder."""
    shown: list[Shown] = []
    for action in actions:
        match action:
            case SendMessage(message):
                shown.append(json.loads(encode(message)))
            case SendAudio(data):
                shown.append(data)
            case _:
                shown.append(action)
    return shown


def kinds(shown: Iterable[Shown]) -> list[str]:
    """Name each action in a word or two, for tests of order."""
    names: list[str] = []
    for item in shown:
        match item:
            case dict():
                names.append(str(item["type"]))
            case bytes():
                names.append("audio")
            case StartSegment(request):
                names.append(f"start {request.identity.request_id}")
            case AbortSegment(request_id):
                names.append(f"abort {request_id}")
            case Close():
                names.append(f"close {item.code}")
    return names


def codes(shown: Iterable[Shown]) -> list[str]:
    """Return the codes of the error messages."""
    return [item["code"] for item in shown if isinstance(item, dict) and item["type"] == "error"]


def messages(shown: Iterable[Shown], name: str) -> list[dict[str, Any]]:
    """Return the messages of one type."""
    return [item for item in shown if isinstance(item, dict) and item["type"] == name]


class Conversation:
    """One session with its client, its backend and its clock. `now` is in seconds."""

    def __init__(
        self,
        *,
        capabilities: SpeechCapabilities | None = STANDARD,
        policy: NegotiationPolicy = POLICY,
        limits: SpeechLimits = LIMITS,
        config: dict[str, Any] | None = None,
        frontend: FrontendOpener = open_frontend,
    ) -> None:
        """`config` is sent at once when it is given; it must be accepted in silence."""
        self.now = 0.0
        self.limits = limits
        self.session = SpeechSession(SpeechTerms("s", policy, limits, frontend), self.now)
        self.everything: list[Shown] = []
        self.requests: list[SegmentRequest] = []
        self._stream: SegmentStream | None = None
        self._chunks = self._samples = self._words = 0
        self.replicas(capabilities)
        if config is not None:
            assert self.configure(**config) == []

    # The client

    def frame(self, text: str) -> list[Shown]:
        """Send one text frame as it is."""
        decoded = decode(
            text,
            max_config_characters=self.limits.config_message_characters,
            max_message_characters=self.limits.message_characters,
        )
        if isinstance(decoded, Failure):
            return self.receive(FrameRejected(decoded))
        return self.receive(FrameReceived(decoded.message, decoded.warnings))

    def send(self, name: str, **fields: Any) -> list[Shown]:
        """Send one message."""
        return self.frame(json.dumps({"type": name, **fields}, ensure_ascii=False))

    def configure(self, **fields: Any) -> list[Shown]:
        return self.send("session.config", **fields)

    def text(self, text: str) -> list[Shown]:
        return self.send("input.text", text=text)

    def done(self) -> list[Shown]:
        return self.send("input.done")

    def cancel(self, **fields: Any) -> list[Shown]:
        return self.send("input.cancel", **fields)

    def vanish(self) -> list[Shown]:
        return self.receive(PeerVanished())

    # The backend

    @property
    def request(self) -> SegmentRequest:
        """The request that was started last."""
        return self.requests[-1]

    def accept(self, rate: int | None = None) -> list[Shown]:
        output = self.request.output
        rate = rate or output.sample_rate_hz or 24000
        return self.update(Accepted(AudioFormat(output.encoding, rate)))

    def chunk(self, data: bytes) -> list[Shown]:
        self._chunks += 1
        return self.update(AudioChunk(self._chunks - 1, data))

    def complete(self, samples: int | None = None) -> list[Shown]:
        """End the audio; the samples of a file are not known from its bytes, so name them."""
        assert self._stream is not None
        size = self._stream.audio_bytes
        width = self.request.output.encoding.bytes_per_sample
        counted = size // width if width else samples or 0
        return self.update(AudioCompleted(self._chunks, size, counted))

    def words(self, *words: tuple[str, int, int]) -> list[Shown]:
        self._words += len(words)
        return self.update(WordTimes(tuple(WordTime(*word) for word in words)))

    def complete_words(self, *, aligned: bool = True) -> list[Shown]:
        return self.update(WordTimesCompleted(self._words, aligned))

    def outcome(self) -> list[Shown]:
        return self.update(Outcome(USAGE))

    def speak(self, *chunks: bytes, samples: int | None = None) -> list[Shown]:
        """Play the whole of the segment in flight."""
        shown = self.accept()
        for data in chunks:
            shown += self.chunk(data)
        return shown + self.complete(samples) + self.outcome()

    def fail(self, cause: Failure, request_id: str | None = None) -> list[Shown]:
        return self.receive(SegmentFailed(request_id or self.request.identity.request_id, cause))

    def update(self, update: SpeechUpdate) -> list[Shown]:
        """Send one update of the segment that was started last."""
        assert self._stream is not None
        self._stream.receive(IdentifiedUpdate(self.request.identity, update))
        return self.receive(SegmentUpdated(self.request.identity.request_id, update))

    def replicas(self, capabilities: SpeechCapabilities | None) -> list[Shown]:
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
            if isinstance(item, StartSegment):
                self.requests.append(item.request)
                self._stream = SegmentStream(item.request)
                self._chunks = self._words = 0
        self.everything += shown
        return shown
