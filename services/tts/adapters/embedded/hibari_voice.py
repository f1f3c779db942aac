"""The English voice: hibari, one small ONNX graph and a vocoder in numpy.

Owns: loading it with its durations declared, and speaking one chunk of phonemes. Does not own: text
(`english`), trimming and word times (`timeline`). Costs about 0.01 CPU-seconds per second of audio,
so a whole sentence is one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from services.tts.adapters.base import Samples
from services.tts.adapters.embedded.graph import declare_output, load_graph
from services.tts.adapters.embedded.phonemes import Phonemes
from services.tts.adapters.embedded.timeline import FRAME_SAMPLES, ChunkTimeline, chunk_timeline

VOICE = "heart"
MAX_SYMBOLS = 400
_DURATIONS = "/Clip_output_0"
_SPECTRUM = ("lh", "theta", "ln", "lr", "phi", "f0")


class HibariVoice:
    """Speaks phonemes in one voice. `speak` may run on several threads at once."""

    max_symbols = MAX_SYMBOLS

    def __init__(self) -> None:
        from hibari import Hibari, dsp
        from hibari.voices import voice_path

        # The package hides how long each phoneme lasts; the graph knows.
        model = load_graph(voice_path(VOICE, download_missing=False))
        self._hibari = Hibari(model=declare_output(model, _DURATIONS), threads=1)
        self._dsp = dsp
        self.vocabulary = frozenset(self._hibari.vocab)

    @property
    def g2p(self) -> Any:
        """The package's G2P, loaded when it is first asked for."""
        return self._hibari.g2p

    def split_sentences(self, text: str) -> list[str]:
        """Cut at Latin full stops, not after titles and initials."""
        return list(self._hibari.split_sentences(text))

    def speak(
        self, phonemes: Phonemes, voice: str, speed: float, noise: np.random.Generator
    ) -> tuple[ChunkTimeline, Iterator[Samples]]:
        """Speak audible phonemes, at most `max_symbols`; the one voice is always VOICE."""
        ids = self._hibari.ids(phonemes.symbols)
        outputs = self._hibari.sess.run(
            [*_SPECTRUM, _DURATIONS],
            {"ids": np.asarray([ids], np.int64), "speed": np.asarray([speed], np.float32)},
        )
        timeline = chunk_timeline(phonemes, outputs[-1].reshape(-1))
        return timeline, self._audio(outputs[:-1], timeline, noise)

    def _audio(
        self, spectrum: list[Any], timeline: ChunkTimeline, noise: np.random.Generator
    ) -> Iterator[Samples]:
        samples = self._dsp.synth(*(output[0] for output in spectrum), noise)
        kept = samples[timeline.first * FRAME_SAMPLES : timeline.last * FRAME_SAMPLES]
        yield np.clip(kept, -1.0, 1.0).astype(np.float32, copy=False)
