"""Requests off the wire.

Owns: the one place where a `SynthesizeRequest` becomes a validated `SegmentRequest`. Does not own:
what a particular model accepts (`services.tts.planning`), the answers (`services.tts.replies`).
Enforces: IO-INV-001 (the modality of a payload is stated), WEIR-110 (ranges of the options),
WEIR-201 (a violation names a path and a rule, never a value), and that every field of a request is
read or refused, never dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from weir.media.v1 import audio_pb2, identity_pb2, modality_pb2, text_pb2
from weir.tts.v1 import tts_pb2

from contracts.capabilities import AUTO, TaskType
from contracts.errors import FieldViolation, GrpcCode, Reason, WeirError, failure
from contracts.identity import SegmentIdentity
from contracts.modality import SAMPLE_RATES_HZ, AudioEncoding, AudioFormat, TextSpan
from contracts.speech import (
    MAX_SPEAKER_EMBEDDING,
    MAX_SPEED,
    MIN_SPEED,
    SegmentRequest,
    SynthesisOptions,
    VoiceOptions,
)
from services.runtime.errors import refuse_unknown_fields

ENCODINGS = {
    audio_pb2.AUDIO_ENCODING_PCM_S16LE: AudioEncoding.PCM,
    audio_pb2.AUDIO_ENCODING_WAV: AudioEncoding.WAV,
    audio_pb2.AUDIO_ENCODING_FLAC: AudioEncoding.FLAC,
    audio_pb2.AUDIO_ENCODING_MP3: AudioEncoding.MP3,
    audio_pb2.AUDIO_ENCODING_OPUS: AudioEncoding.OPUS,
    audio_pb2.AUDIO_ENCODING_MULAW: AudioEncoding.MULAW,
}
TASK_TYPES = {
    tts_pb2.TASK_TYPE_UNSPECIFIED: TaskType.CUSTOM_VOICE,
    tts_pb2.TASK_TYPE_CUSTOM_VOICE: TaskType.CUSTOM_VOICE,
    tts_pb2.TASK_TYPE_VOICE_DESIGN: TaskType.VOICE_DESIGN,
    tts_pb2.TASK_TYPE_BASE: TaskType.BASE,
}
_ID_RULE = "Must be 1 to 128 characters of A-Z a-z 0-9 . _ -"


def read_request(message: tts_pb2.SynthesizeRequest) -> SegmentRequest:
    """Return the request that `message` holds.

    Raises WeirError: INVALID_MESSAGE naming every offending field, or UNSUPPORTED_OPTION for a
    sample rate or channel count that no replica offers.
    """
    refuse_unknown_fields(message)
    findings = _Findings()
    _check_identity(message, findings)
    _check_text(message, findings)
    _check_output(message, findings)
    _check_voice(message.voice, findings)
    _check_options(message.options, findings)
    findings.refuse_if_any(Reason.INVALID_MESSAGE)
    _check_format(message.output, findings)
    findings.refuse_if_any(Reason.UNSUPPORTED_OPTION)
    return SegmentRequest(
        identity=_identity(message.identity),
        text=message.text.text,
        output=AudioFormat(ENCODINGS[message.output.encoding], message.output.sample_rate_hz),
        voice=_voice(message.voice),
        options=_options(message.options),
        spans=tuple(TextSpan(span.text, span.kind) for span in message.text.spans),
    )


@dataclass(slots=True)
class _Findings:
    """Collects every offending field, so that one answer names all of them."""

    violations: list[FieldViolation] = field(default_factory=list)

    def require(self, holds: bool, path: str, rule: str) -> None:
        """Note that the field at `path` breaks `rule` unless `holds`."""
        if not holds:
            self.violations.append(FieldViolation(path, rule))

    def accepts(self, build: Callable[[], object], path: str, rule: str) -> None:
        """Note a violation when the contract's own record refuses the value that `build` gives."""
        try:
            build()
        except ValueError:
            self.violations.append(FieldViolation(path, rule))

    def refuse_if_any(self, reason: Reason) -> None:
        """Raise WeirError with `reason` and everything noted so far."""
        if self.violations:
            # WEIR-201: paths and rules are ours; the offending values stay out.
            fields = ", ".join(violation.field for violation in self.violations)
            raise WeirError(
                failure(
                    reason,
                    f"The request is refused for: {fields}.",
                    code=GrpcCode.INVALID_ARGUMENT,
                    violations=tuple(self.violations),
                )
            )


def _check_identity(message: tts_pb2.SynthesizeRequest, findings: _Findings) -> None:
    findings.require(message.HasField("identity"), "identity", "Is required.")
    if not message.HasField("identity"):
        return
    who = message.identity
    findings.accepts(
        lambda: SegmentIdentity(who.session_id, "r", 0, 0), "identity.session_id", _ID_RULE
    )
    findings.accepts(
        lambda: SegmentIdentity("s", who.request_id, 0, 0), "identity.request_id", _ID_RULE
    )
    findings.require(who.attempt >= 1, "identity.attempt", "Must be at least 1.")


def _check_text(message: tts_pb2.SynthesizeRequest, findings: _Findings) -> None:
    findings.require(message.HasField("text"), "text", "Is required.")
    if not message.HasField("text"):
        return
    payload: text_pb2.TextPayload = message.text
    # IO-INV-001: nothing is guessed from the field that is filled.
    findings.require(
        payload.modality == modality_pb2.MODALITY_TEXT, "text.modality", "Must be MODALITY_TEXT."
    )
    findings.require(bool(payload.text), "text.text", "Must have at least one code point.")
    for index, span in enumerate(payload.spans):
        if not span.text:
            findings.require(
                False, f"text.spans[{index}].text", "Must have one code point or more."
            )
            return
    joined = "".join(span.text for span in payload.spans)
    findings.require(
        not payload.spans or joined == payload.text,
        "text.spans",
        "Must concatenate to exactly the text.",
    )


def _check_output(message: tts_pb2.SynthesizeRequest, findings: _Findings) -> None:
    findings.require(message.HasField("output"), "output", "Is required.")
    if message.HasField("output"):
        findings.require(
            message.output.encoding in ENCODINGS, "output.encoding", "Must be a known encoding."
        )


def _check_format(output: audio_pb2.AudioFormat, findings: _Findings) -> None:
    rate = output.sample_rate_hz
    if ENCODINGS[output.encoding] is AudioEncoding.OPUS:
        findings.require(rate in (0, 48000), "output.sample_rate_hz", "Must be 48000 with Opus.")
    else:
        rates = ", ".join(map(str, SAMPLE_RATES_HZ))
        findings.require(
            not rate or rate in SAMPLE_RATES_HZ, "output.sample_rate_hz", f"Must be one of {rates}."
        )
    findings.require(output.channels in (0, 1), "output.channels", "Must be 1.")


def _check_voice(voice: tts_pb2.VoiceOptions, findings: _Findings) -> None:
    findings.require(voice.task_type in TASK_TYPES, "voice.task_type", "Must be a known task type.")
    values = voice.speaker_embedding
    findings.require(
        len(values) <= MAX_SPEAKER_EMBEDDING and all(map(math.isfinite, values)),
        "voice.speaker_embedding",
        f"Must be at most {MAX_SPEAKER_EMBEDDING} finite numbers.",
    )


def _check_options(options: tts_pb2.SynthesisOptions, findings: _Findings) -> None:
    if options.HasField("speed"):
        findings.accepts(
            lambda: SynthesisOptions(speed=options.speed),
            "options.speed",
            f"Must be {MIN_SPEED} to {MAX_SPEED}.",
        )
    if options.HasField("max_new_tokens"):
        findings.require(
            options.max_new_tokens >= 1, "options.max_new_tokens", "Must be at least 1."
        )
    if options.HasField("initial_codec_chunk_frames"):
        findings.require(
            options.initial_codec_chunk_frames >= 1,
            "options.initial_codec_chunk_frames",
            "Must be at least 1.",
        )


def _identity(who: identity_pb2.SegmentIdentity) -> SegmentIdentity:
    return SegmentIdentity(
        session_id=who.session_id,
        request_id=who.request_id,
        utterance_index=who.utterance_index,
        segment_index=who.segment_index,
        attempt=who.attempt,
    )


def _voice(voice: tts_pb2.VoiceOptions) -> VoiceOptions:
    return VoiceOptions(
        voice=voice.voice,
        language=voice.language or AUTO,
        task_type=TASK_TYPES[voice.task_type],
        instructions=voice.instructions if voice.HasField("instructions") else None,
        reference_audio=voice.reference_audio if voice.HasField("reference_audio") else None,
        reference_text=voice.reference_text if voice.HasField("reference_text") else None,
        x_vector_only=voice.x_vector_only if voice.HasField("x_vector_only") else None,
        speaker_embedding=tuple(voice.speaker_embedding),
    )


def _options(options: tts_pb2.SynthesisOptions) -> SynthesisOptions:
    frames = options.initial_codec_chunk_frames
    streaming_off = options.non_streaming_mode
    return SynthesisOptions(
        speed=options.speed if options.HasField("speed") else 1.0,
        seed=options.seed if options.HasField("seed") else None,
        word_times=options.word_times,
        max_new_tokens=options.max_new_tokens if options.HasField("max_new_tokens") else None,
        initial_codec_chunk_frames=(
            frames if options.HasField("initial_codec_chunk_frames") else None
        ),
        non_streaming_mode=streaming_off if options.HasField("non_streaming_mode") else None,
    )
