"""What the embedded adapter promises beyond the suite: routing, early seamless audio, gaps told."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from services.runtime.log_output import logging_to
from services.runtime.logging import LogSettings
from services.tts.adapters.base import (
    AudioStep,
    ModelUnavailableError,
    Samples,
    Utterance,
    VoiceAdapter,
    WordTimesStep,
)
from services.tts.adapters.embedded import kokoro_voice
from services.tts.adapters.embedded.normalisation import StatisticsPorts
from services.tts.models.manifest import KOKORO_MODEL, KOKORO_VOCABULARY, KOKORO_VOICES
from tests.conformance.adapters.cases import (
    EMBEDDED_PACKAGES,
    MODEL_DIR,
    embedded_lacking,
    packages_lacking,
    registered,
)
from tests.conformance.adapters.suite import speak

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning"),
]

FRAME = 600
CHINESE = "今天天气很好，我们一起去公园散步，然后回家吃饭。"


@pytest.fixture(scope="module")
def adapter() -> Iterator[VoiceAdapter]:
    """The whole adapter, or a skip that says what it lacks."""
    if (problem := embedded_lacking()) is not None:
        pytest.skip(problem)
    made = registered("embedded")
    made.load()
    yield made
    made.close()


@pytest.fixture
def english_only(tmp_path: Path) -> Iterator[VoiceAdapter]:
    """The adapter with an empty model folder."""
    if (problem := packages_lacking(EMBEDDED_PACKAGES)) is not None:
        pytest.skip(problem)
    made = registered("embedded", tmp_path)
    made.load()
    yield made
    made.close()


def spoken(adapter: VoiceAdapter, text: str, voice: str, language: str = "Auto") -> Samples:
    return speak(adapter, Utterance(text, voice, language, seed=3)).samples


@pytest.mark.parametrize(
    ("text", "language", "chosen", "speaks"),
    [
        ("你好。", "Auto", "heart", "zf_xiaobei"),
        ("你好。", "English", "heart", "zf_xiaobei"),
        ("用 Python 写。", "Auto", "heart", "zf_xiaobei"),
        ("你好。", "Auto", "am_adam", "zf_xiaobei"),
        ("12.5%", "Chinese", "heart", "zf_xiaobei"),
    ],
)
def test_chinese_text_has_a_chinese_voice_whatever_was_chosen(
    adapter: VoiceAdapter, text: str, language: str, chosen: str, speaks: str
) -> None:
    """WEIR-325: the text decides; an English voice cannot speak Chinese."""
    one, other = spoken(adapter, text, chosen, language), spoken(adapter, text, speaks, language)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("text", "language", "one", "other"),
    [
        ("你好。", "Auto", "zm_yunxi", "zf_xiaobei"),
        ("Hello.", "Auto", "zf_xiaobei", "heart"),
        ("Hello.", "Auto", "af_heart", "heart"),
    ],
)
def test_a_voice_that_can_speak_the_text_does(
    adapter: VoiceAdapter, text: str, language: str, one: str, other: str
) -> None:
    """WEIR-325: Chinese voices read English too, so a session keeps its speaker."""
    assert (
        spoken(adapter, text, one, language).tobytes()
        != spoken(adapter, text, other, language).tobytes()
    )


def test_digits_alone_follow_the_language(adapter: VoiceAdapter) -> None:
    """WEIR-325: only the request can say how a number is read."""
    english = spoken(adapter, "12.5%", "heart", "English")
    assert english.tobytes() == spoken(adapter, "12.5%", "heart").tobytes()
    assert english.tobytes() != spoken(adapter, "12.5%", "heart", "Chinese").tobytes()


@pytest.mark.parametrize("text", ["Hello there.", "你好，世界。"])
def test_speech_starts_at_once(adapter: VoiceAdapter, text: str) -> None:
    """WEIR-329: the models' third of a second of silence is not sent."""
    samples = spoken(adapter, text, "heart")
    loud = np.flatnonzero(np.abs(samples) > 0.05 * np.abs(samples).max())
    assert loud[0] < 0.15 * 24000
    assert len(samples) - loud[-1] < 0.9 * 24000


def test_the_first_chinese_step_is_short(adapter: VoiceAdapter) -> None:
    """WEIR-328: a step is one window, whatever the length of the sentence."""
    steps = adapter.synthesize(Utterance(CHINESE * 3, "zf_xiaobei"))
    lengths = [len(step.samples) // FRAME for step in steps if isinstance(step, AudioStep)]
    assert lengths[0] == kokoro_voice.FIRST_WINDOW_FRAMES
    longest = kokoro_voice.WINDOW_FRAMES + kokoro_voice.SHORTEST_WINDOW_FRAMES
    assert max(lengths) < longest


def test_windows_sound_as_the_whole_does(
    adapter: VoiceAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WEIR-328: same envelope within a few decibels, no step at the seams; without shared
    statistics it is clearly worse."""
    windowed = spoken(adapter, CHINESE, "zf_xiaobei")
    with monkeypatch.context() as patch:
        patch.setattr(StatisticsPorts, "feeds", _alone())
        alone = spoken(adapter, CHINESE, "zf_xiaobei")
        patch.setattr(kokoro_voice, "FIRST_WINDOW_FRAMES", 10_000)
        whole = spoken(adapter, CHINESE, "zf_xiaobei")
    assert len(windowed) == len(alone) == len(whole)
    with_statistics, without = (_difference_db(x, whole) for x in (windowed, alone))
    assert with_statistics < 4.0
    assert without > 1.15 * with_statistics
    steepest = np.abs(np.diff(windowed)).max()
    seams = range(
        kokoro_voice.FIRST_WINDOW_FRAMES * FRAME, len(windowed), kokoro_voice.WINDOW_FRAMES * FRAME
    )
    assert max(abs(float(windowed[at] - windowed[at - 1])) for at in seams) < 0.7 * steepest


def test_word_times_fall_where_the_words_are_heard(adapter: VoiceAdapter) -> None:
    """IO-INV-102: a pause that the text asks for is a pause in the audio between two words."""
    for text, before in (("Stop, then go. Now wait.", "go"), ("你好。我走了。", "好")):
        said = Utterance(text, "heart", word_times=True, seed=1)
        *steps, last = adapter.synthesize(said)
        samples = np.concatenate([s.samples for s in steps if isinstance(s, AudioStep)])
        assert isinstance(last, WordTimesStep)
        assert last.words is not None
        for word in last.words:
            inside = samples[int(word.start_s * 24000) : int(word.end_s * 24000)]
            assert np.sqrt(np.mean(inside**2)) > 0.01, word
        index = next(i for i, word in enumerate(last.words) if word.text == before)
        end, start = last.words[index].end_s, last.words[index + 1].start_s
        assert start - end > 0.1
        # An onset begins a little before its phoneme's frame, a vowel rings a little after.
        pause = samples[int((end + 0.05) * 24000) : int((start - 0.05) * 24000)]
        assert np.sqrt(np.mean(pause**2)) < 0.03


def problem_logged(adapter: VoiceAdapter) -> str:
    """Load; return why there is no Chinese, from the line that a process writes."""
    log = io.StringIO()
    with logging_to("tts", LogSettings(format="json"), log):
        adapter.load()
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (problem,) = [
        line["problem"] for line in lines if line["event"] == "chinese_voices_unavailable"
    ]
    return str(problem)


def test_without_the_files_it_speaks_english_and_says_so(tmp_path: Path) -> None:
    """WEIR-330: capabilities and log tell what is missing; English is as good as ever."""
    if (problem := packages_lacking(EMBEDDED_PACKAGES)) is not None:
        pytest.skip(problem)
    adapter = registered("embedded", tmp_path)
    problem = problem_logged(adapter)
    assert "kokoro/vocab.json" in problem
    assert "services.tts.models fetch" in problem
    capabilities = adapter.capabilities
    assert capabilities.languages == ("English",)
    assert [voice.name for voice in capabilities.voices] == ["heart"]
    assert capabilities.commitment("zh_en_special_v1", "Chinese") is None
    assert len(spoken(adapter, "Hello, 5 apples.", "heart")) > 24000
    adapter.close()


@pytest.mark.parametrize("text", ["你好", "Hello 你好"])
def test_chinese_without_its_files_is_refused_not_dropped(
    english_only: VoiceAdapter, text: str
) -> None:
    """WEIR-330: silence in place of words would be a lie."""
    with pytest.raises(ModelUnavailableError, match="Kokoro"):
        list(english_only.synthesize(Utterance(text, "heart")))


def test_a_model_file_that_is_not_the_pinned_one_is_not_loaded(tmp_path: Path) -> None:
    """WEIR-320: right name and size, wrong bytes."""
    if (problem := embedded_lacking()) is not None:
        pytest.skip(problem)
    for asset in (KOKORO_MODEL, KOKORO_VOCABULARY, KOKORO_VOICES["zf_xiaobei"]):
        target = tmp_path / asset.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(MODEL_DIR / asset.path, target)
    wrong = tmp_path / KOKORO_VOICES["zf_xiaobei"].path
    wrong.write_bytes(bytes(wrong.stat().st_size))
    adapter = registered("embedded", tmp_path)
    assert "zf_xiaobei.bin differ from the pinned files" in problem_logged(adapter)
    assert adapter.capabilities.languages == ("English",)
    adapter.close()


def test_speed_keeps_words_and_times_together(adapter: VoiceAdapter) -> None:
    """WEIR-110: twice as fast means half the time for the same words."""
    said = Utterance("One two three four five six seven.", "heart", word_times=True, seed=1)
    normal, fast = speak(adapter, said), speak(adapter, replace(said, speed=2.0))
    assert normal.words is not None
    assert fast.words is not None
    assert [w.text for w in normal.words] == [w.text for w in fast.words]
    assert fast.words[-1].end_s == pytest.approx(normal.words[-1].end_s / 2, rel=0.2)


def _alone() -> object:
    original = StatisticsPorts.feeds
    return lambda self, before, frames: original(self, None, frames)


def _difference_db(one: Samples, other: Samples) -> float:
    """Mean difference of the loud parts' envelopes in 20 bands, in decibels."""
    spectra = []
    for samples in (one, other):
        frames = np.lib.stride_tricks.sliding_window_view(samples, 1024)[::300] * np.hanning(1024)
        power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
        bands = np.array_split(power[:, 4:340], 20, axis=1)
        spectra.append(10 * np.log10(np.stack([b.mean(axis=1) for b in bands], axis=1) + 1e-6))
    loud = spectra[1].max(axis=1) > spectra[1].max() - 40
    return float(np.abs(spectra[0] - spectra[1])[loud].mean())
