"""Deciding how a request will be spoken by the loaded model.

Owns: holding a validated request against the capabilities and making a `Plan` of it: what the
adapter is asked for, what is left to stretching, the true output format. Does not own: reading the
wire (`services.tts.wire`), doing any of it (`services.tts.engine`). Enforces: WEIR-183 (an
option that the replica does not declare is refused, never dropped).
"""

from __future__ import annotations

from dataclasses import dataclass

from contracts.capabilities import AUTO, SpeechCapabilities
from contracts.errors import FieldViolation, GrpcCode, Reason, WeirError, failure
from contracts.identity import SegmentIdentity
from contracts.modality import AudioEncoding, AudioFormat
from contracts.speech import SegmentRequest
from services.tts.adapters.base import TextPiece, Utterance

FIXED_RATES_HZ = {AudioEncoding.MULAW: 8000, AudioEncoding.OPUS: 48000}
"""Rates of the encodings that do not follow the model when a request names no rate."""
MP3_RATES_HZ = frozenset({8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000})
"""All rates MPEG audio layer III has."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one request is spoken.

    `model_rate_hz` is the rate of the adapter's samples, `output` has the true rate of the bytes.
    `stretch` is the factor of speed left to time stretching; 1.0 means that nothing is stretched.
    """

    identity: SegmentIdentity
    utterance: Utterance
    model_rate_hz: int
    output: AudioFormat
    stretch: float


def plan(
    request: SegmentRequest,
    capabilities: SpeechCapabilities,
    native_speed: tuple[float, float] | None,
) -> Plan:
    """Return how `request` is spoken by the model.

    Raises WeirError: MESSAGE_TOO_LARGE for text beyond the limit, UNSUPPORTED_OPTION for anything
    the capabilities do not declare.
    """
    _check_text(request, capabilities)
    _check_options(request, capabilities)
    language = _language(request, capabilities)
    speed = request.options.speed
    spoken_speed = (
        1.0 if native_speed is None else min(max(speed, native_speed[0]), native_speed[1])
    )
    voice, options = request.voice, request.options
    return Plan(
        identity=request.identity,
        utterance=Utterance(
            text=request.text,
            voice=_voice(request, capabilities, language),
            language=language,
            speed=spoken_speed,
            seed=options.seed,
            word_times=options.word_times,
            pieces=tuple(TextPiece(span.text, span.kind) for span in request.spans),
            task_type=voice.task_type,
            instructions=voice.instructions,
            reference_audio=voice.reference_audio,
            reference_text=voice.reference_text,
            x_vector_only=voice.x_vector_only,
            speaker_embedding=voice.speaker_embedding or None,
            max_new_tokens=options.max_new_tokens,
            initial_codec_chunk_frames=options.initial_codec_chunk_frames,
            non_streaming_mode=options.non_streaming_mode,
        ),
        model_rate_hz=capabilities.sample_rate_hz,
        output=_output(request.output, capabilities.sample_rate_hz),
        stretch=speed / spoken_speed,
    )


def _check_text(request: SegmentRequest, capabilities: SpeechCapabilities) -> None:
    limit = capabilities.max_text_characters
    if len(request.text) > limit:
        rule = f"Must have at most {limit} code points."
        raise WeirError(
            failure(
                Reason.MESSAGE_TOO_LARGE,
                f"The text of one segment has more than {limit} code points.",
                violations=(FieldViolation("text.text", rule),),
            )
        )


def _check_options(request: SegmentRequest, capabilities: SpeechCapabilities) -> None:
    voice, options = request.voice, request.options
    # WEIR-183: one row an optional field, so that a new one cannot be forgotten half-way.
    given = {
        "instructions": ("voice", voice.instructions is not None),
        "reference_audio": ("voice", voice.reference_audio is not None),
        "reference_text": ("voice", voice.reference_text is not None),
        "x_vector_only": ("voice", voice.x_vector_only is not None),
        "speaker_embedding": ("voice", bool(voice.speaker_embedding)),
        "max_new_tokens": ("options", options.max_new_tokens is not None),
        "initial_codec_chunk_frames": ("options", options.initial_codec_chunk_frames is not None),
        "non_streaming_mode": ("options", options.non_streaming_mode is not None),
    }
    for name, (record, present) in given.items():
        if present and name not in capabilities.options:
            raise _unsupported(f"{record}.{name}", "Is not an option of this model.")
    if options.word_times and not capabilities.word_times:
        raise _unsupported("options.word_times", "Is not an option of this model.")
    if voice.task_type not in capabilities.task_types:
        raise _unsupported("voice.task_type", "Is not a task of this model.")


def _language(request: SegmentRequest, capabilities: SpeechCapabilities) -> str:
    language = capabilities.language(request.voice.language)
    if language is None:
        raise _unsupported("voice.language", "Must be a declared language or Auto.")
    return language


def _voice(request: SegmentRequest, capabilities: SpeechCapabilities, language: str) -> str:
    """Return the name of the voice; without a choice one that speaks the language."""
    if request.voice.voice:
        voice = capabilities.voice(request.voice.voice)
        if voice is None:
            raise _unsupported("voice.voice", "Must be a declared voice.")
        if language != AUTO and voice.languages and language not in voice.languages:
            raise _unsupported("voice.language", "Must be a language of the voice.")
        return voice.name
    default = capabilities.voice(capabilities.default_voice)
    if language != AUTO and default is not None and language not in default.languages:
        speakers = [voice.name for voice in capabilities.voices if language in voice.languages]
        return next(iter(speakers), capabilities.default_voice)
    return capabilities.default_voice


def _output(wanted: AudioFormat, model_rate_hz: int) -> AudioFormat:
    rate = wanted.sample_rate_hz or FIXED_RATES_HZ.get(wanted.encoding, model_rate_hz)
    if wanted.encoding is AudioEncoding.MP3 and rate not in MP3_RATES_HZ:
        rate = next((known for known in sorted(MP3_RATES_HZ) if known > rate), max(MP3_RATES_HZ))
    return AudioFormat(wanted.encoding, rate)


def _unsupported(path: str, rule: str) -> WeirError:
    return WeirError(
        failure(
            Reason.UNSUPPORTED_OPTION,
            f"The model does not offer what is asked for in {path}.",
            code=GrpcCode.INVALID_ARGUMENT,
            violations=(FieldViolation(path, rule),),
        )
    )
