"""Domain values to the messages of `weir.tts.v1`, and back.

Owns: how the edge writes a segment request and reads responses and capabilities. Does not own: the
order of responses (`contracts.accumulation`), what the values mean (`contracts`). Enforces:
IO-INV-001 (a payload names its modality, and it is the right one), IO-INV-100 (a response carries
an identity), IO-INV-102 (the text goes out as it was released), WEIR-302 (what a newer service adds
to a response is ignored).
"""

from __future__ import annotations

from collections.abc import Callable

from weir.media.v1 import audio_pb2, identity_pb2, modality_pb2, text_pb2, words_pb2
from weir.tts.v1 import tts_pb2

from contracts.capabilities import (
    VOICE_OPTIONS,
    SpeechCapabilities,
    TaskType,
    TextCommitmentCapabilities,
    Voice,
)
from contracts.identity import SegmentIdentity
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    AudioEncoding,
    AudioFormat,
    IdentifiedUpdate,
    Outcome,
    SpeechUpdate,
    Usage,
    WordTime,
    WordTimes,
    WordTimesCompleted,
)
from contracts.speech import SegmentRequest, SynthesisOptions, VoiceOptions

_ENCODINGS = {
    AudioEncoding.PCM: audio_pb2.AUDIO_ENCODING_PCM_S16LE,
    AudioEncoding.WAV: audio_pb2.AUDIO_ENCODING_WAV,
    AudioEncoding.FLAC: audio_pb2.AUDIO_ENCODING_FLAC,
    AudioEncoding.MP3: audio_pb2.AUDIO_ENCODING_MP3,
    AudioEncoding.OPUS: audio_pb2.AUDIO_ENCODING_OPUS,
    AudioEncoding.MULAW: audio_pb2.AUDIO_ENCODING_MULAW,
}
_ENCODING_OF = {wire: encoding for encoding, wire in _ENCODINGS.items()}
_TASKS = {
    TaskType.CUSTOM_VOICE: tts_pb2.TASK_TYPE_CUSTOM_VOICE,
    TaskType.VOICE_DESIGN: tts_pb2.TASK_TYPE_VOICE_DESIGN,
    TaskType.BASE: tts_pb2.TASK_TYPE_BASE,
}
_TASK_OF = {wire: task for task, wire in _TASKS.items()}


class WireError(ValueError):
    """A response that breaks the contract of its message."""


def segment_request(request: SegmentRequest) -> tts_pb2.SynthesizeRequest:
    """Write one segment request."""
    return tts_pb2.SynthesizeRequest(
        identity=_identity(request.identity),
        text=text_pb2.TextPayload(
            modality=modality_pb2.MODALITY_TEXT,  # IO-INV-001: the payload says what it is
            text=request.text,  # IO-INV-102: raw source, nothing normalized or trimmed
            spans=[text_pb2.TextSpan(text=span.text, kind=span.kind) for span in request.spans],
        ),
        output=audio_pb2.AudioFormat(
            encoding=_ENCODINGS[request.output.encoding],
            sample_rate_hz=request.output.sample_rate_hz,
            channels=request.output.channels,
        ),
        voice=_voice(request.voice),
        options=_options(request.options),
    )


def _identity(identity: SegmentIdentity) -> identity_pb2.SegmentIdentity:
    return identity_pb2.SegmentIdentity(
        session_id=identity.session_id,
        request_id=identity.request_id,
        utterance_index=identity.utterance_index,
        segment_index=identity.segment_index,
        attempt=identity.attempt,
    )


def _voice(voice: VoiceOptions) -> tts_pb2.VoiceOptions:
    # WEIR-303: None leaves an optional field absent, so the model chooses.
    return tts_pb2.VoiceOptions(
        voice=voice.voice,
        language=voice.language,
        task_type=_TASKS[voice.task_type],
        instructions=voice.instructions,
        reference_audio=voice.reference_audio,
        reference_text=voice.reference_text,
        x_vector_only=voice.x_vector_only,
        speaker_embedding=voice.speaker_embedding,
    )


def _options(options: SynthesisOptions) -> tts_pb2.SynthesisOptions:
    return tts_pb2.SynthesisOptions(
        speed=options.speed,
        seed=options.seed,
        word_times=options.word_times,
        max_new_tokens=options.max_new_tokens,
        initial_codec_chunk_frames=options.initial_codec_chunk_frames,
        non_streaming_mode=options.non_streaming_mode,
    )


class ResponseReader:
    """Reads the responses to one request."""

    __slots__ = ("_identity", "_identity_message")

    def __init__(self, identity: SegmentIdentity) -> None:
        self._identity = identity
        self._identity_message = _identity(identity)

    def read(self, response: tts_pb2.SynthesizeResponse) -> IdentifiedUpdate | None:
        """Read one response; None for an update that this edge does not know.

        Raises WireError for a missing identity, a wrong modality or a value out of range.
        """
        kind = response.WhichOneof("update")
        if kind is None:
            return None  # WEIR-302: a newer service may tell more; what is needed is checked above
        try:
            # IO-INV-100: our own identity is recognised as bytes; any other is read and compared.
            identity = (
                self._identity
                if response.identity == self._identity_message
                else _read_identity(response)
            )
            return IdentifiedUpdate(identity, _UPDATES[kind](response))
        except WireError:
            raise
        except ValueError as refused:  # the domain types check their own ranges
            raise WireError(f"{kind}: {refused}") from refused


def _read_identity(response: tts_pb2.SynthesizeResponse) -> SegmentIdentity:
    identity = response.identity  # a missing one reads as empty ids, which WEIR-100 refuses
    return SegmentIdentity(
        session_id=identity.session_id,
        request_id=identity.request_id,
        utterance_index=identity.utterance_index,
        segment_index=identity.segment_index,
        attempt=identity.attempt,
    )


def _expect(actual: int, expected: int) -> None:
    # IO-INV-001: nothing is taken for audio or words that does not say so.
    if actual != expected:
        raise WireError("the payload has another modality than its message")


def _accepted(response: tts_pb2.SynthesizeResponse) -> Accepted:
    accepted = response.accepted
    encoding = _ENCODING_OF.get(accepted.format.encoding)
    if encoding is None:
        raise WireError("accepted: the encoding is not known")
    return Accepted(
        AudioFormat(encoding, accepted.format.sample_rate_hz, accepted.format.channels),
        accepted.queue_position,
    )


def _audio_chunk(response: tts_pb2.SynthesizeResponse) -> AudioChunk:
    chunk = response.audio_chunk
    _expect(chunk.modality, modality_pb2.MODALITY_AUDIO)
    return AudioChunk(chunk.chunk_index, chunk.data)


def _audio_completed(response: tts_pb2.SynthesizeResponse) -> AudioCompleted:
    terminal = response.audio_completed
    _expect(terminal.modality, modality_pb2.MODALITY_AUDIO)
    return AudioCompleted(terminal.chunk_count, terminal.total_bytes, terminal.total_samples)


def _word_times(response: tts_pb2.SynthesizeResponse) -> WordTimes:
    _expect(response.word_times.modality, modality_pb2.MODALITY_WORD_TIMES)
    return WordTimes(tuple(_word(word) for word in response.word_times.words))


def _word(word: words_pb2.WordTime) -> WordTime:
    return WordTime(word.word, word.start_ms, word.end_ms)


def _word_times_completed(response: tts_pb2.SynthesizeResponse) -> WordTimesCompleted:
    terminal = response.word_times_completed
    _expect(terminal.modality, modality_pb2.MODALITY_WORD_TIMES)
    return WordTimesCompleted(terminal.word_count, terminal.aligned)


def _outcome(response: tts_pb2.SynthesizeResponse) -> Outcome:
    usage = response.outcome.usage
    return Outcome(
        Usage(usage.input_characters, usage.output_audio_ms, usage.busy_ms, usage.queued_ms)
    )


_UPDATES: dict[str, Callable[[tts_pb2.SynthesizeResponse], SpeechUpdate]] = {
    "accepted": _accepted,
    "audio_chunk": _audio_chunk,
    "audio_completed": _audio_completed,
    "word_times": _word_times,
    "word_times_completed": _word_times_completed,
    "outcome": _outcome,
}


def capabilities(response: tts_pb2.GetCapabilitiesResponse) -> SpeechCapabilities:
    """Read what a replica declares, leaving out what this edge has no name for (WEIR-302).

    Raises WireError for a record that contradicts itself (WEIR-130).
    """
    declared = response.capabilities
    try:
        return SpeechCapabilities(
            model=declared.model,
            sample_rate_hz=declared.sample_rate_hz,
            languages=tuple(declared.languages),
            voices=tuple(
                Voice(voice.name, tuple(voice.languages), voice.description)
                for voice in declared.voices
            ),
            default_voice=declared.default_voice,
            max_text_characters=declared.max_text_characters,
            # WEIR-302: a task or an option of a newer service cannot be asked for by this edge.
            task_types=tuple(_TASK_OF[task] for task in declared.task_types if task in _TASK_OF),
            options=frozenset(declared.options).intersection(VOICE_OPTIONS),
            word_times=declared.word_times,
            audio_streaming=declared.audio_streaming,
            text_commitment=tuple(_commitment(record) for record in declared.text_commitment),
        )
    except ValueError as refused:
        raise WireError(f"capabilities: {refused}") from refused


def _commitment(record: tts_pb2.TextCommitmentCapabilities) -> TextCommitmentCapabilities:
    return TextCommitmentCapabilities(
        profile=record.profile,
        languages=tuple(record.languages),
        independent_segments=record.independent_segments,
        context_preservation=record.context_preservation,
        audio_streaming=record.audio_streaming,
        word_timestamps=record.word_timestamps,
        failed_segment_retries=record.failed_segment_retries,
    )
