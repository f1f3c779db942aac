"""The `tone` adapter: every letter and digit is a beep whose pitch is its code point.

Owns: deterministic audio, exact word times, settable speed and settable faults, for tests and load
measurements. Does not own: any model; it needs numpy alone. Enforces: IO-INV-102 (words are slices
of the raw text) and the adapter protocol's promises (short steps, empty audio for soundless text).
"""

from __future__ import annotations

import hashlib
import math
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from contracts.capabilities import (
    LANGUAGE_CODES,
    SpeechCapabilities,
    TextCommitmentCapabilities,
    Voice,
)
from services.tts.adapters.base import (
    AudioStep,
    ModelUnavailableError,
    Samples,
    Step,
    Utterance,
    Word,
    WordTimesStep,
)
from services.tts.adapters.settings import AdapterSettings, read_options
from services.tts.adapters.words import is_spoken, source_words

AMPLITUDE = 0.3
RAMP_S = 0.004
"""Rise and fall of a beep: without them each edge is a click."""
LOWEST_HZ, PITCHES_HZ = 220.0, 1500
OCTAVE = {"tone": 1.0, "high": 2.0}
COMMITMENT_LANGUAGES = ("Chinese", "English")


class ToneFailureError(RuntimeError):
    """The fault that the settings asked for."""


@dataclass(frozen=True, slots=True)
class ToneSettings:
    """How the tone adapter behaves. Times in seconds or milliseconds as named.

    A step takes `step_time_s` plus `real_time_factor` times the length of its audio in real time.
    It fails after `fail_after_steps` steps (0: before the first), on every text or only on those
    that contain `fail_marker`; a marker alone fails before the first step. `fail_times` bounds how
    many utterances fail in all. `native_speed` False makes the engine stretch; `align` False gives
    audio whose words could not be aligned.
    """

    sample_rate_hz: int = 24000
    character_ms: float = 60.0
    step_ms: float = 240.0
    step_time_s: float = 0.0
    real_time_factor: float = 0.0
    load_time_s: float = 0.0
    fail_load: bool = False
    fail_after_steps: int | None = None
    fail_marker: str | None = None
    fail_times: int | None = None
    native_speed: bool = True
    align: bool = True
    failed_segment_retries: bool = True
    max_text_characters: int = 131072

    def __post_init__(self) -> None:
        for name in ("sample_rate_hz", "character_ms", "step_ms", "max_text_characters"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is above 0")
        for name in ("step_time_s", "real_time_factor", "load_time_s"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is at least 0")
        for name in ("fail_after_steps", "fail_times"):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} is at least 0")


class ToneAdapter:
    """A `VoiceAdapter` without a model. `tone` overrides what `settings.options` say."""

    def __init__(self, settings: AdapterSettings, tone: ToneSettings | None = None) -> None:
        self._tone = tone or read_options(ToneSettings, settings.options)
        self._concurrency = settings.concurrency or 8
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._failures_left = self._tone.fail_times
        self._capabilities: SpeechCapabilities | None = None

    @property
    def capabilities(self) -> SpeechCapabilities:
        """What it can do; RuntimeError before `load`."""
        if self._capabilities is None:
            raise RuntimeError("capabilities are known after load")
        return self._capabilities

    @property
    def native_speed(self) -> tuple[float, float] | None:
        """The whole range of a request, or None when the engine shall stretch."""
        return (0.25, 4.0) if self._tone.native_speed else None

    @property
    def concurrency(self) -> int:
        """How many utterances may be synthesized at once."""
        return self._concurrency

    def load(self) -> None:
        """Take the set time, then be ready or fail as told. `close` ends the wait."""
        self._closed.wait(self._tone.load_time_s)
        if self._tone.fail_load:
            raise ModelUnavailableError("the tone adapter was told to fail its load")
        self._capabilities = _capabilities(self._tone)

    def close(self) -> None:
        """End every wait; an utterance that is still in work fails."""
        self._closed.set()
        self._capabilities = None

    def synthesize(self, utterance: Utterance) -> Iterator[Step]:
        """Beep the text, `step_ms` of audio at a time; word times come last.

        Raises ToneFailureError where the settings say so, RuntimeError before load and once closed.
        """
        if self._capabilities is None:
            raise RuntimeError("load comes before synthesize")
        failing = self._fails(utterance.text)
        failure_step = self._tone.fail_after_steps or 0
        score = _Score(self._tone, utterance)
        for index, samples in enumerate(score.steps()):
            if failing and index >= failure_step:
                break
            self._take_time(len(samples))
            yield AudioStep(samples)
        if failing:
            raise ToneFailureError("the tone adapter was told to fail")
        if utterance.word_times:
            yield WordTimesStep(score.words() if self._tone.align else None)

    def _fails(self, text: str) -> bool:
        tone = self._tone
        if tone.fail_after_steps is None and tone.fail_marker is None:
            return False
        if tone.fail_marker is not None and tone.fail_marker not in text:
            return False
        with self._lock:
            if self._failures_left is None:
                return True
            self._failures_left -= 1
            return self._failures_left >= 0

    def _take_time(self, samples: int) -> None:
        seconds = self._tone.step_time_s
        seconds += self._tone.real_time_factor * samples / self._tone.sample_rate_hz
        # Interruptible, so that a close does not wait for a slow step.
        if self._closed.wait(seconds) if seconds > 0 else self._closed.is_set():
            raise RuntimeError("the tone adapter was closed")


class _Score:
    """One text as a row of beeps and rests, made only as far as it is asked for."""

    def __init__(self, tone: ToneSettings, utterance: Utterance) -> None:
        self._text = utterance.text
        self._rate = tone.sample_rate_hz
        self._seed = hashlib.blake2b(str(utterance.seed).encode(), digest_size=8).digest()
        self._octave = OCTAVE[utterance.voice]
        self._character_samples = max(
            1, round(tone.character_ms * tone.sample_rate_hz / 1000 / utterance.speed)
        )
        self._step_samples = max(1, round(tone.step_ms * tone.sample_rate_hz / 1000))

    def steps(self) -> Iterator[Samples]:
        """Yield float32 arrays of `step_samples`, the last one shorter; nothing for no sound."""
        if not any(map(is_spoken, self._text)):
            return
        pending: list[Samples] = []
        held = 0
        for character in self._text:
            pending.append(self._sound(character))
            held += len(pending[-1])
            while held >= self._step_samples:
                joined = np.concatenate(pending)
                yield joined[: self._step_samples]
                pending = [joined[self._step_samples :]]
                held = len(pending[0])
        if held:
            yield np.concatenate(pending)

    def words(self) -> tuple[Word, ...]:
        """Return the words of the text with the exact times of their first and last beep."""
        edges = [0]
        for character in self._text:
            edges.append(edges[-1] + self._length(character))
        return tuple(
            Word(word.text, edges[word.start] / self._rate, edges[word.end] / self._rate)
            for word in source_words(self._text)
        )

    def _length(self, character: str) -> int:
        visible = character.isspace() or unicodedata.category(character)[0] not in "MC"
        return self._character_samples if visible else 0

    def _sound(self, character: str) -> Samples:
        count = self._length(character)
        if not count or not is_spoken(character):
            return np.zeros(count, np.float32)
        detune = 1 + int.from_bytes(self._seed, "big") / 2**64 * 0.05
        pitch = (LOWEST_HZ + ord(character) * 61 % PITCHES_HZ) * detune * self._octave
        time_s = np.arange(count) / self._rate
        ramp = np.minimum(1, np.minimum(time_s, time_s[::-1]) / RAMP_S)
        return (AMPLITUDE * ramp * np.sin(2 * np.pi * pitch * time_s)).astype(np.float32)


def _capabilities(tone: ToneSettings) -> SpeechCapabilities:
    languages = tuple(LANGUAGE_CODES.values())
    return SpeechCapabilities(
        model="tone",
        sample_rate_hz=tone.sample_rate_hz,
        languages=languages,
        voices=(
            Voice("tone", languages, "Beeps; the pitch is the character."),
            Voice("high", languages, "The same beeps one octave up."),
        ),
        default_voice="tone",
        max_text_characters=tone.max_text_characters,
        word_times=True,
        audio_streaming=True,
        text_commitment=(
            TextCommitmentCapabilities(
                profile="zh_en_special_v1",
                languages=COMMITMENT_LANGUAGES,
                independent_segments=True,
                context_preservation=False,
                audio_streaming=True,
                word_timestamps=True,
                # Nothing is kept between utterances, so a second attempt is as good as a first.
                failed_segment_retries=tone.failed_segment_retries,
            ),
        ),
    )
