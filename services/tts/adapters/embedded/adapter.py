"""The `embedded` adapter: English by hibari, Chinese and mixed text by Kokoro.

Owns: loading what is there, the capabilities that follow from it, and taking an utterance through
sentences, phonemes, chunks and voices. Does not own: any of those steps. Enforces: IO-INV-102
(words are slices of the raw text), WEIR-330 (without the Chinese files it says so and declares only
English).
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from contracts.capabilities import SpeechCapabilities
from services.runtime.logging import get_logger
from services.tts.adapters.base import (
    AudioStep,
    ModelUnavailableError,
    Samples,
    Step,
    Utterance,
    WordTimesStep,
)
from services.tts.adapters.embedded.catalogue import (
    CHINESE_SAMPLES,
    DEFAULT_CHINESE_VOICE,
    ENGLISH_SAMPLES,
    NATIVE_SPEED,
    capabilities_of,
    is_chinese_voice,
)
from services.tts.adapters.embedded.chinese import ChineseReader, load_chinese_reader
from services.tts.adapters.embedded.english import EnglishReader
from services.tts.adapters.embedded.hibari_voice import VOICE, HibariVoice
from services.tts.adapters.embedded.kokoro_voice import KokoroVoice
from services.tts.adapters.embedded.omissions import Omissions
from services.tts.adapters.embedded.phonemes import Phonemes
from services.tts.adapters.embedded.routing import Script, Sentence, has_han, script_of, sentences
from services.tts.adapters.embedded.timeline import ChunkTimeline, WordClock
from services.tts.adapters.settings import AdapterSettings, read_options
from services.tts.adapters.words import SourceWord, source_words
from services.tts.models.manifest import KOKORO_MODEL, KOKORO_VOCABULARY, KOKORO_VOICES
from services.tts.models.store import ModelStore

_log = get_logger(__name__)
_CHINESE_PACKAGES = ("misaki", "jieba", "pypinyin", "wetext")


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """No options of its own yet; unknown ones are refused."""


class Speaker(Protocol):
    """Either voice."""

    max_symbols: int
    vocabulary: frozenset[str]

    def speak(
        self, phonemes: Phonemes, voice: str, speed: float, noise: np.random.Generator
    ) -> tuple[ChunkTimeline, Iterator[Samples]]:
        """Speak one chunk: when what is heard is known first, then the samples come."""
        ...


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Everything that `load` brings in; the Chinese half is there whole or not at all."""

    capabilities: SpeechCapabilities
    hibari: HibariVoice
    english: EnglishReader
    kokoro: KokoroVoice | None
    chinese: ChineseReader | None


class EmbeddedAdapter:
    """A `VoiceAdapter` that needs no GPU and no service outside."""

    def __init__(self, settings: AdapterSettings) -> None:
        read_options(EmbeddedSettings, settings.options)
        self._store = ModelStore(settings.model_dir)
        self._concurrency = settings.concurrency or len(os.sched_getaffinity(0))
        self._loaded: _Loaded | None = None

    @property
    def capabilities(self) -> SpeechCapabilities:
        """What the loaded voices can do; RuntimeError before `load`."""
        return self._ready().capabilities

    @property
    def native_speed(self) -> tuple[float, float] | None:
        """Speeds at which the models follow the request closely."""
        return NATIVE_SPEED

    @property
    def concurrency(self) -> int:
        """One utterance a core: each runs on one thread."""
        return self._concurrency

    def load(self) -> None:
        """Load the English voice, and the Chinese ones if their files are there and good.

        Raises ModelUnavailableError when not even English can be spoken.
        """
        try:
            hibari = HibariVoice()
            english = EnglishReader(hibari.g2p)
        except (ImportError, OSError) as error:
            raise ModelUnavailableError(
                f"the embedded voices need the packages of the extra `embedded`: {error}"
            ) from error
        chinese, kokoro, voices = self._load_chinese(english)
        capabilities = capabilities_of(voices)
        self._loaded = _Loaded(capabilities, hibari, english, kokoro, chinese)
        for _ in self.synthesize(Utterance("Ready.", capabilities.default_voice)):
            pass  # the first run of a session is slow

    def close(self) -> None:
        """Free the models. An utterance in work keeps what it uses until its iterator is closed."""
        self._loaded = None

    def synthesize(self, utterance: Utterance) -> Iterator[Step]:
        """Speak sentence by sentence; a step is one decoder window or one English chunk.

        Raises RuntimeError before load, ModelUnavailableError for Chinese text without its files.
        """
        loaded = self._ready()
        words = source_words(utterance.text)
        clock = WordClock(words)
        seed = None if utterance.seed is None else utterance.seed % 2**64
        noise = np.random.default_rng(seed)
        heard = 0
        omissions = Omissions()
        for sentence, inside in _with_words(utterance.text, words, loaded.hibari):
            phonemes, speaker, voice = _route(loaded, utterance, sentence, inside, omissions)
            for chunk in phonemes.known_to(speaker.vocabulary).chunks(speaker.max_symbols):
                if not chunk.audible:
                    continue
                timeline, audio = speaker.speak(chunk, voice, utterance.speed, noise)
                clock.note(timeline, heard)
                for samples in audio:
                    heard += len(samples)
                    yield AudioStep(samples)
        omissions.log()
        if utterance.word_times:
            yield WordTimesStep(clock.words())

    def _ready(self) -> _Loaded:
        if self._loaded is None:
            raise RuntimeError("the embedded adapter is not loaded")
        return self._loaded

    def _load_chinese(
        self, english: EnglishReader
    ) -> tuple[ChineseReader | None, KokoroVoice | None, tuple[str, ...]]:
        problem = self._chinese_problem()
        if problem is not None:
            # WEIR-330: the log says what is missing, and what needs it is not declared.
            _log.warning("chinese_voices_unavailable", problem=problem)
            return None, None, ()
        chinese = load_chinese_reader(english)
        lacking = set(self._store.missing(KOKORO_VOICES.values()))
        voices = {n: self._store.path(a) for n, a in KOKORO_VOICES.items() if a not in lacking}
        chinese_samples = [chinese.read(text, ()) for text in CHINESE_SAMPLES]
        english_samples = [english.read(text, ()) for text in ENGLISH_SAMPLES]
        kokoro = KokoroVoice(
            self._store.path(KOKORO_MODEL),
            self._store.path(KOKORO_VOCABULARY),
            voices,
            lambda voice: chinese_samples if is_chinese_voice(voice) else english_samples,
        )
        kokoro.calibrate(DEFAULT_CHINESE_VOICE)
        return chinese, kokoro, tuple(voices)

    def _chinese_problem(self) -> str | None:
        absent = [name for name in _CHINESE_PACKAGES if importlib.util.find_spec(name) is None]
        if absent:
            return f"packages {', '.join(absent)} are not installed"
        default = KOKORO_VOICES[DEFAULT_CHINESE_VOICE]
        needed = (KOKORO_MODEL, KOKORO_VOCABULARY, default)
        fetch = f"`python -m services.tts.models fetch --model-dir {self._store.folder}`"
        if missing := self._store.missing(needed):
            names = ", ".join(asset.path for asset in missing)
            return f"{names} not below {self._store.folder}; run {fetch}"
        # WEIR-320: nothing is loaded that is not the pinned file.
        if corrupt := self._store.corrupt(needed):
            names = ", ".join(asset.path for asset in corrupt)
            return f"{names} differ from the pinned files; run {fetch}"
        return None


def _route(
    loaded: _Loaded,
    utterance: Utterance,
    sentence: Sentence,
    words: list[tuple[int, SourceWord]],
    omissions: Omissions,
) -> tuple[Phonemes, Speaker, str]:
    """Read one sentence and choose who speaks it. `words` have their place in the sentence."""
    chosen_is_chinese = is_chinese_voice(utterance.voice)
    numbers_are_chinese = loaded.chinese is not None and (
        utterance.language == "Chinese" or chosen_is_chinese or has_han(utterance.text)
    )
    if script_of(sentence.text, numbers_are_chinese) is Script.CHINESE:
        if loaded.chinese is None or loaded.kokoro is None:
            raise ModelUnavailableError("Chinese text needs the Kokoro files, which are missing")
        voice = utterance.voice if chosen_is_chinese else DEFAULT_CHINESE_VOICE
        return loaded.chinese.read(sentence.text, words, omissions), loaded.kokoro, voice
    plain = [(index, word.text) for index, word in words]
    phonemes = loaded.english.read(sentence.text, plain, omissions)
    if utterance.voice == VOICE or loaded.kokoro is None:
        return phonemes, loaded.hibari, VOICE
    return phonemes, loaded.kokoro, utterance.voice


def _with_words(
    text: str, words: tuple[SourceWord, ...], hibari: HibariVoice
) -> Iterator[tuple[Sentence, list[tuple[int, SourceWord]]]]:
    """Pair each sentence with its words: (index in the text, word with its place in the sentence).

    A word that a cut goes through is in both sentences, with the part that stands there.
    """
    index = 0
    for sentence in sentences(text, hibari.split_sentences):
        end = sentence.start + len(sentence.text)
        inside: list[tuple[int, SourceWord]] = []
        while index < len(words) and words[index].start < end:
            word = words[index]
            first = max(word.start, sentence.start) - sentence.start
            last = min(word.end, end) - sentence.start
            if first < last:
                part = SourceWord(sentence.text[first:last], first, last)
                inside.append((index, part))
            if word.end > end:
                break
            index += 1
        yield sentence, inside
