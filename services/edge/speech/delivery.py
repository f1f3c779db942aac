"""One segment on its way to the client: backend updates become messages.

Owns: the order start, payload, (error), done of one segment, and its counts. Does not own: whether
the backend's updates are in order (`contracts.accumulation` has checked), what comes next (`core`).
Enforces: IO-INV-101 (`audio.done` closes every `audio.start`), IO-INV-300 (updates are translated
into public messages), WEIR-150 (a file goes out whole or not at all).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

from msgspec import UNSET

from contracts.errors import FALLBACK, Failure, GrpcCode, Reason, failure
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioFormat,
    Outcome,
    SpeechUpdate,
    WordTimes,
    WordTimesCompleted,
)
from contracts.speech import SegmentRequest
from services.edge.speech.events import (
    LocalProtocolError,
    SendAudio,
    SendMessage,
)
from services.edge.speech.messages import (
    AudioChunkMessage,
    AudioDone,
    AudioStart,
    ErrorMessage,
    Timestamp,
)
from services.edge.speech.terms import SpeechLimits
from services.edge.speech.utterance import Utterance
from services.edge.text.frontend import Segment

Sends = list[SendMessage | SendAudio]


class FileTooLargeError(Exception):
    """The encoded file of a segment is larger than the session's limit."""


@dataclass(frozen=True, slots=True)
class DeliveryTerms:
    """How the audio of a segment goes out."""

    stream_audio: bool
    word_timestamps: bool


class SegmentDelivery:
    """Turns the updates of one segment into the messages of the protocol."""

    __slots__ = (
        "_aligned",
        "_chunk_count",
        "_file",
        "_file_bytes",
        "_format",
        "_limits",
        "_samples",
        "_segment",
        "_segment_index",
        "_sent_bytes",
        "_sentence_index",
        "_terms",
        "_utterance",
        "_words",
        "request_id",
    )

    def __init__(
        self,
        request: SegmentRequest,
        segment: Segment,
        utterance: Utterance,
        terms: DeliveryTerms,
        limits: SpeechLimits,
    ) -> None:
        self.request_id = request.identity.request_id
        self._segment_index = request.identity.segment_index
        self._segment = segment
        self._utterance = utterance
        self._terms = terms
        self._limits = limits
        self._format: AudioFormat | None = None
        self._sentence_index: int | None = None
        self._file: list[bytes] = []
        self._file_bytes = 0
        self._sent_bytes = 0
        self._samples = 0
        self._chunk_count = 0
        self._words: list[Timestamp] = []
        self._aligned = False

    def advance(self, update: SpeechUpdate, warnings: tuple[str, ...]) -> Sends:
        """Return what to send for one update.

        `warnings` go out with `audio.start`. Raises FileTooLargeError when the file outgrows its
        limit, LocalProtocolError for an update out of order.
        """
        match update:
            case AudioChunk():
                return self._chunk(update)
            case Accepted():
                return self._start(update, warnings)
            case AudioCompleted():
                return self._complete(update)
            case WordTimes():
                self._words += [Timestamp(w.word, w.start_ms, w.end_ms) for w in update.words]
                return []
            case WordTimesCompleted():
                self._aligned = update.aligned
                return []
            case Outcome():
                return [*self._word_times(), SendMessage(self._done(error=False))]

    def fail(self, cause: Failure) -> Sends:
        """Return the error and, when the segment had started, its end."""
        # WEIR-150: bytes that went out of a failed segment are to be thrown away.
        partial = self._sent_bytes > 0
        error = ErrorMessage(
            message=cause.message,
            code=segment_failure(cause).websocket_code,
            cause=_cause(cause).lower(),
            request_id=self.request_id,
            utterance_index=self._utterance.index,
            segment_index=self._segment_index,
            retry_after_ms=UNSET if cause.retry_after_ms is None else cause.retry_after_ms,
            partial_audio=True if partial else UNSET,
            action="discard" if partial else UNSET,
        )
        sends: Sends = [SendMessage(error)]
        if self._sentence_index is not None:
            sends.append(SendMessage(self._done(error=True)))
        return sends

    def _start(self, update: Accepted, warnings: tuple[str, ...]) -> Sends:
        if self._sentence_index is not None:
            raise LocalProtocolError("a segment is accepted once")
        utterance, segment = self._utterance, self._segment
        self._format = update.format
        self._sentence_index = utterance.sentence_count
        utterance.sentence_count += 1
        start = AudioStart(
            utterance_index=utterance.index,
            sentence_index=self._sentence_index,
            sentence_text=segment.text,
            format=update.format.encoding.value,
            sample_rate=update.format.sample_rate_hz,
            channels=update.format.channels,
            request_id=self.request_id,
            segment_index=self._segment_index,
            source_start=segment.source_start,
            source_end=segment.source_end,
            word_timestamps=True if self._terms.word_timestamps else UNSET,
            warnings=warnings or UNSET,
        )
        return [SendMessage(start)]

    def _chunk(self, update: AudioChunk) -> Sends:
        audio_format = self._started()
        data = update.data
        if not self._terms.stream_audio:
            self._file_bytes += len(data)
            if self._file_bytes > self._limits.segment_file_bytes:
                raise FileTooLargeError
            self._file.append(data)
            return []
        self._sent_bytes += len(data)
        start = self._samples
        width = (audio_format.encoding.bytes_per_sample or 1) * audio_format.channels
        self._samples += len(data) // width
        rate = audio_format.sample_rate_hz
        self._utterance.sent_ms += 1000 * (self._samples - start) / rate
        if self._terms.word_timestamps:
            text = base64.b64encode(data).decode("ascii")
            return [SendMessage(self._json_chunk(start, self._samples, text, None))]
        return [SendAudio(data)]

    def _complete(self, update: AudioCompleted) -> Sends:
        audio_format = self._started()
        if self._terms.stream_audio:
            return []
        self._sent_bytes = self._file_bytes
        self._utterance.sent_ms += 1000 * update.total_samples / audio_format.sample_rate_hz
        data, self._file = b"".join(self._file), []
        return [SendAudio(data)] if data else []

    def _word_times(self) -> Sends:
        """Return the words' own chunk. They may be complete before the audio; it is the last."""
        if not self._terms.word_timestamps:
            return []
        words = tuple(self._words) if self._aligned else None
        return [SendMessage(self._json_chunk(0, self._samples, "", words))]

    def _json_chunk(
        self, first: int, last: int, audio: str, words: tuple[Timestamp, ...] | None
    ) -> AudioChunkMessage:
        audio_format = self._started()
        chunk_id = self._chunk_count
        self._chunk_count += 1
        return AudioChunkMessage(
            utterance_index=self._utterance.index,
            sentence_index=self._sentence_index or 0,
            chunk_id=chunk_id,
            chunk_start_ms=round(1000 * first / audio_format.sample_rate_hz),
            chunk_end_ms=round(1000 * last / audio_format.sample_rate_hz),
            sample_rate=audio_format.sample_rate_hz,
            channels=audio_format.channels,
            audio_b64=audio,
            timestamps=words,
        )

    def _done(self, *, error: bool) -> AudioDone:
        self._started()
        return AudioDone(self._utterance.index, self._sentence_index or 0, self._sent_bytes, error)

    def _started(self) -> AudioFormat:
        if self._format is None:
            raise LocalProtocolError("a segment's updates begin with its acceptance")
        return self._format


def _cause(cause: Failure) -> Reason:
    """Return what the backend meant: the reason it gave, or else what its code stands for."""
    return FALLBACK[cause.code] if cause.reason is Reason.SEGMENT_FAILED else cause.reason


def segment_failure(cause: Failure) -> Failure:
    """Return SEGMENT_FAILED with the backend's own code and sentence."""
    code = cause.code if cause.code is not GrpcCode.OK else GrpcCode.INTERNAL
    return failure(Reason.SEGMENT_FAILED, cause.message, code=code)
