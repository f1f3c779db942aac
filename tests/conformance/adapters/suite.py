"""What every voice adapter promises, as checks that take any loaded adapter.

Owns: the meaning of the protocol in `services.tts.adapters.base`, observed from outside. Does not
own: which adapters there are (`cases`), or how well one speaks (`test_intelligibility`).
Each check raises AssertionError with what was seen.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest

from contracts.capabilities import AUTO
from contracts.speech import MAX_SPEED, MIN_SPEED
from services.tts.adapters.base import (
    AudioStep,
    Samples,
    Step,
    Utterance,
    VoiceAdapter,
    Word,
    WordTimesStep,
)
from services.tts.adapters.words import source_words

SENTENCES = {
    "English": "Dr. Smith paid $9.99 at 7:30 pm, didn't he? It's 25 kg.",
    "Chinese": "11月30日，气温25℃，重3.5 kg。",
}
MIXED = "我用 GPT-4 写了 3 行 code，效果 great！"
SOUNDLESS = ("!", " ... ", "\n", "—", "😀🎉", "\x00", "\u200b", "？！。", "(\u2026)", "\u0301")
ODD = (
    "Hi 😀 there",
    "a\x00b",
    "مرحبا hello שלום",
    "e\u0301te\u0301 naïve Straße",
    "ℍ𝕖𝕝𝕝𝕠 world",
    "👩‍👩‍👧 ok",
    "A" * 80,
    "1234567890" * 8,
    "a.b.c.d.e.f",
    "[x](/y/) <b>bold</b> & *stars*",
)
LONG = "The quick brown fox jumps over the lazy dog, and then it runs away. "


@dataclass(frozen=True, slots=True)
class Spoken:
    """One utterance, spoken to its end."""

    samples: Samples
    lengths: tuple[int, ...]
    words: tuple[Word, ...] | None


def speak(adapter: VoiceAdapter, utterance: Utterance) -> Spoken:
    """Speak to the end, holding every step to its type."""
    parts: list[Samples] = []
    words: list[tuple[Word, ...] | None] = []
    for step in adapter.synthesize(utterance):
        if isinstance(step, WordTimesStep):
            words.append(step.words)
        else:
            _check_samples(step)
            parts.append(step.samples)
    assert len(words) == (1 if utterance.word_times else 0), (
        "exactly one WordTimesStep if asked for"
    )
    joined = np.concatenate(parts) if parts else np.zeros(0, np.float32)
    return Spoken(joined, tuple(map(len, parts)), words[0] if words else None)


def utterance(adapter: VoiceAdapter, text: str, language: str = AUTO) -> Utterance:
    """An utterance in the adapter's default voice, with a seed."""
    return Utterance(text, adapter.capabilities.default_voice, language, seed=7)


def texts(adapter: VoiceAdapter) -> dict[str, str]:
    """A sentence for each language that the adapter speaks and the suite knows."""
    known = adapter.capabilities.languages
    return {language: text for language, text in SENTENCES.items() if language in known}


def check_capabilities(adapter: VoiceAdapter) -> None:
    """The record agrees with itself and with the adapter's other properties."""
    capabilities = adapter.capabilities
    for voice in capabilities.voices:
        assert set(voice.languages) <= set(capabilities.languages), voice
        assert voice.languages, voice
    for record in capabilities.text_commitment:
        assert set(record.languages) <= {AUTO, *capabilities.languages}
        assert not record.audio_streaming or capabilities.audio_streaming
        assert not record.word_timestamps or capabilities.word_times
    assert adapter.concurrency >= 1
    if adapter.native_speed is not None:
        lowest, highest = adapter.native_speed
        assert MIN_SPEED <= lowest <= 1.0 <= highest <= MAX_SPEED


def check_commitment(adapter: VoiceAdapter) -> None:
    """Each declared profile speaks segments of it independently: one alone sounds as one does."""
    for record in adapter.capabilities.text_commitment:
        if not record.independent_segments:
            continue
        segments = [utterance(adapter, text) for text in texts(adapter).values()]
        alone = [speak(adapter, segment).samples for segment in segments]
        after = [speak(adapter, segment).samples for segment in reversed(segments)][::-1]
        for one, other in zip(alone, after, strict=True):
            np.testing.assert_array_equal(one, other)


def check_audible(adapter: VoiceAdapter) -> None:
    """Every language gives audio that is not silence, and long texts come in several steps."""
    for language, text in texts(adapter).items():
        spoken = speak(adapter, utterance(adapter, text, language))
        seconds = len(spoken.samples) / adapter.capabilities.sample_rate_hz
        assert 1.0 < seconds < 30.0, (language, seconds)
        assert float(np.sqrt(np.mean(spoken.samples**2))) > 0.01, language
        if adapter.capabilities.audio_streaming:
            steps = adapter.synthesize(utterance(adapter, text * 3, language))
            assert len(_first(steps, 2)) == 2, language
            close(steps)


def check_voices(adapter: VoiceAdapter) -> None:
    """Every declared voice speaks each of its languages, and no two are the same voice."""
    heard: dict[bytes, str] = {}
    for voice in adapter.capabilities.voices:
        for language in voice.languages[:1]:
            text = {"Chinese": "好的。"}.get(language, "All right.")
            spoken = speak(adapter, Utterance(text, voice.name, language, seed=1))
            assert np.abs(spoken.samples).max() > 0.02, voice.name
            same = heard.setdefault(spoken.samples.tobytes(), voice.name)
            assert same == voice.name, f"{voice.name} sounds as {same}"


def check_speed(adapter: VoiceAdapter) -> None:
    """Over the whole native range the audio's length follows the speed."""
    if adapter.native_speed is None:
        return
    for language, text in texts(adapter).items():
        said = utterance(adapter, text, language)
        normal = len(speak(adapter, said).samples)
        for speed in adapter.native_speed:
            length = len(speak(adapter, replace(said, speed=speed)).samples)
            assert 0.75 < length * speed / normal < 1.35, (language, speed, length / normal)


def check_seed(adapter: VoiceAdapter) -> None:
    """The same seed gives the same bytes, whatever integer it is; word times change nothing."""
    for language, text in texts(adapter).items():
        # One language is enough for the odd integers: slow voices make this minutes otherwise.
        for seed in (0, 7, -1, 2**63 - 1, -(2**63)) if language == "English" else (7,):
            said = replace(utterance(adapter, text), seed=seed)
            first = speak(adapter, said)
            again = speak(adapter, replace(said, word_times=adapter.capabilities.word_times))
            np.testing.assert_array_equal(first.samples, again.samples)


def check_soundless(adapter: VoiceAdapter) -> None:
    """Text without phonemes gives valid, empty audio and no words."""
    for text in SOUNDLESS:
        said = replace(utterance(adapter, text), word_times=adapter.capabilities.word_times)
        spoken = speak(adapter, said)
        assert len(spoken.samples) == 0, repr(text)
        assert not spoken.words, repr(text)


def check_odd(adapter: VoiceAdapter) -> None:
    """Emoji, NUL, right-to-left, astral, combining and markup are spoken or passed over."""
    mixed = (MIXED,) if "Chinese" in adapter.capabilities.languages else ()
    for text in (*ODD, *mixed):
        said = replace(utterance(adapter, text), word_times=adapter.capabilities.word_times)
        spoken = speak(adapter, said)
        assert np.abs(spoken.samples).max(initial=0) > 0.01, repr(text)
        if spoken.words is not None:
            check_words(text, spoken, adapter.capabilities.sample_rate_hz)


def check_long(adapter: VoiceAdapter) -> None:
    """The longest text that is allowed starts at once and stops at once."""
    limit = adapter.capabilities.max_text_characters
    for text in ((LONG * (limit // len(LONG) + 1))[:limit], "x" * min(limit, 20_000)):
        steps = adapter.synthesize(utterance(adapter, text))
        heard = sum(map(len, _first(steps, 3)))
        close(steps)
        assert heard > 0


def check_word_times(adapter: VoiceAdapter) -> None:
    """Every word that is spoken has its time: in order, inside the audio, at any native speed."""
    if not adapter.capabilities.word_times:
        return
    for language, text in texts(adapter).items():
        for speed in {1.0, *(adapter.native_speed or ())}:
            said = replace(utterance(adapter, text, language), word_times=True, speed=speed)
            spoken = speak(adapter, said)
            assert spoken.words is not None
            check_words(text, spoken, adapter.capabilities.sample_rate_hz)
            expected = [word.text for word in source_words(text)]
            assert [word.text for word in spoken.words] == expected


def check_words(text: str, spoken: Spoken, rate_hz: int) -> None:
    """Words are slices of the text in order; their times rise, inside the audio, up to its end."""
    assert spoken.words is not None
    seconds = len(spoken.samples) / rate_hz
    position, reached = 0, 0.0
    for word in spoken.words:
        position = text.index(word.text, position) + len(word.text)
        assert reached <= word.start_s + 1e-9, (text, word)
        assert word.start_s < word.end_s <= seconds + 1e-9, (text, word, seconds)
        reached = word.end_s
    if spoken.words:
        assert spoken.words[0].start_s < 0.35, "speech starts early"
        assert seconds - reached < 1.0, "nothing is spoken after the last word"


def check_cancellation(adapter: VoiceAdapter) -> None:
    """Closing after any of the first steps ends the work there and leaves the adapter usable."""
    text = texts(adapter).get("Chinese", LONG) * 3
    said = utterance(adapter, text)
    expected = _first(adapter.synthesize(said), 4)
    threads = set(threading.enumerate())
    for count in range(4):
        steps = adapter.synthesize(said)
        taken = _first(steps, count)
        close(steps)
        assert list(steps) == [], "a closed iterator gives nothing more"
        for one, other in zip(taken, expected, strict=False):
            np.testing.assert_array_equal(one, other)
    assert set(threading.enumerate()) <= threads, "no thread is left behind"


def check_concurrency(adapter: VoiceAdapter) -> None:
    """As many utterances as it declares are spoken at once, each as it is alone."""
    count = min(adapter.concurrency, 4)
    said = [utterance(adapter, text * (1 + i)) for i, text in enumerate(texts(adapter).values())]
    said = [replace(said[i % len(said)], seed=i) for i in range(count)]
    alone = [speak(adapter, one).samples for one in said]
    together: dict[int, Samples] = {}
    ready = threading.Barrier(count)

    def run(index: int) -> None:
        ready.wait(30)
        together[index] = speak(adapter, said[index]).samples

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    for index in range(count):
        np.testing.assert_array_equal(together[index], alone[index])


def check_life(fresh: VoiceAdapter, other: VoiceAdapter) -> None:
    """Capabilities are known after load, nothing is spoken after close; close works at any time."""
    with pytest.raises(RuntimeError):
        _ = fresh.capabilities
    with pytest.raises(RuntimeError):
        next(fresh.synthesize(Utterance("a", "any")))
    fresh.load()
    open_steps = fresh.synthesize(utterance(fresh, LONG * 3))
    next(open_steps)
    said = utterance(fresh, "a")
    fresh.close()
    close(open_steps)
    with pytest.raises(RuntimeError):
        next(fresh.synthesize(said))
    other.close()


def close(steps: Iterator[Step]) -> None:
    """Close the iterator as the engine does on a cancel."""
    end = getattr(steps, "close", None)
    assert end is not None, "synthesize returns a generator"
    end()


def _first(steps: Iterator[Step], count: int) -> list[Samples]:
    return [step.samples for step in islice(steps, count) if isinstance(step, AudioStep)]


def _check_samples(step: AudioStep) -> None:
    samples = step.samples
    assert samples.dtype == np.float32
    assert samples.ndim == 1
    assert np.isfinite(samples).all()
    assert np.abs(samples).max(initial=0) <= 1.0
