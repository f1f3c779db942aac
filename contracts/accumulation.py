"""In which order the updates of a request may come.

Owns: the state table of a segment's response stream, the counts that its terminals are checked
against, and the completion of a batch. Does not own: the updates themselves (`contracts.modality`),
their wire form, or what a violation does to a session. Enforces: IO-INV-100 (one identity per
stream), IO-INV-101 (every modality ends by its own terminal, once), WEIR-120 (accepted first and
once), WEIR-121 (counts agree with what arrived), WEIR-122 (the outcome is last, and after every
terminal), WEIR-123 (members of a batch complete one by one).

A refused update changes nothing: the stream can still be read on, or given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType

from contracts.identity import SegmentIdentity
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioFormat,
    IdentifiedUpdate,
    Outcome,
    WordTimes,
    WordTimesCompleted,
)
from contracts.speech import SegmentRequest


class AccumulationError(ValueError):
    """An update that the state of its stream does not allow; the stream is as it was before."""


class State(Enum):
    """What is still to come on a segment's stream."""

    AWAITING_AUDIO = "accepted, then audio"
    AWAITING_AUDIO_AND_WORDS = "accepted, then audio and word times"
    STREAMING_AUDIO_AND_WORDS = "audio and word times"
    STREAMING_AUDIO = "audio"
    STREAMING_WORDS = "word times"
    TERMINATED = "the outcome"
    COMPLETED = "nothing"


Row = Mapping[type, State]

# IO-INV-101: a partial update keeps its modality open, its terminal closes it, and what no row
# names is refused: a second terminal, a partial after it, a modality that nobody asked for.
# WEIR-120: only the awaiting states take `Accepted`, and they take nothing else.
# WEIR-122: only the state in which every terminal has come takes `Outcome`.
TRANSITIONS: Mapping[State, Row] = MappingProxyType(
    {
        State.AWAITING_AUDIO: {Accepted: State.STREAMING_AUDIO},
        State.AWAITING_AUDIO_AND_WORDS: {Accepted: State.STREAMING_AUDIO_AND_WORDS},
        State.STREAMING_AUDIO_AND_WORDS: {
            AudioChunk: State.STREAMING_AUDIO_AND_WORDS,
            WordTimes: State.STREAMING_AUDIO_AND_WORDS,
            AudioCompleted: State.STREAMING_WORDS,
            WordTimesCompleted: State.STREAMING_AUDIO,
        },
        State.STREAMING_AUDIO: {
            AudioChunk: State.STREAMING_AUDIO,
            AudioCompleted: State.TERMINATED,
        },
        State.STREAMING_WORDS: {
            WordTimes: State.STREAMING_WORDS,
            WordTimesCompleted: State.TERMINATED,
        },
        State.TERMINATED: {Outcome: State.COMPLETED},
        State.COMPLETED: {},
    }
)


class SegmentStream:
    """Checks the response stream of one request, update by update. Keeps counts, not payloads."""

    __slots__ = (
        "_audio_bytes",
        "_audio_chunks",
        "_format",
        "_identity",
        "_output",
        "_row",
        "_sample_bytes",
        "_state",
        "_words",
    )

    def __init__(self, request: SegmentRequest) -> None:
        self._identity = request.identity
        self._output = request.output
        self._sample_bytes = request.output.encoding.bytes_per_sample
        self._format: AudioFormat | None = None
        self._audio_chunks = 0
        self._audio_bytes = 0
        self._words = 0
        self._enter(
            State.AWAITING_AUDIO_AND_WORDS if request.options.word_times else State.AWAITING_AUDIO
        )

    @property
    def state(self) -> State:
        """What is still to come."""
        return self._state

    @property
    def format(self) -> AudioFormat | None:
        """The true format, once the request was accepted."""
        return self._format

    @property
    def accepted(self) -> bool:
        """True once the backend has taken the segment."""
        return self._format is not None

    @property
    def completed(self) -> bool:
        """True once the outcome has come."""
        return self._state is State.COMPLETED

    @property
    def audio_bytes(self) -> int:
        """Bytes of audio so far."""
        return self._audio_bytes

    def receive(self, identified: IdentifiedUpdate) -> None:
        """Take the next update.

        Raises AccumulationError, with the stream unchanged, for a foreign identity (IO-INV-100), an
        update the state does not allow (IO-INV-101, WEIR-120, WEIR-122), a gap in the chunk
        indices or counts that do not agree (WEIR-121), or a format other than the request's.
        """
        identity, update = identified.identity, identified.update
        # IO-INV-100: an update that answers another request or attempt is not taken for ours.
        if identity is not self._identity and not identity.answers(self._identity):
            raise AccumulationError("the update answers another request")
        following = self._row.get(type(update))
        if following is None:
            raise AccumulationError(
                f"{type(update).__name__} came where the stream expected {self._state.value}"
            )
        if type(update) is AudioChunk:  # by far the most frequent, so it is asked for first
            self._take_chunk(update)
            return  # a chunk never changes the state
        if isinstance(update, WordTimes):
            self._words += len(update.words)
            return
        if isinstance(update, Accepted):
            self._check_format(update.format)
            self._format = update.format
        elif isinstance(update, AudioCompleted):
            self._check_audio(update)
        elif isinstance(update, WordTimesCompleted):
            self._check_words(update)
        self._enter(following)

    def end(self) -> None:
        """The stream ended in good order. Raises AccumulationError when the outcome is missing."""
        # IO-INV-101: an end that nobody announced is not a completion.
        if self._state is not State.COMPLETED:
            raise AccumulationError(f"the stream ended where it still expected {self._state.value}")

    def _enter(self, state: State) -> None:
        self._state = state
        self._row = TRANSITIONS[state]  # the row at hand saves hashing the state for every chunk

    def _take_chunk(self, chunk: AudioChunk) -> None:
        # WEIR-121: a gap or a repetition means that audio was lost or would be heard twice.
        if chunk.chunk_index != self._audio_chunks:
            raise AccumulationError(
                f"audio chunk {chunk.chunk_index} came where {self._audio_chunks} was next"
            )
        size = len(chunk.data)
        if self._sample_bytes == 2 and size & 1:
            raise AccumulationError("an audio chunk holds a broken sample")
        self._audio_chunks += 1
        self._audio_bytes += size

    def _check_format(self, format: AudioFormat) -> None:
        wanted = self._output
        # WEIR-124: what comes is what was asked for, with a true rate.
        if format.encoding is not wanted.encoding or format.sample_rate_hz == 0:
            raise AccumulationError("the accepted format is not the requested one")
        if wanted.sample_rate_hz not in (0, format.sample_rate_hz):
            raise AccumulationError("the accepted sample rate is not the requested one")

    def _check_audio(self, terminal: AudioCompleted) -> None:
        counted = (self._audio_chunks, self._audio_bytes)
        # WEIR-121: a terminal whose counts differ says that something was lost on the way.
        if (terminal.chunk_count, terminal.total_bytes) != counted:
            raise AccumulationError("the audio terminal counts other than what arrived")
        if self._sample_bytes and terminal.total_samples * self._sample_bytes != counted[1]:
            raise AccumulationError("the audio terminal counts samples other than what arrived")

    def _check_words(self, terminal: WordTimesCompleted) -> None:
        # WEIR-121: the same for words; without an alignment there are none.
        if terminal.word_count != self._words or (self._words and not terminal.aligned):
            raise AccumulationError("the word times terminal counts other than what arrived")


class BatchCompletion:
    """Checks updates of several requests that a backend answers together.

    Every member has its own stream with its own terminals and outcome, or fails alone. That one is
    complete says nothing of the others (WEIR-123).
    """

    __slots__ = ("_failed", "_streams")

    def __init__(self, requests: Iterable[SegmentRequest]) -> None:
        self._streams: dict[SegmentIdentity, SegmentStream] = {}
        self._failed: set[SegmentIdentity] = set()
        names: set[str] = set()
        for request in requests:
            # IO-INV-100: two members of one name could not be told apart.
            if request.identity.request_id in names:
                raise ValueError("a request stands twice in the batch")
            names.add(request.identity.request_id)
            self._streams[request.identity] = SegmentStream(request)
        if not self._streams:
            raise ValueError("a batch has at least one request")

    @property
    def pending(self) -> tuple[SegmentIdentity, ...]:
        """Members that have neither completed nor failed, in the order of the batch."""
        return tuple(
            identity
            for identity, stream in self._streams.items()
            if not stream.completed and identity not in self._failed
        )

    def receive(self, identified: IdentifiedUpdate) -> None:
        """Take the next update of any member. Raises AccumulationError, the batch unchanged."""
        self._running(identified.identity).receive(identified)

    def fail(self, identity: SegmentIdentity) -> None:
        """One member ends without an outcome. Raises AccumulationError when it has ended before."""
        if self._running(identity).completed:
            raise AccumulationError("the request has completed and cannot fail")
        self._failed.add(identity)

    def end(self) -> None:
        """The batch ended. Raises AccumulationError while a member has neither terminal state."""
        # WEIR-123: the end of the batch is not the end of a member.
        if self.pending:
            raise AccumulationError(f"{len(self.pending)} requests of the batch have not ended")

    def _running(self, identity: SegmentIdentity) -> SegmentStream:
        stream = self._streams.get(identity)
        if stream is None:
            raise AccumulationError("the update answers another request")
        # WEIR-123: a failed member gives nothing more, though the others go on.
        if identity in self._failed:
            raise AccumulationError("the request has failed")
        return stream
