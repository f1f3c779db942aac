"""Samples from one rate to another.

Owns: streaming resampling of one segment by soxr. Does not own: which rate is wanted
(`services.tts.planning`). Enforces: WEIR-185 (resampling keeps the duration to one sample).
"""

from __future__ import annotations

import numpy as np
import soxr

from services.tts.adapters.base import Samples


class Resampler:
    """Turns mono float32 samples at `source_hz` into samples at `target_hz`. One thread."""

    def __init__(self, source_hz: int, target_hz: int) -> None:
        self._stream = soxr.ResampleStream(source_hz, target_hz, 1, dtype="float32", quality="HQ")

    def process(self, samples: Samples) -> Samples:
        """Take the next samples; return those that are ready, shape [m], m may be 0."""
        return self._run(samples, last=False)

    def finish(self) -> Samples:
        """Return the samples that the filter still holds. Called once, last."""
        return self._run(np.zeros(0, np.float32), last=True)

    def _run(self, samples: Samples, *, last: bool) -> Samples:
        resampled: Samples = self._stream.resample_chunk(samples, last=last)
        return resampled
