"""When words are heard.

Owns: turning an adapter's words (seconds of its own audio) into word times of the bytes that were
sent. Does not own: finding them (the adapter). Enforces: WEIR-189 (word times are whole
milliseconds inside the audio, in order, without overlap).
"""

from __future__ import annotations

import math

from contracts.modality import WordTime
from services.tts.adapters.base import Word


def word_times(words: tuple[Word, ...], stretch: float, audio_ms: int) -> tuple[WordTime, ...]:
    """Return `words` on the time line of audio that is `audio_ms` long and `stretch` times faster.

    Raises ValueError for times that are not finite numbers: those words were never aligned.
    """
    placed: list[WordTime] = []
    earliest = 0
    for word in words:
        if not (math.isfinite(word.start_s) and math.isfinite(word.end_s)):
            raise ValueError("word times are finite")
        # WEIR-189: rounding and a generous aligner must not point outside the audio.
        start = min(max(earliest, round(1000 * word.start_s / stretch)), audio_ms)
        end = min(max(start, round(1000 * word.end_s / stretch)), audio_ms)
        placed.append(WordTime(word.text, start, end))
        earliest = end
    return tuple(placed)
