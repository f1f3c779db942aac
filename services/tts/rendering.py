"""From an adapter's samples to the bytes of a segment.

Owns: the chain of one segment: check, stretch, resample, cut, encode. Does not own: its links
(`stretching`, `resampling`, `audio`), threads. Runs on the worker thread of the segment. Enforces:
WEIR-187 (what is not audio never reaches a client), WEIR-188 (a segment has a greatest duration).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from contracts.errors import Reason, WeirError, failure
from services.tts.adapters.base import Samples
from services.tts.audio import chunks_of, make_encoder
from services.tts.planning import Plan
from services.tts.resampling import Resampler
from services.tts.stretching import Stretcher

MAX_OVERSHOOT = 8.0
"""Samples a little above 1 are clipped; beyond this they are no float audio (a wrong scale)."""


@dataclass(frozen=True, slots=True)
class RenderingLimits:
    """`chunk_ms` of audio at most in a raw chunk, `max_audio_s` at most in a segment."""

    chunk_ms: int
    max_audio_s: float


class Rendering:
    """The chain of one segment. Give it every block of samples in order, then `finish`."""

    def __init__(self, plan: Plan, limits: RenderingLimits) -> None:
        self._plan = plan
        self._limits = limits
        self._rate_hz = plan.output.sample_rate_hz
        self._taken = 0
        self._stretcher = Stretcher(plan.model_rate_hz, plan.stretch) if plan.stretch != 1 else None
        same_rate = plan.model_rate_hz == self._rate_hz
        self._resampler = None if same_rate else Resampler(plan.model_rate_hz, self._rate_hz)
        self._encoder = make_encoder(plan.output)
        self._piece = max(1, self._rate_hz * limits.chunk_ms // 1000)

    @property
    def total_samples(self) -> int:
        """Samples per channel at the output rate that the bytes hold."""
        return self._encoder.total_samples

    @property
    def audio_ms(self) -> int:
        """Whole milliseconds of audio that the bytes hold."""
        return self.total_samples * 1000 // self._rate_hz

    def render(self, samples: Samples) -> Iterator[bytes]:
        """Yield the chunks that `samples` (float32, shape [n], -1 to 1, model rate) complete.

        Raises WeirError(SEGMENT_FAILED) for what is not audio or goes beyond the greatest duration.
        """
        checked = _checked(samples)
        self._taken += len(checked)
        seconds = self._taken / self._plan.model_rate_hz / self._plan.stretch
        if seconds > self._limits.max_audio_s:
            # WEIR-188: a model that does not stop is stopped here.
            raise segment_failed(f"The audio is longer than {self._limits.max_audio_s:g} seconds.")
        yield from self._encode(self._convert(checked))

    def finish(self) -> Iterator[bytes]:
        """Yield the chunks that are still held back. Called once, last."""
        rest: Samples = np.zeros(0, np.float32)
        if self._stretcher is not None:
            rest = self._stretcher.finish()
        if self._resampler is not None:
            rest = np.concatenate([self._resampler.process(rest), self._resampler.finish()])
        yield from self._encode(rest)
        yield from chunks_of(self._encoder.finish())

    def _convert(self, samples: Samples) -> Samples:
        if self._stretcher is not None:
            samples = self._stretcher.process(samples)
        return samples if self._resampler is None else self._resampler.process(samples)

    def _encode(self, samples: Samples) -> Iterator[bytes]:
        # Cut before encoding: what the reader does not take is not encoded either.
        for start in range(0, len(samples), self._piece):
            yield from chunks_of(self._encoder.encode(samples[start : start + self._piece]))


def _checked(samples: object) -> Samples:
    """Return `samples` when they are float32 audio of shape [n] (WEIR-187)."""
    if not isinstance(samples, np.ndarray) or samples.dtype != np.float32 or samples.ndim != 1:
        raise segment_failed("The voice model gave audio that is not a row of float32 samples.")
    if len(samples):
        # One pass finds both: NaN makes every comparison false.
        loudest = max(-float(samples.min()), float(samples.max()))
        if not loudest <= MAX_OVERSHOOT:
            raise segment_failed(
                "The voice model gave samples that are not finite or far out of range."
            )
    return samples


def segment_failed(message: str) -> WeirError:
    """Return the error of a segment that the model could not speak; `message` is a fixed text."""
    return WeirError(failure(Reason.SEGMENT_FAILED, message))
