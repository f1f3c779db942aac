"""What kind of data a payload carries, and the validated payloads of each kind.

Owns: the modality names with their aliases, audio formats, and the partial and terminal updates of
every modality of speech. Does not own: the order in which updates may come
(`contracts.accumulation`), or their wire form (`weir.media.v1`). Enforces: IO-INV-001 (explicit
modality), IO-INV-101 (partial and terminal updates are different types).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from contracts.identity import SegmentIdentity

SAMPLE_RATES_HZ = (8000, 16000, 22050, 24000, 44100, 48000)
"""Rates a client may ask for, in samples per second."""


class Modality(StrEnum):
    """Kinds of data that cross a boundary."""

    TEXT = "text"
    AUDIO = "audio"
    VIDEO = "video"
    WORD_TIMES = "word_times"


_ALIASES = {
    "txt": Modality.TEXT,
    "speech": Modality.AUDIO,
    "sound": Modality.AUDIO,
    "media": Modality.VIDEO,
    "words": Modality.WORD_TIMES,
    "word_timestamps": Modality.WORD_TIMES,
}


def parse_modality(name: str) -> Modality:
    """Return the modality called `name` or by one of its aliases, without regard to case.

    Raises ValueError for an unknown name: nothing is guessed (IO-INV-001).
    """
    folded = name.strip().casefold()
    try:
        return _ALIASES.get(folded) or Modality(folded)
    except ValueError:
        raise ValueError("unknown modality") from None


class AudioEncoding(StrEnum):
    """Representations of audio, by their public names."""

    PCM = "pcm"
    WAV = "wav"
    FLAC = "flac"
    MP3 = "mp3"
    OPUS = "opus"
    MULAW = "mulaw"

    @property
    def raw(self) -> bool:
        """True when the bytes have no header, so any run of whole samples can be played."""
        return self in (AudioEncoding.PCM, AudioEncoding.MULAW)

    @property
    def bytes_per_sample(self) -> int | None:
        """Bytes of one sample of a raw encoding, None for a file encoding."""
        return {AudioEncoding.PCM: 2, AudioEncoding.MULAW: 1}.get(self)


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """How audio bytes are read. A rate of 0 in a request asks for the encoding's own rate."""

    encoding: AudioEncoding
    sample_rate_hz: int
    channels: int = 1

    def __post_init__(self) -> None:
        if self.sample_rate_hz < 0 or self.channels != 1:
            raise ValueError("audio has one channel and a rate that is not negative")


@dataclass(frozen=True, slots=True)
class Accepted:
    """The backend has taken the segment; `format` has the true rate and channels."""

    format: AudioFormat
    queue_position: int = 0


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """Partial audio: the next bytes. `chunk_index` counts from 0 without gaps."""

    chunk_index: int
    data: bytes

    def __post_init__(self) -> None:
        if self.chunk_index < 0 or not self.data:
            raise ValueError("an audio chunk has an index from 0 and at least one byte")


@dataclass(frozen=True, slots=True)
class AudioCompleted:
    """Terminal of the audio: counts of everything that was sent; samples are per channel."""

    chunk_count: int
    total_bytes: int
    total_samples: int


@dataclass(frozen=True, slots=True)
class WordTime:
    """One word as it stands in the source, in milliseconds from the segment's first sample."""

    word: str
    start_ms: int
    end_ms: int

    def __post_init__(self) -> None:
        if not 0 <= self.start_ms <= self.end_ms:
            raise ValueError("a word starts at or after 0 and ends at or after its start")


@dataclass(frozen=True, slots=True)
class WordTimes:
    """Partial word times: the next words in order."""

    words: tuple[WordTime, ...]


@dataclass(frozen=True, slots=True)
class WordTimesCompleted:
    """Terminal of the word times. `aligned` False: there are none, but the audio is good."""

    word_count: int
    aligned: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request consumed and produced."""

    input_characters: int
    output_audio_ms: int
    busy_ms: int
    queued_ms: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Last update of a successful segment."""

    usage: Usage


SpeechUpdate = Accepted | AudioChunk | AudioCompleted | WordTimes | WordTimesCompleted | Outcome


@dataclass(frozen=True, slots=True)
class IdentifiedUpdate:
    """An update with the identity it answers (IO-INV-100)."""

    identity: SegmentIdentity
    update: SpeechUpdate


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A piece of source text and the kind the commitment policy gave it."""

    text: str
    kind: str
