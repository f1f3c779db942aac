"""Resampling of one segment."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.modality import SAMPLE_RATES_HZ
from services.tts.adapters.base import Samples
from services.tts.resampling import Resampler
from tests.unit.tts.support import sine


def _resample(samples: Samples, source: int, target: int, block: int) -> Samples:
    resampler = Resampler(source, target)
    parts = [resampler.process(samples[i : i + block]) for i in range(0, len(samples), block)]
    return np.concatenate([*parts, resampler.finish()])


@pytest.mark.parametrize("target", SAMPLE_RATES_HZ)
@pytest.mark.parametrize("source", [16000, 22050, 24000, 44100])
@pytest.mark.parametrize("count", [0, 1, 37, 24007])
def test_the_duration_is_kept_to_one_sample(source: int, target: int, count: int) -> None:
    """WEIR-185: from any rate to any rate, for any length, whatever the blocks."""
    samples = sine(2, source)[:count]
    for block in (100, 4801):
        resampled = _resample(samples, source, target, block)
        assert abs(len(resampled) - count * target / source) <= 1
        assert resampled.dtype == np.float32


@pytest.mark.parametrize("target", [8000, 16000, 48000])
def test_the_sound_is_kept(target: int) -> None:
    """WEIR-185: a tone below both limits is the same tone, in place, not a shifted one."""
    resampled = _resample(sine(1), 24000, target, 2400)
    expected = sine(1, target)
    inner = slice(target // 20, -target // 20)
    assert np.max(np.abs(resampled[inner] - expected[inner])) < 1e-3


def test_samples_come_while_they_go_in() -> None:
    """WEIR-185: a block of 100 ms already gives most of itself; nothing waits for the end."""
    resampler = Resampler(24000, 8000)
    given = sum(len(resampler.process(sine(0.1))) for _ in range(3))
    assert given > 0.6 * 3 * 800
