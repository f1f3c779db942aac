"""Encoders: what they write is decoded again, by another decoder where there is one."""

from __future__ import annotations

import io
from itertools import pairwise

import av
import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from contracts.modality import SAMPLE_RATES_HZ, AudioEncoding, AudioFormat
from services.tts.adapters.base import Samples
from services.tts.audio import (
    MAX_CHUNK_BYTES,
    SHORTEST_FILE_MS,
    Encoder,
    chunks_of,
    make_encoder,
    signed_16_bit,
)
from tests.unit.tts.support import sine

FILES = [AudioEncoding.WAV, AudioEncoding.FLAC, AudioEncoding.MP3, AudioEncoding.OPUS]
LOSSLESS = [AudioEncoding.WAV, AudioEncoding.FLAC]
RAW = [AudioEncoding.PCM, AudioEncoding.MULAW]
BLOCKS = [1, 479, 2400, 100_000]


def _rates(encoding: AudioEncoding) -> tuple[int, ...]:
    return (48000,) if encoding is AudioEncoding.OPUS else SAMPLE_RATES_HZ


FILE_FORMATS = [AudioFormat(encoding, rate) for encoding in FILES for rate in _rates(encoding)]


def _encode(output: AudioFormat, samples: Samples, block: int = 2400) -> tuple[bytes, Encoder]:
    encoder = make_encoder(output)
    starts = range(0, len(samples), block)
    parts = [encoder.encode(samples[start : start + block]) for start in starts]
    return b"".join([*parts, bytes(encoder.finish())]), encoder


def _decode(data: bytes) -> tuple[NDArray[np.float32], int]:
    samples, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    return samples, rate


def _decode_by_ffmpeg(data: bytes) -> tuple[int, int]:
    with av.open(io.BytesIO(data), "r") as container:
        count = sum(frame.samples for frame in container.decode(audio=0))
        return count, container.streams.audio[0].rate


def _correlation(one: Samples, other: Samples) -> float:
    return float(np.corrcoef(one, other)[0, 1])


@pytest.mark.parametrize("block", BLOCKS)
def test_pcm_is_the_samples_as_little_endian_16_bit_integers(block: int) -> None:
    """WEIR-184: nothing but the samples, however they arrive."""
    samples = sine(0.1)
    data, encoder = _encode(AudioFormat(AudioEncoding.PCM, 24000), samples, block)
    np.testing.assert_array_equal(np.frombuffer(data, "<i2"), signed_16_bit(samples))
    assert encoder.total_samples == len(samples)


@pytest.mark.parametrize("block", BLOCKS)
def test_mulaw_is_one_byte_a_sample_and_decodes_to_the_sound(block: int) -> None:
    """WEIR-184: G.711, checked by FFmpeg's decoder, within the law's own step."""
    samples = sine(0.1, 8000)
    data, encoder = _encode(AudioFormat(AudioEncoding.MULAW, 8000), samples, block)
    assert len(data) == len(samples) == encoder.total_samples
    with av.open(
        io.BytesIO(data), "r", format="mulaw", options={"sample_rate": "8000"}
    ) as container:
        frames = [frame.to_ndarray().reshape(-1) for frame in container.decode(audio=0)]
    decoded = np.concatenate(frames).astype(np.float32) / np.float32(32768)
    assert np.max(np.abs(decoded - samples)) < 0.02


@pytest.mark.parametrize("encoding", RAW)
def test_raw_bytes_leave_with_their_samples(encoding: AudioEncoding) -> None:
    """WEIR-184: every call gives all of its samples, so the first audio waits for nothing."""
    encoder = make_encoder(AudioFormat(encoding, 8000))
    size = encoding.bytes_per_sample
    assert size is not None
    for count in (1, 7, 160):
        assert len(encoder.encode(sine(1, 8000)[:count])) == count * size
    assert encoder.finish() == b""


@pytest.mark.parametrize("output", FILE_FORMATS)
def test_a_file_decodes_to_exactly_its_samples(output: AudioFormat) -> None:
    """WEIR-184: two decoders find the length that went in, lossy encodings included."""
    samples = sine(0.7001, output.sample_rate_hz)
    data, encoder = _encode(output, samples)
    decoded, rate = _decode(data)
    assert (len(decoded), rate) == (len(samples), output.sample_rate_hz)
    assert _decode_by_ffmpeg(data) == (len(samples), output.sample_rate_hz)
    assert encoder.total_samples == len(samples)
    if output.encoding in LOSSLESS:
        np.testing.assert_array_equal(signed_16_bit(samples), np.rint(decoded * 32768))
    else:
        assert _correlation(decoded, samples) > 0.99


@pytest.mark.parametrize("encoding", FILES)
@pytest.mark.parametrize("block", BLOCKS)
def test_a_file_does_not_depend_on_how_its_samples_arrive(
    encoding: AudioEncoding, block: int
) -> None:
    """WEIR-184: the same length and, without loss, the same samples from any blocks."""
    output = AudioFormat(encoding, 48000)
    samples = sine(0.25, 48000)
    decoded, _ = _decode(_encode(output, samples, block)[0])
    whole, _ = _decode(_encode(output, samples, len(samples))[0])
    assert len(decoded) == len(whole) == len(samples)
    if encoding in LOSSLESS:
        np.testing.assert_array_equal(decoded, whole)


@pytest.mark.parametrize("output", FILE_FORMATS)
def test_text_without_sound_still_gives_a_valid_file(output: AudioFormat) -> None:
    """WEIR-184: WAV is empty; what cannot be empty is the shortest silence, and says so."""
    data, encoder = _encode(output, np.zeros(0, np.float32))
    decoded, rate = _decode(data)
    shortest = output.sample_rate_hz * SHORTEST_FILE_MS // 1000
    expected = 0 if output.encoding is AudioEncoding.WAV else shortest
    assert (len(decoded), rate) == (expected, output.sample_rate_hz)
    assert encoder.total_samples == expected
    assert _decode_by_ffmpeg(data)[0] == expected
    assert not np.any(np.abs(decoded) > 1e-3)


@pytest.mark.parametrize("encoding", RAW)
def test_text_without_sound_gives_no_raw_bytes(encoding: AudioEncoding) -> None:
    """WEIR-184: raw audio of no duration is nothing at all."""
    data, encoder = _encode(AudioFormat(encoding, 8000), np.zeros(0, np.float32))
    assert (data, encoder.total_samples) == (b"", 0)


def test_a_wav_header_tells_the_true_length() -> None:
    """WEIR-184: players that trust the header play all of it; nothing is left as a placeholder."""
    data, _ = _encode(AudioFormat(AudioEncoding.WAV, 24000), sine(1.5))
    assert data[:4] == b"RIFF"
    assert data[8:16] == b"WAVEfmt "
    assert int.from_bytes(data[4:8], "little") == len(data) - 8
    assert data[36:40] == b"data"
    assert int.from_bytes(data[40:44], "little") == len(data) - 44 == 2 * 36000


def test_opus_leaves_while_it_is_spoken_and_is_never_changed_afterwards() -> None:
    """WEIR-184: what left early is the beginning of the finished file."""
    encoder = make_encoder(AudioFormat(AudioEncoding.OPUS, 48000))
    samples = sine(5, 48000)
    early = [encoder.encode(samples[i : i + 4800]) for i in range(0, len(samples), 4800)]
    assert sum(map(len, early)) > 10_000
    whole = b"".join([*early, bytes(encoder.finish())])
    decoded, _ = _decode(whole)
    assert len(decoded) == len(samples)
    assert _correlation(decoded, samples) > 0.99


@pytest.mark.parametrize("encoding", list(AudioEncoding))
def test_what_is_too_loud_is_clipped_and_never_wraps(encoding: AudioEncoding) -> None:
    """WEIR-187: an overshoot of the model or of the resampler is loud, not a crack."""
    rate = 8000 if encoding is AudioEncoding.MULAW else 48000
    loud = np.full(rate // 2, 1.7, np.float32)
    data, _ = _encode(AudioFormat(encoding, rate), loud)
    decoded: NDArray[np.float32]
    if encoding is AudioEncoding.PCM:
        decoded = np.frombuffer(data, "<i2").astype(np.float32) / np.float32(32768)
    elif encoding is AudioEncoding.MULAW:
        kind = {"format": "RAW", "subtype": "ULAW", "samplerate": rate, "channels": 1}
        decoded, _ = soundfile.read(io.BytesIO(data), dtype="float32", **kind)
    else:
        decoded, _ = _decode(data)
    middle = decoded[len(decoded) // 8 : len(decoded) // 4]
    # Lossy encodings let a constant level decay; a wrapped sample would be negative.
    assert middle.min() > 0


@pytest.mark.parametrize(
    "length", [0, 1, MAX_CHUNK_BYTES, MAX_CHUNK_BYTES + 1, 3 * MAX_CHUNK_BYTES + 5]
)
def test_a_file_is_cut_into_bounded_chunks_that_concatenate_to_it(length: int) -> None:
    """WEIR-184: no chunk is empty or above the bound, and none is lost."""
    data = bytes(index % 251 for index in range(length))
    chunks = list(chunks_of(memoryview(data)))
    assert b"".join(chunks) == data
    assert all(0 < len(chunk) <= MAX_CHUNK_BYTES for chunk in chunks)
    assert all(len(chunk) == MAX_CHUNK_BYTES for chunk, _ in pairwise(chunks))
