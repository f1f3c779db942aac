"""Samples into bytes.

Owns: the encoders of every `AudioEncoding`, one object a segment, and cutting bytes into chunks.
Does not own: rates (`services.tts.resampling`), who calls them (the worker thread of the segment,
because encoding is work). Enforces: WEIR-184 (raw bytes are whole samples; the bytes of a file
encoding are one complete file whose header tells its true length).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import soundfile
from numpy.typing import NDArray

from contracts.modality import AudioEncoding, AudioFormat
from services.tts.adapters.base import Samples

MAX_CHUNK_BYTES = 64 * 1024
"""Greatest size of one chunk of a file."""
SHORTEST_FILE_MS = 20
"""Silence written for audio without samples where a container cannot be empty: one Opus frame."""


class Encoder(Protocol):
    """Turns the samples of one segment into bytes. Used by one thread."""

    @property
    def total_samples(self) -> int:
        """Samples that the bytes given out so far hold."""
        ...

    def encode(self, samples: Samples) -> bytes:
        """Take the next samples at the output rate; return the bytes that are ready, maybe none."""
        ...

    def finish(self) -> bytes | memoryview:
        """Return what is left, as a view where it may be large. Called once, last."""
        ...


def make_encoder(output: AudioFormat) -> Encoder:
    """Return an encoder for one segment in `output`, which has a true rate."""
    if output.encoding.raw:
        return RawEncoder(output)
    return FileEncoder(output)


def chunks_of(data: bytes | memoryview) -> Iterator[bytes]:
    """Cut the bytes of a file into chunks of at most MAX_CHUNK_BYTES; nothing for nothing."""
    for start in range(0, len(data), MAX_CHUNK_BYTES):
        yield bytes(data[start : start + MAX_CHUNK_BYTES])


def signed_16_bit(samples: Samples) -> NDArray[np.int16]:
    """Return samples of -1 to 1 as 16-bit integers; what is louder is clipped, never wrapped."""
    scaled: NDArray[np.float32] = np.rint(np.clip(samples, -1.0, 1.0) * np.float32(32767))
    return scaled.astype(np.int16)


class RawEncoder:
    """PCM and mu-law: no header, so every call returns all of its samples at once."""

    def __init__(self, output: AudioFormat) -> None:
        self._output = output
        self.total_samples = 0

    def encode(self, samples: Samples) -> bytes:
        """Return the bytes of exactly these samples (WEIR-184: whole samples)."""
        self.total_samples += len(samples)
        integers = signed_16_bit(samples)
        if self._output.encoding is AudioEncoding.PCM:
            return integers.astype("<i2").tobytes()
        sink = io.BytesIO()
        soundfile.write(sink, integers, self._output.sample_rate_hz, format="RAW", subtype="ULAW")
        return sink.getvalue()

    def finish(self) -> bytes:
        """Return nothing: raw bytes have no trailer."""
        return b""


@dataclass(frozen=True, slots=True)
class _Container:
    """How libsndfile names a file encoding and what the encoding allows.

    `in_order` is True where nothing that was written is ever changed, so that bytes may leave
    before the end. The headers of the others tell their length, which is known at the end only.
    """

    container: str
    subtype: str
    lossless: bool
    may_be_empty: bool
    in_order: bool


_CONTAINERS = {
    AudioEncoding.WAV: _Container("WAV", "PCM_16", True, True, False),
    AudioEncoding.FLAC: _Container("FLAC", "PCM_16", True, False, False),
    AudioEncoding.MP3: _Container("MP3", "MPEG_LAYER_III", False, False, False),
    AudioEncoding.OPUS: _Container("OGG", "OPUS", False, False, True),
}


class FileEncoder:
    """One complete file, written by libsndfile into memory as the samples come."""

    def __init__(self, output: AudioFormat) -> None:
        self._container = _CONTAINERS[output.encoding]
        self._rate_hz = output.sample_rate_hz
        self._sink = io.BytesIO()
        self._given = 0
        self.total_samples = 0
        self._file = soundfile.SoundFile(
            self._sink,
            "w",
            samplerate=self._rate_hz,
            channels=1,
            format=self._container.container,
            subtype=self._container.subtype,
        )

    def encode(self, samples: Samples) -> bytes:
        """Write the samples; return bytes only of a container that is written in order."""
        self._write(samples)
        if not self._container.in_order:
            return b""
        ready = bytes(self._ready())
        self._given += len(ready)
        return ready

    def finish(self) -> memoryview:
        """Close the file, which writes its true length, and return all that was not given out."""
        if not self.total_samples and not self._container.may_be_empty:
            self._write(np.zeros(self._rate_hz * SHORTEST_FILE_MS // 1000, np.float32))
        self._file.close()
        return self._ready()

    def _write(self, samples: Samples) -> None:
        self.total_samples += len(samples)
        if self._container.lossless:
            # The same integers as in PCM: what a client hears does not depend on the container.
            self._file.write(signed_16_bit(samples))
        else:
            self._file.write(np.clip(samples, -1.0, 1.0))

    def _ready(self) -> memoryview:
        return self._sink.getbuffer()[self._given :]
