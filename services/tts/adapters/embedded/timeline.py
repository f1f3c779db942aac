"""From the durations of phonemes to trimmed audio and word times.

Owns: which frames of a chunk are kept, and when each word of it is heard. Does not own: the words
themselves or the samples. Both voices tell durations in frames of 600 samples at 24 kHz, with one
padding symbol before and one after the phonemes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.tts.adapters.base import Word
from services.tts.adapters.embedded.phonemes import SENTENCE_MARKS, Phonemes, is_silent
from services.tts.adapters.words import SourceWord

SAMPLE_RATE_HZ = 24000
FRAME_SAMPLES = 600

LEAD_FRAMES = 2
"""Silence kept in front: 50 ms, so that no onset is cut."""
SENTENCE_TAIL_FRAMES = 8
"""Silence kept after a sentence: 200 ms; the last phoneme often holds some more."""
CLAUSE_TAIL_FRAMES = 5
"""Silence kept where a sentence was cut into chunks: 125 ms."""


@dataclass(frozen=True, slots=True)
class ChunkTimeline:
    """One chunk: keep frames [first, last); spans[w] are the frames of word w, from `first`."""

    first: int
    last: int
    spans: dict[int, tuple[int, int]]

    @property
    def frames(self) -> int:
        """How many frames are kept."""
        return self.last - self.first


def chunk_timeline(phonemes: Phonemes, durations: NDArray[np.float32]) -> ChunkTimeline:
    """Lay one chunk out in time. `durations` has one entry more at each end than the symbols."""
    edges = np.concatenate([[0], np.cumsum(durations)]).astype(int)
    heard = [i for i, symbol in enumerate(phonemes.symbols, 1) if not is_silent(symbol)]
    ends_sentence = phonemes.symbols.rstrip(' "”)')[-1:] in SENTENCE_MARKS
    tail = SENTENCE_TAIL_FRAMES if ends_sentence else CLAUSE_TAIL_FRAMES
    first = max(0, int(edges[heard[0]]) - LEAD_FRAMES)
    last = min(int(edges[-1]), int(edges[heard[-1] + 1]) + tail)
    spans: dict[int, tuple[int, int]] = {}
    for index in heard:
        word = phonemes.words[index - 1]
        if word >= 0:
            start, _ = spans.get(word, (int(edges[index]) - first, 0))
            spans[word] = (start, int(edges[index + 1]) - first)
    return ChunkTimeline(first, last, spans)


class WordClock:
    """Gathers the times of words over the chunks of an utterance."""

    def __init__(self, words: Sequence[SourceWord]) -> None:
        self._words = words
        self._frames: dict[int, tuple[int, int]] = {}

    def note(self, timeline: ChunkTimeline, offset_samples: int) -> None:
        """Add the words of a chunk whose first sample is `offset_samples` of the utterance."""
        for word, (start, end) in timeline.spans.items():
            begin = offset_samples + start * FRAME_SAMPLES
            finish = offset_samples + end * FRAME_SAMPLES
            first, _ = self._frames.get(word, (begin, finish))
            self._frames[word] = (first, finish)

    def words(self) -> tuple[Word, ...]:
        """Return the words that were heard, in the order of the source."""
        return tuple(
            Word(
                self._words[index].text,
                self._frames[index][0] / SAMPLE_RATE_HZ,
                self._frames[index][1] / SAMPLE_RATE_HZ,
            )
            for index in sorted(self._frames)
        )
