"""Every order of events a speech session can meet, against a model and the laws of the protocol."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from contracts.errors import Reason, failure
from contracts.modality import Accepted, AudioChunk, AudioEncoding, AudioFormat, Outcome
from services.edge.speech.events import (
    AbortSegment,
    CapabilitiesChanged,
    ClockReached,
    Close,
    Event,
    PeerVanished,
    SegmentFailed,
    SegmentUpdated,
    ShutdownRequested,
    StartSegment,
)
from services.edge.speech.terms import SpeechLimits
from tests.properties.speech_model import (
    CONFIG_WINDOW,
    FILE,
    IDLE_WINDOW,
    PENDING,
    UTTERANCE,
    Model,
    StopFrontend,
)
from tests.unit.edge.speech.session_fixture import STANDARD, USAGE, Conversation, Shown, kinds

LIMITS = SpeechLimits(
    config_timeout_s=CONFIG_WINDOW,
    idle_timeout_s=IDLE_WINDOW,
    utterance_characters=UTTERANCE,
    pending_characters=PENDING,
    ready_segments=2,
    segment_file_bytes=FILE,
)
STREAM: dict[str, Any] = {"response_format": "mulaw", "stream_audio": True}
CONFIGS: dict[str, dict[str, Any]] = {
    "file": {"split_granularity": "sentence"},
    "stream": STREAM,
    "words": {**STREAM, "word_timestamps": True},
    "": {"language": "Klingon"},
}
TEXTS = ["", " ", "a", "b.", "c. d.", " . .", ". ", "e.f.g.h.i.", "x" * (PENDING + 1), "." * 20]
FAULTS = ["{", "[]", '{"type":"hello"}', '{"type":"input.text","text":7}', '{"type":"input.text"']
CAUSES = [
    failure(Reason.INTERNAL, "No."),
    failure(Reason.OVERLOADED, "Busy.", retry_after_ms=5),
    failure(Reason.INVALID_MESSAGE, "No."),
]
alive = precondition(lambda self: not self.model.over)
MESSAGES = ["input.cancel", "input.commit", "input.explain", "session.ping"]
OTHERS = ["input.text", "input.done", *MESSAGES]


class Laws:
    """Reads what a session sends and wants; asserts what holds whatever came before."""

    def __init__(self) -> None:
        self.received: dict[int, str] = {}
        self.open: dict[str, Any] | None = None
        self.flight: str | None = None
        self.started: set[str] = set()
        self.spoken_until: dict[int, int] = {}
        self.sentences: dict[int, int] = {}
        self.settled: set[int] = set()
        self.closed = False

    def ended(self, request_id: str) -> None:
        """The backend has ended a segment by itself."""
        if self.flight == request_id:
            self.flight = None

    def read(self, shown: list[Shown]) -> None:
        for item in shown:
            assert not self.closed, "nothing follows a close"
            match item:
                case StartSegment(request):
                    self._start(request.identity.request_id, request.text)
                case AbortSegment(request_id):
                    # Once, and only while it is in flight.
                    assert self.flight == request_id
                    self.flight = None
                case Close():
                    assert self.flight is None, "what is in flight is aborted before the end"
                    self.closed = True
                case bytes():
                    assert item, "a binary has at least one byte"
                    assert self.open is not None, "audio stands between start and done"
                case dict():
                    self._message(item)

    def _start(self, request_id: str, text: str) -> None:
        assert self.flight is None, "one segment at a time"
        assert request_id not in self.started, "a segment is submitted once"
        assert not text.isspace()
        self.started.add(request_id)
        self.flight = request_id

    def _message(self, message: dict[str, Any]) -> None:
        index = message.get("utterance_index")
        kind = message["type"]
        if kind in ("audio.start", "audio.chunk", "audio.done", "session.done"):
            assert index not in self.settled, "nothing follows the end of an utterance"
        match kind:
            case "audio.start":
                assert self.open is None, "segments are not interleaved"
                self._in_source_order(message)
                self.open = message
            case "audio.chunk":
                assert self.open is not None
            case "audio.done":
                assert self.open is not None
                assert self.open["sentence_index"] == message["sentence_index"]
                self.open = None
            case "session.done":
                assert self.open is None
                assert message["total_sentences"] == self.sentences.get(index or 0, 0)
                self.settled.add(index or 0)
            case "input.cancelled":
                self.open = None
                if index is not None:
                    assert index not in self.settled
                    self.settled.add(index)

    def _in_source_order(self, start: dict[str, Any]) -> None:
        index, first, last = start["utterance_index"], start["source_start"], start["source_end"]
        text = self.received[index]
        assert start["request_id"] == self.flight, "a start answers the segment in flight"
        assert start["sentence_text"] == text[first:last], "what is spoken is raw source"
        skipped = text[self.spoken_until.get(index, 0) : first]
        assert not skipped.strip(), "only white space is passed over"
        assert first >= self.spoken_until.get(index, 0), "nothing is spoken twice"
        self.spoken_until[index] = last
        assert start["sentence_index"] == self.sentences.get(index, 0)
        self.sentences[index] = start["sentence_index"] + 1


class SpeechSessions(RuleBasedStateMachine):
    """One session after the other; each lives until something ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.begin("")

    def begin(self, mode: str) -> None:
        self.talk = Conversation(limits=LIMITS, frontend=lambda _, limit: StopFrontend(limit))
        self.model = Model()
        self.laws = Laws()
        self.words_complete = False
        if mode:
            self.send("session.config", mode=mode, **CONFIGS[mode])

    @initialize(mode=st.sampled_from([*CONFIGS, "file", "stream", "words"]))
    def connect(self, mode: str) -> None:
        self.begin(mode)

    def check(self, shown: list[Shown], expected: list[str], subject: object) -> None:
        assert kinds(shown) == expected, subject
        if any(kind.startswith("start") for kind in expected):
            self.words_complete = False
        self.laws.read(shown)

    def send(self, name: str, **fields: Any) -> None:
        expected = self.model.client(name, text=fields.get("text", ""), mode=fields.pop("mode", ""))
        self.check(self.talk.send(name, **fields), expected, (name, fields))

    # What the client does

    @rule(mode=st.sampled_from(sorted(CONFIGS)))
    @precondition(lambda self: self.model.mode and not self.model.over)
    def configure(self, mode: str) -> None:
        self.send("session.config", mode=mode, **CONFIGS[mode])

    @rule(text=st.sampled_from(TEXTS))
    @precondition(lambda self: self.model.mode and not self.model.over)
    def text(self, text: str) -> None:
        before = self.model.utterance
        index = self.model.next_index if before is None else before.index
        old = self.laws.received.get(index, "")
        self.laws.received[index] = old + text  # ahead, since it may be spoken at once
        self.send("input.text", text=text)
        after = self.model.utterance
        if after is None or after.text != old + text:
            self.laws.received[index] = old  # it was refused

    @rule(text=st.sampled_from(["b. c", "d.e.", "f. ", ".", "g"]), ended=st.booleans())
    @precondition(lambda self: self.model.state in ("ready", "receiving"))
    def text_that_speaks(self, text: str, ended: bool) -> None:
        """Another chance for text, so that walks spend their steps where it matters."""
        self.text(text)
        if ended:
            self.done()

    @rule()
    @precondition(lambda self: self.model.mode and not self.model.over)
    def done(self) -> None:
        self.send("input.done")

    @rule(name=st.sampled_from(MESSAGES))
    @precondition(lambda self: self.model.mode and not self.model.over)
    def message(self, name: str) -> None:
        self.send(name)

    @rule(frame=st.sampled_from(FAULTS))
    @precondition(lambda self: self.model.mode and not self.model.over)
    def fault(self, frame: str) -> None:
        self.check(self.talk.frame(frame), self.model.rejected(), frame)

    @rule(
        mode=st.sampled_from(sorted(CONFIGS)),
        choice=st.integers(0, 3),
        other=st.sampled_from(OTHERS),
    )
    @precondition(lambda self: not self.model.mode and not self.model.over)
    def first_frame(self, mode: str, choice: int, other: str) -> None:
        """A configuration most of the time, or what should not come first."""
        if choice < 2:
            self.send("session.config", mode=mode, **CONFIGS[mode])
        elif choice == 2:
            self.send(other)
        else:
            self.check(self.talk.frame(FAULTS[0]), self.model.rejected(), "fault")

    @rule(closing=st.booleans())
    @alive
    def leave(self, closing: bool) -> None:
        if closing:
            self.send("session.close")
        else:
            self.check(self.talk.vanish(), self.model.vanished(), "vanished")

    # What the backend does

    def update(self, name: str, shown: list[Shown], size: int = 0) -> None:
        self.check(shown, self.model.update(name, size), name)

    @rule()
    @precondition(lambda self: self.step == "submitted")
    def accept(self) -> None:
        self.update("accepted", self.talk.accept())

    @rule(size=st.sampled_from([1, FILE, FILE + 1, FILE + 1]))
    @precondition(lambda self: self.step == "accepted")
    def chunk(self, size: int) -> None:
        self.update("chunk", self.talk.chunk(bytes(size)), size)

    @rule()
    @precondition(lambda self: self.step == "accepted")
    def complete(self) -> None:
        self.update("complete", self.talk.complete())

    @rule(aligned=st.booleans())
    @precondition(lambda self: self.step in ("accepted", "complete") and self.words_are_due)
    def complete_words(self, aligned: bool) -> None:
        self.words_complete = True
        self.update("words", self.talk.complete_words(aligned=aligned))

    @rule()
    @precondition(lambda self: self.step == "complete" and not self.words_are_due)
    def outcome(self) -> None:
        assert self.model.flight is not None
        self.laws.ended(self.model.flight.name)
        self.update("outcome", self.talk.outcome())

    @rule()
    @precondition(lambda self: self.step == "submitted")
    def speak_it_all(self) -> None:
        """Take the long way in one rule, so that walks get further."""
        self.accept()
        self.chunk(1)
        self.complete()
        if self.words_are_due:
            self.complete_words(True)
        self.outcome()

    @rule(cause=st.sampled_from(CAUSES))
    @precondition(lambda self: self.step is not None)
    def fail(self, cause: Any) -> None:
        assert self.model.flight is not None
        self.laws.ended(self.model.flight.name)
        self.update("failed", self.talk.fail(cause))

    @rule(number=st.integers(0, 50), kind=st.integers(0, 3))
    @alive
    def stale(self, number: int, kind: int) -> None:
        """News of a segment that has ended, one way or another, or of another session's."""
        names = [*sorted(self.laws.started), "elsewhere.0.0"]
        name = names[number % len(names)]
        if self.model.flight is not None and self.model.flight.name == name:
            return
        self.check(self.talk.receive(self.news(name)[kind]), [], "stale")

    def news(self, name: str) -> list[Event]:
        return [
            SegmentUpdated(name, Accepted(AudioFormat(AudioEncoding.MULAW, 8000))),
            SegmentUpdated(name, AudioChunk(0, b"\0")),
            SegmentUpdated(name, Outcome(USAGE)),
            SegmentFailed(name, CAUSES[0]),
        ]

    @rule(reachable=st.booleans())
    @alive
    def replicas(self, reachable: bool) -> None:
        self.model.reachable = reachable
        self.check(self.talk.replicas(STANDARD if reachable else None), [], "replicas")

    # Time and the process

    @rule(seconds=st.sampled_from([0.0, 0.5, 2.0]))
    @alive
    def time_passes(self, seconds: float) -> None:
        self.talk.now = self.model.now = self.model.now + seconds
        self.timer()

    @rule(late=st.sampled_from([-1.0, -0.25, -0.25, 0.0, 7.0]))
    @alive
    def deadline_comes(self, late: float) -> None:
        if self.model.deadline is not None:
            self.talk.now = self.model.now = max(self.model.now, self.model.deadline + late)
            self.timer()

    def timer(self) -> None:
        self.check(self.talk.wait(0), self.model.timer(), "timer")

    @rule(final=st.sampled_from([False, False, False, True]))
    @alive
    def shut_down(self, final: bool) -> None:
        self.check(self.talk.shut_down(final=final), self.model.shut_down(final), "shutdown")

    @rule(mode=st.sampled_from([*CONFIGS, "file", "stream", "words"]))
    @precondition(lambda self: self.model.over)
    def connect_again(self, mode: str) -> None:
        """After an end nothing causes anything; then comes the next session."""
        name = max(self.laws.started, default="elsewhere.0.0")
        late = (CapabilitiesChanged(None), ClockReached(), PeerVanished(), ShutdownRequested(True))
        for event in (*self.news(name), *late):
            self.check(self.talk.receive(event), [], event)
        for message in ("session.config", *OTHERS, "session.close"):
            self.check(self.talk.send(message), [], message)
        self.check(self.talk.frame("{"), [], "fault")
        self.begin(mode)

    # What always holds

    @property
    def step(self) -> str | None:
        return None if self.model.flight is None else self.model.flight.step

    @property
    def words_are_due(self) -> bool:
        return self.model.mode == "words" and not self.words_complete

    @invariant()
    def states_agree(self) -> None:
        assert self.talk.session.state.value == self.model.state
        assert self.talk.session.speaking == (self.model.utterance is not None)

    @invariant()
    def deadlines_agree(self) -> None:
        assert self.talk.session.deadline == self.model.deadline

    @invariant()
    def flights_agree(self) -> None:
        in_flight = None if self.model.flight is None else self.model.flight.name
        assert in_flight == self.laws.flight


TestSpeechSessions = SpeechSessions.TestCase
TestSpeechSessions.__doc__ = (
    "IO-INV-100, IO-INV-101, IO-INV-102, IO-INV-103, WEIR-151, WEIR-152, WEIR-153: whatever comes, "
    "in whatever order, the session does what the model expects and breaks no law."
)
TestSpeechSessions.settings = settings(
    max_examples=500,
    stateful_step_count=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
