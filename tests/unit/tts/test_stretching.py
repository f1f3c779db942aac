"""Stretching of one segment."""

from __future__ import annotations

import numpy as np
import pytest

from services.tts.adapters.base import Samples
from services.tts.stretching import Stretcher
from tests.unit.tts.support import RATE_HZ, sine

SPEEDS = [0.25, 0.3, 0.5, 0.75, 0.99, 1.01, 1.5, 2.0, 3.0, 4.0]


def _stretch(samples: Samples, speed: float, block: int = 2400) -> Samples:
    stretcher = Stretcher(RATE_HZ, speed)
    parts = [stretcher.process(samples[i : i + block]) for i in range(0, len(samples), block)]
    return np.concatenate([*parts, stretcher.finish()])


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("count", [0, 1, 500, 48007])
def test_the_duration_is_exactly_what_the_speed_says(speed: float, count: int) -> None:
    """WEIR-186: for any length and any blocks, so scaled word times need no correction."""
    samples = sine(3)[:count]
    for block in (241, 5000):
        assert len(_stretch(samples, speed, block)) == round(count / speed)


@pytest.mark.parametrize("speed", SPEEDS)
def test_the_pitch_is_kept(speed: float) -> None:
    """WEIR-186: a tone of 440 Hz stays one within a hundredth."""
    stretched = _stretch(sine(3), speed)
    inner = stretched[len(stretched) // 10 : -len(stretched) // 10]
    spectrum = np.abs(np.fft.rfft(inner * np.hanning(len(inner))))
    peak_hz = float(np.argmax(spectrum)) * RATE_HZ / len(inner)
    assert peak_hz == pytest.approx(440, rel=0.01)


@pytest.mark.parametrize("speed", SPEEDS)
def test_the_end_is_heard(speed: float) -> None:
    """WEIR-186: up to the last 8 ms of what was spoken, which fade out, it is as loud as before."""
    stretched = _stretch(sine(1), speed)
    faded = round(0.008 * RATE_HZ / speed)
    end = stretched[-faded - RATE_HZ // 50 : -faded]
    assert float(np.sqrt(np.mean(end**2))) == pytest.approx(0.5 / np.sqrt(2), rel=0.15)


@pytest.mark.parametrize("speed", SPEEDS)
def test_samples_come_while_they_go_in_and_never_too_many(speed: float) -> None:
    """WEIR-186: output never runs ahead of its input, and does not wait for the end."""
    stretcher = Stretcher(RATE_HZ, speed)
    given = 0
    for block in range(1, 21):
        given += len(stretcher.process(sine(0.1)))
        assert given <= round(block * 2400 / speed)
    assert given > 0.5 * 48000 / speed


@pytest.mark.parametrize("speed", [0.25, 0.5, 1.5])
def test_the_duration_is_kept_even_when_the_filter_swallows_more_than_expected(
    speed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WEIR-186: what the filter keeps back becomes silence, not a shorter end."""
    monkeypatch.setattr("services.tts.stretching.TAIL_S", 0.0001)
    assert len(_stretch(sine(1), speed)) == round(RATE_HZ / speed)
