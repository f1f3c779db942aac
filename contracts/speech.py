"""One segment of text and how it shall be spoken, validated.

Owns: the request for one segment as the edge makes it and the service reads it. Does not own: its
wire form (`weir.tts.v1`), what a particular model accepts (`contracts.capabilities`). Enforces:
IO-INV-102 (the text of a request is raw source and immutable), WEIR-110 (ranges of the options).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from contracts.capabilities import AUTO, TaskType
from contracts.identity import SegmentIdentity
from contracts.modality import SAMPLE_RATES_HZ, AudioEncoding, AudioFormat, TextSpan

MIN_SPEED = 0.25
MAX_SPEED = 4.0
MAX_SPEAKER_EMBEDDING = 8192
INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class VoiceOptions:
    """Who speaks and how. None or empty: the model's default."""

    voice: str = ""
    language: str = AUTO
    task_type: TaskType = TaskType.CUSTOM_VOICE
    instructions: str | None = None
    reference_audio: bytes | None = None
    reference_text: str | None = None
    x_vector_only: bool | None = None
    speaker_embedding: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.speaker_embedding) > MAX_SPEAKER_EMBEDDING:
            raise ValueError(f"speaker_embedding holds at most {MAX_SPEAKER_EMBEDDING} values")


@dataclass(frozen=True, slots=True)
class SynthesisOptions:
    """The knobs of one synthesis. None: the model's default."""

    speed: float = 1.0
    seed: int | None = None
    word_times: bool = False
    max_new_tokens: int | None = None
    initial_codec_chunk_frames: int | None = None
    non_streaming_mode: bool | None = None

    def __post_init__(self) -> None:
        # WEIR-110: NaN fails the comparison, so it is refused as well.
        if not MIN_SPEED <= self.speed <= MAX_SPEED:
            raise ValueError(f"speed is {MIN_SPEED} to {MAX_SPEED}")
        if self.seed is not None and not INT64_MIN <= self.seed <= INT64_MAX:
            raise ValueError("seed is a signed 64-bit integer")
        for name in ("max_new_tokens", "initial_codec_chunk_frames"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is at least 1")


@dataclass(frozen=True, slots=True)
class SegmentRequest:
    """One immutable segment: identity, raw source text, output format, voice and options."""

    identity: SegmentIdentity
    text: str
    output: AudioFormat
    voice: VoiceOptions = field(default_factory=VoiceOptions)
    options: SynthesisOptions = field(default_factory=SynthesisOptions)
    spans: tuple[TextSpan, ...] = ()

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("text has at least one code point")
        if self.spans and "".join(span.text for span in self.spans) != self.text:
            raise ValueError("spans concatenated are the text")
        rate, encoding = self.output.sample_rate_hz, self.output.encoding
        if rate and rate not in SAMPLE_RATES_HZ:
            raise ValueError(f"sample_rate_hz is one of {SAMPLE_RATES_HZ}")
        if encoding is AudioEncoding.OPUS and rate not in (0, 48000):
            raise ValueError("opus has a sample_rate_hz of 48000")
