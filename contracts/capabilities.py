"""What a voice model declares that it can do.

Owns: the validated capability records and the questions asked of them. Does not own: their wire
form (`weir.tts.v1`), or what the edge does when a combination is refused. Enforces: WEIR-130 (a
record is complete and consistent), WEIR-131 (replicas that differ offer what all of them declare).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

AUTO = "Auto"
"""The language that leaves the choice to the model."""

LANGUAGE_CODES = {
    "ar": "Arabic",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "tr": "Turkish",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
"""ISO 639-1 code to canonical English name."""


class TaskType(StrEnum):
    """What a voice model is asked to do, by its public name."""

    CUSTOM_VOICE = "CustomVoice"
    VOICE_DESIGN = "VoiceDesign"
    BASE = "Base"


VOICE_OPTIONS = (
    "instructions",
    "reference_audio",
    "reference_text",
    "x_vector_only",
    "speaker_embedding",
    "max_new_tokens",
    "initial_codec_chunk_frames",
    "non_streaming_mode",
)
"""Optional request fields that only some models read."""


@dataclass(frozen=True, slots=True)
class TextCommitmentCapabilities:
    """One combination of commitment profile and behaviour that an adapter was made for."""

    profile: str
    languages: tuple[str, ...]
    independent_segments: bool
    context_preservation: bool
    audio_streaming: bool
    word_timestamps: bool
    failed_segment_retries: bool

    def __post_init__(self) -> None:
        if not self.profile:
            raise ValueError("a commitment capability needs a profile")
        if not self.languages:
            raise ValueError(f"commitment profile {self.profile} needs at least one language")
        if self.independent_segments == self.context_preservation:
            raise ValueError(
                f"commitment profile {self.profile}: segments are independent or keep context, "
                "exactly one of the two"
            )


@dataclass(frozen=True, slots=True)
class Voice:
    """One speaker: its name, the languages it speaks, a sentence about how it sounds."""

    name: str
    languages: tuple[str, ...]
    description: str = ""


@dataclass(frozen=True, slots=True)
class SpeechCapabilities:
    """Everything a voice adapter declares. Languages are canonical English names."""

    model: str
    sample_rate_hz: int
    languages: tuple[str, ...]
    voices: tuple[Voice, ...]
    default_voice: str
    max_text_characters: int
    task_types: tuple[TaskType, ...] = (TaskType.CUSTOM_VOICE,)
    options: frozenset[str] = frozenset()
    word_times: bool = False
    audio_streaming: bool = False
    text_commitment: tuple[TextCommitmentCapabilities, ...] = ()

    def __post_init__(self) -> None:
        # WEIR-130: a record that contradicts itself never reaches a client.
        if not self.model or self.sample_rate_hz <= 0 or self.max_text_characters <= 0:
            raise ValueError("a model needs a name, a sample rate and a text limit")
        if not self.languages:
            raise ValueError(f"model {self.model} needs at least one language")
        names = [voice.name for voice in self.voices]
        if len(set(names)) != len(names) or self.default_voice not in names:
            raise ValueError(f"model {self.model} needs distinct voices, the default among them")
        if TaskType.CUSTOM_VOICE not in self.task_types:
            raise ValueError(f"model {self.model} must accept CustomVoice")
        unknown = self.options - frozenset(VOICE_OPTIONS)
        if unknown:
            raise ValueError(f"model {self.model} declares unknown options: {sorted(unknown)}")

    def voice(self, name: str) -> Voice | None:
        """Return the voice called `name`, compared without case; None when there is none."""
        folded = name.casefold()
        return next((v for v in self.voices if v.name.casefold() == folded), None)

    def language(self, name: str) -> str | None:
        """Return the canonical name for an English name or ISO 639-1 code; None when not spoken.

        `Auto` is always known.
        """
        return canonical_language(name, self.languages)

    def commitment(self, profile: str, language: str) -> TextCommitmentCapabilities | None:
        """Return the first declared record for this profile and canonical language, or None."""
        for record in self.text_commitment:
            if record.profile == profile and language in record.languages:
                return record
        return None


def canonical_language(name: str, known: Iterable[str]) -> str | None:
    """Return the canonical name for an English name or ISO 639-1 code among `known` and Auto."""
    folded = name.strip().casefold()
    folded = LANGUAGE_CODES.get(folded, folded).casefold()
    return next((k for k in (AUTO, *known) if k.casefold() == folded), None)


def shared_by_all(records: Iterable[SpeechCapabilities]) -> SpeechCapabilities | None:
    """Return what every one of `records` declares (WEIR-131); None when there is none in common.

    Replicas that serve different models or disagree on the default voice share nothing that a
    session could rely on when they have no voice or language in common; the result is then None.
    """
    merged: SpeechCapabilities | None = None
    for record in records:
        merged = record if merged is None else _intersection(merged, record)
        if merged is None:
            return None
    return merged


def _intersection(one: SpeechCapabilities, other: SpeechCapabilities) -> SpeechCapabilities | None:
    voices = tuple(v for v in one.voices if other.voice(v.name) is not None)
    languages = tuple(name for name in one.languages if name in other.languages)
    if not voices or not languages:
        return None
    names = [voice.name for voice in voices]
    default = one.default_voice if one.default_voice in names else names[0]
    return replace(
        one,
        voices=voices,
        languages=languages,
        default_voice=default,
        max_text_characters=min(one.max_text_characters, other.max_text_characters),
        task_types=tuple(t for t in one.task_types if t in other.task_types),
        options=one.options & other.options,
        word_times=one.word_times and other.word_times,
        audio_streaming=one.audio_streaming and other.audio_streaming,
        text_commitment=tuple(r for r in one.text_commitment if r in other.text_commitment),
    )
