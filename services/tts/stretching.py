"""Faster or slower speech at the same pitch.

Owns: streaming time stretching of one segment by FFmpeg's `atempo`. Does not own: which part of a
speed is stretched (`services.tts.planning`). Enforces: WEIR-186 (stretched audio is exactly as long
as the speed says, so that scaled word times stay true).
"""

from __future__ import annotations

import math
from fractions import Fraction

import av
import numpy as np
from av.filter import Graph
from numpy.typing import NDArray

from services.tts.adapters.base import Samples

TAIL_S = 0.25
"""Silence fed after the end: `atempo` keeps back up to a window of each stage (measured: at most
0.11 s of input at a speed of 0.25) and would swallow the last word's end. What stays of that is a
fade over the last few milliseconds."""


class Stretcher:
    """Plays mono float32 samples at `rate_hz` at `speed` times their speed. One thread."""

    def __init__(self, rate_hz: int, speed: float) -> None:
        self._rate_hz = rate_hz
        self._speed = speed
        self._taken = 0
        self._given = 0
        self._held: NDArray[np.float32] = np.zeros(0, np.float32)
        self._graph = _tempo_graph(rate_hz, speed)

    def process(self, samples: Samples) -> Samples:
        """Take the next samples; return those that are ready, shape [m], m may be 0."""
        if len(samples):
            self._push(samples)
            self._taken += len(samples)
        return self._release()

    def finish(self) -> Samples:
        """Return the rest, padded or cut to the exact duration. Called once, last."""
        taken = self._taken
        if not taken:
            return self._held
        self._push(np.zeros(math.ceil(self._rate_hz * TAIL_S * max(1.0, self._speed)), np.float32))
        self._graph.push(None)
        self._drain()
        missing = self._due() - self._given - len(self._held)
        if missing > 0:
            self._held = np.concatenate([self._held, np.zeros(missing, np.float32)])
        return self._release()

    def _due(self) -> int:
        return round(self._taken / self._speed)

    def _release(self) -> Samples:
        # WEIR-186: never ahead of the input, so that cutting at the end cannot come too late.
        self._drain()
        count = min(len(self._held), self._due() - self._given)
        ready, self._held = self._held[:count], self._held[count:]
        self._given += count
        return ready

    def _push(self, samples: Samples) -> None:
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="flt", layout="mono")
        frame.sample_rate = self._rate_hz
        frame.time_base = Fraction(1, self._rate_hz)
        frame.pts = self._taken
        self._graph.push(frame)

    def _drain(self) -> None:
        parts = [self._held]
        while True:
            try:
                frame = self._graph.pull()
            except (av.BlockingIOError, av.EOFError):
                break
            parts.append(frame.to_ndarray().reshape(-1).astype(np.float32, copy=False))
        self._held = np.concatenate(parts)


def _tempo_graph(rate_hz: int, speed: float) -> Graph:
    # One atempo is good from 0.5 to 2; beyond that equal stages share the speed.
    stages = max(1, math.ceil(abs(math.log2(speed)) - 1e-9))
    graph = Graph()
    last = graph.add_abuffer(format="flt", sample_rate=rate_hz, layout="mono")
    for _ in range(stages):
        tempo = graph.add("atempo", f"{speed ** (1 / stages):.9f}")
        last.link_to(tempo)
        last = tempo
    sink = graph.add("abuffersink")
    last.link_to(sink)
    graph.configure()
    return graph
