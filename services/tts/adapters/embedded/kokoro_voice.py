"""The Chinese and mixed voices: Kokoro-82M, int8 ONNX, in three graphs.

Owns: cutting the published graph, and speaking one chunk of phonemes window by window. Does not
own: text (`chinese`, `english`), trimming and word times (`timeline`), the files (`models`).

The encoder and the harmonic source cost little and run once a chunk, so prosody and phase are those
of the whole clause; the decoder costs nearly all and runs in windows, each heard at once. Its
normalisations are given what the windows before had (`normalisation`), the first window what a
sample sentence of the same voice has, which is decoded once when it is first needed. The model's
style goes with the length of a text, so a sample serves chunks that are not shorter than itself; a
chunk shorter than every sample is decoded whole, which is then quick as well.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.tts.adapters.base import Samples
from services.tts.adapters.embedded.graph import load_graph, subgraph
from services.tts.adapters.embedded.normalisation import Statistics, share_statistics
from services.tts.adapters.embedded.phonemes import Phonemes
from services.tts.adapters.embedded.timeline import FRAME_SAMPLES, ChunkTimeline, chunk_timeline

MAX_SYMBOLS = 200
"""Far below the model's 510: long enough for the prosody of a clause, short enough to be quick."""

FIRST_WINDOW_FRAMES = 30
WINDOW_FRAMES = 40
"""One second of audio a step; the first step is shorter, so that speech starts sooner."""
CONTEXT_FRAMES = 6
SHORTEST_WINDOW_FRAMES = 20
"""A shorter rest joins the window before it."""
CALIBRATION_FRAMES = 200
"""How many frames the statistics of a voice count for beside those of the windows."""
FADE_SAMPLES = 240
"""Windows overlap by 10 ms and are faded into one another there."""

_ALIGNED = "/encoder/MatMul_1_output_0"
_PITCH = "/encoder/Reshape_output_0"
_ENERGY = "/encoder/Reshape_1_output_0"
_DURATIONS = "/encoder/Clip_output_0"
_SOURCE = "/decoder/decoder/generator/Concat_3_output_0"
_SOURCE_PER_FRAME = 120


@dataclass(frozen=True, slots=True)
class _Encoded:
    """What the decoder needs of one chunk; the last axis is time."""

    aligned: NDArray[np.float32]
    pitch: NDArray[np.float32]
    energy: NDArray[np.float32]
    source: NDArray[np.float32]
    style: NDArray[np.float32]

    @property
    def frames(self) -> int:
        """Length of the chunk."""
        return int(self.aligned.shape[2])


class KokoroVoice:
    """Speaks phonemes in any of the loaded voices. `speak` may run on several threads at once."""

    max_symbols = MAX_SYMBOLS

    def __init__(
        self,
        model: Path,
        vocabulary: Path,
        voices: Mapping[str, Path],
        samples: Callable[[str], Sequence[Phonemes]],
    ) -> None:
        """Load it. `samples` gives for a voice the sentences to take its statistics from."""
        graph = load_graph(str(model))
        encoder_outputs = (_ALIGNED, _PITCH, _ENERGY, _DURATIONS)
        self._encoder = _session(subgraph(graph, ("tokens", "style", "speed"), encoder_outputs))
        self._excitation = _session(subgraph(graph, (_PITCH,), (_SOURCE,)))
        decoder_inputs = (_ALIGNED, _PITCH, _ENERGY, "style", _SOURCE)
        decoder = subgraph(graph, decoder_inputs, ("audio",))
        self._ports = share_statistics(decoder)
        self._decoder = _session(decoder)
        self._ids: dict[str, int] = json.loads(vocabulary.read_text("utf-8"))["vocab"]
        self._styles = {
            name: np.fromfile(path, np.float32).reshape(-1, 1, 256) for name, path in voices.items()
        }
        self.vocabulary = frozenset(self._ids)
        self._samples = samples
        self._calibrations: dict[tuple[str, Phonemes], Statistics] = {}
        self._calibrating = threading.Lock()

    def speak(
        self, phonemes: Phonemes, voice: str, speed: float, noise: np.random.Generator
    ) -> tuple[ChunkTimeline, Iterator[Samples]]:
        """Speak audible phonemes, at most `max_symbols`. The model has no noise to seed."""
        encoded, durations = self._encode(phonemes, voice, speed)
        timeline = chunk_timeline(phonemes, durations)
        statistics = self._statistics(voice, len(phonemes.symbols))
        return timeline, self._audio(encoded, timeline, statistics)

    def calibrate(self, voice: str) -> None:
        """Do all that would otherwise be done when `voice` is first used."""
        for sample in self._samples(voice):
            self._statistics(voice, len(sample.symbols))

    def _statistics(self, voice: str, symbols: int) -> Statistics | None:
        """Return what the longest sample that is no longer has; None when all are longer."""
        fitting = [one for one in self._samples(voice) if len(one.symbols) <= symbols]
        if not fitting:
            return None
        sample = max(fitting, key=lambda one: len(one.symbols))
        key = (voice, sample)
        if key not in self._calibrations:
            with self._calibrating:
                if key not in self._calibrations:
                    encoded, _ = self._encode(sample, voice, 1.0)
                    _, found = self._decode(encoded, 0, encoded.frames, None)
                    self._calibrations[key] = Statistics(found.values, CALIBRATION_FRAMES)
        return self._calibrations[key]

    def _encode(
        self, phonemes: Phonemes, voice: str, speed: float
    ) -> tuple[_Encoded, NDArray[np.float32]]:
        ids = [self._ids[symbol] for symbol in phonemes.symbols]
        styles = self._styles[voice]
        style = styles[min(len(ids), len(styles)) - 1]
        aligned, pitch, energy, durations = self._encoder.run(
            [_ALIGNED, _PITCH, _ENERGY, _DURATIONS],
            {
                "tokens": np.asarray([[0, *ids, 0]], np.int64),
                "style": style,
                "speed": np.asarray([speed], np.float32),
            },
        )
        (source,) = self._excitation.run([_SOURCE], {_PITCH: pitch})
        return _Encoded(aligned, pitch, energy, source, style), durations.reshape(-1)

    def _audio(
        self, encoded: _Encoded, timeline: ChunkTimeline, statistics: Statistics | None
    ) -> Iterator[Samples]:
        rising = np.linspace(0, 1, FADE_SAMPLES, dtype=np.float32)
        overlap: Samples | None = None
        span = (timeline.first, timeline.last)
        for start, end in (span,) if statistics is None else windows(*span):
            context = encoded.frames if statistics is None else CONTEXT_FRAMES
            first, last = max(0, start - context), min(encoded.frames, end + context)
            decoded, statistics = self._decode(encoded, first, last, statistics)
            head, tail = (start - first) * FRAME_SAMPLES, (end - first) * FRAME_SAMPLES
            samples = decoded[head:tail].copy()
            if overlap is not None:
                fade = len(overlap)
                mixed = overlap * (1 - rising[:fade]) + samples[:fade] * rising[:fade]
                samples[:fade] = mixed
            overlap = decoded[tail : tail + FADE_SAMPLES]
            yield np.clip(samples, -1.0, 1.0)

    def _decode(
        self, encoded: _Encoded, first: int, last: int, before: Statistics | None
    ) -> tuple[Samples, Statistics]:
        source = slice(_SOURCE_PER_FRAME * first, _SOURCE_PER_FRAME * last + 1)
        audio, *statistics = self._decoder.run(
            ["audio", *self._ports.outputs],
            {
                _ALIGNED: encoded.aligned[:, :, first:last],
                _PITCH: encoded.pitch[:, 2 * first : 2 * last],
                _ENERGY: encoded.energy[:, 2 * first : 2 * last],
                "style": encoded.style,
                _SOURCE: encoded.source[:, :, source],
                **self._ports.feeds(before, last - first),
            },
        )
        frames = last - first + (before.frames if before else 0)
        return np.asarray(audio, np.float32), Statistics(tuple(statistics), frames)


def windows(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Cut frames [first, last) into the windows that are decoded one by one."""
    length = FIRST_WINDOW_FRAMES
    while first < last:
        end = first + length
        if last - end < SHORTEST_WINDOW_FRAMES:
            end = last
        yield first, end
        first, length = end, WINDOW_FRAMES


def _session(model: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # One thread an utterance: utterances side by side use the cores better than one on all of them.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    serialized = model.SerializeToString()
    return onnxruntime.InferenceSession(serialized, options, providers=["CPUExecutionProvider"])
