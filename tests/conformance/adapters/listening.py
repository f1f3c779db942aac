"""Machine listeners: how much of what was said is understood.

Owns: turning audio into phonemes (English, `hama`) or pinyin (Chinese, a Whisper model), and the
error rate against what should have been said. Does not own: thresholds (`test_intelligibility`).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soxr

from services.tts.adapters.base import Samples

LISTENING_RATE_HZ = 16000
MAX_ENGLISH_S = 5.0
"""The phoneme listener loses its way in longer clips."""


class EnglishListener:
    """Hears English phonemes; the reference is written out in words."""

    def __init__(self) -> None:
        from hama import ASRModel, G2PModel

        self._hear: Any = ASRModel()
        self._read: Any = G2PModel()

    def error_rate(self, samples: Samples, rate_hz: int, said: str) -> float:
        """Edit distance of phonemes over their count; `said` has no digits or abbreviations."""
        assert len(samples) <= MAX_ENGLISH_S * rate_hz
        heard = self._hear.transcribe_waveform(_resampled(samples, rate_hz), LISTENING_RATE_HZ)
        # It reads a full stop as sounds.
        expected = _characters(self._read.predict(said.rstrip(".")).ipa)
        return distance(expected, _characters("".join(heard.phonemes))) / len(expected)


class ChineseListener:
    """Hears Chinese; both sides are compared as toneless pinyin of what is read aloud."""

    def __init__(self, model: Path) -> None:
        from faster_whisper import WhisperModel
        from pypinyin import Style, lazy_pinyin

        self._hear: Any = WhisperModel(
            str(model), device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True
        )
        wetext = importlib.import_module("wetext")  # it has no types
        self._normalize: Any = wetext.Normalizer(lang="zh", operator="tn").normalize
        self._pinyin: Callable[[str], list[str]] = lambda text: lazy_pinyin(
            text, style=Style.NORMAL
        )

    def error_rate(self, samples: Samples, rate_hz: int, said: str) -> float:
        """Edit distance of syllables over their count; `said` is written out in characters."""
        expected = self._syllables(said)
        segments, _ = self._hear.transcribe(
            _resampled(samples, rate_hz),
            language="zh",
            beam_size=5,
            temperature=0.0,
            initial_prompt="以下是普通话。",
        )
        heard = "".join(segment.text for segment in segments)
        return distance(expected, self._syllables(heard)) / len(expected)

    def _syllables(self, text: str) -> list[str]:
        # The listener writes digits where it heard number words.
        spoken = self._normalize(re.sub(r"(?<=\d),(?=\d{3})", "", text))
        return list(self._pinyin(re.sub(r"[^\u4e00-\u9fffA-Za-z]", "", spoken)))


def distance(expected: Sequence[str], heard: Sequence[str]) -> int:
    """Edit distance: substitutions, insertions and deletions cost one each."""
    row = list(range(len(heard) + 1))
    for count, one in enumerate(expected, 1):
        diagonal, row[0] = row[0], count
        for column, other in enumerate(heard, 1):
            best = min(row[column] + 1, row[column - 1] + 1, diagonal + (one != other))
            diagonal, row[column] = row[column], best
    return row[-1]


def _characters(phonemes: str) -> list[str]:
    # Tie bars, lengths and unstressed-vowel detail are spelling, not hearing.
    plain = phonemes.replace("ɚ", "ɝ").replace("g", "ɡ").replace("ʌ", "ə")
    return [character for character in plain if character not in " ˈˌː͡|"]


def _resampled(samples: Samples, rate_hz: int) -> Samples:
    return np.asarray(soxr.resample(samples, rate_hz, LISTENING_RATE_HZ), np.float32)
