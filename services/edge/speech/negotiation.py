"""A session's configuration held against what the deployment can do.

Owns: defaults, the rules between fields, what is an error and what a warning. Does not own:
parsing (`codec`), capabilities (`contracts.capabilities`), the session's state (`core`). Enforces:
WEIR-140 (a combination that is not declared is refused before any work), WEIR-141 (nothing the
client asked for is dropped without a warning).
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field

from contracts.capabilities import (
    AUTO,
    SpeechCapabilities,
    TaskType,
    TextCommitmentCapabilities,
    canonical_language,
)
from contracts.errors import Failure, FieldViolation, GrpcCode, Reason, WeirError, failure
from contracts.modality import AudioEncoding, AudioFormat
from contracts.speech import SynthesisOptions, VoiceOptions
from services.edge.speech.messages import SessionConfig

_DECLARED_FIELDS = {
    "instructions": "instructions",
    "ref_audio": "reference_audio",
    "ref_text": "reference_text",
    "x_vector_only_mode": "x_vector_only",
    "speaker_embedding": "speaker_embedding",
}
"""Fields that change the voice: refused where the adapter does not declare them."""

_IGNORABLE_FIELDS = ("max_new_tokens", "initial_codec_chunk_frames", "non_streaming_mode")
"""Fields that tune a model: ignored with a warning where the adapter does not declare them."""

_OWN_RATES = {AudioEncoding.OPUS: 48000, AudioEncoding.MULAW: 8000}


@dataclass(frozen=True, slots=True)
class NegotiationPolicy:
    """What the operator decided. `profiles` are the commitment profiles this edge can run."""

    profiles: frozenset[str]
    default_profile: str
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Agreement:
    """What holds for every utterance until the next configuration.

    `commitment` is the declared record in commitment mode and None in buffered mode;
    `split_granularity` counts only in buffered mode.
    """

    output: AudioFormat
    voice: VoiceOptions
    options: SynthesisOptions
    stream_audio: bool
    split_granularity: str = "none"
    commitment: TextCommitmentCapabilities | None = None
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def language(self) -> str:
        """Canonical English name of the language, or Auto."""
        return self.voice.language

    @property
    def retries_after_acceptance(self) -> bool:
        """True when a failed segment of which no byte was sent may be tried again."""
        return self.commitment is not None and self.commitment.failed_segment_retries


def negotiate(
    config: SessionConfig, capabilities: SpeechCapabilities, policy: NegotiationPolicy
) -> Agreement | Failure:
    """Return what holds from now on, or why this configuration cannot hold."""
    warnings: list[str] = []
    try:
        _check_model(config, capabilities, policy, warnings)
        language = _language(config, capabilities)
        commitment = _commitment(config, capabilities, policy, language, warnings)
        output = _output(config)
        _check_streaming(config, capabilities, commitment, output)
        voice = _voice(config, capabilities, policy, language, warnings)
        options = _options(config, capabilities, warnings)
    except WeirError as refusal:
        return refusal.failure
    if config.events:
        warnings.append("the extra messages named in events are not offered; none is sent")
    return Agreement(
        output=output,
        voice=voice,
        options=options,
        stream_audio=bool(config.stream_audio),
        split_granularity=config.split_granularity or "none",
        commitment=commitment,
        warnings=tuple(warnings),
    )


def _unsupported(name: str, message: str, code: GrpcCode | None = None) -> WeirError:
    violations = (FieldViolation(name, message),) if code is GrpcCode.INVALID_ARGUMENT else ()
    return WeirError(failure(Reason.UNSUPPORTED_OPTION, message, code=code, violations=violations))


def _check_model(
    config: SessionConfig,
    capabilities: SpeechCapabilities,
    policy: NegotiationPolicy,
    warnings: list[str],
) -> None:
    if config.model in (None, "", capabilities.model):
        return
    if policy.strict:
        raise _unsupported("model", f"The model must be {capabilities.model}: no other is served.")
    warnings.append(f"model is not served; {capabilities.model} is used")


def _language(config: SessionConfig, capabilities: SpeechCapabilities) -> str:
    asked = config.language
    if not asked:
        return AUTO
    known = canonical_language(asked, capabilities.languages)
    if known is None:
        raise _unsupported(
            "language",
            "The language must be Auto or one of " + ", ".join(capabilities.languages) + ".",
        )
    return known


def _commitment(
    config: SessionConfig,
    capabilities: SpeechCapabilities,
    policy: NegotiationPolicy,
    language: str,
    warnings: list[str],
) -> TextCommitmentCapabilities | None:
    """Choose the declared commitment record, in commitment mode only (WEIR-140)."""
    if config.text_input_mode != "commitment":
        if config.commitment_profile is not None:
            warnings.append("commitment_profile is ignored in buffered mode")
        return None
    if config.split_granularity not in (None, "none"):
        raise _unsupported(
            "split_granularity", "The split_granularity must be none in commitment mode."
        )
    profile = config.commitment_profile or policy.default_profile
    if profile not in policy.profiles:
        raise _unsupported(
            "commitment_profile",
            "The commitment_profile must be one of " + ", ".join(sorted(policy.profiles)) + ".",
        )
    record = capabilities.commitment(profile, language)
    if record is None:
        languages = sorted(
            {
                name
                for declared in capabilities.text_commitment
                if declared.profile == profile
                for name in declared.languages
            }
        )
        if not languages:
            raise _unsupported(
                "commitment_profile", f"The model does not support commitment with {profile}."
            )
        raise _unsupported(
            "language",
            f"Commitment with {profile} needs the language set to one of {', '.join(languages)}.",
        )
    # IO-INV-102: a stateful adapter never runs through the independent-request path.
    if not record.independent_segments or record.context_preservation:
        raise _unsupported(
            "text_input_mode", "The model keeps context between segments; commitment needs none."
        )
    return record


def _output(config: SessionConfig) -> AudioFormat:
    encoding = AudioEncoding(config.response_format or "wav")
    rate = config.sample_rate or _OWN_RATES.get(encoding, 0)
    if encoding is AudioEncoding.OPUS and rate != _OWN_RATES[encoding]:
        raise _unsupported("sample_rate", "The sample_rate of opus must be 48000.")
    return AudioFormat(encoding, rate)


def _check_streaming(
    config: SessionConfig,
    capabilities: SpeechCapabilities,
    commitment: TextCommitmentCapabilities | None,
    output: AudioFormat,
) -> None:
    if config.stream_audio:
        if not output.encoding.raw:
            raise _unsupported("stream_audio", "Streaming needs response_format pcm or mulaw.")
        if config.speed not in (None, 1.0):
            raise _unsupported("speed", "Streaming needs a speed of 1.0.")
        if commitment is not None and not commitment.audio_streaming:
            raise _unsupported("stream_audio", "The model does not stream committed segments.")
    if config.word_timestamps:
        if not config.stream_audio:
            raise _unsupported("word_timestamps", "Word timestamps need stream_audio.")
        if not capabilities.word_times or (commitment and not commitment.word_timestamps):
            raise _unsupported("word_timestamps", "The model cannot align words.")


def _voice(
    config: SessionConfig,
    capabilities: SpeechCapabilities,
    policy: NegotiationPolicy,
    language: str,
    warnings: list[str],
) -> VoiceOptions:
    task = TaskType(config.task_type) if config.task_type else TaskType.CUSTOM_VOICE
    if task not in capabilities.task_types:
        raise _unsupported(
            "task_type",
            "The task_type must be one of " + ", ".join(capabilities.task_types) + ".",
        )
    for name, option in _DECLARED_FIELDS.items():
        asked = getattr(config, name)
        if asked not in (None, False, "", []) and option not in capabilities.options:
            raise _unsupported(name, f"The model does not support {name}.")
    declared = capabilities.options
    return VoiceOptions(
        voice=_voice_name(config, capabilities, policy, language, warnings),
        language=language,
        task_type=task,
        instructions=config.instructions if "instructions" in declared else None,
        reference_audio=_reference_audio(config.ref_audio),
        reference_text=config.ref_text if "reference_text" in declared else None,
        x_vector_only=config.x_vector_only_mode if "x_vector_only" in declared else None,
        speaker_embedding=tuple(config.speaker_embedding or ()),
    )


def _voice_name(
    config: SessionConfig,
    capabilities: SpeechCapabilities,
    policy: NegotiationPolicy,
    language: str,
    warnings: list[str],
) -> str:
    """Return the name of the chosen voice; empty leaves the choice to the model.

    The model knows best which of its voices speaks a language, so none is named unless the client
    chose one that does.
    """
    if config.voice and config.speaker and config.voice != config.speaker:
        warnings.append("speaker is ignored, since voice is given")
    asked = config.voice or config.speaker
    if not asked:
        return ""
    known = capabilities.voice(asked)
    if known is None:
        problem = "voice is unknown"
    elif language not in (AUTO, *known.languages):
        problem = f"voice does not speak {language}"
    else:
        return known.name
    if policy.strict:
        names = [v.name for v in capabilities.voices if language in (AUTO, *v.languages)]
        raise _unsupported(
            "voice", f"The voice must be one that speaks {language}: {', '.join(names)}."
        )
    warnings.append(f"{problem}; the default voice speaks")
    return ""


def _reference_audio(url: str | None) -> bytes | None:
    """Return the bytes of a base64 data: URL; nothing is ever fetched (no SSRF)."""
    if not url:
        return None
    header, comma, body = url.partition(",")
    if not (comma and header.startswith("data:audio/") and header.endswith(";base64")):
        raise _unsupported("ref_audio", "The ref_audio must be a base64 data: URL of audio.")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise _unsupported("ref_audio", "The ref_audio holds invalid base64.") from None


def _options(
    config: SessionConfig, capabilities: SpeechCapabilities, warnings: list[str]
) -> SynthesisOptions:
    chosen: dict[str, int | bool | None] = {}
    for name in _IGNORABLE_FIELDS:
        value = getattr(config, name)
        if value is not None and name not in capabilities.options:
            warnings.append(f"{name} is ignored: the model does not read it")
        chosen[name] = value if name in capabilities.options else None
    return SynthesisOptions(
        speed=1.0 if config.speed is None else config.speed,
        seed=config.seed,
        word_times=bool(config.word_timestamps),
        max_new_tokens=chosen["max_new_tokens"],
        initial_codec_chunk_frames=chosen["initial_codec_chunk_frames"],
        non_streaming_mode=None
        if chosen["non_streaming_mode"] is None
        else bool(chosen["non_streaming_mode"]),
    )
