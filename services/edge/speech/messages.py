"""The WebSocket messages of the speech endpoint, as records.

Owns: names, types, ranges and defaults of every field; the JSON Schemas are generated from here.
Does not own: parsing and its errors (`codec`), what a message does (`core`), what a model accepts
(`negotiation`). Enforces: IO-INV-300 (this JSON is a contract of its own, never protobuf-JSON),
IO-INV-101 (`audio.done` and `session.done` are messages of their own).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from contracts.speech import INT64_MAX, INT64_MIN, MAX_SPEAKER_EMBEDDING, MAX_SPEED, MIN_SPEED

TextInputMode = Literal["buffered", "commitment"]
SplitGranularity = Literal["none", "sentence", "clause"]
ResponseFormat = Literal["wav", "pcm", "flac", "mp3", "opus", "mulaw"]
TaskTypeName = Literal["CustomVoice", "VoiceDesign", "Base"]
SampleRate = Literal[8000, 16000, 22050, 24000, 44100, 48000]

PositiveInt = Annotated[int, Meta(ge=1, le=2**31 - 1)]
NonNegativeFloat = Annotated[float, Meta(ge=0)]
Int64 = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
Speed = Annotated[float, Meta(ge=MIN_SPEED, le=MAX_SPEED)]
SpeakerEmbedding = Annotated[list[float], Meta(max_length=MAX_SPEAKER_EMBEDDING)]
EventName = Annotated[str, Meta(max_length=64)]


class SessionConfig(Struct, frozen=True, tag_field="type", tag="session.config"):
    """Must be the first message; a later one between utterances replaces it whole.

    `null` in any field means its default.
    """

    model: str | None = None
    text_input_mode: TextInputMode | None = None
    commitment_profile: str | None = None
    split_granularity: SplitGranularity | None = None
    voice: str | None = None
    speaker: str | None = None
    language: str | None = None
    task_type: TaskTypeName | None = None
    instructions: str | None = None
    ref_audio: str | None = None
    ref_text: str | None = None
    x_vector_only_mode: bool | None = None
    speaker_embedding: SpeakerEmbedding | None = None
    response_format: ResponseFormat | None = None
    sample_rate: SampleRate | None = None
    speed: Speed | None = None
    stream_audio: bool | None = None
    word_timestamps: bool | None = None
    seed: Int64 | None = None
    max_new_tokens: PositiveInt | None = None
    initial_codec_chunk_frames: PositiveInt | None = None
    non_streaming_mode: bool | None = None
    events: Annotated[list[EventName], Meta(max_length=32)] | None = None


class InputText(Struct, frozen=True, tag_field="type", tag="input.text"):
    """Appends source text to the utterance; opens one when it is not empty."""

    text: str = ""


class InputDone(Struct, frozen=True, tag_field="type", tag="input.done"):
    """End of input of this utterance; the connection stays open."""


class InputCancel(Struct, frozen=True, tag_field="type", tag="input.cancel"):
    """Barge-in: drops the current utterance, keeps the connection."""

    played_ms: NonNegativeFloat | None = None


class InputCommit(Struct, frozen=True, tag_field="type", tag="input.commit"):
    """Asks to end the segment at what was sent so far. Not offered yet."""


class InputExplain(Struct, frozen=True, tag_field="type", tag="input.explain"):
    """Asks how a text would be committed. Not offered yet."""

    text: str | None = None
    packets: list[str] | None = None
    profile: str | None = None


class SessionClose(Struct, frozen=True, tag_field="type", tag="session.close"):
    """Cancels everything and closes the connection."""


class SessionPing(Struct, frozen=True, tag_field="type", tag="session.ping"):
    """Answered by `session.pong`."""


ClientMessage = (
    SessionConfig
    | InputText
    | InputDone
    | InputCancel
    | InputCommit
    | InputExplain
    | SessionClose
    | SessionPing
)
CLIENT_MESSAGES: tuple[type[Struct], ...] = (
    SessionConfig,
    InputText,
    InputDone,
    InputCancel,
    InputCommit,
    InputExplain,
    SessionClose,
    SessionPing,
)


class AudioStart(Struct, frozen=True, tag_field="type", tag="audio.start"):
    """Opens a synthesized segment, before its audio. Offsets are code points of the utterance."""

    utterance_index: int
    sentence_index: int
    sentence_text: str
    format: ResponseFormat
    sample_rate: int
    channels: int
    request_id: str
    segment_index: int
    source_start: int
    source_end: int
    word_timestamps: Literal[True] | UnsetType = UNSET
    warnings: tuple[str, ...] | UnsetType = UNSET


class Timestamp(Struct, frozen=True):
    """When one word is heard, in milliseconds from the segment's first sample."""

    word: str
    start_ms: int
    end_ms: int


class AudioChunkMessage(Struct, frozen=True, tag_field="type", tag="audio.chunk"):
    """Audio in JSON, instead of binary, when word timestamps were asked for.

    Audio chunks carry `timestamps: null`. One last chunk with empty audio spans the whole segment
    and carries the whole list: `[]` for silence, `null` when the words could not be aligned.
    """

    utterance_index: int
    sentence_index: int
    chunk_id: int
    chunk_start_ms: int
    chunk_end_ms: int
    sample_rate: int
    channels: int
    audio_b64: str
    timestamps: tuple[Timestamp, ...] | None


class AudioDone(Struct, frozen=True, tag_field="type", tag="audio.done"):
    """Closes a segment. `total_bytes` counts the audio bytes that were sent."""

    utterance_index: int
    sentence_index: int
    total_bytes: int
    error: bool


class SessionDone(Struct, frozen=True, tag_field="type", tag="session.done"):
    """All work of an utterance has settled; also after a failure."""

    utterance_index: int
    total_sentences: int


class SessionPong(Struct, frozen=True, tag_field="type", tag="session.pong"):
    """Answers `session.ping`."""


class InputCancelled(Struct, frozen=True, tag_field="type", tag="input.cancelled"):
    """Answers `input.cancel`; nothing of the cancelled utterance follows.

    `submitted_until` is the code point up to which text had been handed to synthesis, `sent_ms` the
    audio sent, from the utterance's first sample.
    """

    utterance_index: int | None
    submitted_until: int
    sent_ms: int


class ErrorMessage(Struct, frozen=True, tag_field="type", tag="error"):
    """Something went wrong. `code` is a registered reason in lower case.

    `cause` is the reason the backend gave for a failed segment, in lower case.
    """

    message: str
    code: str
    cause: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    utterance_index: int | UnsetType = UNSET
    segment_index: int | UnsetType = UNSET
    retry_after_ms: int | UnsetType = UNSET
    partial_audio: Literal[True] | UnsetType = UNSET
    action: Literal["discard"] | UnsetType = UNSET


ServerMessage = (
    AudioStart
    | AudioChunkMessage
    | AudioDone
    | SessionDone
    | SessionPong
    | InputCancelled
    | ErrorMessage
)
SERVER_MESSAGES: tuple[type[Struct], ...] = (
    AudioStart,
    AudioChunkMessage,
    AudioDone,
    SessionDone,
    SessionPong,
    InputCancelled,
    ErrorMessage,
)
