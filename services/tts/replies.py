"""Answers onto the wire.

Owns: turning speech updates and capabilities into messages of `weir.tts.v1`. Does not own: the
order of updates (`services.tts.engine`), requests (`services.tts.wire`). Enforces: IO-INV-001
(every payload states its modality), IO-INV-100 (every answer repeats the identity it answers),
IO-INV-101 (partial and terminal updates are different messages).
"""

from __future__ import annotations

from typing import assert_never

from weir.media.v1 import audio_pb2, identity_pb2, modality_pb2, usage_pb2, words_pb2
from weir.tts.v1 import tts_pb2

from contracts.capabilities import SpeechCapabilities, TaskType, TextCommitmentCapabilities
from contracts.identity import SegmentIdentity
from contracts.modality import (
    Accepted,
    AudioChunk,
    AudioCompleted,
    Outcome,
    SpeechUpdate,
    WordTimes,
    WordTimesCompleted,
)
from services.tts.wire import ENCODINGS

_ENCODING_NUMBERS = {encoding: number for number, encoding in ENCODINGS.items()}
_TASK_NUMBERS = {
    TaskType.CUSTOM_VOICE: tts_pb2.TASK_TYPE_CUSTOM_VOICE,
    TaskType.VOICE_DESIGN: tts_pb2.TASK_TYPE_VOICE_DESIGN,
    TaskType.BASE: tts_pb2.TASK_TYPE_BASE,
}


def reply(identity: SegmentIdentity, update: SpeechUpdate) -> tts_pb2.SynthesizeResponse:
    """Return `update` as a message about the request with `identity`."""
    message = tts_pb2.SynthesizeResponse(identity=_identity(identity))  # IO-INV-100
    match update:
        case Accepted():
            message.accepted.CopyFrom(_accepted(update))
        case AudioChunk():
            message.audio_chunk.modality = modality_pb2.MODALITY_AUDIO
            message.audio_chunk.chunk_index = update.chunk_index
            message.audio_chunk.data = update.data
        case AudioCompleted():
            message.audio_completed.modality = modality_pb2.MODALITY_AUDIO
            message.audio_completed.chunk_count = update.chunk_count
            message.audio_completed.total_bytes = update.total_bytes
            message.audio_completed.total_samples = update.total_samples
        case WordTimes():
            message.word_times.CopyFrom(_word_times(update))
        case WordTimesCompleted():
            message.word_times_completed.modality = modality_pb2.MODALITY_WORD_TIMES
            message.word_times_completed.word_count = update.word_count
            message.word_times_completed.aligned = update.aligned
        case Outcome():
            message.outcome.CopyFrom(_outcome(update))
        case _:
            assert_never(update)
    return message


def capabilities_reply(record: SpeechCapabilities) -> tts_pb2.GetCapabilitiesResponse:
    """Return the declared record as the answer to GetCapabilities."""
    return tts_pb2.GetCapabilitiesResponse(
        capabilities=tts_pb2.SpeechCapabilities(
            model=record.model,
            sample_rate_hz=record.sample_rate_hz,
            languages=record.languages,
            voices=[
                tts_pb2.Voice(
                    name=voice.name, languages=voice.languages, description=voice.description
                )
                for voice in record.voices
            ],
            default_voice=record.default_voice,
            task_types=[_TASK_NUMBERS[task] for task in record.task_types],
            options=sorted(record.options),
            word_times=record.word_times,
            audio_streaming=record.audio_streaming,
            max_text_characters=record.max_text_characters,
            text_commitment=[_commitment(entry) for entry in record.text_commitment],
        )
    )


def _identity(identity: SegmentIdentity) -> identity_pb2.SegmentIdentity:
    return identity_pb2.SegmentIdentity(
        session_id=identity.session_id,
        request_id=identity.request_id,
        utterance_index=identity.utterance_index,
        segment_index=identity.segment_index,
        attempt=identity.attempt,
    )


def _accepted(update: Accepted) -> tts_pb2.SynthesisAccepted:
    return tts_pb2.SynthesisAccepted(
        format=audio_pb2.AudioFormat(
            encoding=_ENCODING_NUMBERS[update.format.encoding],
            sample_rate_hz=update.format.sample_rate_hz,
            channels=update.format.channels,
        ),
        queue_position=update.queue_position,
    )


def _word_times(update: WordTimes) -> words_pb2.WordTimes:
    return words_pb2.WordTimes(
        modality=modality_pb2.MODALITY_WORD_TIMES,
        words=[
            words_pb2.WordTime(word=word.word, start_ms=word.start_ms, end_ms=word.end_ms)
            for word in update.words
        ],
    )


def _outcome(update: Outcome) -> tts_pb2.SynthesisOutcome:
    usage = update.usage
    return tts_pb2.SynthesisOutcome(
        usage=usage_pb2.Usage(
            input_characters=usage.input_characters,
            output_audio_ms=usage.output_audio_ms,
            busy_ms=usage.busy_ms,
            queued_ms=usage.queued_ms,
        )
    )


def _commitment(record: TextCommitmentCapabilities) -> tts_pb2.TextCommitmentCapabilities:
    return tts_pb2.TextCommitmentCapabilities(
        profile=record.profile,
        languages=record.languages,
        independent_segments=record.independent_segments,
        context_preservation=record.context_preservation,
        audio_streaming=record.audio_streaming,
        word_timestamps=record.word_timestamps,
        failed_segment_retries=record.failed_segment_retries,
    )
