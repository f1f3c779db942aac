"""What the tone adapter promises beyond the suite: exact times, settable speed, settable faults."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

from services.tts.adapters.base import AudioStep, ModelUnavailableError, Utterance, WordTimesStep
from services.tts.adapters.settings import AdapterSettings, parse_option_list
from services.tts.adapters.tone import ToneAdapter, ToneFailureError, ToneSettings

RATE = 1000
CHARACTER_MS = 10.0


def made(options: str = "", **fields: object) -> ToneAdapter:
    """A loaded adapter with 10 samples a character and 40 a step."""
    known = {"sample_rate_hz": RATE, "character_ms": CHARACTER_MS, "step_ms": 40.0} | fields
    settings = {name: str(value) for name, value in known.items()} | parse_option_list(options)
    adapter = ToneAdapter(AdapterSettings(options=settings))
    adapter.load()
    return adapter


def audio_of(adapter: ToneAdapter, utterance: Utterance) -> list[np.ndarray]:
    return [s.samples for s in adapter.synthesize(utterance) if isinstance(s, AudioStep)]


@pytest.mark.parametrize(
    ("text", "speed", "lengths"),
    [
        ("abcd", 1.0, [40]),
        ("abcde", 1.0, [40, 10]),
        ("a b.", 1.0, [40]),
        ("ab\u0301c", 1.0, [30]),
        ("abcd", 2.0, [20]),
        ("ab", 0.5, [40]),
        ("...", 1.0, []),
        ("\x00", 1.0, []),
    ],
)
def test_every_visible_character_lasts_the_same(
    text: str, speed: float, lengths: list[int]
) -> None:
    """WEIR-312: the length of the audio follows from the text alone."""
    steps = audio_of(made(), Utterance(text, "tone", speed=speed))
    assert [len(samples) for samples in steps] == lengths


def test_letters_sound_and_everything_else_is_silence() -> None:
    """WEIR-312: pitch is the character; white space and punctuation are rests."""
    (samples,) = audio_of(made(), Utterance("a b!", "tone"))
    loud = [bool(np.abs(part).max() > 0) for part in np.split(samples, 4)]
    assert loud == [True, False, True, False]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Utterance("abc", "tone"), Utterance("abd", "tone")),
        (Utterance("abc", "tone", seed=1), Utterance("abc", "tone", seed=2)),
        (Utterance("abc", "tone", seed=1), Utterance("abc", "tone", seed=-1)),
        (Utterance("abc", "tone"), Utterance("abc", "tone", seed=0)),
        (Utterance("abc", "tone"), Utterance("abc", "high")),
    ],
)
def test_text_seed_and_voice_change_the_audio(one: Utterance, other: Utterance) -> None:
    """WEIR-312: what a request asks for can be read back from the audio."""
    adapter = made()
    assert not np.array_equal(audio_of(adapter, one)[0], audio_of(adapter, other)[0])
    assert np.array_equal(audio_of(adapter, one)[0], audio_of(made(), one)[0])


@pytest.mark.parametrize(
    ("text", "speed", "times"),
    [
        ("ab cd!", 1.0, [("ab", 0.0, 0.02), ("cd", 0.03, 0.05)]),
        (" 你好", 1.0, [("你", 0.01, 0.02), ("好", 0.02, 0.03)]),
        ("ab cd", 2.0, [("ab", 0.0, 0.01), ("cd", 0.015, 0.025)]),
        ("!", 1.0, []),
    ],
)
def test_word_times_are_exact(
    text: str, speed: float, times: list[tuple[str, float, float]]
) -> None:
    """IO-INV-102: words of the raw text, with the times of their first and last beep."""
    *_, last = made().synthesize(Utterance(text, "tone", speed=speed, word_times=True))
    assert isinstance(last, WordTimesStep)
    assert last.words is not None
    assert [(w.text, round(w.start_s, 4), round(w.end_s, 4)) for w in last.words] == times


def test_an_alignment_that_failed_can_be_asked_for() -> None:
    """WEIR-312: audio whose words could not be aligned is good audio."""
    steps = list(made("align=0").synthesize(Utterance("ab", "tone", word_times=True)))
    assert isinstance(steps[0], AudioStep)
    assert steps[-1] == WordTimesStep(None)


@pytest.mark.parametrize(
    ("options", "text", "delivered"),
    [
        ("fail_after_steps=0", "abcdefgh", 0),
        ("fail_after_steps=1", "abcdefgh", 1),
        ("fail_after_steps=2", "abcdefgh", 2),
        ("fail_after_steps=9", "abcdefgh", 2),
        ("fail_marker=X", "abcdXfgh", 0),
        ("fail_marker=X,fail_after_steps=1", "abcdXfgh", 1),
        ("fail_after_steps=0", "...", 0),
    ],
)
def test_it_fails_where_it_was_told_to(options: str, text: str, delivered: int) -> None:
    """WEIR-313: faults come at a settable point; a point behind the end is the end."""
    steps = made(options).synthesize(Utterance(text, "tone"))
    assert len(list(islice(steps, delivered))) == delivered
    with pytest.raises(ToneFailureError):
        next(steps)


def test_texts_without_the_marker_are_spoken() -> None:
    """WEIR-313: a marker picks out the utterances that fail."""
    adapter = made("fail_marker=X,fail_after_steps=0")
    assert audio_of(adapter, Utterance("abcd", "tone"))


def test_a_number_of_failures_is_kept_to() -> None:
    """WEIR-313: with `fail_times` a repeated attempt succeeds."""
    adapter = made("fail_after_steps=0,fail_times=2")
    for _ in range(2):
        with pytest.raises(ToneFailureError):
            audio_of(adapter, Utterance("ab", "tone"))
    assert audio_of(adapter, Utterance("ab", "tone"))


def test_a_load_that_fails_says_so() -> None:
    """WEIR-313: as a model that is not there does."""
    with pytest.raises(ModelUnavailableError, match="told to fail"):
        made("fail_load=1")


@pytest.mark.parametrize("options", ["step_time_s=3600", "real_time_factor=1e6"])
def test_closing_ends_a_slow_step_at_once(options: str) -> None:
    """WEIR-313: a wait is interruptible, so ending the process waits for no step."""
    adapter = made(options)
    started, ended = threading.Event(), threading.Event()
    faults: list[Exception] = []

    def speak(steps: Iterator[object]) -> None:
        started.set()
        try:
            next(steps)
        except RuntimeError as error:
            faults.append(error)
        ended.set()

    thread = threading.Thread(target=speak, args=(adapter.synthesize(Utterance("ab", "tone")),))
    thread.start()
    assert started.wait(10)
    adapter.close()
    assert ended.wait(10)
    thread.join(10)
    assert "closed" in str(faults[0])


def test_closing_ends_a_slow_load_at_once() -> None:
    """WEIR-313: a load is interruptible too."""
    adapter = ToneAdapter(AdapterSettings(), ToneSettings(load_time_s=3600))
    thread = threading.Thread(target=adapter.load)
    thread.start()
    adapter.close()
    thread.join(10)
    assert not thread.is_alive()


def test_it_can_leave_speed_to_the_engine() -> None:
    """WEIR-312: an adapter without a native speed is stretched."""
    assert made("native_speed=0").native_speed is None
    assert made().native_speed == (0.25, 4.0)


@pytest.mark.parametrize(
    "options",
    [
        "sample_rate_hz=0",
        "character_ms=nan",
        "step_ms=-1",
        "step_time_s=-1",
        "real_time_factor=inf",
        "fail_after_steps=-1",
        "max_text_characters=0",
        "nope=1",
    ],
)
def test_settings_out_of_range_are_refused(options: str) -> None:
    """WEIR-311: a wrong setting never makes an adapter."""
    with pytest.raises(ValueError, match=r"is above 0|is at least 0|unknown option"):
        made(options)


def test_a_very_long_text_is_made_step_by_step() -> None:
    """WEIR-312: memory does not follow the length of the text."""
    steps = made().synthesize(Utterance("a" * 1_000_000, "tone"))
    assert [len(step.samples) for step in islice(steps, 3) if isinstance(step, AudioStep)] == [
        40
    ] * 3
